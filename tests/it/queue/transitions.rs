//! What each verdict does to a row: state, attempt, next time, code.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use occ_queue::{Cadence, Code, Outcome, Settings, Verdict, reset};
use serde_json::json;

use super::support::{Evidence, KIND, Queue, Script, eventually, settings, work};

#[tokio::test]
async fn completion_keeps_the_attempt_and_the_result() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let worker = queue.worker(Script::always(Verdict::Complete {
        code: Code::new("REVISION_ACTIVATED"),
        result: Some(json!({"n": 1})),
        again_in: Some(Duration::from_secs(1)),
    }));
    let row = queue.until("k", "succeeded").await;
    assert_eq!(
        (row.code(), row.attempt, row.passes),
        ("REVISION_ACTIVATED", 1, 1),
        "user work never comes again"
    );
    assert_eq!(row.result, Some(json!({"n": 1})));
    assert_eq!((row.busy, row.lane_epoch, row.epoch, row.lease_token), (false, 1, None, None));
    let stats = worker.stop().await;
    assert_eq!(stats.counts().attempts.get(&(KIND.to_owned(), Outcome::Success)), Some(&1));
}

#[tokio::test]
async fn waiting_refunds_the_attempt_and_is_evidence_once() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let evidence = Evidence::default();
    let worker = queue.worker(
        Script::new(|pass| {
            let (passes, step) = (pass.claim().passes, pass.step());
            Box::pin(async move {
                if passes == 4 && step.is_none() {
                    pass.advance("prepare").await.unwrap();
                }
                if passes == 6 {
                    return Verdict::complete("REVISION_ACTIVATED");
                }
                Verdict::Defer {
                    code: Code::new("REVISION_INCOMPLETE"),
                    cadence: Cadence::After(Duration::from_millis(20)),
                    outage: false,
                }
            })
        })
        .evidence(&evidence),
    );
    let row = queue.until("k", "succeeded").await;
    worker.stop().await;
    assert_eq!((row.attempt, row.passes, row.step.as_deref()), (1, 6, Some("prepare")));
    let codes: Vec<String> =
        evidence.lock().await.iter().map(|(_, code)| code.as_ref().unwrap().to_string()).collect();
    assert_eq!(
        codes,
        ["REVISION_INCOMPLETE", "REVISION_INCOMPLETE", "REVISION_ACTIVATED"],
        "first, new step, end"
    );
}

#[tokio::test]
async fn errors_spend_attempts_until_the_row_settles() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.put(&work("k", &lane).attempts_max(2)).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let worker = queue.worker(
        Script::new(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Verdict::retry("DRIVER_TRAPPED") })
        })
        .give_up(|pass, why| {
            assert!(pass.claim().settling() && !why.deadline);
            Verdict::Fail { code: why.code, result: Some(json!({"settled": true})) }
        }),
    );
    let row = queue.until("k", "failed_permanent").await;
    assert_eq!((row.code(), row.attempt, row.passes), ("MAX_ATTEMPTS_EXHAUSTED", 3, 3));
    assert_eq!(row.result, Some(json!({"settled": true})));
    assert_eq!(runs.load(Ordering::Relaxed), 2, "the settling claim begins no work");

    // A user's retry starts from nothing.
    let mut conn = queue.pool.acquire().await.unwrap();
    assert!(reset(&mut conn, "k", None).await.unwrap());
    queue.until("k", "failed_permanent").await;
    assert_eq!(runs.load(Ordering::Relaxed), 4);
    worker.stop().await;
}

#[tokio::test]
async fn one_extra_attempt_is_given_once() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.put(&work("k", &lane).attempts_max(1)).await;
    let worker = queue.worker(Script::always(Verdict::retry("DRIVER_TRAPPED")).give_up(|pass, why| {
        match pass.claim().cause {
            None => Verdict::Extra { code: Code::new("ACTIVE_REVISION_RECOVERY") },
            Some(_) => Verdict::Fail { code: why.code, result: None },
        }
    }));
    let row = queue.until("k", "failed_permanent").await;
    // Run, settle, run once more, settle.
    assert_eq!((row.passes, row.cause_code.as_deref()), (4, Some("ACTIVE_REVISION_RECOVERY")));
    worker.stop().await;
}

#[tokio::test]
async fn a_panic_is_an_attempt_and_the_loop_lives() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("poison", &lane).await;
    let evidence = Evidence::default();
    // Printing a panic with its backtrace may take longer than the lease of other tests.
    let patient = Settings { lease: Duration::from_secs(60), ..settings() };
    let script = Script::new(|pass| {
        let poison = pass.claim().key == "poison" && pass.claim().passes == 1;
        Box::pin(async move {
            assert!(!poison, "poisoned");
            Verdict::complete("OK")
        })
    });
    let worker = queue.worker_with(patient, script.evidence(&evidence));
    let row = queue.until("poison", "succeeded").await;
    assert_eq!(row.attempt, 2);
    let stats = worker.stop().await;
    let codes: Vec<String> =
        evidence.lock().await.iter().map(|(_, code)| code.as_ref().unwrap().to_string()).collect();
    assert_eq!(codes, ["WORKER_PANIC", "OK"]);
    assert_eq!(stats.counts().attempts.get(&(KIND.to_owned(), Outcome::Retry)), Some(&1));
}

#[tokio::test]
async fn waiting_past_the_deadline_is_given_up() {
    let queue = Queue::new().await;
    let lanes = queue.lanes(2).await;
    queue.put(&work("slow", &lanes[0]).deadline(Duration::from_millis(300))).await;
    queue.put(&work("down", &lanes[1]).deadline(Duration::from_millis(300))).await;
    let worker = queue.worker(
        Script::new(|pass| {
            let outage = pass.claim().key == "down";
            let code = if outage { "KUBERNETES_API_UNAVAILABLE" } else { "REVISION_INCOMPLETE" };
            let cadence = Cadence::After(Duration::from_millis(50));
            Box::pin(async move { Verdict::Defer { code: Code::new(code), cadence, outage } })
        })
        .give_up(|pass, why| {
            assert!(pass.past_deadline() && why.deadline);
            Verdict::Fail { code: why.code, result: None }
        }),
    );
    assert_eq!(queue.until("slow", "failed_permanent").await.code(), "CONVERGENCE_DEADLINE_EXCEEDED");
    assert_eq!(queue.until("down", "failed_permanent").await.code(), "KUBERNETES_API_UNAVAILABLE");
    worker.stop().await;
}

#[tokio::test]
async fn publishing_and_turning_round_move_step_phase_and_deadline() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.put(&work("k", &lane).deadline(Duration::from_secs(60))).await;
    let pool = queue.pool.clone();
    let worker = queue.worker(Script::new(move |pass| {
        let (pool, passes) = (pool.clone(), pass.claim().passes);
        Box::pin(async move {
            let mut tx = pool.begin().await.unwrap();
            pass.guard_in(&mut tx).await.unwrap();
            match passes {
                1 => pass.publish_in(&mut tx, "publish", None, Duration::from_millis(1)).await.unwrap(),
                2 => {
                    let cause = Code::new("RUNTIME_STARTUP_FAILED");
                    pass.turn_in(&mut tx, "revert", None, &cause, Duration::from_secs(60)).await.unwrap();
                }
                _ => {
                    let (done, transition) =
                        pass.finish_in(&mut tx, Verdict::fail("ACTIVATION_ROLLED_BACK")).await.unwrap();
                    assert_eq!(
                        (transition.step.as_deref(), transition.outcome),
                        (Some("revert"), Outcome::Permanent)
                    );
                    tx.commit().await.unwrap();
                    return Verdict::Done(done);
                }
            }
            tx.commit().await.unwrap();
            Verdict::retry("DRIVER_TRAPPED")
        })
    }));
    let row = queue.until("k", "failed_permanent").await;
    assert_eq!((row.phase.as_str(), row.step.as_deref()), ("rollback", Some("revert")));
    assert_eq!(
        (row.cause_code.as_deref(), row.code()),
        (Some("RUNTIME_STARTUP_FAILED"), "ACTIVATION_ROLLED_BACK")
    );
    assert_eq!((row.attempt, row.passes), (1, 3), "turning round starts the attempts anew");
    let stats = worker.stop().await;
    assert_eq!(stats.counts().attempts.get(&(KIND.to_owned(), Outcome::Permanent)), Some(&1));
}

#[tokio::test]
async fn a_cut_call_holds_the_lane_and_raises_the_floor() {
    let queue = Queue::new().await;
    let lane = queue.lane().await;
    queue.enqueue("k", &lane).await;
    let worker = queue.worker(Script::new(|pass| {
        let first = pass.claim().passes == 1;
        Box::pin(async move {
            let effect = pass.begin_effect().await.unwrap();
            if first {
                // The effect is let go without its end: a request of it may be in flight.
                return Verdict::retry("DRIVER_LIMIT_EXCEEDED");
            }
            effect.end();
            Verdict::complete("OK")
        })
    }));
    let row = eventually("cut", async || {
        let row = queue.row("k").await;
        (row.passes == 1 && row.state == "queued").then_some(row)
    })
    .await;
    assert!(row.hold_in > 1.0, "{}", row.hold_in);
    assert!(row.begun);
    assert_eq!(row.fence_floor, 2);
    let row = queue.until("k", "succeeded").await;
    assert_eq!(row.fence_floor, 2, "a call that ended raises nothing");
    worker.stop().await;
}
