//! One binary of tests on real parts; modules mirror the product.

mod queue;
mod tidy;
