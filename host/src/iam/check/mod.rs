//! can-i and explain: what policy says about a request that nobody makes.
//!
//! **Nothing is looked up**: an answer says what is granted on that id, not that the id exists.

mod model;
pub(crate) mod routes;
