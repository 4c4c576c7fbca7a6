//! AccessBindings: a Role for a subject, on the Installation, in a Namespace, or on one resource.
//!
//! **A caller hands out and takes away only what it holds itself** (`coverage`), and after each removal
//! at Installation level somebody must still be able to administer it.

mod model;
pub(crate) mod routes;
pub(super) mod store;
