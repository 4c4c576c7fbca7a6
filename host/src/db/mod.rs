//! PostgreSQL: the pool, the transaction and the reading of refused constraints.
//!
//! **Nothing external happens inside a transaction**: no plugin call, no HTTP, no file.

mod constraint;
mod decode;
mod pool;
mod tx;

pub use constraint::{Violation, violation};
pub use decode::{bigint, count, id, id_opt, ids, word, word_text};
pub use pool::{PoolConfig, Role, connect};
pub use sqlx::{PgConnection, PgPool};
pub use tx::{Tx, begin};
