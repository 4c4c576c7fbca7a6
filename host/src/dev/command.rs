//! Arguments of `occ-host dev`, and the order in which everything starts and ends.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};

use super::demo::{Demo, Model};
use super::folder::{Folder, Ports};
use super::openclaw::{self, Found, OpenClaw};
use super::postgres::Postgres;
use super::{exec, host, installation, print, say, variables};
use crate::bootstrap::{self, BootstrapConfig};
use crate::clock::Clock;
use crate::config::Secret;
use crate::ids::Ids;
use crate::migrate::{self, MigrateConfig};

/// Name of the Installation and address of its administrator.
const INSTALLATION_NAME: &str = "Development";
const ADMIN_EMAIL: &str = "admin@dev.example";
/// Longest wait for the host to become ready.
const READY_MAX: Duration = Duration::from_secs(60);
/// Pause between two questions.
const READY_STEP: Duration = Duration::from_millis(20);

/// A whole installation on this machine, for development.
#[derive(Debug, Args)]
#[command(subcommand_precedence_over_arg = true)]
pub struct Command {
    /// State folder; as root /var/lib/occ/dev, else below XDG_STATE_HOME.
    #[arg(long, value_name = "DIR", global = true)]
    state: Option<PathBuf>,
    /// Return when everything is ready.
    #[arg(long)]
    detach: bool,
    /// End everything; state is kept.
    #[arg(long, conflicts_with_all = ["detach", "reset"])]
    down: bool,
    /// End everything and remove the state folder.
    #[arg(long, conflicts_with = "detach")]
    reset: bool,
    /// Without the demo agent.
    #[arg(long)]
    no_demo: bool,
    /// Without a worker; start your own: eval "$(occ-host dev env)"; occ-host worker.
    #[arg(long)]
    no_worker: bool,
    /// A folder that holds node_modules/openclaw.
    #[arg(long, value_name = "DIR")]
    openclaw: Option<PathBuf>,
    /// Copy the administrator's key to this new file.
    #[arg(long, value_name = "FILE")]
    key_output: Option<PathBuf>,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the environment of a worker that is started by hand.
    Env,
    /// Run a command with the OPENCLAW_* variables and the HOME of a running agent.
    Exec {
        /// Id or name of the agent.
        agent: String,
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// The process that `dev` keeps running.
    #[command(hide = true)]
    Host {
        /// Without a worker.
        #[arg(long)]
        no_worker: bool,
        /// Port of the echo model.
        #[arg(long)]
        echo_port: u16,
    },
}

/// Everything of one run.
struct Session {
    folder: Folder,
    ports: Ports,
    postgres: Postgres,
    bundles: Vec<PathBuf>,
    path: String,
    ids: Ids,
}

impl Command {
    /// Runs the command. Exit codes: 0 done, 1 failed, 2 usage.
    pub async fn run(self, bundles: Vec<PathBuf>) -> ExitCode {
        match Box::pin(self.act(bundles)).await {
            Ok(code) => code,
            Err(error) => {
                say(&format!("error: {error:#}"));
                ExitCode::from(1)
            }
        }
    }

    async fn act(self, bundles: Vec<PathBuf>) -> Result<ExitCode> {
        let variables = variables();
        let path = variables.get("PATH").cloned().unwrap_or_default();
        let folder = Folder::locate(self.state.clone(), &variables)?;
        match &self.action {
            Some(Action::Host { no_worker, echo_port }) => {
                return Box::pin(host::run(*echo_port, !no_worker)).await;
            }
            Some(Action::Exec { agent, command }) => return exec::exec(&folder, agent, command, &path).await,
            _ => {}
        }
        if self.down || self.reset {
            return self.end(&folder, &path).await;
        }
        folder.create()?;
        let session = Session {
            ports: folder.ports()?,
            postgres: Postgres::find(&folder, &path)?,
            folder,
            bundles: bundles.iter().map(std::path::absolute).collect::<Result<_, _>>()?,
            path,
            ids: Ids::system(),
        };
        if matches!(self.action, Some(Action::Env)) {
            return session.print_worker_environment();
        }
        let key = variables.get("OPENAI_API_KEY").filter(|key| !key.trim().is_empty()).cloned();
        self.up(&session, key).await
    }

    async fn up(&self, session: &Session, key: Option<String>) -> Result<ExitCode> {
        let begun = Instant::now();
        session.prepare_database().await?;
        let openclaw = openclaw::find(&session.folder, self.openclaw.as_deref(), &session.path)?;
        let runtime = match &openclaw {
            Found::Ready(runtime) => {
                say(&format!("openclaw     {}", runtime.entry.display()));
                runtime.clone()
            }
            Found::Missing(what) => {
                say(&format!("openclaw     missing: {what}"));
                OpenClaw {
                    node: session.folder.openclaw().join("node"),
                    entry: session.folder.openclaw().join("openclaw.mjs"),
                }
            }
        };
        installation::write(&session.folder, &runtime)?;
        let started = host::start(session.host_options(!self.no_worker)?)?;
        session.wait_ready().await?;
        say(&format!(
            "host         http://127.0.0.1:{} ({started}, ready after {} ms)",
            session.ports.api,
            begun.elapsed().as_millis()
        ));
        let demo = Demo::connect(&session.origin(), &session.folder.admin_key()).await?;
        self.write_context(session, &demo)?;
        let agent = if self.no_demo || self.no_worker || matches!(openclaw, Found::Missing(_)) {
            None
        } else {
            let model = key.map_or(Model::Echo(session.ports.echo), Model::OpenAi);
            if matches!(model, Model::Echo(_)) {
                say(&format!(
                    "model        echo on port {}: it repeats, it does not think; set OPENAI_API_KEY for a real one",
                    session.ports.echo
                ));
            }
            demo.namespace_ready().await?;
            Some(demo.deploy(&model).await?)
        };
        session.print_end(agent.as_deref().zip(Some(runtime.entry.as_path())));
        if self.detach {
            return Ok(ExitCode::SUCCESS);
        }
        say("Ctrl-C ends everything.");
        crate::shutdown::Shutdown::new().on_signal().await?;
        self.end(&session.folder, &session.path).await
    }

    async fn end(&self, folder: &Folder, path: &str) -> Result<ExitCode> {
        if !folder.root().is_dir() {
            say(&format!("nothing runs: {} does not exist", folder.root().display()));
            return Ok(ExitCode::SUCCESS);
        }
        host::stop(folder).await?;
        host::stop_agents(folder).await?;
        Postgres::find(folder, path)?.stop()?;
        say("down         host, agents and PostgreSQL have ended");
        if self.reset {
            std::fs::remove_dir_all(folder.root())
                .with_context(|| format!("cannot remove {}", folder.root().display()))?;
            say(&format!("reset        {} is removed", folder.root().display()));
        }
        Ok(ExitCode::SUCCESS)
    }

    fn write_context(&self, session: &Session, demo: &Demo) -> Result<()> {
        let key_file = session.folder.admin_key();
        if let Some(copy) = &self.key_output {
            copy_new(&key_file, copy)?;
        }
        let context = occ_cli::contexts::Context {
            name: "dev".to_owned(),
            url: session.origin(),
            namespace: Some(demo.namespace().to_owned()),
            service_key_file: Some(key_file),
            ca_bundle: None,
            output: None,
        };
        occ_cli::contexts::write_context(None, context, true)?;
        say("context      dev");
        Ok(())
    }
}

impl Session {
    fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.ports.api)
    }

    /// PostgreSQL up, schema current, Installation there, keys on disk.
    async fn prepare_database(&self) -> Result<()> {
        self.postgres.start()?;
        say(&format!("postgres     socket in {}", self.folder.postgres().display()));
        let migrated = Box::pin(migrate::run(&MigrateConfig::new(self.postgres.url("occ_migrator")))).await?;
        say(&format!("schema       version {} ({} files applied)", migrated.version, migrated.applied.len()));
        Folder::random_file(&self.folder.secret_key(), &self.ids)?;
        let auth_secret = Folder::random_file(&self.folder.auth_secret(), &self.ids)?;
        self.folder.create_bootstrap()?;
        let config = BootstrapConfig {
            database_url: Secret::new(self.postgres.url("occ_app")),
            auth_secret: Secret::new(auth_secret),
            base_url: self.origin(),
            admin_email: ADMIN_EMAIL.to_owned(),
            installation_name: INSTALLATION_NAME.to_owned(),
            password_file: self.folder.admin_password(),
            service_key_file: self.folder.fresh_admin_key(),
            clock: Clock::system(),
            ids: self.ids.clone(),
            stop_after: None,
        };
        let done = Box::pin(bootstrap::run(&config)).await?;
        self.folder.take_admin_key()?;
        say(&format!("installation {}", done.installation_id));
        Ok(())
    }

    fn host_options(&self, worker: bool) -> Result<host::Options> {
        let program = std::env::current_exe().context("cannot find this program's own file")?;
        Ok(host::Options {
            program,
            folder: self.folder.clone(),
            environment: self.environment(self.ports.metrics, true),
            bundles: self.bundles.clone(),
            echo_port: self.ports.echo,
            worker,
        })
    }

    /// What a process of the product reads; `api` adds what only an API reads.
    fn environment(&self, private_port: u16, api: bool) -> Vec<(&'static str, String)> {
        let shown = |path: &Path| path.display().to_string();
        let mut environment = vec![
            ("OCC_MODE", "development".to_owned()),
            ("OCC_CONFIG_PATH", shown(&self.folder.installation())),
            ("OCC_DATABASE_URL", self.postgres.url("occ_app")),
            ("OCC_AOT_CACHE", shown(&self.folder.aot())),
            ("OCC_PROCESS_FOLDER", shown(&self.folder.processes())),
            ("OCC_METRICS_PORT", private_port.to_string()),
        ];
        if !self.bundles.is_empty() {
            let joined =
                std::env::join_paths(&self.bundles).map(|joined| joined.to_string_lossy().into_owned());
            environment.push(("OCC_PLUGIN_PATH", joined.unwrap_or_default()));
        }
        if api {
            environment.push(("OCC_PORT", self.ports.api.to_string()));
            environment.push(("OCC_AUTH_SECRET_FILE", shown(&self.folder.auth_secret())));
            environment.push(("OCC_AUTH_BASE_URL", self.origin()));
        }
        environment
    }

    fn print_worker_environment(&self) -> Result<ExitCode> {
        let mut environment = self.environment(self.ports.worker, false);
        if self.bundles.is_empty()
            && let Some(bundles) = self.folder.bundles()?
        {
            environment.push(("OCC_PLUGIN_PATH", bundles));
        }
        for (name, value) in environment {
            print(&format!("export {name}='{}'", value.replace('\'', r"'\''")));
        }
        Ok(ExitCode::SUCCESS)
    }

    async fn wait_ready(&self) -> Result<()> {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(2)).build()?;
        let begun = Instant::now();
        loop {
            let answer = client.get(format!("{}/readyz", self.origin())).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(());
            }
            if self.folder.running()?.is_none() {
                bail!("the host has ended: {}", host::last_words(&self.folder));
            }
            if begun.elapsed() > READY_MAX {
                bail!(
                    "the host is not ready after {} s: see {}",
                    READY_MAX.as_secs(),
                    self.folder.host_log().display()
                );
            }
            tokio::time::sleep(READY_STEP).await;
        }
    }

    fn print_end(&self, agent: Option<(&str, &Path)>) {
        print(&format!("url      {}", self.origin()));
        print("context  dev");
        if let Some((agent, _)) = agent {
            print(&format!("agent    {agent}"));
        }
        let next = agent.map_or_else(
            || "occ agent list".to_owned(),
            |(agent, entry)| format!("occ-host dev exec {agent} -- node {} tui", entry.display()),
        );
        print(&format!("next     {next}"));
    }
}

/// Copies a key to a file that must not exist yet.
fn copy_new(from: &Path, to: &Path) -> Result<()> {
    use std::io::Write;
    use std::os::unix::fs::OpenOptionsExt;

    if !to.is_absolute() {
        bail!("--key-output: must be an absolute path");
    }
    let bytes = std::fs::read(from).with_context(|| format!("cannot read {}", from.display()))?;
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).with_context(|| {
            format!("--key-output: {} must be a new file in an existing folder", to.display())
        })?;
    file.write_all(&bytes)?;
    file.sync_all()?;
    Ok(())
}
