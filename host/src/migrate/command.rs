//! `occ-host migrate`.

use std::io::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{Checked, MigrateConfig, MigrateError, State, check, run};
use crate::config::Environment;

/// Exit status of `--require-current` on a database that is behind.
const EXIT_NOT_CURRENT: u8 = 1;
/// Exit status of wrong settings.
const EXIT_USAGE: u8 = 2;

/// Bring the database to the schema of this binary. Reads `OCC_MIGRATION_DATABASE_URL`, which must lead to the
/// server itself, not to a pooler.
#[derive(Debug, clap::Args)]
pub struct Command {
    /// Verify only; write nothing.
    #[arg(long)]
    check: bool,
    /// With --check: exit 1 unless every migration has run.
    #[arg(long, requires = "check")]
    require_current: bool,
    /// With --check: print the record as JSON.
    #[arg(long, requires = "check")]
    json: bool,
}

impl Command {
    /// Runs the command. Exit 0; 1 for a fault that may pass; 2 for wrong settings; 3 for a refused database.
    pub async fn run(self, mut environment: Environment) -> ExitCode {
        let url = environment.postgres_url("OCC_MIGRATION_DATABASE_URL");
        let url = match environment.finish(url) {
            Ok(Some(url)) => url,
            Ok(None) => return ExitCode::from(EXIT_USAGE),
            Err(problems) => {
                tracing::error!(code = problems.code, cause = %problems, "migration.failed");
                return ExitCode::from(EXIT_USAGE);
            }
        };
        match self.execute(&MigrateConfig::new(url.expose())).await {
            Ok(code) => code,
            Err(error) => {
                let reason = error.reason().map(super::Reason::as_str);
                tracing::error!(code = error.code(), reason, cause = %error, "migration.failed");
                ExitCode::from(error.exit_status())
            }
        }
    }

    async fn execute(&self, config: &MigrateConfig) -> Result<ExitCode, MigrateError> {
        if !self.check {
            run(config).await?;
            return Ok(ExitCode::SUCCESS);
        }
        let checked = check(config).await?;
        if self.json {
            print(&record(&checked));
        } else {
            tracing::info!(
                state = checked.state.as_str(),
                version = checked.version,
                target_version = checked.target,
                pending = checked.pending.join(","),
                server_major = checked.server_major,
                "migration.checked"
            );
        }
        let behind = self.require_current && checked.state != State::Current;
        Ok(if behind { ExitCode::from(EXIT_NOT_CURRENT) } else { ExitCode::SUCCESS })
    }
}

/// The record as one line of JSON.
fn record(checked: &Checked) -> String {
    let mut record = json!({"event": "migration.checked"});
    if let (Some(record), Ok(Value::Object(fields))) = (record.as_object_mut(), serde_json::to_value(checked))
    {
        record.extend(fields);
    }
    record.to_string()
}

/// Answers on standard output; a closed pipe is not a fault of the migration.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
