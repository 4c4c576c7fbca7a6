//! See the cases below.
