//! The schema as it stands: who may do what, what no statement may do, and how a database comes to it.

mod catalog;
mod command;
mod deletion;
mod fixture;
mod grants;
mod migrators;
mod refusals;
mod rules;
mod tenant_keys;

use sqlx::{AssertSqlSafe, PgConnection};

/// What the server said to a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Refusal {
    sqlstate: String,
    table: Option<String>,
    message: String,
}

/// Runs one or more statements.
async fn execute(db: &mut PgConnection, statements: &str) -> Result<(), Refusal> {
    match sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(db).await {
        Ok(_) => Ok(()),
        Err(error) => {
            let error =
                error.as_database_error().unwrap_or_else(|| panic!("no answer of the server: {error}"));
            Err(Refusal {
                sqlstate: error.code().unwrap_or_default().into_owned(),
                table: error.table().map(str::to_owned),
                message: error.message().to_owned(),
            })
        }
    }
}

/// Runs statements and takes them back; deferred constraints are judged before.
async fn tried(db: &mut PgConnection, statements: &str) -> Result<(), Refusal> {
    execute(db, "begin").await.unwrap();
    let said = execute(db, &format!("{statements}; set constraints all immediate")).await;
    execute(db, "rollback").await.unwrap();
    said
}
