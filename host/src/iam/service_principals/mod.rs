//! ServicePrincipals: identities of automation, of the Installation or of one Namespace.
//!
//! **The principal of an Agent is none of them**: it is made and removed with its Agent, is left out of
//! lists, and cannot be removed here.

pub(crate) mod routes;
pub(super) mod store;
