//! occ
