//! Service keys: the credentials of ServicePrincipals. Shown once, stored as a hash, never changed;
//! revocation sets one column once.

mod model;
pub(crate) mod routes;
mod store;
