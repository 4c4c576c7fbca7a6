//! Durable work on PostgreSQL: lanes, leases, epochs and bounds.
//!
//! A *row* of work belongs to a *lane* (one Agent, or one Namespace). At most
//! one row of a lane is claimed at a time. A claim is a lease with a token: a
//! worker that lost its lease writes nothing, neither here nor outside.
//!
//! **This crate knows leases, lanes, steps and bounds.** It knows no Agent, no
//! HTTP and no driver: what a kind of work does stands in the [`Handler`].
//!
//! Reading order: [`model`](NewWork) (what a row is), `enqueue`, `claim`,
//! `finish`, `recovery`, then `pass` (what a handler sees) and `worker` (the
//! loop).
//!
//! **Lock order, everywhere: domain row, then `work_lane`, then `work`.**

mod code;
mod enqueue;
mod error;
mod hint;
mod model;
mod pass;
mod settings;

pub use code::Code;
pub use enqueue::{arm_upkeep, enqueue, find, reset, wake};
pub use error::QueueError;
pub use hint::Hints;
pub use model::{Enqueued, NewWork, Owner, Phase, State, WorkRow};
pub use pass::{Cadence, Verdict};
pub use settings::Settings;
