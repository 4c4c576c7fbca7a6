//! A lapsed lease writes nothing; what lapsed is recovered; time is the database's.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use occ_queue::{QueueError, Settings, Stop, Verdict};
use tokio::sync::{Mutex, Notify};

use super::support::{LEASE, Queue, Script, eventually, settings};

/// A pass that waits until it is told to go on, and tells when it began.
#[derive(Clone, Default)]
struct Gate {
    began: Arc<Notify>,
    go: Arc<Notify>,
}

#[tokio::test]
async fn heartbeats_keep_a_long_pass() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let lease = LEASE * 2;
    let worker = queue.worker_with(
        Settings { lease, ..settings() },
        Script::new(move |_| {
            Box::pin(async move {
                tokio::time::sleep(lease + LEASE).await;
                Verdict::complete("OK")
            })
        }),
    );
    eventually("claimed", async || (queue.row("k").await.state == "claimed").then_some(())).await;
    let other = queue.worker(Script::always(Verdict::fail("STOLEN")));
    let row = queue.until("k", "succeeded").await;
    assert_eq!((row.passes, row.attempt), (1, 1));
    worker.stop().await;
    other.stop().await;
}

#[tokio::test]
async fn a_lapsed_claim_is_recovered_and_spends_an_attempt() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let gate = Gate::default();
    let seen: Arc<Mutex<Vec<(i64, i64)>>> = Arc::default();
    let (inner, epochs) = (gate.clone(), Arc::clone(&seen));
    let evidence = Arc::default();
    let worker = queue.worker(
        Script::new(move |pass| {
            let (gate, epochs, claim) = (inner.clone(), Arc::clone(&epochs), pass.claim().clone());
            Box::pin(async move {
                epochs.lock().await.push((claim.epoch, claim.fence_floor));
                if claim.passes == 1 {
                    gate.began.notify_one();
                    gate.go.notified().await;
                }
                Verdict::complete("OK")
            })
        })
        .evidence(&evidence),
    );
    gate.began.notified().await;
    queue.lapse("k").await;
    let row = queue.until("k", "succeeded").await;
    assert_eq!((row.passes, row.attempt, row.lane_epoch, row.fence_floor), (2, 2, 2, 2));
    assert_eq!(*seen.lock().await, [(1, 0), (2, 2)], "the next claim has a higher fence and writes anew");
    let codes: Vec<String> = evidence
        .lock()
        .await
        .iter()
        .map(|(_, code)| code.as_ref().map_or("-".to_owned(), ToString::to_string))
        .collect();
    assert_eq!(codes, ["LEASE_EXPIRED", "OK"]);
    assert_eq!(worker.stats.counts().recovered, 1);
    worker.stop().await;
}

#[tokio::test]
async fn a_recovered_lane_is_held_past_the_lease() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    queue.enqueue("sibling", &lane).await;
    // A claim of a worker that is gone, lapsed just now.
    sqlx::query!(
        "update occ.work set state = 'claimed', lease_token = gen_random_uuid(), epoch = 7, attempt = 1, passes = 1,
                             lease_until = clock_timestamp() where key = 'k'"
    )
    .execute(&queue.pool)
    .await
    .unwrap();
    sqlx::query!("update occ.work_lane set busy = true, epoch = 7").execute(&queue.pool).await.unwrap();
    let began = Instant::now();
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    queue.until("sibling", "succeeded").await;
    assert!(began.elapsed() >= Duration::from_millis(900), "held for a second: {:?}", began.elapsed());
    let row = queue.until("k", "succeeded").await;
    assert_eq!((row.attempt, row.passes, row.fence_floor), (2, 2, 8));
    worker.stop().await;
}

#[tokio::test]
async fn a_late_writer_changes_nothing() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let gate = Gate::default();
    let answers: Arc<Mutex<Vec<String>>> = Arc::default();
    let (inner, said, pool) = (gate.clone(), Arc::clone(&answers), queue.pool.clone());
    // A lease so long that this worker never notices by itself.
    let frozen = queue.worker_with(
        Settings { slots: 1, lease: Duration::from_secs(60), ..settings() },
        Script::new(move |pass| {
            let (gate, said, pool) = (inner.clone(), Arc::clone(&said), pool.clone());
            Box::pin(async move {
                gate.began.notify_one();
                gate.go.notified().await;
                let mut tx = pool.begin().await.unwrap();
                let guard = pass.guard_in(&mut tx).await;
                let finish = pass.finish_in(&mut tx, Verdict::complete("LATE")).await;
                tx.rollback().await.unwrap();
                let effect = pass.begin_effect().await;
                let step = pass.advance("late").await;
                let mut said = said.lock().await;
                said.push(format!("{}", matches!(guard, Err(QueueError::LostLease { .. }))));
                said.push(format!("{}", matches!(finish, Err(QueueError::LostLease { .. }))));
                said.push(format!("{}", matches!(effect, Err(Stop::Lost))));
                said.push(format!("{}", matches!(step, Err(Stop::Lost))));
                Verdict::complete("LATE")
            })
        }),
    );
    gate.began.notified().await;
    queue.lapse("k").await;
    // Either worker recovers the row; the other one finishes it.
    let other = queue.worker(Script::always(Verdict::complete("OK")));
    queue.until("k", "succeeded").await;
    gate.go.notify_one();
    eventually("late writer came", async || (answers.lock().await.len() == 4).then_some(())).await;
    frozen.stop().await;
    other.stop().await;
    assert_eq!(*answers.lock().await, ["true"; 4]);
    let row = queue.row("k").await;
    assert_eq!((row.code(), row.step.as_deref()), ("OK", None));
}

#[tokio::test]
async fn a_pass_is_dropped_before_its_lease_ends_when_renewals_fail() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let gate = Gate::default();
    let dropped: Arc<Mutex<Option<Instant>>> = Arc::default();
    struct Tell(Arc<Mutex<Option<Instant>>>);
    impl Drop for Tell {
        fn drop(&mut self) {
            *self.0.try_lock().unwrap() = Some(Instant::now());
        }
    }
    let (inner, tell) = (gate.clone(), Arc::clone(&dropped));
    let worker = queue.worker(Script::new(move |_| {
        let (gate, tell) = (inner.clone(), Tell(Arc::clone(&tell)));
        Box::pin(async move {
            let _tell = tell;
            gate.began.notify_one();
            std::future::pending::<Verdict>().await
        })
    }));
    gate.began.notified().await;
    let began = Instant::now();
    // Renewals wait for this row lock and are confirmed by nobody.
    let mut tx = queue.pool.begin().await.unwrap();
    sqlx::query!("select key from occ.work where key = 'k' for update").fetch_one(&mut *tx).await.unwrap();
    let at = eventually("dropped", async || *dropped.lock().await).await;
    assert!(at - began < LEASE, "dropped after {:?}", at - began);
    tx.rollback().await.unwrap();
    worker.stop().await;
}

#[tokio::test]
async fn a_user_row_interrupts_a_running_pass() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("long", &lane).await;
    let gate = Gate::default();
    let inner = gate.clone();
    let worker = queue.worker(Script::new(move |pass| {
        let gate = inner.clone();
        Box::pin(async move {
            if pass.claim().key != "long" || pass.claim().passes > 1 {
                return Verdict::complete("OK");
            }
            gate.began.notify_one();
            while !pass.interrupted() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            Verdict::defer("REVISION_INCOMPLETE")
        })
    }));
    gate.began.notified().await;
    let began = Instant::now();
    queue.enqueue("stop", &lane).await;
    queue.until("stop", "succeeded").await;
    assert!(began.elapsed() < LEASE, "{:?}", began.elapsed());
    queue.until("long", "succeeded").await;
    worker.stop().await;
}

#[tokio::test]
async fn a_lease_from_a_clock_that_went_back_is_cut() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    sqlx::query!(
        "update occ.work set state = 'claimed', lease_token = gen_random_uuid(), epoch = 1, attempt = 1,
                             lease_until = clock_timestamp() + interval '1 h' where key = 'k'"
    )
    .execute(&queue.pool)
    .await
    .unwrap();
    sqlx::query!("update occ.work_lane set busy = true, epoch = 1").execute(&queue.pool).await.unwrap();
    let began = Instant::now();
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    queue.until("k", "succeeded").await;
    assert!(began.elapsed() < LEASE * 2 + Duration::from_secs(3), "{:?}", began.elapsed());
    worker.stop().await;
}

#[tokio::test]
async fn attempts_used_up_by_lapses_settle_without_another_effect() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.put(&super::support::work("k", &lane).attempts_max(1)).await;
    let gate = Gate::default();
    let runs = Arc::new(AtomicUsize::new(0));
    let (inner, counted) = (gate.clone(), Arc::clone(&runs));
    let worker = queue.worker(Script::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        let gate = inner.clone();
        Box::pin(async move {
            gate.began.notify_one();
            std::future::pending::<Verdict>().await
        })
    }));
    gate.began.notified().await;
    queue.lapse("k").await;
    let row = queue.until("k", "failed_permanent").await;
    assert_eq!((row.code(), row.attempt, row.passes), ("LEASE_EXPIRED", 2, 2));
    assert_eq!(runs.load(Ordering::Relaxed), 1);
    worker.stop().await;
}
