//! At most one live claim per lane; lanes take turns; foreign kinds are left alone.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use occ_queue::{NewWork, Settings, Verdict, enqueue};
use tokio::sync::{Mutex, Notify};

use super::support::{Queue, Script, eventually, settings, work};

/// Counts how many passes of one lane run at once.
fn exclusive(running: &Arc<Mutex<BTreeMap<String, usize>>>, broken: &Arc<AtomicBool>) -> Script {
    let (running, broken) = (Arc::clone(running), Arc::clone(broken));
    Script::new(move |pass| {
        let (running, broken) = (Arc::clone(&running), Arc::clone(&broken));
        let lane = pass.claim().lane().to_owned();
        Box::pin(async move {
            let now = {
                let mut running = running.lock().await;
                let count = running.entry(lane.clone()).or_default();
                *count += 1;
                *count
            };
            broken.fetch_or(now > 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(2)).await;
            *running.lock().await.get_mut(&lane).unwrap() -= 1;
            Verdict::complete("OK")
        })
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_never_share_a_lane() {
    let queue = Queue::new().await;
    let lanes = queue.lanes(3).await;
    for (n, lane) in lanes.iter().cycle().take(60).enumerate() {
        queue.enqueue(&format!("k{n}"), lane).await;
    }
    let (running, broken) = (Arc::default(), Arc::default());
    let first = queue.worker(exclusive(&running, &broken));
    let second = queue.worker(exclusive(&running, &broken));
    eventually("all done", async || (queue.states().await.get("succeeded") == Some(&60)).then_some(())).await;
    assert!(!broken.load(Ordering::Relaxed), "two passes of one lane ran at once");
    for stats in [&first.stats, &second.stats] {
        assert_eq!((stats.counts().lanes_busy, stats.counts().lanes_repaired), (0, 0));
    }
    first.stop().await;
    second.stop().await;
    for lane in lanes {
        let claims = sqlx::query!(r#"select epoch, busy, due_at from occ.work_lane where lane = $1"#, lane)
            .fetch_one(&queue.pool)
            .await
            .unwrap();
        assert_eq!((claims.epoch, claims.busy, claims.due_at), (20, false, None), "one epoch for each claim");
    }
}

#[tokio::test]
async fn the_database_itself_refuses_a_second_claim_of_a_lane() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("a", &lane).await;
    queue.enqueue("b", &lane).await;
    let claim = |key: &'static str| {
        sqlx::query!(
            "update occ.work set state = 'claimed', lease_token = gen_random_uuid(), epoch = 1,
                                 lease_until = now() + interval '1 min' where key = $1",
            key
        )
        .execute(&queue.pool)
    };
    claim("a").await.unwrap();
    let refused = claim("b").await.unwrap_err();
    assert_eq!(
        refused.as_database_error().and_then(|error| error.constraint()),
        Some("work_one_claim_per_lane")
    );
}

#[tokio::test]
async fn lanes_take_turns_by_their_oldest_due_row() {
    let queue = Queue::new().await;
    let lanes = queue.lanes(3).await;
    // The first lane has a long backlog; the others come later with one row each.
    for n in 0..5 {
        queue.enqueue(&format!("long{n}"), &lanes[0]).await;
    }
    queue.enqueue("second", &lanes[1]).await;
    queue.enqueue("third", &lanes[2]).await;
    let order: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&order);
    let one_slot = Settings { slots: 1, ..settings() };
    let worker = queue.worker_with(
        one_slot,
        Script::new(move |pass| {
            let (seen, key) = (Arc::clone(&seen), pass.claim().key.clone());
            Box::pin(async move {
                seen.lock().await.push(key);
                Verdict::defer("REVISION_INCOMPLETE")
            })
        }),
    );
    eventually("first turns", async || (order.lock().await.len() >= 7).then_some(())).await;
    worker.stop().await;
    let order = order.lock().await;
    assert_eq!(order[..2], ["long0", "long1"], "a due row overtakes its deferred sibling");
    let position = |key: &str| order.iter().position(|seen| seen == key).unwrap();
    assert!(position("third") <= 6 && position("second") <= 6, "{order:?}");
}

#[tokio::test]
async fn stuck_lanes_do_not_slow_the_others() {
    let queue = Queue::new().await;
    let (stuck, free) = (queue.lane().await, queue.lane().await);
    sqlx::query!(
        "insert into occ.work_lane (lane, namespace_id, due_at) values ($1, $1, now() - interval '1 h')",
        stuck
    )
    .execute(&queue.pool)
    .await
    .unwrap();
    sqlx::query!(
        "insert into occ.work (key, kind, lane, namespace_id, actor_id, available_at, attempts_max)
         select 'stuck' || n, 'test.unknown', $1, $1, 'spn_actor', now() - interval '1 h', 5
           from generate_series(1, 2000) n",
        stuck
    )
    .execute(&queue.pool)
    .await
    .unwrap();
    for n in 0..20 {
        queue.enqueue(&format!("k{n}"), &free).await;
    }
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    eventually("free lane done", async || (queue.states().await.get("succeeded") == Some(&20)).then_some(()))
        .await;
    worker.stop().await;
    assert_eq!(queue.row("stuck1").await.passes, 0, "a kind that we do not know is left to newer workers");
}

#[tokio::test]
async fn a_transaction_that_holds_a_lane_delays_that_lane_only() {
    let queue = Queue::new().await;
    let (held, free) = (queue.lane().await, queue.lane().await);
    queue.enqueue("held", &held).await;
    let mut tx = queue.pool.begin().await.unwrap();
    enqueue(&mut tx, &work("later", &held)).await.unwrap();
    let worker = queue.worker(Script::always(Verdict::complete("OK")));
    for n in 0..10 {
        let key = format!("k{n}");
        queue.enqueue(&key, &free).await;
        queue.until(&key, "succeeded").await;
    }
    assert_eq!(queue.row("held").await.state, "queued");
    tx.commit().await.unwrap();
    queue.until("held", "succeeded").await;
    queue.until("later", "succeeded").await;
    worker.stop().await;
}

#[tokio::test]
async fn a_lane_held_while_its_claim_lives_keeps_the_lease() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let (started, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (starts, goes) = (Arc::clone(&started), Arc::clone(&go));
    let worker = queue.worker(Script::new(move |_| {
        let (starts, goes) = (Arc::clone(&starts), Arc::clone(&goes));
        Box::pin(async move {
            starts.notify_one();
            goes.notified().await;
            Verdict::complete("OK")
        })
    }));
    started.notified().await;
    // Longer than a lease: renewals go to the row, which this transaction does not hold.
    let mut tx = queue.pool.begin().await.unwrap();
    enqueue(&mut tx, &work("later", &lane)).await.unwrap();
    tokio::time::sleep(super::support::LEASE + Duration::from_millis(500)).await;
    go.notify_one();
    tx.commit().await.unwrap();
    let row = queue.until("k", "succeeded").await;
    assert_eq!((row.passes, row.attempt), (1, 1));
    go.notify_one();
    queue.until("later", "succeeded").await;
    worker.stop().await;
}

#[tokio::test]
async fn upkeep_gets_its_slot_while_user_work_never_ends() {
    let queue = Queue::new().await;
    let lanes = queue.lanes(8).await;
    let upkeep_lane = queue.lane().await;
    for (n, lane) in lanes.iter().cycle().take(400).enumerate() {
        queue.enqueue(&format!("k{n}"), lane).await;
    }
    let upkeep = NewWork { kind: super::support::UPKEEP, upkeep: true, ..work("upkeep", &upkeep_lane) };
    queue.put(&upkeep).await;
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let worker = queue.worker_with(
        Settings { slots: 2, ..settings() },
        Script::new(move |pass| {
            if !pass.claim().upkeep {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(5)).await;
                Verdict::complete("OK")
            })
        }),
    );
    queue.until("upkeep", "succeeded").await;
    let before = done.load(Ordering::Relaxed);
    worker.stop().await;
    assert!(before < 300, "upkeep waited for {before} user rows");
}
