//! Work exists exactly if its transaction commits; the same key is the same work.

use std::time::Duration;

use occ_queue::{Enqueued, NewWork, Owner, State, Verdict, arm_upkeep, enqueue, find, reset, wake};

use super::support::{Queue, Script, UPKEEP, work};

#[tokio::test]
async fn the_same_work_is_enqueued_once() {
    let queue = Queue::new().await;
    let (lane, other) = (queue.lane().await, queue.lane().await);
    let mut conn = queue.pool.acquire().await.unwrap();
    let first = work("k", &lane).attempts_max(3);
    assert_eq!(enqueue(&mut conn, &first).await.unwrap(), Enqueued::New);
    assert_eq!(enqueue(&mut conn, &first.clone().attempts_max(9)).await.unwrap(), Enqueued::Already);
    let others = [
        work("k", &other),
        NewWork { kind: "test.other", ..work("k", &lane) },
        NewWork { actor_id: "spn_other".to_owned(), ..work("k", &lane) },
        NewWork { upkeep: true, ..work("k", &lane) },
    ];
    for other in others {
        assert_eq!(enqueue(&mut conn, &other).await.unwrap(), Enqueued::Conflict, "{other:?}");
    }
    let row = find(&mut conn, "k").await.unwrap().unwrap();
    assert_eq!((row.actor_id.as_str(), row.attempts_max, row.state), ("spn_actor", 3, State::Queued));
}

#[tokio::test]
async fn a_rolled_back_transaction_leaves_no_work() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    let mut tx = queue.pool.begin().await.unwrap();
    assert_eq!(enqueue(&mut tx, &work("k", &lane)).await.unwrap(), Enqueued::New);
    tx.rollback().await.unwrap();
    let mut conn = queue.pool.acquire().await.unwrap();
    assert_eq!(find(&mut conn, "k").await.unwrap(), None);
}

#[tokio::test]
async fn delayed_work_waits_and_a_deadline_counts_from_enqueue() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.put(&work("late", &lane).delay(Duration::from_secs(60)).deadline(Duration::from_secs(90))).await;
    queue.put(&work("now", &lane)).await;
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    queue.until("now", "succeeded").await;
    worker.stop().await;
    let row = queue.row("late").await;
    assert_eq!((row.state.as_str(), row.passes), ("queued", 0));
    assert!((50.0..=60.0).contains(&row.due_in), "{}", row.due_in);
    let left = sqlx::query_scalar!(
        r#"select extract(epoch from deadline_at - created_at)::float8 as "left!" from occ.work where key = 'late'"#
    )
    .fetch_one(&queue.pool)
    .await
    .unwrap();
    assert!((left - 90.0).abs() < 0.001, "{left}");
}

fn observe(lane: &str) -> NewWork {
    NewWork::upkeep(format!("{lane}:observe"), UPKEEP, Owner::namespace(lane), "system")
}

#[tokio::test]
async fn upkeep_is_armed_again_in_every_state() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    let key = observe(&lane).key;
    let mut conn = queue.pool.acquire().await.unwrap();
    // New, then moved forward, never back.
    assert!(arm_upkeep(&mut conn, &observe(&lane), Duration::from_secs(300)).await.unwrap());
    assert!(arm_upkeep(&mut conn, &observe(&lane), Duration::from_secs(60)).await.unwrap());
    assert!(arm_upkeep(&mut conn, &observe(&lane), Duration::from_secs(300)).await.unwrap());
    let row = queue.row(&key).await;
    assert!(row.due_in < 61.0 && row.due_in > 50.0, "{}", row.due_in);

    // Ended, then queued again from the start.
    assert!(arm_upkeep(&mut conn, &observe(&lane), Duration::ZERO).await.unwrap());
    let worker = queue.worker(Script::always(Verdict::complete("OBSERVED_IN_ORDER")));
    queue.until(&key, "succeeded").await;
    worker.stop().await;
    assert!(arm_upkeep(&mut conn, &observe(&lane), Duration::from_secs(60)).await.unwrap());
    let row = queue.row(&key).await;
    assert_eq!((row.state.as_str(), row.attempt), ("queued", 0));

    // A key of other work is refused.
    queue.enqueue("taken", &lane).await;
    let stolen = NewWork { key: "taken".to_owned(), ..observe(&lane) };
    assert!(!arm_upkeep(&mut conn, &stolen, Duration::ZERO).await.unwrap());
}

#[tokio::test]
async fn upkeep_armed_while_it_runs_runs_once_more() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    let key = observe(&lane).key;
    let mut conn = queue.pool.acquire().await.unwrap();
    arm_upkeep(&mut conn, &observe(&lane), Duration::ZERO).await.unwrap();
    let pool = queue.pool.clone();
    let worker = queue.worker(Script::new(move |pass| {
        let (pool, first) = (pool.clone(), pass.claim().passes == 1);
        Box::pin(async move {
            if first {
                let mut conn = pool.acquire().await.unwrap();
                arm_upkeep(&mut conn, &observe(pass.claim().lane()), Duration::ZERO).await.unwrap();
            }
            Verdict::complete("OBSERVED_IN_ORDER")
        })
    }));
    let row = queue.until(&key, "succeeded").await;
    worker.stop().await;
    assert_eq!((row.passes, row.attempt), (2, 1));
}

#[tokio::test]
async fn upkeep_may_rest_and_come_again() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    let key = observe(&lane).key;
    let mut conn = queue.pool.acquire().await.unwrap();
    arm_upkeep(&mut conn, &observe(&lane), Duration::ZERO).await.unwrap();
    let worker = queue.worker(Script::always(Verdict::Complete {
        code: occ_queue::Code::new("OBSERVED_IN_ORDER"),
        result: None,
        again_in: Some(Duration::from_secs(300)),
    }));
    super::support::eventually("rests", async || (queue.row(&key).await.passes == 1).then_some(())).await;
    worker.stop().await;
    let row = queue.row(&key).await;
    assert_eq!((row.state.as_str(), row.attempt, row.code()), ("queued", 0, "OBSERVED_IN_ORDER"));
    assert!(row.due_in > 290.0, "{}", row.due_in);
    assert!(row.waiting, "a hint may wake it");
}

#[tokio::test]
async fn a_retry_by_a_user_resets_a_failed_row_only() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.put(&work("k", &lane).deadline(Duration::from_secs(60))).await;
    let mut conn = queue.pool.acquire().await.unwrap();
    assert!(!reset(&mut conn, "k", None).await.unwrap(), "queued rows are left alone");
    assert!(!reset(&mut conn, "absent", None).await.unwrap());
    let worker = queue.worker(Script::always(Verdict::fail("SECRET_BINDING_UNAVAILABLE")));
    queue.until("k", "failed_permanent").await;
    worker.stop().await;
    assert!(reset(&mut conn, "k", Some(Duration::from_secs(600))).await.unwrap());
    let row = queue.row("k").await;
    assert_eq!((row.state.as_str(), row.attempt, row.reason_code), ("queued", 0, None));
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    queue.until("k", "succeeded").await;
    worker.stop().await;
}

#[tokio::test]
async fn a_change_outside_wakes_what_waits_and_not_what_failed() {
    let queue = Queue::new().await;
    let (waits, failed) = (queue.lane().await, queue.lane().await);
    queue.enqueue("waits", &waits).await;
    queue.enqueue("failed", &failed).await;
    let worker = queue.worker(Script::new(|pass| {
        let verdict = match pass.claim().key.as_str() {
            "waits" => Verdict::Defer {
                code: occ_queue::Code::new("REVISION_INCOMPLETE"),
                cadence: occ_queue::Cadence::After(Duration::from_secs(100)),
                outage: false,
            },
            _ => Verdict::retry("DRIVER_TRAPPED"),
        };
        Box::pin(async move { verdict })
    }));
    super::support::eventually("both ran", async || {
        (queue.row("waits").await.passes == 1 && queue.row("failed").await.attempt >= 3).then_some(())
    })
    .await;
    worker.stop().await;
    let mut conn = queue.pool.acquire().await.unwrap();
    assert!(queue.row("waits").await.due_in > 90.0);
    assert_eq!(wake(&mut conn, &waits).await.unwrap(), 1);
    assert!(queue.row("waits").await.due_in <= 0.0);
    assert_eq!(wake(&mut conn, &waits).await.unwrap(), 0);
    assert_eq!(wake(&mut conn, &failed).await.unwrap(), 0);
}
