//! Many migrators at once, and one that dies.

use std::time::Duration;

use occ_host::migrate::{self, MigrateConfig, Reason, Source};
use occ_tests::database::Database;
use occ_tests::proxy::{Manner, Proxy};

use super::execute;

const LOCK: &str = "select pg_advisory_lock(5194563, 1)";

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_migrators_one_migrates_and_all_succeed() {
    let database = Database::empty().await.unwrap();
    let config = MigrateConfig::new(database.url("occ_migrator"));
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let config = config.clone();
        runs.spawn(async move { migrate::run(&config).await });
    }
    let mut applied = Vec::new();
    while let Some(done) = runs.join_next().await {
        applied.push(done.unwrap().unwrap().applied.len());
    }
    applied.sort_unstable();
    let all = Source::embedded().files().len();
    assert_eq!(applied, [0, 0, 0, 0, 0, 0, 0, all]);
}

#[tokio::test]
async fn a_held_lock_ends_in_a_timeout_that_says_so() {
    let database = Database::empty().await.unwrap();
    let mut holder = database.connect("occ_migrator").await.unwrap();
    execute(&mut holder, LOCK).await.unwrap();
    let config = MigrateConfig {
        lock_wait: Duration::from_millis(600),
        ..MigrateConfig::new(database.url("occ_migrator"))
    };
    let error = migrate::run(&config).await.unwrap_err();
    assert_eq!((error.code(), error.exit_status()), ("MIGRATION_LOCK_TIMEOUT", 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_migrator_takes_over_from_one_that_was_killed() {
    let database = Database::empty().await.unwrap();
    let mut holder = database.connect("occ_migrator").await.unwrap();
    execute(&mut holder, LOCK).await.unwrap();
    let process: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut holder).await.unwrap();
    let config = MigrateConfig::new(database.url("occ_migrator"));
    let mut runs = tokio::task::JoinSet::new();
    runs.spawn(async move { migrate::run(&config).await });

    // It waits: the lock is asked for, and nothing is written.
    let mut superuser = database.connect("postgres").await.unwrap();
    occ_tests::wait::eventually("the migrator waits", async || {
        let waits: bool = sqlx::query_scalar(
            "select exists (select from pg_stat_activity where datname = current_database()
               and application_name like 'occ-migrate/%')",
        )
        .fetch_one(&mut database.connect("postgres").await.unwrap())
        .await
        .unwrap();
        waits.then_some(()).ok_or_else(|| "it is not connected".to_owned())
    })
    .await;
    execute(&mut superuser, &format!("select pg_terminate_backend({process})")).await.unwrap();
    let done = runs.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(done.version, migrate::expected_version());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_breaks_is_replaced_and_no_file_runs_twice() {
    let database = Database::empty().await.unwrap();
    let config = MigrateConfig::new(database.url("occ_migrator"));
    let all = Source::embedded().files().len();
    let mut runs = tokio::task::JoinSet::new();
    runs.spawn({
        let config = config.clone();
        async move { migrate::run(&config).await }
    });
    // Cut it off once it has written something.
    let mut superuser = database.connect("postgres").await.unwrap();
    occ_tests::wait::eventually("the ledger is there", async || {
        let begun: bool = sqlx::query_scalar("select to_regclass('occ_migrations.receipts') is not null")
            .fetch_one(&mut database.connect("postgres").await.unwrap())
            .await
            .unwrap();
        begun.then_some(()).ok_or_else(|| "it is not".to_owned())
    })
    .await;
    let cut = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and application_name like 'occ-migrate/%'";
    execute(&mut superuser, cut).await.unwrap();
    let done = runs.join_next().await.unwrap().unwrap().unwrap();
    assert_eq!(done.applied.len(), all, "{:?}", done.applied);
    let receipts: i64 = sqlx::query_scalar("select count(*) from occ_migrations.receipts")
        .fetch_one(&mut superuser)
        .await
        .unwrap();
    assert_eq!(usize::try_from(receipts).unwrap(), all);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_to_commit_runs_no_file_twice() {
    let database = Database::empty().await.unwrap();
    let proxy = Proxy::start(&database, Manner::Direct).await.unwrap();
    proxy.cut_commit(3);
    let done = migrate::run(&MigrateConfig::new(proxy.url("occ_migrator"))).await.unwrap();
    assert!(proxy.has_cut());
    let names: Vec<String> = Source::embedded().files().iter().map(|file| file.name.clone()).collect();
    assert_eq!(done.applied, names);
    let mut db = database.connect("occ_migrator").await.unwrap();
    let receipts: i64 =
        sqlx::query_scalar("select count(*) from occ_migrations.receipts").fetch_one(&mut db).await.unwrap();
    assert_eq!(usize::try_from(receipts).unwrap(), names.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_pooler_is_refused() {
    let database = Database::empty().await.unwrap();
    let proxy = Proxy::start(&database, Manner::Pooled).await.unwrap();
    let error = migrate::run(&MigrateConfig::new(proxy.url("occ_migrator"))).await.unwrap_err();
    assert_eq!((error.reason(), error.exit_status()), (Some(Reason::ConnectionPooled), 3), "{error}");
    let mut db = database.connect("occ_migrator").await.unwrap();
    let untouched: bool = sqlx::query_scalar("select to_regnamespace('occ_migrations') is null")
        .fetch_one(&mut db)
        .await
        .unwrap();
    assert!(untouched);
}
