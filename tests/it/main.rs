//! One binary of tests on real parts; modules mirror the product.

#[cfg(test)]
mod api;
#[cfg(test)]
mod bootstrap;
#[cfg(test)]
mod cli;
#[cfg(test)]
mod drivers;
#[cfg(test)]
mod flows;
#[cfg(test)]
mod queue;
#[cfg(test)]
mod tidy;
#[cfg(test)]
mod upgrade;
#[cfg(test)]
mod work;
