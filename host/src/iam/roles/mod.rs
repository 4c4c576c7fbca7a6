//! Roles: named sets of permissions. **A Role is immutable**: its tag is a constant, a change is a new Role.

mod model;
pub(crate) mod routes;
pub(super) mod store;
