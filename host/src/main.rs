//! occ-host
fn main() {}
