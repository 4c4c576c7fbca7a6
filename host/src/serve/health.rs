//! `occ-host health`: asks a running process through its own listener.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use crate::config::Environment;

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Which process is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum HealthTarget {
    /// The API, on its own listener.
    Api,
    /// The worker, on its private listener.
    Worker,
}

/// Asks and tells: exit 0 when well, 1 when not, 2 when the environment does not say where to ask.
pub async fn health(target: HealthTarget, live: bool, mut environment: Environment) -> ExitCode {
    let host = environment.value("OCC_HOST").and_then(|host| host.parse::<IpAddr>().ok());
    let name = match target {
        HealthTarget::Api => "OCC_PORT",
        HealthTarget::Worker => "OCC_METRICS_PORT",
    };
    let Some(port) = environment.value(name).and_then(|port| port.parse::<u16>().ok()) else {
        return told(2, &format!("error: {name} must be the port of the running process"));
    };
    let address = SocketAddr::new(host.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)), port);
    let path = if live { "healthz" } else { "readyz" };
    let client = match reqwest::Client::builder().no_proxy().timeout(ANSWER_MAX).build() {
        Ok(client) => client,
        Err(error) => return told(1, &format!("error: {error}")),
    };
    match client.get(format!("http://{address}/{path}")).send().await {
        Ok(answer) if answer.status().is_success() => ExitCode::SUCCESS,
        Ok(answer) => told(1, &format!("{path}: {}", answer.status())),
        Err(error) => told(1, &format!("{path}: no answer: {}", error.without_url())),
    }
}

#[expect(clippy::print_stderr, reason = "the command's own output")]
fn told(code: u8, text: &str) -> ExitCode {
    eprintln!("{text}");
    ExitCode::from(code)
}
