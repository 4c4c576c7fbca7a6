//! What a row of work is: owners, state, and the result of an enqueue.

use std::time::Duration;

use crate::settings::ATTEMPTS_MAX_DEFAULT;

/// Whom a row is about. The lane is the Agent, else the Namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The Namespace.
    pub namespace_id: String,
    /// The Agent, for work on one.
    pub agent_id: Option<String>,
    /// The revision, for work on one; needs an Agent.
    pub revision_id: Option<String>,
}

impl Owner {
    /// Work on a Namespace itself.
    pub fn namespace(namespace_id: impl Into<String>) -> Self {
        Self { namespace_id: namespace_id.into(), agent_id: None, revision_id: None }
    }

    /// Work on an Agent.
    pub fn agent(namespace_id: impl Into<String>, agent_id: impl Into<String>) -> Self {
        Self { agent_id: Some(agent_id.into()), ..Self::namespace(namespace_id) }
    }

    /// Work on one revision of an Agent.
    pub fn revision(
        namespace_id: impl Into<String>,
        agent_id: impl Into<String>,
        revision_id: impl Into<String>,
    ) -> Self {
        Self { revision_id: Some(revision_id.into()), ..Self::agent(namespace_id, agent_id) }
    }

    /// The lane: of the rows of one lane at most one is claimed.
    #[must_use]
    pub fn lane(&self) -> &str {
        self.agent_id.as_deref().unwrap_or(&self.namespace_id)
    }
}

/// A row to enqueue. The payload is the key and the owners: a pass reads the
/// live state and never trusts what was true when the row was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWork {
    /// Unique for all time, 1 to 512 characters. A second enqueue of the same
    /// key, kind, owner and actor changes nothing.
    pub key: String,
    /// `noun.verb`.
    pub kind: &'static str,
    /// Whom it is about.
    pub owner: Owner,
    /// Who asked for it; decided anew at each pass.
    pub actor_id: String,
    /// Maintenance: its own share of the slots, and its key may be armed again.
    pub upkeep: bool,
    /// Attempts before the row settles.
    pub attempts_max: i32,
    /// Time until a row that still waits gives up; counts from enqueue.
    pub deadline: Option<Duration>,
    /// Time until the first claim.
    pub delay: Duration,
    /// W3C trace context of the request.
    pub traceparent: Option<String>,
}

impl NewWork {
    /// Work that somebody asked for: at once, 5 attempts, no deadline.
    pub fn user(
        key: impl Into<String>,
        kind: &'static str,
        owner: Owner,
        actor_id: impl Into<String>,
    ) -> Self {
        Self {
            key: key.into(),
            kind,
            owner,
            actor_id: actor_id.into(),
            upkeep: false,
            attempts_max: ATTEMPTS_MAX_DEFAULT,
            deadline: None,
            delay: Duration::ZERO,
            traceparent: None,
        }
    }

    /// Maintenance by the product itself, for [`arm_upkeep`](crate::arm_upkeep).
    pub fn upkeep(
        key: impl Into<String>,
        kind: &'static str,
        owner: Owner,
        actor_id: impl Into<String>,
    ) -> Self {
        Self { upkeep: true, ..Self::user(key, kind, owner, actor_id) }
    }

    /// Gives the row a deadline, counted from enqueue.
    #[must_use]
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Changes the number of attempts before the row settles.
    #[must_use]
    pub fn attempts_max(self, attempts_max: i32) -> Self {
        Self { attempts_max, ..self }
    }

    /// Delays the first claim.
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { delay, ..self }
    }
}

/// What became of an enqueue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// A new row.
    New,
    /// The same row was there already and was not touched.
    Already,
    /// The key is taken by a row of another kind, owner or actor.
    Conflict,
}

/// Where a row stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for its time and a free lane.
    Queued,
    /// Under a lease, live or lapsed.
    Claimed,
    /// Ended well.
    Succeeded,
    /// Ended badly; nothing but a user's retry moves it.
    FailedPermanent,
}

impl State {
    /// The state as the table writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Claimed => "claimed",
            Self::Succeeded => "succeeded",
            Self::FailedPermanent => "failed_permanent",
        }
    }

    /// Reads what [`as_str`](Self::as_str) wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Queued, Self::Claimed, Self::Succeeded, Self::FailedPermanent]
            .into_iter()
            .find(|state| state.as_str() == text)
    }

    /// True once nothing but a user's retry moves the row.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::FailedPermanent)
    }
}

/// Which way a row works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Towards what was asked for.
    Forward,
    /// Back to what served before.
    Rollback,
}

impl Phase {
    /// The phase as the table writes it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Rollback => "rollback",
        }
    }

    /// Reads what [`as_str`](Self::as_str) wrote.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Forward, Self::Rollback].into_iter().find(|phase| phase.as_str() == text)
    }
}

/// One row as others may see it: no token, no worker.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRow {
    /// Unique key.
    pub key: String,
    /// `noun.verb`.
    pub kind: String,
    /// Whom it is about.
    pub owner: Owner,
    /// Who asked for it.
    pub actor_id: String,
    /// Maintenance?
    pub upkeep: bool,
    /// Where it stands.
    pub state: State,
    /// Which way it works.
    pub phase: Phase,
    /// Last step that was committed.
    pub step: Option<String>,
    /// Attempts spent.
    pub attempt: i32,
    /// Attempts before it settles.
    pub attempts_max: i32,
    /// Every claim, refunded or not.
    pub passes: i32,
    /// Code of the last transition.
    pub code: Option<String>,
    /// Why a rollback began, or why one more attempt was given.
    pub cause: Option<String>,
    /// Closed document of a terminal row.
    pub result: Option<serde_json::Value>,
}
