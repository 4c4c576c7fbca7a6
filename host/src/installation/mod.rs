//! The Installation: the one row that everything else belongs to. Made by `bootstrap`, never changed.

pub(crate) mod routes;
mod store;
