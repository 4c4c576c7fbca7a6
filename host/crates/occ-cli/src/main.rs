//! occ
fn main() {}
