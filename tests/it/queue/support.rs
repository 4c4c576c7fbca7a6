//! A queue in a database of its own, workers with scripted handlers, and ways to look at rows.

use std::{
    collections::BTreeMap,
    future::Future,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use occ_queue::{
    Code, GiveUp, Handler, Hints, NewWork, Owner, Pass, QueueError, Settings, Stats, Transition, Verdict,
    Worker,
};
use occ_tests::database::Database;
use sqlx::{PgConnection, PgPool};
use tokio::sync::Mutex;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use uuid::Uuid;

/// Kind of every scripted user row.
pub(crate) const KIND: &str = "test.run";
/// Kind of every scripted upkeep row.
pub(crate) const UPKEEP: &str = "test.observe";
/// Lease of test workers.
pub(crate) const LEASE: Duration = Duration::from_secs(3);
/// Longest that a test waits for something that must come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until `look` says yes.
pub(crate) async fn eventually<F, T>(what: &str, mut look: F) -> T
where
    F: AsyncFnMut() -> Option<T>,
{
    let began = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "never: {what}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// One queue with a few Namespaces as lanes.
pub(crate) struct Queue {
    pub(crate) pool: PgPool,
    pub(crate) hints: Hints,
    database: Database,
}

/// A worker that runs beside the test.
pub(crate) struct Running {
    pub(crate) stats: Arc<Stats>,
    pub(crate) shutdown: CancellationToken,
    tasks: TaskTracker,
}

impl Running {
    /// Asks the worker to stop, waits until it has, and answers what it counted: only then is every pass in it.
    pub(crate) async fn stop(self) -> Arc<Stats> {
        self.shutdown.cancel();
        self.tasks.wait().await;
        self.stats
    }
}

impl Queue {
    pub(crate) async fn new() -> Self {
        let database = Database::new().await.unwrap();
        let pool = database.app().await.unwrap();
        Self { pool, hints: Hints::default(), database }
    }

    /// A new lane: a Namespace of its own.
    pub(crate) async fn lane(&self) -> String {
        let id = format!("ns_{}", Uuid::new_v4());
        sqlx::query!("insert into occ.namespaces (id, name) values ($1, $1)", id)
            .execute(&self.pool)
            .await
            .unwrap();
        id
    }

    pub(crate) async fn lanes(&self, count: usize) -> Vec<String> {
        let mut lanes = Vec::new();
        for _ in 0..count {
            lanes.push(self.lane().await);
        }
        lanes
    }

    /// Enqueues a row of [`KIND`] in a transaction of its own.
    pub(crate) async fn enqueue(&self, key: &str, lane: &str) {
        self.put(&work(key, lane)).await;
    }

    pub(crate) async fn put(&self, work: &NewWork) {
        let mut tx = self.pool.begin().await.unwrap();
        assert_eq!(occ_queue::enqueue(&mut tx, work).await.unwrap(), occ_queue::Enqueued::New);
        tx.commit().await.unwrap();
        self.hints.hint();
    }

    pub(crate) async fn row(&self, key: &str) -> Row {
        sqlx::query_as!(
            Row,
            r#"select w.state, w.phase, w.step, w.attempt, w.passes, w.reason_code, w.cause_code, w.result, w.waiting,
                      w.begun, extract(epoch from w.available_at - clock_timestamp())::float8 as "due_in!",
                      w.epoch, w.lease_token, l.epoch as lane_epoch, l.busy, l.fence_floor,
                      extract(epoch from greatest(l.hold_until, '2000-01-01') - clock_timestamp())::float8 as "hold_in!"
                 from occ.work w join occ.work_lane l on l.lane = w.lane where w.key = $1"#,
            key
        )
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// Waits until the row is in `state`.
    pub(crate) async fn until(&self, key: &str, state: &str) -> Row {
        eventually(&format!("{key} {state}"), async || {
            let row = self.row(key).await;
            (row.state == state).then_some(row)
        })
        .await
    }

    /// Rows by state.
    pub(crate) async fn states(&self) -> BTreeMap<String, i64> {
        sqlx::query!(r#"select state, count(*) as "count!" from occ.work group by state"#)
            .fetch_all(&self.pool)
            .await
            .unwrap()
            .into_iter()
            .map(|row| (row.state, row.count))
            .collect()
    }

    /// Lets every live lease lapse, as if its worker had been silent for long.
    pub(crate) async fn lapse(&self, key: &str) {
        sqlx::query!(
            "update occ.work set lease_until = now() - interval '5 s' where key = $1 and state = 'claimed'",
            key
        )
        .execute(&self.pool)
        .await
        .unwrap();
    }

    pub(crate) fn worker<H: Handler>(&self, handler: H) -> Running {
        self.worker_with(settings(), handler)
    }

    pub(crate) fn worker_with<H: Handler>(&self, settings: Settings, handler: H) -> Running {
        let worker =
            Worker::new(self.pool.clone(), settings, handler, Arc::new(|| 0.5)).hints(self.hints.clone());
        run(worker)
    }

    /// Superuser statements, such as ending other sessions.
    pub(crate) async fn admin(&self) -> PgConnection {
        self.database.connect("postgres").await.unwrap()
    }
}

/// Runs a worker until the value is stopped or dropped.
pub(crate) fn run<H: Handler>(worker: Worker<H>) -> Running {
    let running =
        Running { stats: worker.stats(), shutdown: CancellationToken::new(), tasks: TaskTracker::new() };
    running.tasks.spawn(worker.run(running.shutdown.clone()));
    running.tasks.close();
    running
}

pub(crate) fn settings() -> Settings {
    Settings {
        worker_id: format!("worker-{}", Uuid::new_v4()),
        poll: Duration::from_millis(100),
        lease: LEASE,
        drain: Duration::from_secs(5),
        ..Settings::default()
    }
}

/// A user row.
pub(crate) fn work(key: &str, lane: &str) -> NewWork {
    NewWork::user(key, KIND, Owner::namespace(lane), "spn_actor")
}

/// What a row and its lane hold.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) state: String,
    pub(crate) phase: String,
    pub(crate) step: Option<String>,
    pub(crate) attempt: i32,
    pub(crate) passes: i32,
    pub(crate) reason_code: Option<String>,
    pub(crate) cause_code: Option<String>,
    pub(crate) result: Option<serde_json::Value>,
    pub(crate) waiting: bool,
    pub(crate) begun: bool,
    pub(crate) due_in: f64,
    pub(crate) epoch: Option<i64>,
    pub(crate) lease_token: Option<Uuid>,
    pub(crate) lane_epoch: i64,
    pub(crate) busy: bool,
    pub(crate) fence_floor: i64,
    pub(crate) hold_in: f64,
}

impl Row {
    pub(crate) fn code(&self) -> &str {
        self.reason_code.as_deref().unwrap_or("-")
    }
}

/// What a handler recorded: key and code of each transition.
pub(crate) type Evidence = Arc<Mutex<Vec<(String, Option<Code>)>>>;
type GivesUp = Box<dyn Fn(&Pass, GiveUp) -> Verdict + Send + Sync>;
type Run = Box<dyn for<'a> Fn(&'a Pass) -> BoxFuture<'a, Verdict> + Send + Sync>;

/// A handler that does what a closure says, and remembers its evidence.
pub(crate) struct Script {
    run: Run,
    give_up: Option<GivesUp>,
    evidence: Option<Evidence>,
}

impl Script {
    pub(crate) fn new(
        run: impl for<'a> Fn(&'a Pass) -> BoxFuture<'a, Verdict> + Send + Sync + 'static,
    ) -> Self {
        Self { run: Box::new(run), give_up: None, evidence: None }
    }

    /// Answers the same each time.
    pub(crate) fn always(verdict: Verdict) -> Self {
        Self::new(move |_| {
            let verdict = verdict.clone();
            Box::pin(async move { verdict })
        })
    }

    pub(crate) fn give_up(self, give_up: impl Fn(&Pass, GiveUp) -> Verdict + Send + Sync + 'static) -> Self {
        Self { give_up: Some(Box::new(give_up)), ..self }
    }

    pub(crate) fn evidence(self, evidence: &Evidence) -> Self {
        Self { evidence: Some(Arc::clone(evidence)), ..self }
    }
}

impl Handler for Script {
    fn kinds(&self) -> &[&'static str] {
        &[KIND, UPKEEP]
    }

    fn run(&self, pass: &Pass) -> impl Future<Output = Verdict> + Send {
        (self.run)(pass)
    }

    async fn give_up(&self, pass: &Pass, why: GiveUp) -> Verdict {
        match &self.give_up {
            Some(give_up) => give_up(pass, why),
            None => Verdict::Fail { code: why.code, result: None },
        }
    }

    fn records(&self) -> bool {
        self.evidence.is_some()
    }

    async fn record(&self, _conn: &mut PgConnection, transition: &Transition) -> Result<(), QueueError> {
        if let Some(evidence) = &self.evidence {
            evidence.lock().await.push((transition.key.clone(), transition.code.clone()));
        }
        Ok(())
    }
}
