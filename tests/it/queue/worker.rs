//! The loop as a process sees it: hints, polling, drain, and many workers at once.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use occ_queue::{Database, Hints, Settings, Verdict, Worker};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::support::{Queue, Script, eventually, run, settings, work};

/// A poll that no test waits for.
const NEVER: Duration = Duration::from_secs(600);

#[tokio::test]
async fn a_hint_from_another_process_is_heard() {
    let mut queue = Queue::new().await;
    let lane = queue.lane().await;
    let worker =
        queue.worker_with(Settings { poll: NEVER, ..settings() }, Script::always(Verdict::complete("OK")));
    eventually("first look", async || worker.stats.observation_age()).await;
    // Hints of another process: the worker does not share them, NOTIFY brings them.
    queue.hints = Hints::default();
    let stop = CancellationToken::new();
    let sender = tokio_util::task::TaskTracker::new();
    sender.spawn(queue.hints.clone().run(queue.pool.clone(), stop.clone()));
    for n in 0..5 {
        let key = format!("k{n}");
        queue.enqueue(&key, &lane).await;
        queue.until(&key, "succeeded").await;
    }
    stop.cancel();
    worker.stop().await;
}

#[tokio::test]
async fn a_lost_listener_costs_a_poll_and_comes_back() {
    let mut queue = Queue::new().await;
    let lane = queue.lane().await;
    let poll = Duration::from_millis(300);
    let worker = queue.worker_with(Settings { poll, ..settings() }, Script::always(Verdict::complete("OK")));
    queue.hints = Hints::default();
    let mut admin = queue.admin().await;
    let listeners = async |admin: &mut sqlx::PgConnection| {
        sqlx::query_scalar!(
            r#"select count(*) as "n!" from pg_stat_activity
                where datname = current_database() and query ilike 'listen%'"#
        )
        .fetch_one(admin)
        .await
        .unwrap()
    };
    eventually("listener", async || (listeners(&mut admin).await == 1).then_some(())).await;
    sqlx::query!(
        "select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and query ilike 'listen%'"
    )
    .fetch_all(&mut admin)
    .await
    .unwrap();
    let began = Instant::now();
    queue.enqueue("k", &lane).await;
    queue.until("k", "succeeded").await;
    assert!(began.elapsed() < poll + Duration::from_secs(1), "{:?}", began.elapsed());
    eventually("listener is back", async || (listeners(&mut admin).await == 1).then_some(())).await;
    worker.stop().await;
}

#[tokio::test]
async fn polling_alone_works() {
    let mut queue = Queue::new().await;
    let lane = queue.lane().await;
    let db = Database { listener: None, ..Database::from(queue.pool.clone()) };
    let script = Script::always(Verdict::complete("OK"));
    let worker = run(Worker::new(db, settings(), script, Arc::new(|| 0.5)));
    queue.hints = Hints::default();
    queue.enqueue("k", &lane).await;
    queue.until("k", "succeeded").await;
    worker.stop().await;
}

#[tokio::test]
async fn an_idle_worker_asks_at_most_four_times_a_second() {
    let queue = Queue::new().await;
    let worker = queue.worker_with(
        Settings { poll: Duration::from_secs(1), ..settings() },
        Script::always(Verdict::complete("OK")),
    );
    eventually("first look", async || worker.stats.observation_age()).await;
    let before = worker.stats.statements();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let sent = worker.stats.statements() - before;
    assert!((3..=12).contains(&sent), "{sent} statements in 3 s");
    worker.stop().await;
}

#[tokio::test]
async fn draining_spends_no_attempt() {
    let queue = Queue::new().await;
    let lanes = queue.lanes(3).await;
    queue.enqueue("idle", &lanes[0]).await;
    queue.enqueue("stepping", &lanes[1]).await;
    queue.enqueue("stuck", &lanes[2]).await;
    let (began, go) = (Arc::new(AtomicUsize::new(0)), Arc::new(Notify::new()));
    let (count, goes) = (Arc::clone(&began), Arc::clone(&go));
    let script = move || {
        let (count, goes) = (Arc::clone(&count), Arc::clone(&goes));
        Script::new(move |pass| {
            let (count, goes) = (Arc::clone(&count), Arc::clone(&goes));
            Box::pin(async move {
                match pass.claim().key.as_str() {
                    "idle" => {
                        count.fetch_add(1, Ordering::Relaxed);
                        std::future::pending().await
                    }
                    "stepping" => {
                        let effect = pass.begin_effect().await.unwrap();
                        count.fetch_add(1, Ordering::Relaxed);
                        goes.notified().await;
                        effect.end();
                        match pass.advance("prepare").await {
                            Ok(()) => Verdict::complete("OK"),
                            Err(stop) => stop.into(),
                        }
                    }
                    _ => {
                        let _open = pass.begin_effect().await.unwrap();
                        count.fetch_add(1, Ordering::Relaxed);
                        std::future::pending().await
                    }
                }
            })
        })
    };
    let drain = Duration::from_millis(700);
    let worker = queue.worker_with(Settings { drain, ..settings() }, script());
    eventually("all run", async || (began.load(Ordering::Relaxed) == 3).then_some(())).await;
    worker.shutdown.cancel();
    // What has begun nothing outside is given back at once.
    queue.until("idle", "queued").await;
    assert_eq!(queue.row("stepping").await.state, "claimed");
    go.notify_one();
    worker.stop().await;
    for (key, step, cut) in
        [("idle", None, false), ("stepping", Some("prepare"), false), ("stuck", None, true)]
    {
        let row = queue.row(key).await;
        assert_eq!((row.state.as_str(), row.attempt, row.passes), ("queued", 0, 1), "{key}");
        assert_eq!(row.step.as_deref(), step, "{key}");
        assert_eq!(row.hold_in > 0.0, cut, "{key} {}", row.hold_in);
        assert_eq!((row.busy, row.fence_floor), (false, if cut { 2 } else { 0 }), "{key}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_enqueue_and_finish_lose_nothing() {
    const ROWS: usize = 1_500;
    let queue = Arc::new(Queue::new().await);
    let lanes = queue.lanes(3).await;
    let workers = [
        queue.worker(Script::always(Verdict::complete("OK"))),
        queue.worker(Script::always(Verdict::complete("OK"))),
    ];
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..4 {
        let (queue, lanes) = (Arc::clone(&queue), lanes.clone());
        writers.spawn(async move {
            for n in (writer..ROWS).step_by(4) {
                queue.put(&work(&format!("k{n}"), &lanes[n % 3])).await;
            }
        });
    }
    while let Some(done) = writers.join_next().await {
        done.unwrap();
    }
    let all = i64::try_from(ROWS).unwrap();
    eventually("all done", async || (queue.states().await.get("succeeded") == Some(&all)).then_some(()))
        .await;
    let mut conn = queue.pool.acquire().await.unwrap();
    assert_eq!(occ_queue::sweep_lanes(&mut conn).await.unwrap(), 0);
    for worker in workers {
        let counts = worker.stats.counts();
        assert_eq!((counts.lanes_repaired, counts.lanes_busy, counts.recovered), (0, 0, 0));
        worker.stop().await;
    }
}

#[tokio::test]
async fn the_sweep_repairs_what_a_bug_would_leave() {
    let queue = Queue::new().await;
    let lanes = queue.lanes(3).await;
    for (n, lane) in lanes.iter().enumerate() {
        queue.enqueue(&format!("k{n}"), lane).await;
    }
    sqlx::query!("update occ.work_lane set due_at = null where lane = $1", lanes[0])
        .execute(&queue.pool)
        .await
        .unwrap();
    sqlx::query!("update occ.work_lane set busy = true where lane = $1", lanes[1])
        .execute(&queue.pool)
        .await
        .unwrap();
    let mut conn = queue.pool.acquire().await.unwrap();
    assert_eq!(occ_queue::sweep_lanes(&mut conn).await.unwrap(), 2);
    assert_eq!(occ_queue::sweep_lanes(&mut conn).await.unwrap(), 0);
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    eventually("all done", async || (queue.states().await.get("succeeded") == Some(&3)).then_some(())).await;
    worker.stop().await;
}

#[tokio::test]
async fn an_outage_stops_nothing_for_good() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    eventually("first look", async || worker.stats.observation_age()).await;
    let mut admin = queue.admin().await;
    sqlx::query!(
        "select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and pid <> pg_backend_pid()"
    )
    .fetch_all(&mut admin)
    .await
    .unwrap();
    queue.enqueue("k", &lane).await;
    queue.until("k", "succeeded").await;
    assert!(worker.stats.progress_age() < Duration::from_secs(5));
    worker.stop().await;
}
