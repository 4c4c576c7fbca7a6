//! The contract's own types and functions, generated from `/wit/occ-plugin/v0.1`.

pub use bindings_compute as compute_driver;
pub use bindings_compute::exports::occ::plugin::compute;
pub use bindings_compute::occ::plugin::{kubernetes, log, process, settings, types, workload};
pub use bindings_harness as harness_resolver;
pub use bindings_harness::exports::occ::plugin::harness;
