//! Histories that the migrator refuses, each made from a good database by one edit.

use occ_host::migrate::{self, MigrateConfig, Reason, Source, SourceFile, State};
use occ_tests::database::Database;
use sqlx::PgConnection;

use super::execute;

/// Reason, then the edit; run by the owner of the ledger.
const EDITS: [(Reason, &str); 9] = [
    (Reason::LedgerChanged, "alter table occ_migrations.receipts add column note text"),
    (Reason::LedgerChanged, "create table occ_migrations.other (x text)"),
    (Reason::LedgerChanged, "grant select on occ_migrations.receipts to occ_app"),
    (
        Reason::ReceiptsDiffer,
        "update occ_migrations.receipts set checksum = '\\x00' where version = 20261201030300",
    ),
    (
        Reason::ReceiptsDiffer,
        "update occ_migrations.receipts set description = 'x y' where version = 20261201030300",
    ),
    (Reason::ReceiptsNotAPrefix, "delete from occ_migrations.receipts where version = 20261201030300"),
    (
        Reason::ReceiptsNotAPrefix,
        "update occ_migrations.receipts set version = version + 1 where version = 20261201030300",
    ),
    (
        Reason::ReceiptUnfinished,
        "update occ_migrations.receipts set success = false where version = 20261201030300",
    ),
    (
        Reason::HistoryNewerThanBinary,
        "insert into occ_migrations.receipts values (29991231235959, 'future change', now(), true, '\\x00', 1)",
    ),
];

/// Every row of the ledger and of the state that the migrator may write.
async fn written(db: &mut PgConnection) -> (Vec<String>, i64) {
    let receipts = sqlx::query_scalar("select r::text from occ_migrations.receipts r order by version");
    let tables = "select count(*) from pg_class where relnamespace = 'occ'::regnamespace";
    (receipts.fetch_all(&mut *db).await.unwrap(), sqlx::query_scalar(tables).fetch_one(db).await.unwrap())
}

#[tokio::test]
async fn each_edit_is_refused_and_nothing_is_written() {
    for (reason, edit) in EDITS {
        let database = Database::new().await.unwrap();
        let mut db = database.connect("occ_migrator").await.unwrap();
        execute(&mut db, edit).await.unwrap();
        let before = written(&mut db).await;
        let config = MigrateConfig::new(database.url("occ_migrator"));
        for error in [migrate::check(&config).await.map(drop), migrate::run(&config).await.map(drop)] {
            let error = error.expect_err(edit);
            assert_eq!((error.reason(), error.exit_status()), (Some(reason), 3), "{edit}: {error}");
            assert_eq!(error.code(), "MIGRATION_HISTORY_UNSUPPORTED");
        }
        assert_eq!(written(&mut db).await, before, "{edit}");
    }
}

#[tokio::test]
async fn a_schema_that_nobody_migrated_is_refused() {
    let database = Database::empty().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    execute(&mut db, "create schema occ; create table occ.stray (x text)").await.unwrap();
    let error = migrate::run(&MigrateConfig::new(database.url("occ_migrator"))).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::InitialSchemaNotEmpty));
    assert!(error.to_string().contains("occ.stray"), "{error}");
    let ledger: bool = sqlx::query_scalar("select to_regnamespace('occ_migrations') is not null")
        .fetch_one(&mut db)
        .await
        .unwrap();
    assert!(!ledger);
}

#[tokio::test]
async fn a_server_that_is_read_only_or_not_utf8_is_refused() {
    let database = Database::empty().await.unwrap();
    let url = format!("{}&options[default_transaction_read_only]=on", database.url("occ_migrator"));
    let error = migrate::run(&MigrateConfig::new(url)).await.unwrap_err();
    assert_eq!(error.reason(), Some(Reason::ServerReadOnly), "{error}");

    let mut superuser = database.connect("postgres").await.unwrap();
    let name = format!("occ_latin_{}", std::process::id());
    execute(
        &mut superuser,
        &format!("create database {name} template template0 encoding 'LATIN1' locale 'C'"),
    )
    .await
    .unwrap();
    let current: String =
        sqlx::query_scalar("select current_database()").fetch_one(&mut superuser).await.unwrap();
    let url = database.url("occ_migrator").replace(&current, &name);
    let error = migrate::run(&MigrateConfig::new(url)).await.unwrap_err();
    execute(&mut superuser, &format!("drop database {name}")).await.unwrap();
    assert_eq!(error.reason(), Some(Reason::ServerUnsupported), "{error}");
}

#[tokio::test]
async fn empty_prepared_and_every_prefix_are_accepted() {
    let count = Source::embedded().files().len();
    let database = Database::empty().await.unwrap();
    let mut db = database.connect("occ_migrator").await.unwrap();
    execute(&mut db, "create schema occ; create schema occ_migrations").await.unwrap();
    let config = MigrateConfig::new(database.url("occ_migrator"));
    let checked = migrate::check(&config).await.unwrap();
    assert_eq!((checked.state, checked.version, checked.pending.len()), (State::Empty, None, count));
    for prefix in 6..=count {
        let source = Source::embedded().prefix(prefix);
        let done = migrate::run_source(&config, &source).await.unwrap();
        assert_eq!(done.version, source.version());
        let expected = if prefix == 6 { 6 } else { 1 };
        assert_eq!(done.applied.len(), expected, "prefix {prefix}");
        let checked = migrate::check(&config).await.unwrap();
        let state = if prefix == count { State::Current } else { State::Behind };
        assert_eq!((checked.state, checked.version), (state, Some(source.version())));
    }
    let state: (i64, i64) = sqlx::query_scalar::<_, sqlx::types::Json<_>>(
        "select json_build_array(version, compatible_from) from occ.schema_state",
    )
    .fetch_one(&mut db)
    .await
    .unwrap()
    .0;
    assert_eq!(state, (migrate::expected_version(), Source::embedded().compatible_from()));
    assert_eq!(migrate::run(&config).await.unwrap().applied, Vec::<String>::new());
}

#[tokio::test]
async fn a_failed_file_leaves_the_files_before_it_and_the_next_run_finishes() {
    let database = Database::empty().await.unwrap();
    let config = MigrateConfig::new(database.url("occ_migrator"));
    let source = |second: &'static str| {
        Source::of(vec![
            // The state table is what a run writes at its end.
            SourceFile::new(1, "state_create", "create schema occ; create table occ.schema_state (singleton boolean
                default true primary key, version bigint, compatible_from bigint, product_version text, updated_at timestamptz)"),
            SourceFile::new(2, "second_create", second),
            SourceFile::new(3, "third_create", "create table occ.third (x text)"),
        ])
    };
    let error = migrate::run_source(&config, &source("create table occ.second (x text); select 1 / 0"))
        .await
        .unwrap_err();
    assert_eq!((error.code(), error.exit_status()), ("MIGRATION_FAILED", 1));
    assert!(error.to_string().contains("migration 2 failed with SQLSTATE 22012"), "{error}");

    let mut db = database.connect("occ_migrator").await.unwrap();
    let receipts: Vec<i64> = sqlx::query_scalar("select version from occ_migrations.receipts order by 1")
        .fetch_all(&mut db)
        .await
        .unwrap();
    assert_eq!(receipts, [1]);
    let second: bool =
        sqlx::query_scalar("select to_regclass('occ.second') is not null").fetch_one(&mut db).await.unwrap();
    assert!(!second);

    let done = migrate::run_source(&config, &source("create table occ.second (x text)")).await.unwrap();
    assert_eq!(done.applied, ["second_create", "third_create"]);
}
