//! PostgreSQL: the pool, the transaction and the reading of refused constraints.
//!
//! **Nothing external happens inside a transaction**: no plugin call, no HTTP, no file.

mod constraint;
mod pool;
mod tx;

pub use constraint::{Violation, violation};
pub use pool::{PoolConfig, Role, connect};
pub use tx::{Tx, begin};
