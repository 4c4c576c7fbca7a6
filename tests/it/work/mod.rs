//! The worker's steps against a compute double, on a real PostgreSQL: lifecycles, rollback, every crash window.

mod chaos;
mod compute;
mod deletion;
mod deploy;
mod lost;
mod namespaces;
mod rollback;
mod steps;
mod upkeep;
mod world;
