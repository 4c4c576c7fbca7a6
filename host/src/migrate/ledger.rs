//! The ledger: schema `occ_migrations`, which belongs to the migrator and which nobody else can see.
//!
//! `receipts` has the columns that sqlx writes, because sqlx runs each file together with its receipt. `catalog`
//! is for the digests of a later step; it is made now, so that the ledger keeps one shape.

#![expect(
    clippy::disallowed_methods,
    reason = "the application role that checks statements at compile time must not see the ledger"
)]

use sqlx::PgConnection;

use super::error::{MigrateError, Reason};

/// Table of receipts, one row a file.
pub(super) const RECEIPTS: &str = "occ_migrations.receipts";
/// Product version that is noted beside the schema's.
const PRODUCT_VERSION: &str = env!("CARGO_PKG_VERSION");
/// The ledger's tables and columns, as `relation.column type` in order.
const SHAPE: &str = "\
    catalog.version bigint,catalog.server_major integer,catalog.structure text,catalog.expression text,\
    catalog.recorded_at timestamp with time zone,\
    receipts.version bigint,receipts.description text,receipts.installed_on timestamp with time zone,\
    receipts.success boolean,receipts.checksum bytea,receipts.execution_time bigint";

/// What the ledger says about one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Receipt {
    pub(super) version: i64,
    pub(super) name: String,
    pub(super) success: bool,
    pub(super) checksum: Vec<u8>,
}

/// Step 6: the receipts in order of version; none when there is no ledger.
///
/// # Errors
/// `ledger-changed` when the schema holds anything but the two tables as this product makes them.
pub(super) async fn read(db: &mut PgConnection) -> Result<Vec<Receipt>, MigrateError> {
    match shape(db).await? {
        None => return Ok(Vec::new()),
        Some(found) if found == SHAPE => {}
        Some(found) => {
            let text = format!(
                "schema occ_migrations holds `{found}` where the product makes `{SHAPE}`; restore the database, or \
                 migrate an empty one"
            );
            return Err(MigrateError::refused(Reason::LedgerChanged, text));
        }
    }
    if let Some(table) = foreign_access(db).await? {
        let text = format!("occ_migrations.{table} has another owner or is granted to somebody; revoke that");
        return Err(MigrateError::refused(Reason::LedgerChanged, text));
    }
    let rows: Vec<(i64, String, bool, Vec<u8>)> = sqlx::query_as(
        "select version, description, success, checksum from occ_migrations.receipts order by version",
    )
    .fetch_all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|(version, description, success, checksum)| Receipt {
            version,
            name: description.replace(' ', "_"),
            success,
            checksum,
        })
        .collect())
}

/// Makes what is absent of the ledger.
pub(super) async fn create(db: &mut PgConnection) -> Result<(), MigrateError> {
    let statements = "
        begin;
        create schema if not exists occ_migrations;
        create table if not exists occ_migrations.receipts (
          version bigint primary key,
          description text not null,
          installed_on timestamptz not null default now(),
          success boolean not null,
          checksum bytea not null,
          execution_time bigint not null
        );
        comment on table occ_migrations.receipts is 'One row for each migration that has run.';
        create table if not exists occ_migrations.catalog (
          version bigint not null,
          server_major integer not null,
          structure text not null,
          expression text not null,
          recorded_at timestamptz not null default now(),
          primary key (version, server_major)
        );
        comment on table occ_migrations.catalog is 'Digests of the catalog after each successful run.';
        commit";
    sqlx::raw_sql(statements).execute(db).await?;
    Ok(())
}

/// Notes what the processes read to know whether the schema suits them.
pub(super) async fn state_write(
    db: &mut PgConnection,
    version: i64,
    compatible_from: i64,
) -> Result<(), MigrateError> {
    let statement = "
        insert into occ.schema_state (version, compatible_from, product_version) values ($1, $2, $3)
        on conflict (singleton) do update
           set version = excluded.version, compatible_from = excluded.compatible_from,
               product_version = excluded.product_version, updated_at = now()
         where (schema_state.version, schema_state.compatible_from, schema_state.product_version)
               is distinct from (excluded.version, excluded.compatible_from, excluded.product_version)";
    sqlx::query(statement).bind(version).bind(compatible_from).bind(PRODUCT_VERSION).execute(db).await?;
    Ok(())
}

/// Columns of everything in the ledger's schema; `None` when the schema is absent or empty.
async fn shape(db: &mut PgConnection) -> Result<Option<String>, MigrateError> {
    let statement = "
        select string_agg(c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ','
                          order by c.relname collate \"C\", a.attnum)
          from pg_catalog.pg_class c
          join pg_catalog.pg_namespace n on n.oid = c.relnamespace
          join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
         where n.nspname = 'occ_migrations' and c.relkind <> 'i'";
    Ok(sqlx::query_scalar(statement).fetch_one(db).await?)
}

/// A table of the ledger that is not the migrator's alone.
async fn foreign_access(db: &mut PgConnection) -> Result<Option<String>, MigrateError> {
    let statement = "
        select c.relname::text
          from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
         where n.nspname = 'occ_migrations' and c.relkind <> 'i'
           and (pg_get_userbyid(c.relowner) <> current_user
             or exists (select from aclexplode(c.relacl) as acl where acl.grantee <> c.relowner))
         order by 1 limit 1";
    Ok(sqlx::query_scalar(statement).fetch_optional(db).await?)
}
