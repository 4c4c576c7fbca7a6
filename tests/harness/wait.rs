//! Waiting without sleeping blindly: ask again until it holds or patience ends.

use std::future::Future;
use std::time::{Duration, Instant};

/// How long [`eventually`] asks, unless `OCC_TEST_PATIENCE_SECS` says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);
/// Pause between two questions.
const PAUSE: Duration = Duration::from_millis(25);

/// Patience of this run.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "the environment of a test run")]
pub fn patience() -> Duration {
    std::env::var("OCC_TEST_PATIENCE_SECS")
        .ok()
        .and_then(|text| text.parse().ok())
        .map_or(PATIENCE, Duration::from_secs)
}

/// Asks until the answer is `Ok`; the last `Err` is the panic's text when patience ends.
///
/// # Panics
/// When patience ends.
#[expect(clippy::panic, reason = "ends the test")]
pub async fn eventually<T, F, Fut>(what: &str, ask: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    match within(patience(), ask).await {
        Ok(value) => value,
        Err(last) => panic!("{what}: not within {:?}: {last}", patience()),
    }
}

/// Asks until the answer is `Ok` or the time is up.
///
/// # Errors
/// The last answer.
pub async fn within<T, F, Fut>(limit: Duration, mut ask: F) -> Result<T, String>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<T, String>>,
{
    let begun = Instant::now();
    loop {
        match ask().await {
            Ok(value) => return Ok(value),
            Err(last) if begun.elapsed() >= limit => return Err(last),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
