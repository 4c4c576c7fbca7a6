//! `occ-host bootstrap`.

use std::path::PathBuf;
use std::process::ExitCode;

use super::{BootstrapConfig, BootstrapError, Reissue, reissue, run};
use crate::clock::Clock;
use crate::config::{Environment, Problems, Secret};
use crate::ids::Ids;

/// Exit status of wrong settings.
const EXIT_USAGE: u8 = 2;

/// Create the Installation, its first administrator and its first key; or verify them; or issue a new key. Reads
/// `OCC_DATABASE_URL`, `OCC_AUTH_SECRET`, `OCC_AUTH_BASE_URL`, `OCC_MODE` and `OCC_BOOTSTRAP_*`.
#[derive(Debug, clap::Args)]
pub struct Command {
    /// Issue a new key for the bootstrap ServicePrincipal and revoke the older ones.
    #[arg(long, requires = "request_id")]
    reissue_key: bool,
    /// Name of the request: repeating it issues nothing.
    #[arg(long, value_name = "ID", requires = "reissue_key")]
    request_id: Option<String>,
    /// Leave the older keys of bootstrap valid.
    #[arg(long, requires = "reissue_key")]
    keep_old: bool,
}

impl Command {
    /// Runs the command. Exit 0; 1 for a fault that may pass; 2 for wrong inputs; 3 when refused.
    pub async fn run(self, environment: Environment) -> ExitCode {
        let config = match config(environment) {
            Ok(config) => config,
            Err(problems) => {
                tracing::error!(code = problems.code, cause = %problems, "installation.bootstrap-failed");
                return ExitCode::from(EXIT_USAGE);
            }
        };
        let done = match self.request_id {
            Some(request_id) => {
                reissue(&config, &Reissue { request_id, keep_old: self.keep_old }).await.map(drop)
            }
            None => run(&config).await.map(drop),
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => failed(&error),
        }
    }
}

fn failed(error: &BootstrapError) -> ExitCode {
    tracing::error!(code = error.code(), cause = %error, "installation.bootstrap-failed");
    ExitCode::from(error.exit_status())
}

/// Absent values are left empty here, so that bootstrap names them together with the wrong ones.
fn config(mut environment: Environment) -> Result<BootstrapConfig, Problems> {
    environment.mode();
    let mut value = |name: &str| environment.value(name).unwrap_or_default();
    let config = BootstrapConfig {
        database_url: Secret::new(value("OCC_DATABASE_URL")),
        auth_secret: Secret::new(value("OCC_AUTH_SECRET")),
        base_url: value("OCC_AUTH_BASE_URL"),
        admin_email: value("OCC_BOOTSTRAP_ADMIN_EMAIL"),
        installation_name: value("OCC_BOOTSTRAP_INSTALLATION_NAME"),
        password_file: PathBuf::from(value("OCC_BOOTSTRAP_PASSWORD_FILE")),
        service_key_file: PathBuf::from(value("OCC_BOOTSTRAP_SERVICE_KEY_FILE")),
        clock: Clock::system(),
        ids: Ids::system(),
        stop_after: None,
    };
    environment.finish(config)
}
