//! What the tests share: a private database, a host on a free port, doubles, patience.

pub mod wait;
