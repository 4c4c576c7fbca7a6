//! The one source of randomness: ids, keys, jitter. Tests give it a seed.

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use uuid::{Builder, Uuid};

/// Draws ids and random bytes; cheap to clone.
#[derive(Debug, Clone)]
pub struct Ids {
    random: Arc<Mutex<StdRng>>,
}

impl Ids {
    /// Seeded by the operating system.
    #[must_use]
    pub fn system() -> Self {
        Self { random: Arc::new(Mutex::new(rand::make_rng())) }
    }

    /// Repeatable, for tests.
    #[must_use]
    pub fn seeded(seed: u64) -> Self {
        Self { random: Arc::new(Mutex::new(StdRng::seed_from_u64(seed))) }
    }

    /// A random UUID, version 4, variant 8–b.
    #[must_use]
    pub fn uuid(&self) -> Uuid {
        Builder::from_random_bytes(self.bytes()).into_uuid()
    }

    /// `N` unpredictable bytes.
    #[must_use]
    pub fn bytes<const N: usize>(&self) -> [u8; N] {
        let mut bytes = [0; N];
        self.with(|random| random.fill_bytes(&mut bytes));
        bytes
    }

    /// A fraction in `[0, 1)`.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        self.with(|random| random.random::<f64>())
    }

    fn with<T>(&self, draw: impl FnOnce(&mut StdRng) -> T) -> T {
        draw(&mut self.random.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
