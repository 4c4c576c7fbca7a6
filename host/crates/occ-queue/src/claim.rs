//! Claiming: one statement takes the head of each due lane, oldest lane first.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::Instant;
use uuid::Uuid;

use crate::{Code, Owner, Phase, QueueError};

/// Which share of the slots a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    User,
    Upkeep,
}

/// A row under our lease, as it stood when it was claimed.
#[derive(Clone, Debug)]
pub struct Claim {
    /// The row's key.
    pub key: String,
    /// `noun.verb`.
    pub kind: String,
    /// Whom it is about.
    pub owner: Owner,
    /// Who asked for it.
    pub actor_id: String,
    /// Maintenance?
    pub upkeep: bool,
    /// Which way it works.
    pub phase: Phase,
    /// Last step that was committed.
    pub step: Option<String>,
    /// Predecessor, written when the row published.
    pub previous_revision_id: Option<String>,
    /// This attempt, counted from 1.
    pub attempt: i32,
    /// Attempts before the row settles.
    pub attempts_max: i32,
    /// Claims so far, this one included.
    pub passes: i32,
    /// Code of the last transition.
    pub code: Option<String>,
    /// Why a rollback began, or why one more attempt was given.
    pub cause: Option<String>,
    /// Fence of this claim: no other claim of the lane ever had or has it.
    pub epoch: i64,
    /// Objects with a fence below this one are written anew even when in order:
    /// a request of an earlier claim may still be in flight.
    pub fence_floor: i64,
    /// W3C trace context of the request that enqueued it.
    pub traceparent: Option<String>,
    /// Age of the row's phase when it was claimed.
    pub age: Duration,
    /// Time between due and claimed.
    pub latency: Duration,
    /// When waiting ends.
    pub deadline: Option<Instant>,
    /// When the claim was sent: the lease is counted from here.
    pub claimed_at: Instant,
    pub(crate) token: Uuid,
}

impl Claim {
    /// True when the attempts are used up: no effect, only the terminal hook.
    #[must_use]
    pub fn settling(&self) -> bool {
        self.attempt > self.attempts_max
    }

    /// The lane.
    #[must_use]
    pub fn lane(&self) -> &str {
        self.owner.lane()
    }

    /// The token that proves the claim to functions of the database.
    #[must_use]
    pub fn token(&self) -> Uuid {
        self.token
    }

    /// Why a settling row ends: its lease lapsed, or its attempts are used up.
    pub(crate) fn settle_code(&self) -> Code {
        match self.code.as_deref() {
            Some("LEASE_EXPIRED") => Code::new("LEASE_EXPIRED"),
            _ => Code::new("MAX_ATTEMPTS_EXHAUSTED"),
        }
    }
}

/// What one claim statement brought.
#[derive(Debug, Default)]
pub(crate) struct Claims {
    pub(crate) claims: Vec<Claim>,
    /// Lanes that were due and had no row to take; they need settling.
    pub(crate) headless: Vec<String>,
}

/// Parameters of a claim.
#[derive(Debug)]
pub(crate) struct Look<'a> {
    pub(crate) kinds: &'a [String],
    pub(crate) skip: &'a [String],
    pub(crate) rows: usize,
    pub(crate) lease: Duration,
    pub(crate) convergence: Duration,
    pub(crate) worker_id: &'a str,
}

struct Row {
    lane: String,
    fence_floor: i64,
    key: Option<String>,
    kind: Option<String>,
    namespace_id: Option<String>,
    agent_id: Option<String>,
    revision_id: Option<String>,
    actor_id: Option<String>,
    upkeep: Option<bool>,
    phase: Option<String>,
    step: Option<String>,
    previous_revision_id: Option<String>,
    attempt: Option<i32>,
    attempts_max: Option<i32>,
    passes: Option<i32>,
    reason_code: Option<String>,
    cause_code: Option<String>,
    epoch: Option<i64>,
    traceparent: Option<String>,
    lease_token: Option<Uuid>,
    age: Option<f64>,
    latency: Option<f64>,
    deadline_in: Option<f64>,
}

/// The statement of both classes; only the due column and the class differ.
/// A lane held by somebody's transaction is skipped, not waited for.
macro_rules! claim {
    ($due:literal, $class:literal, $look:expr, $rows:expr) => {
        sqlx::query_as!(
            Row,
            "with lane as (
               select l.lane, l.epoch + 1 as epoch, l.fence_floor from occ.work_lane l
                where not l.busy and l." + $due + " <= now() and l.hold_until <= now() and l.lane <> all($1)
                order by l." + $due + ", l.lane limit $2
                  for no key update skip locked
             ), head as (
               select lane.lane, lane.epoch, w.key from lane cross join lateral (
                 select q.key from occ.work q
                  where q.lane = lane.lane and q.state = 'queued' and q.upkeep = " + $class + "
                    and q.available_at <= now() and q.kind = any($3)
                  order by q.available_at, q.created_at, q.key limit 1 for no key update skip locked) w
             ), taken as (
               update occ.work w
                  set state = 'claimed', lease_token = gen_random_uuid(),
                      lease_until = clock_timestamp() + make_interval(secs => $4), epoch = head.epoch,
                      worker_id = $5, begun = false, attempt = least(w.attempt, w.attempts_max) + 1,
                      passes = w.passes + 1, last_attempt_at = clock_timestamp(), updated_at = clock_timestamp()
                 from head where w.key = head.key returning w.*
             ), marked as (
               update occ.work_lane l set busy = true, epoch = t.epoch from taken t where l.lane = t.lane
             )
             select lane.lane as \"lane!\", lane.fence_floor as \"fence_floor!\", t.key as \"key?\",
                    t.kind as \"kind?\", t.namespace_id as \"namespace_id?\", t.agent_id, t.revision_id,
                    t.actor_id as \"actor_id?\", t.upkeep as \"upkeep?\", t.phase as \"phase?\", t.step,
                    t.previous_revision_id, t.attempt as \"attempt?\", t.attempts_max as \"attempts_max?\",
                    t.passes as \"passes?\", t.reason_code, t.cause_code, t.epoch as \"epoch?\", t.traceparent,
                    t.lease_token as \"lease_token?\",
                    extract(epoch from now() - coalesce(t.deadline_at - make_interval(secs => $6), t.created_at)
                      )::float8 as age,
                    extract(epoch from now() - t.available_at)::float8 as latency,
                    extract(epoch from t.deadline_at - clock_timestamp())::float8 as deadline_in
               from lane left join taken t on t.lane = lane.lane",
            $look.skip,
            $rows,
            $look.kinds,
            $look.lease.as_secs_f64(),
            $look.worker_id,
            $look.convergence.as_secs_f64(),
        )
    };
}

/// Claims up to `rows` rows of one class, at most one per lane.
pub(crate) async fn claim(pool: &PgPool, class: Class, look: &Look<'_>) -> Result<Claims, QueueError> {
    let rows = i64::try_from(look.rows).unwrap_or(i64::MAX);
    let sent = Instant::now();
    let rows = match class {
        Class::User => claim!("due_at", "false", look, rows).fetch_all(pool).await?,
        Class::Upkeep => claim!("upkeep_due_at", "true", look, rows).fetch_all(pool).await?,
    };
    let mut claims = Claims::default();
    for row in rows {
        let lane = row.lane.clone();
        match read(row, sent) {
            Some(claim) => claims.claims.push(claim),
            None => claims.headless.push(lane),
        }
    }
    Ok(claims)
}

fn read(row: Row, sent: Instant) -> Option<Claim> {
    Some(Claim {
        key: row.key?,
        kind: row.kind?,
        owner: Owner {
            namespace_id: row.namespace_id?,
            agent_id: row.agent_id,
            revision_id: row.revision_id,
        },
        actor_id: row.actor_id?,
        upkeep: row.upkeep?,
        phase: Phase::parse(&row.phase?)?,
        step: row.step,
        previous_revision_id: row.previous_revision_id,
        attempt: row.attempt?,
        attempts_max: row.attempts_max?,
        passes: row.passes?,
        code: row.reason_code,
        cause: row.cause_code,
        epoch: row.epoch?,
        fence_floor: row.fence_floor,
        traceparent: row.traceparent,
        age: seconds(row.age),
        latency: seconds(row.latency),
        deadline: row.deadline_in.map(|left| sent + seconds(Some(left))),
        claimed_at: sent,
        token: row.lease_token?,
    })
}

/// Seconds of the database as a duration; a negative one is none.
fn seconds(value: Option<f64>) -> Duration {
    Duration::try_from_secs_f64(value.unwrap_or(0.0)).unwrap_or(Duration::ZERO)
}

/// What a headless lane turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settled {
    /// Nothing is due there (any more).
    Quiet,
    /// A row that we know is due: look again at once.
    Due,
    /// Only rows of kinds that we do not know are due.
    Foreign,
}

/// Recomputes what is due in a lane, and says whether looking again is worth it.
pub(crate) async fn settle_lane(
    pool: &PgPool,
    lane: &str,
    kinds: &[String],
) -> Result<(bool, Settled), QueueError> {
    let repaired = sqlx::query_scalar!(r#"select occ.work_lane_settle($1) as "repaired!""#, lane)
        .fetch_one(pool)
        .await?;
    let due = sqlx::query!(
        r#"select coalesce(bool_or(w.kind = any($2)), false) as "known!", count(*) as "rows!" from (
             select q.kind from occ.work q
              where q.lane = $1 and q.state = 'queued' and q.available_at <= now() limit 100) w"#,
        lane,
        kinds
    )
    .fetch_one(pool)
    .await?;
    let settled = match (due.rows, due.known) {
        (0, _) => Settled::Quiet,
        (_, true) => Settled::Due,
        (_, false) => Settled::Foreign,
    };
    Ok((repaired, settled))
}
