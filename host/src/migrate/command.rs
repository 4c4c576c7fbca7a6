//! `occ-host migrate`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::{Value, json};

use super::{MigrateConfig, MigrateError, State, check, run};

/// Exit status of `--require-current` on a database that is behind.
const EXIT_NOT_CURRENT: u8 = 1;

/// Bring the database to the schema of this binary.
#[derive(Debug, clap::Args)]
pub struct Command {
    /// URL of the database as `occ_migrator`; must lead to the server itself, not to a pooler.
    #[arg(long, env = "OCC_DATABASE_URL", hide_env_values = true, conflicts_with = "database_url_file")]
    database_url: Option<String>,
    /// File that holds the URL.
    #[arg(long, env = "OCC_DATABASE_URL_FILE")]
    database_url_file: Option<PathBuf>,
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
    pub async fn run(self) -> ExitCode {
        match self.execute().await {
            Ok(code) => code,
            Err(error) => {
                let reason = error.reason().map(super::Reason::as_str);
                tracing::error!(event = "migration.refused", code = error.code(), reason, message = %error);
                if self.json {
                    print(&json!({"event": "migration.refused", "code": error.code(), "reason": reason}).to_string());
                }
                ExitCode::from(error.exit_status())
            }
        }
    }

    async fn execute(&self) -> Result<ExitCode, MigrateError> {
        let config = MigrateConfig::new(self.url()?);
        if !self.check {
            let migrated = run(&config).await?;
            print(&match migrated.applied.len() {
                0 => format!("schema {} is current", migrated.version),
                count => format!("schema {} is current: {count} migrations applied", migrated.version),
            });
            return Ok(ExitCode::SUCCESS);
        }
        let checked = check(&config).await?;
        let mut record = json!({"event": "migration.checked"});
        if let (Some(record), Ok(Value::Object(fields))) = (record.as_object_mut(), serde_json::to_value(&checked)) {
            record.extend(fields);
        }
        if self.json {
            print(&record.to_string());
        } else {
            print(&format!(
                "migration.checked state={} version={} target={} pending={}",
                checked.state.as_str(),
                checked.version.unwrap_or_default(),
                checked.target,
                checked.pending.join(",")
            ));
        }
        let behind = self.require_current && checked.state != State::Current;
        Ok(if behind { ExitCode::from(EXIT_NOT_CURRENT) } else { ExitCode::SUCCESS })
    }

    fn url(&self) -> Result<String, MigrateError> {
        match (&self.database_url, &self.database_url_file) {
            (Some(url), None) => Ok(url.clone()),
            (None, Some(file)) => read(file),
            _ => Err(MigrateError::Configuration),
        }
    }
}

fn read(file: &Path) -> Result<String, MigrateError> {
    let text = std::fs::read_to_string(file).map_err(|_| MigrateError::Configuration)?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Answers on standard output; a closed pipe is not a fault of the migration.
fn print(line: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{line}");
}
