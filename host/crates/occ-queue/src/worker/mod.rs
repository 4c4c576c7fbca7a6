//! The loop: progress mark, recovery, claim up to the free slots, one task per
//! claim, then wait for a hint, a freed slot or the poll.
//!
//! **An error in a pass or a statement is logged; the loop ends only on shutdown.**

mod recovery;
mod run_pass;
mod slots;

use std::{collections::HashMap, sync::Arc};

use sqlx::PgPool;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
    time::{Instant, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Handler, Hints, QueueError, Settings, Stats,
    claim::{self, Claim, Claims, Class, Look, Settled},
    finish::{self, Finisher},
    hint,
    pass::Pass,
    schedule::{self, Random},
    settings::{SKIP_LANES_MAX, SKIP_UNKNOWN},
};

use self::{recovery::Recovery, run_pass::Context, slots::Slots};

/// Longest wait for the listener before the first claim; polling goes on without it.
const LISTENER_WAIT: std::time::Duration = std::time::Duration::from_secs(2);
/// With a backlog, freed slots wait this long for others.
const GATHER_MAX: std::time::Duration = std::time::Duration::from_millis(2);
/// Looks in a row without rest, when lanes turned out to be due after all.
const LOOKS_IN_A_ROW_MAX: u32 = 3;

/// How a worker reaches PostgreSQL.
#[derive(Clone, Debug)]
pub struct Database {
    /// Transitions, with the handler's evidence.
    pub pool: PgPool,
    /// Claims and renewals: kept apart so that a slow step cannot starve them.
    pub leases: PgPool,
    /// The listener's own connection. None: polling alone (a transaction pooler).
    pub listener: Option<PgPool>,
}

impl From<PgPool> for Database {
    fn from(pool: PgPool) -> Self {
        Self { leases: pool.clone(), listener: Some(pool.clone()), pool }
    }
}

/// One worker. Any number of them share a queue.
#[derive(Debug)]
pub struct Worker<H> {
    context: Arc<Context<H>>,
    listener: Option<PgPool>,
    hints: Hints,
    kinds: Vec<String>,
    drop_at_drain: CancellationToken,
}

/// What the loop keeps between two rounds.
struct Round {
    slots: Slots,
    passes: JoinSet<Class>,
    skip: HashMap<String, Instant>,
    recovery: Recovery,
    upkeep_looked: Option<Instant>,
    /// The last look took all it asked for: there is more, so claims are worth collecting too.
    backlog: bool,
    looks: u32,
}

impl<H: Handler> Worker<H> {
    /// A worker that begins with [`run`](Self::run).
    pub fn new(db: impl Into<Database>, settings: Settings, handler: H, random: Random) -> Self {
        let db = db.into();
        let kinds = handler.kinds().iter().map(|kind| (*kind).to_owned()).collect();
        let stats = Arc::new(Stats::new(settings.slots));
        let drop_at_drain = CancellationToken::new();
        let context = Context {
            pool: db.pool,
            leases: db.leases,
            handler: Arc::new(handler),
            settings,
            random,
            stats,
            draining: CancellationToken::new(),
            drop_at_drain: drop_at_drain.clone(),
        };
        Self {
            context: Arc::new(context),
            listener: db.listener,
            hints: Hints::default(),
            kinds,
            drop_at_drain,
        }
    }

    /// Hears the hints of this process without the detour over the database.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Counters and clocks, to be shown while the worker runs.
    #[must_use]
    pub fn stats(&self) -> Arc<Stats> {
        Arc::clone(&self.context.stats)
    }

    /// Works until shutdown, then drains: gives back what has not begun, lets
    /// running calls reach the next step, and drops the rest at the drain bound.
    pub async fn run(self, shutdown: CancellationToken) {
        let heard = Hints::default();
        let mut helpers = JoinSet::new();
        if let Some(pool) = self.listener.clone() {
            let (registered, first) = oneshot::channel();
            helpers.spawn(hint::listen(pool, heard.clone(), registered));
            drop(timeout(LISTENER_WAIT, first).await);
        }
        let (finisher, ends) = Finisher::new();
        let running = finisher.running();
        let mut batches = JoinSet::new();
        let handler = Arc::clone(&self.context.handler);
        batches.spawn(finish::run_batches(self.context.pool.clone(), handler, ends, running));

        let mut round = Round {
            slots: Slots::new(self.context.settings.slots),
            passes: JoinSet::new(),
            skip: HashMap::new(),
            recovery: Recovery::default(),
            upkeep_looked: None,
            backlog: false,
            looks: 0,
        };
        let mut hints = (heard.subscribe(), self.hints.subscribe());
        while !shutdown.is_cancelled() {
            self.context.stats.progressed();
            let again = self.look(&mut round, &finisher).await;
            if !again {
                self.rest(&mut round, &mut hints, &shutdown).await;
            }
        }
        self.drain(&mut round).await;
        drop(finisher);
        while batches.join_next().await.is_some() {}
    }

    /// One look at the queue. True when another one is worth it at once.
    async fn look(&self, round: &mut Round, finisher: &Finisher) -> bool {
        let looked = timeout(self.context.settings.database_timeout, self.try_look(round, finisher)).await;
        match looked {
            Ok(Ok(again)) => {
                round.looks = if again { round.looks + 1 } else { 0 };
                again && round.looks <= LOOKS_IN_A_ROW_MAX
            }
            Ok(Err(error)) => {
                if is_busy_lane(&error) {
                    self.context.stats.count(|counts| counts.lanes_busy += 1);
                    tracing::error!(event = "queue.lane-busy", code = "QUEUE_LANE_BUSY", %error);
                    round.recovery.sweep_soon();
                } else {
                    tracing::warn!(event = "queue.look-failed", %error);
                }
                false
            }
            Err(_elapsed) => {
                tracing::warn!(event = "queue.look-timed-out");
                false
            }
        }
    }

    async fn try_look(&self, round: &mut Round, finisher: &Finisher) -> Result<bool, QueueError> {
        self.collect(round);
        round.recovery.run_if_due(&self.context).await?;
        if round.slots.free() == 0 {
            return Ok(false);
        }
        round.skip.retain(|_, until| *until > Instant::now());
        let skip: Vec<String> = round.skip.keys().cloned().collect();

        let user = round.slots.user_share();
        let mut found = self.claim(Class::User, user, &skip).await?;
        round.backlog = user > 0 && found.claims.len() == user;
        self.start(round, Class::User, found.claims.drain(..), finisher);
        // Upkeep waits for nobody: one look a poll is enough while nothing frees a slot for it.
        let share = round.slots.upkeep_share();
        let due = round.upkeep_looked.is_none_or(|at| at.elapsed() >= self.context.settings.poll * 9 / 10);
        if share > 0 && (due || round.slots.upkeep_waits()) {
            let mut upkeep = self.claim(Class::Upkeep, share, &skip).await?;
            round.upkeep_looked = Some(Instant::now());
            round.slots.upkeep_seen(upkeep.claims.len() == share);
            self.start(round, Class::Upkeep, upkeep.claims.drain(..), finisher);
            found.headless.append(&mut upkeep.headless);
        } else if share == 0 {
            round.slots.upkeep_seen(true);
        }
        self.settle(round, &found.headless).await
    }

    async fn claim(&self, class: Class, rows: usize, skip: &[String]) -> Result<Claims, QueueError> {
        if rows == 0 {
            return Ok(Claims::default());
        }
        let settings = &self.context.settings;
        let look = Look {
            kinds: &self.kinds,
            skip,
            rows,
            lease: settings.lease,
            convergence: settings.convergence,
            worker_id: &settings.worker_id,
        };
        self.context.stats.stated();
        let claims = claim::claim(&self.context.leases, class, &look).await?;
        self.context.stats.observed();
        Ok(claims)
    }

    fn start(
        &self,
        round: &mut Round,
        class: Class,
        claims: impl Iterator<Item = Claim>,
        finisher: &Finisher,
    ) {
        for claim in claims {
            self.context.stats.claimed(claim.latency);
            round.slots.taken(class);
            finisher.expected();
            let context = &self.context;
            let pass = Pass::new(
                claim,
                context.leases.clone(),
                context.settings.lease,
                context.draining.clone(),
                Arc::clone(&context.random),
            );
            let (context, finisher) = (Arc::clone(context), finisher.clone());
            round.passes.spawn(async move {
                run_pass::run_pass(&context, &finisher, pass).await;
                class
            });
        }
        self.show(round);
    }

    /// Lanes that were due and had nothing to take: recompute, skip what we do not know.
    async fn settle(&self, round: &mut Round, lanes: &[String]) -> Result<bool, QueueError> {
        let mut again = false;
        for lane in lanes {
            let (repaired, settled) = claim::settle_lane(&self.context.leases, lane, &self.kinds).await?;
            if repaired {
                self.context.stats.count(|counts| counts.lanes_repaired += 1);
                tracing::error!(event = "queue.lane-repaired", code = "QUEUE_LANE_REPAIRED");
            }
            match settled {
                Settled::Quiet => {}
                Settled::Due => again = true,
                Settled::Foreign if round.skip.len() < SKIP_LANES_MAX => {
                    round.skip.insert(lane.clone(), Instant::now() + SKIP_UNKNOWN);
                }
                Settled::Foreign => {}
            }
        }
        Ok(again)
    }

    async fn rest(
        &self,
        round: &mut Round,
        hints: &mut (watch::Receiver<u64>, watch::Receiver<u64>),
        shutdown: &CancellationToken,
    ) {
        let poll = schedule::jitter(self.context.settings.poll, (self.context.random)());
        let busy = round.slots.free() == 0;
        tokio::select! {
            () = shutdown.cancelled() => {}
            // Without a free slot a hint changes nothing; the freed slot looks anyway.
            changed = hints.0.changed(), if !busy => drop(changed),
            changed = hints.1.changed(), if !busy => drop(changed),
            Some(ended) = round.passes.join_next(), if !round.passes.is_empty() => {
                self.ended(round, ended);
                self.gather(round).await;
            }
            () = sleep(poll) => {}
        }
    }

    /// Passes that share a commit end together: with a backlog their slots are filled by one claim.
    async fn gather(&self, round: &mut Round) {
        let until = Instant::now() + GATHER_MAX;
        while round.backlog && round.slots.free() < self.context.settings.slots / 2 {
            match timeout_at(until, round.passes.join_next()).await {
                Ok(Some(ended)) => self.ended(round, ended),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn collect(&self, round: &mut Round) {
        while let Some(ended) = round.passes.try_join_next() {
            self.ended(round, ended);
        }
    }

    fn ended(&self, round: &mut Round, ended: Result<Class, tokio::task::JoinError>) {
        match ended {
            Ok(class) => round.slots.freed(class),
            // A pass catches its panics; this is one of our own, and we do not know whose slot it was.
            Err(error) => {
                tracing::error!(event = "queue.task-lost", %error);
                round.slots.freed(Class::User);
            }
        }
        self.show(round);
    }

    fn show(&self, round: &Round) {
        self.context.stats.running(round.slots.user(), round.slots.upkeep());
    }

    async fn drain(&self, round: &mut Round) {
        self.context.draining.cancel();
        let settings = &self.context.settings;
        let all = async { while round.passes.join_next().await.is_some() {} };
        if timeout(settings.drain, all).await.is_err() {
            self.drop_at_drain.cancel();
            let last = async { while round.passes.join_next().await.is_some() {} };
            // What cannot be written within a lease is recovered by another worker.
            drop(timeout(settings.lease, last).await);
            round.passes.shutdown().await;
        }
        self.context.stats.running(0, 0);
        tracing::info!(event = "worker.stopped");
    }
}

/// The unique index refused a second claim of a lane: a bug, not an outage.
fn is_busy_lane(error: &QueueError) -> bool {
    let QueueError::Database(error) = error else {
        return false;
    };
    error.as_database_error().and_then(|error| error.constraint()) == Some("work_one_claim_per_lane")
}
