//! The queue against a bare loop on the same server: one table, `for update skip locked`, claim and completion
//! batched by 16 on both sides, empty jobs, no audit, 64 lanes.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use occ_queue::{Handler, Hints, NewWork, Owner, Pass, Settings, Verdict, Worker};
use occ_tests::database::Database;
use sqlx::{AssertSqlSafe, Connection, PgPool};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::Options;
use crate::report::Measure;

/// Rows of this module.
pub(crate) const ROWS: [u32; 4] = [8, 10, 11, 12];

const LANES: usize = 64;
/// Jobs of one run.
const JOBS: i64 = 4_000;
/// Rows that stick in two lanes.
const STUCK: i64 = 100_000;
/// How long a transaction is open before the measure begins.
const HELD: Duration = Duration::from_secs(20);
const HELD_LONG: Duration = Duration::from_secs(180);
/// Samples of the latency row.
const HINTS: usize = 200;
const DONE_MAX: Duration = Duration::from_secs(120);

/// Completes at once, and tells which key it ran.
struct Empty {
    ran: mpsc::UnboundedSender<String>,
}

impl Handler for Empty {
    fn kinds(&self) -> &[&'static str] {
        &["bench.empty"]
    }

    fn run(&self, pass: &Pass) -> impl Future<Output = Verdict> + Send {
        // Nobody may listen any more.
        let _ = self.ran.send(pass.claim().key.clone());
        std::future::ready(Verdict::complete("OK"))
    }
}

struct Bench {
    pool: PgPool,
    lanes: Vec<String>,
    hints: Hints,
    _database: Database,
}

impl Bench {
    async fn new() -> Result<Self> {
        let database = Database::new().await?;
        let pool = database.app().await?;
        let owner = database.owner().await?;
        sqlx::raw_sql(
            "create table occ.bare (id bigint primary key generated always as identity, state text not null);
             create index bare_queued on occ.bare (id) where state = 'queued';
             grant all on occ.bare to occ_app",
        )
        .execute(&owner)
        .await?;
        let lanes: Vec<String> = (0..LANES).map(|_| format!("ns_{}", Uuid::new_v4())).collect();
        sqlx::query!(
            "insert into occ.namespaces (id, name) select id, id from unnest($1::text[]) id",
            &lanes
        )
        .execute(&pool)
        .await?;
        Ok(Self { pool, lanes, hints: Hints::default(), _database: database })
    }

    fn worker(&self) -> (CancellationToken, TaskTracker, mpsc::UnboundedReceiver<String>) {
        let (ran, runs) = mpsc::unbounded_channel();
        let worker = Worker::new(self.pool.clone(), Settings::default(), Empty { ran }, Arc::new(|| 0.5));
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        tasks.spawn(worker.hints(self.hints.clone()).run(stop.clone()));
        tasks.close();
        (stop, tasks, runs)
    }

    /// Jobs a second, from enqueued to recorded.
    async fn ours(&self) -> Result<f64> {
        let run = Uuid::new_v4().to_string();
        let mut tx = self.pool.begin().await?;
        sqlx::query!(
            "insert into occ.work_lane (lane, namespace_id, due_at) select id, id, now() from unnest($1::text[]) id
             on conflict (lane) do update set due_at = excluded.due_at",
            &self.lanes
        )
        .execute(&mut *tx)
        .await?;
        sqlx::query!(
            "insert into occ.work (key, kind, lane, namespace_id, actor_id, available_at, attempts_max)
             select $2 || n, 'bench.empty', l.lane, l.lane, 'spn_bench', now(), 5
               from generate_series(1, $3::bigint) n
               join unnest($1::text[]) with ordinality l (lane, o) on l.o = n % $4 + 1",
            &self.lanes,
            run,
            JOBS,
            i64::try_from(LANES)?
        )
        .execute(&mut *tx)
        .await?;
        tx.commit().await?;
        let began = Instant::now();
        let (stop, tasks, mut runs) = self.worker();
        for _ in 0..JOBS {
            tokio::time::timeout(DONE_MAX, runs.recv()).await?.context("the worker ended")?;
        }
        stop.cancel();
        tasks.wait().await;
        let took = began.elapsed();
        let left = sqlx::query_scalar!(
            r#"select count(*) as "n!" from occ.work where key like $1 || '%' and state <> 'succeeded'"#,
            run
        )
        .fetch_one(&self.pool)
        .await?;
        ensure!(left == 0, "{left} jobs are left");
        rate(took)
    }

    /// The same number of jobs through the bare loop.
    async fn bare(&self) -> Result<f64> {
        sqlx::raw_sql(AssertSqlSafe(format!(
            "insert into occ.bare (state) select 'queued' from generate_series(1, {JOBS})"
        )))
        .execute(&self.pool)
        .await?;
        let mut conn = self.pool.acquire().await?;
        let began = Instant::now();
        loop {
            let ids: Vec<i64> = prepared::claim(&mut conn).await?;
            if ids.is_empty() {
                break;
            }
            prepared::complete(&mut conn, &ids).await?;
        }
        rate(began.elapsed())
    }

    /// Two lanes full of work that nobody knows.
    async fn stick(&self) -> Result<()> {
        for _ in 0..2 {
            let lane = format!("ns_{}", Uuid::new_v4());
            sqlx::query!("insert into occ.namespaces (id, name) values ($1, $1)", lane)
                .execute(&self.pool)
                .await?;
            sqlx::query!(
                "insert into occ.work_lane (lane, namespace_id, due_at) values ($1, $1, '2000-01-01')",
                lane
            )
            .execute(&self.pool)
            .await?;
            sqlx::query!(
                "insert into occ.work (key, kind, lane, namespace_id, actor_id, available_at, attempts_max)
                 select $1 || n, 'bench.stuck', $1, $1, 'spn_bench', '2000-01-01', 5 from generate_series(1, $2::bigint) n",
                lane,
                STUCK / 2
            )
            .execute(&self.pool)
            .await?;
        }
        Ok(())
    }

    /// A transaction with one domain row, and with an enqueue beside it; milliseconds.
    async fn transaction(&self, with_work: bool) -> Result<f64> {
        const TRANSACTIONS: u32 = 300;
        let began = Instant::now();
        for n in 0..TRANSACTIONS {
            let id = format!("ns_{}", Uuid::new_v4());
            let mut tx = self.pool.begin().await?;
            sqlx::query!("insert into occ.namespaces (id, name) values ($1, $1)", id)
                .execute(&mut *tx)
                .await?;
            if with_work {
                let work =
                    NewWork::user(format!("{id}:{n}"), "bench.later", Owner::namespace(&id), "spn_bench");
                occ_queue::enqueue(&mut tx, &work).await?;
            }
            tx.commit().await?;
        }
        Ok(began.elapsed().as_secs_f64() * 1_000.0 / f64::from(TRANSACTIONS))
    }

    /// Milliseconds from a commit to the start of its work, on an idle queue, in another process: sorted.
    async fn latencies(&self) -> Result<Vec<f64>> {
        let stop_hints = CancellationToken::new();
        let (remote, tasks) = (Hints::default(), TaskTracker::new());
        tasks.spawn(remote.clone().run(self.pool.clone(), stop_hints.clone()));
        let (stop, worker, mut runs) = self.worker();
        let mut latencies = Vec::new();
        for n in 0..HINTS {
            let lane = self.lanes.get(n % LANES).context("a lane")?;
            let mut tx = self.pool.begin().await?;
            let work =
                NewWork::user(Uuid::new_v4().to_string(), "bench.empty", Owner::namespace(lane), "spn_bench");
            occ_queue::enqueue(&mut tx, &work).await?;
            tx.commit().await?;
            let began = Instant::now();
            remote.hint();
            tokio::time::timeout(DONE_MAX, runs.recv()).await?.context("the worker ended")?;
            latencies.push(began.elapsed().as_secs_f64() * 1_000.0);
            // An idle queue: the last completion is committed and the hint's own interval is over.
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        stop.cancel();
        stop_hints.cancel();
        worker.wait().await;
        latencies.sort_by(f64::total_cmp);
        Ok(latencies)
    }
}

fn rate(took: Duration) -> Result<f64> {
    Ok(f64::from(u32::try_from(JOBS)?) / took.as_secs_f64())
}

/// The bare loop's statements. Its table exists here alone, so the compiler cannot check them.
mod prepared {
    use sqlx::PgConnection;

    pub(super) async fn claim(conn: &mut PgConnection) -> sqlx::Result<Vec<i64>> {
        sqlx::query_scalar(
            "update occ.bare set state = 'claimed' where id = any (array(
               select id from occ.bare where state = 'queued' order by id limit 16 for update skip locked))
             returning id",
        )
        .fetch_all(conn)
        .await
    }

    #[expect(clippy::disallowed_methods, reason = "the table exists in this bench alone")]
    pub(super) async fn complete(conn: &mut PgConnection, ids: &[i64]) -> sqlx::Result<()> {
        sqlx::query("update occ.bare set state = 'succeeded' where id = any ($1)")
            .bind(ids)
            .execute(conn)
            .await?;
        Ok(())
    }
}

/// Version of the server, and whether its commits wait for the disk.
pub(crate) async fn mode() -> Result<String> {
    let database = Database::new().await?;
    let mode = sqlx::query_scalar!(
        r#"select 'PostgreSQL ' || current_setting('server_version') || ', fsync ' || current_setting('fsync')
                  || ', synchronous_commit ' || current_setting('synchronous_commit') as "mode!""#
    )
    .fetch_one(&database.app().await?)
    .await?;
    Ok(mode)
}

/// Every row about the queue.
pub(crate) async fn run(options: &Options, measures: &mut Vec<Measure>) -> Result<()> {
    let bench = Bench::new().await?;
    if options.wants(8) {
        let name = "empty jobs, claim and completion batched by 16";
        measures.push(
            Measure::against(8, name, "1/s", (0.5, true), || bench.ours(), || bench.bare()).await?.goal(0.8),
        );
        let name = "transaction with one row and an enqueue";
        let (with, without) = (|| bench.transaction(true), || bench.transaction(false));
        measures.push(Measure::against(8, name, "ms", (1.6, false), with, without).await?.goal(1.3));
    }
    if options.wants(10) {
        let latencies = bench.latencies().await?;
        let at = |share: usize| latencies.get(latencies.len() * share / 100).copied().context("no sample");
        measures.push(Measure::absolute(
            10,
            "commit to start through NOTIFY, idle, p50",
            "ms",
            at(50)?,
            50.0,
        ));
        measures.push(Measure::absolute(
            10,
            "commit to start through NOTIFY, idle, p99",
            "ms",
            at(99)?,
            50.0,
        ));
    }
    if options.wants(11) {
        let stuck = Bench::new().await?;
        stuck.stick().await?;
        let name = "jobs with 100,000 stuck rows in two lanes";
        measures.push(
            Measure::against(11, name, "1/s", (0.5, true), || stuck.ours(), || bench.ours()).await?.goal(0.9),
        );
    }
    if options.wants(12) {
        let held = Bench::new().await?;
        let mut holder = held.pool.acquire().await?.detach();
        let mut open = holder.begin().await?;
        sqlx::query!("select count(*) from occ.namespaces").fetch_one(&mut *open).await?;
        sqlx::raw_sql("set local idle_in_transaction_session_timeout = 0; set local statement_timeout = 0; select txid_current()")
            .execute(&mut *open)
            .await?;
        tokio::time::sleep(if options.long { HELD_LONG } else { HELD }).await;
        let name = "jobs beside a transaction that stays open";
        measures.push(
            Measure::against(12, name, "1/s", (0.65, true), || held.ours(), || bench.ours()).await?.goal(0.9),
        );
        open.rollback().await?;
    }
    Ok(())
}
