//! One binary of tests on real parts; modules mirror the product.

mod drivers;
mod queue;
mod tidy;
