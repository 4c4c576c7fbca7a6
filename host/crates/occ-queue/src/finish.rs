//! Ending claims: verdicts as the table writes them, and the batch that lets
//! many of them share one commit.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use sqlx::{PgConnection, PgPool};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout_at},
};
use uuid::Uuid;

use crate::{
    Code, Handler, Owner, QueueError,
    settings::{FINISH_ROWS_MAX, FINISH_WAIT_MAX},
};

/// What a pass came to, as metrics and evidence name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// Completed.
    Success,
    /// Deferred or handed over: the attempt is refunded.
    Pending,
    /// To be tried again: the attempt is spent.
    Retry,
    /// Failed for good.
    Permanent,
    /// The lease was lost; nothing was written.
    ClaimLost,
    /// The end of the pass could not be written.
    Error,
}

impl Outcome {
    /// Label value of metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Pending => "pending",
            Self::Retry => "retry",
            Self::Permanent => "permanent",
            Self::ClaimLost => "claim_lost",
            Self::Error => "error",
        }
    }
}

/// One transition, for the evidence that a handler writes in the same transaction.
#[derive(Clone, Debug)]
pub struct Transition {
    /// The row's key.
    pub key: String,
    /// `noun.verb`.
    pub kind: String,
    /// Whom it is about.
    pub owner: Owner,
    /// Who asked for it.
    pub actor_id: String,
    /// What the pass came to.
    pub outcome: Outcome,
    /// Reason code; none for a hand-over.
    pub code: Option<Code>,
    /// Last committed step.
    pub step: Option<String>,
    /// The attempt that ended, counted from 1.
    pub attempt: i32,
    /// Attempts before the row settles.
    pub attempts_max: i32,
    /// Fence of the claim that ended.
    pub epoch: i64,
    /// False when the row waits for the same reason at the same step as before:
    /// that is no news and needs no evidence.
    pub changed: bool,
}

/// How a claim ends, in the words of `occ.work_finish`.
#[derive(Clone, Debug)]
pub(crate) struct Finish {
    pub(crate) token: Uuid,
    pub(crate) verdict: &'static str,
    /// Rest before the next claim; on `complete` it queues the row again.
    pub(crate) delay: Option<Duration>,
    pub(crate) result: Option<serde_json::Value>,
    /// Quarantine of the lane after a cut call; zero for none.
    pub(crate) hold: Duration,
    pub(crate) transition: Transition,
}

/// Ends claims in one round trip. Returns the keys that were ended; the claims
/// of the others were lost before.
pub(crate) async fn finish_in(conn: &mut PgConnection, batch: &[Finish]) -> Result<Vec<String>, QueueError> {
    let lanes: Vec<String> = batch.iter().map(|f| f.transition.owner.lane().to_owned()).collect();
    let keys: Vec<String> = batch.iter().map(|f| f.transition.key.clone()).collect();
    let tokens: Vec<Uuid> = batch.iter().map(|f| f.token).collect();
    let verdicts: Vec<String> = batch.iter().map(|f| f.verdict.to_owned()).collect();
    let codes: Vec<Option<String>> =
        batch.iter().map(|f| f.transition.code.as_ref().map(|code| code.as_str().to_owned())).collect();
    let results: Vec<Option<String>> =
        batch.iter().map(|f| f.result.as_ref().map(ToString::to_string)).collect();
    let delays: Vec<Option<f64>> = batch.iter().map(|f| f.delay.map(|delay| delay.as_secs_f64())).collect();
    let holds: Vec<f64> = batch.iter().map(|f| f.hold.as_secs_f64()).collect();
    let ended = sqlx::query_scalar!(
        r#"select key as "key!" from occ.work_finish($1, $2, $3, $4, $5, $6, $7, $8) as key"#,
        &lanes,
        &keys,
        &tokens,
        &verdicts,
        &codes as &[Option<String>],
        &results as &[Option<String>],
        &delays as &[Option<f64>],
        &holds,
    )
    .fetch_all(conn)
    .await?;
    Ok(ended)
}

type Reply = oneshot::Sender<Result<bool, QueueError>>;

/// Where passes bring their ends. Cheap to clone; the batch ends with its last clone.
#[derive(Clone, Debug)]
pub(crate) struct Finisher {
    queue: mpsc::Sender<(Finish, Reply)>,
    /// Passes that may still bring an end: when none may, nobody is waited for.
    running: Arc<AtomicUsize>,
}

impl Finisher {
    pub(crate) fn new() -> (Self, mpsc::Receiver<(Finish, Reply)>) {
        let (queue, ends) = mpsc::channel(FINISH_ROWS_MAX);
        (Self { queue, running: Arc::default() }, ends)
    }

    pub(crate) fn running(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.running)
    }

    /// A pass begins; [`finish`](Self::finish) or [`forgotten`](Self::forgotten) follows.
    pub(crate) fn expected(&self) {
        self.running.fetch_add(1, Ordering::Relaxed);
    }

    /// A pass ended that has nothing to bring (any more).
    pub(crate) fn forgotten(&self) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }

    /// Commits one end together with others. False when the claim was lost.
    pub(crate) async fn finish(&self, finish: Finish) -> Result<bool, QueueError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send((finish, reply)).await.map_err(|_gone| QueueError::Ending)?;
        answer.await.map_err(|_gone| QueueError::Ending)?
    }
}

/// Collects ends for at most 2 ms or 64 rows and commits them, until the last [`Finisher`] is dropped.
pub(crate) async fn run_batches<H: Handler>(
    pool: PgPool,
    handler: Arc<H>,
    mut ends: mpsc::Receiver<(Finish, Reply)>,
    running: Arc<AtomicUsize>,
) {
    while let Some(first) = ends.recv().await {
        let due = Instant::now() + FINISH_WAIT_MAX;
        let mut batch = vec![first];
        while batch.len() < FINISH_ROWS_MAX {
            let next = match ends.try_recv() {
                Ok(next) => Some(next),
                Err(_) if running.load(Ordering::Relaxed) == 0 => None,
                Err(_) => timeout_at(due, ends.recv()).await.ok().flatten(),
            };
            let Some(next) = next else { break };
            batch.push(next);
        }
        commit(&pool, handler.as_ref(), batch).await;
    }
}

/// Commits a batch. When that fails, each is tried alone, so that one bad row
/// cannot hold up the others.
async fn commit<H: Handler>(pool: &PgPool, handler: &H, batch: Vec<(Finish, Reply)>) {
    let (finishes, replies): (Vec<Finish>, Vec<Reply>) = batch.into_iter().unzip();
    match commit_all(pool, handler, &finishes).await {
        Ok(ended) => {
            for (finish, reply) in finishes.iter().zip(replies) {
                drop(reply.send(Ok(ended.contains(&finish.transition.key))));
            }
        }
        Err(error) if finishes.len() == 1 => {
            if let Some(reply) = replies.into_iter().next() {
                drop(reply.send(Err(error)));
            }
        }
        Err(error) => {
            tracing::warn!(event = "queue.batch-split", rows = finishes.len(), %error);
            for (finish, reply) in finishes.into_iter().zip(replies) {
                let alone = commit_all(pool, handler, std::slice::from_ref(&finish)).await;
                drop(reply.send(alone.map(|ended| !ended.is_empty())));
            }
        }
    }
}

async fn commit_all<H: Handler>(
    pool: &PgPool,
    handler: &H,
    batch: &[Finish],
) -> Result<Vec<String>, QueueError> {
    let news = |finish: &&Finish| finish.transition.changed;
    if !handler.records() || !batch.iter().any(|finish| news(&finish)) {
        let mut conn = pool.acquire().await?;
        return finish_in(&mut conn, batch).await;
    }
    let mut tx = pool.begin().await?;
    let ended = finish_in(&mut tx, batch).await?;
    for finish in batch.iter().filter(news).filter(|finish| ended.contains(&finish.transition.key)) {
        handler.record(&mut tx, &finish.transition).await?;
    }
    tx.commit().await?;
    Ok(ended)
}
