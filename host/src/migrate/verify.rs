//! Steps 2 and 7: is this a server, and a history, that this binary may go on from.

use sqlx::{Decode, PgConnection, Postgres, Row, Type};

use super::error::{MigrateError, Reason};
use super::ledger::Receipt;
use super::source::Source;

/// Oldest supported server: `nulls not distinct` came with 15.
const SERVER_MAJOR_MIN: i32 = 15;
/// `server_version_num` counts majors in ten thousands.
const VERSION_NUM_PER_MAJOR: i32 = 10_000;

/// Bounds every statement of the connection; it is never shared, so the session may keep settings.
pub(super) async fn bound_statements(db: &mut PgConnection) -> Result<(), MigrateError> {
    sqlx::raw_sql(
        "set statement_timeout = '60s'; set lock_timeout = '10s'; set search_path = pg_catalog, pg_temp",
    )
    .execute(db)
    .await?;
    Ok(())
}

/// One value by the simple protocol: a pooler may give each statement another server process, and then a
/// prepared one would fail before the verifier can say what is wrong.
pub(super) async fn scalar<T>(db: &mut PgConnection, statement: &'static str) -> Result<T, MigrateError>
where
    T: for<'row> Decode<'row, Postgres> + Type<Postgres>,
{
    Ok(sqlx::raw_sql(statement).fetch_one(db).await?.try_get(0)?)
}

/// Step 2. Answers the server's major version.
///
/// # Errors
/// `server-unsupported`, `server-read-only`.
pub(super) async fn server(db: &mut PgConnection) -> Result<i32, MigrateError> {
    let version: i32 = scalar(db, "select current_setting('server_version_num')::integer").await?;
    let major = version / VERSION_NUM_PER_MAJOR;
    if major < SERVER_MAJOR_MIN {
        let text = format!("the server is PostgreSQL {major}; {SERVER_MAJOR_MIN} or newer is needed");
        return Err(MigrateError::refused(Reason::ServerUnsupported, text));
    }
    let encoding: String = scalar(db, "select current_setting('server_encoding')").await?;
    if encoding != "UTF8" {
        let text = format!("the database's encoding is {encoding}; create it with encoding UTF8");
        return Err(MigrateError::refused(Reason::ServerUnsupported, text));
    }
    let read_only: bool =
        scalar(db, "select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean").await?;
    if read_only {
        let text = "the server accepts no writes (a standby, or read only by its settings); point the URL at the primary";
        return Err(MigrateError::refused(Reason::ServerReadOnly, text));
    }
    Ok(major)
}

/// Step 7: the receipts are the beginning of this binary's list.
///
/// # Errors
/// `receipt-unfinished`, `receipts-differ`, `receipts-not-a-prefix`, `history-newer-than-binary`.
pub(super) fn receipts(source: &Source, receipts: &[Receipt]) -> Result<(), MigrateError> {
    let known: Vec<i64> = source.files().iter().map(super::SourceFile::version).collect();
    if let Some(receipt) = receipts.iter().find(|receipt| !receipt.success) {
        let text =
            format!("the receipt of {} says that it did not finish; restore the database", receipt.version);
        return Err(MigrateError::refused(Reason::ReceiptUnfinished, text));
    }
    let known_receipts = receipts.iter().take_while(|receipt| receipt.version <= source.version());
    for (index, receipt) in known_receipts.clone().enumerate() {
        let file = source.files().get(index).filter(|file| file.version() == receipt.version);
        let Some(file) = file else {
            let text = if known.contains(&receipt.version) {
                format!("{} has run, but a migration before it has not", receipt.version)
            } else {
                format!("{} has run, but this binary does not know it", receipt.version)
            };
            return Err(MigrateError::refused(
                Reason::ReceiptsNotAPrefix,
                text + "; use the binary that migrated last",
            ));
        };
        if receipt.name != file.name || receipt.checksum != *file.migration.checksum {
            let text =
                format!("{}_{} has run with another name or other bytes", receipt.version, receipt.name);
            return Err(MigrateError::refused(
                Reason::ReceiptsDiffer,
                text + "; use the binary that migrated last",
            ));
        }
    }
    let known_receipts = known_receipts.count();
    if let Some(newer) = receipts.get(known_receipts) {
        let (reason, text) = if known_receipts == known.len() {
            (
                Reason::HistoryNewerThanBinary,
                format!("{} has run, which is newer than this binary", newer.version),
            )
        } else {
            (
                Reason::ReceiptsNotAPrefix,
                format!("{} has run, but a migration before it has not", newer.version),
            )
        };
        return Err(MigrateError::refused(reason, text + "; use the binary that migrated last"));
    }
    Ok(())
}

/// The part of step 8 for a database without a receipt: nobody else has built in our schema.
///
/// # Errors
/// `initial-schema-not-empty`.
pub(super) async fn schema_is_empty(db: &mut PgConnection) -> Result<(), MigrateError> {
    let statement = "
        select relname::text from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where n.nspname = 'occ' order by relname limit 1";
    let found: Option<String> = sqlx::query_scalar(statement).fetch_optional(db).await?;
    match found {
        None => Ok(()),
        Some(relation) => Err(MigrateError::refused(
            Reason::InitialSchemaNotEmpty,
            format!("occ.{relation} exists, but no migration has a receipt; use an empty database"),
        )),
    }
}
