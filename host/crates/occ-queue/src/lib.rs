//! Durable work on PostgreSQL: lanes, leases, epochs and bounds.
//!
//! A *row* of work belongs to a *lane* (one Agent, or one Namespace). At most
//! one row of a lane is claimed at a time. A claim is a lease with a token: a
//! worker that lost its lease writes nothing, neither here nor outside.
//!
//! **This crate knows leases, lanes, steps and bounds.** It knows no Agent, no
//! HTTP and no driver: what a kind of work does stands in the [`Handler`].
//!
//! Reading order: `model` (what a row is), `enqueue`, `claim`, `lease`, `pass`
//! and `handler` (what a kind sees and answers), `finish`, `worker` (the loop,
//! recovery, drain). The transitions themselves are functions of the database,
//! one round trip each: `migrations/20261201031000_work_functions_create.sql`.
//!
//! **Lock order, everywhere: domain row, then `work_lane`, then `work`.**

mod claim;
mod code;
mod enqueue;
mod error;
mod finish;
mod handler;
mod hint;
mod lease;
mod model;
mod pass;
mod schedule;
mod settings;
mod stats;
mod worker;

pub use claim::Claim;
pub use code::{CODE_BYTES_MAX, Code};
pub use enqueue::{arm_upkeep, enqueue, find, reset, sweep_lanes, wake};
pub use error::QueueError;
pub use finish::{Outcome, Transition};
pub use handler::Handler;
pub use hint::Hints;
pub use model::{Enqueued, NewWork, Owner, Phase, State, WorkRow};
pub use pass::{Cadence, Done, Effect, GiveUp, Pass, Stop, Verdict};
pub use schedule::Random;
pub use settings::{ATTEMPTS_MAX_DEFAULT, Settings};
pub use stats::{BUCKETS, Counts, Histogram, Pending, Stats, pending};
pub use worker::{Database, Worker};
