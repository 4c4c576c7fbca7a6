//! The queue on a real PostgreSQL: enqueue, claims, leases, transitions, the worker's loop.

mod claims;
mod enqueue;
mod leases;
mod support;
mod transitions;
mod worker;
