//! `occ-host plugin inspect` and `occ-host plugin test`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Subcommand, ValueEnum};
use serde_json::Value;

use crate::drivers::{self, Kind};

/// What authors of plugins ask for.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Say what a component is and whether this host would accept it.
    Inspect {
        /// The component.
        file: PathBuf,
        /// Judge it as this kind; its own when absent.
        #[arg(long, value_enum)]
        kind: Option<KindArgument>,
    },
    /// Run the conformance suite; exit 0 when every check passes.
    Test {
        /// The component.
        file: PathBuf,
        /// What it claims to be.
        #[arg(long, value_enum)]
        kind: KindArgument,
        /// Settings as JSON; the first example of the component's schema when absent.
        #[arg(long, value_name = "FILE")]
        settings: Option<PathBuf>,
        /// Write the report as JUnit too.
        #[arg(long, value_name = "FILE")]
        junit: Option<PathBuf>,
    },
}

/// Kinds that this host calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum KindArgument {
    /// Realises workload plans.
    Compute,
    /// Turns configurations into workload plans.
    Harness,
}

impl From<KindArgument> for Kind {
    fn from(kind: KindArgument) -> Self {
        match kind {
            KindArgument::Compute => Self::Compute,
            KindArgument::Harness => Self::Harness,
        }
    }
}

impl Command {
    /// Runs it and prints what it found.
    pub async fn run(self) -> ExitCode {
        match self {
            Self::Inspect { file, kind } => inspect(&file, kind.map(Kind::from)).await,
            Self::Test { file, kind, settings, junit } => {
                test(&file, kind.into(), settings.as_deref(), junit.as_deref()).await
            }
        }
    }
}

async fn inspect(file: &Path, kind: Option<Kind>) -> ExitCode {
    let found = match drivers::inspect(file, kind).await {
        Ok(found) => found,
        Err(why) => return failed(2, &why),
    };
    let or_none = |text: Option<String>| text.unwrap_or_else(|| "none".to_owned());
    let joined = |names: &[String]| {
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    };
    let accepted = found.refused.is_none();
    let lines = [
        ("file", file.display().to_string()),
        ("size", format!("{} bytes", found.bytes)),
        ("digest", format!("sha256:{}", found.sha256)),
        ("world", or_none(found.kind.map(|kind| kind.world().to_owned()))),
        ("contract", or_none(found.contract.map(|version| format!("occ:plugin@{version}")))),
        ("offered", drivers::contracts_offered()),
        ("capabilities", joined(&found.capabilities)),
        ("imports", joined(&found.imports)),
        ("compiled in", or_none(found.compile_time.map(|time| format!("{} ms", time.as_millis())))),
        ("accepted", found.refused.map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"))),
    ];
    for (name, value) in lines {
        print(&format!("{name:<13} {value}"));
    }
    if accepted { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

async fn test(file: &Path, kind: Kind, settings: Option<&Path>, junit: Option<&Path>) -> ExitCode {
    let settings = match settings.map(read_settings).transpose() {
        Ok(settings) => settings,
        Err(why) => return failed(2, &why),
    };
    let report = match drivers::test(file, kind, settings.as_ref()).await {
        Ok(report) => report,
        Err(why) => return failed(2, &why),
    };
    print(report.table().trim_end());
    if let Some(path) = junit
        && let Err(error) = std::fs::write(path, report.junit())
    {
        return failed(2, &format!("{}: cannot be written: {error}", path.display()));
    }
    if report.passed() { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn read_settings(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{}: cannot be read: {error}", path.display()))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: is no JSON: {error}", path.display()))
}

/// Data goes to stdout.
#[expect(clippy::print_stdout, reason = "the command's own output")]
fn print(text: &str) {
    println!("{text}");
}

/// Everything else goes to stderr.
#[expect(clippy::print_stderr, reason = "the command's own output")]
fn failed(code: u8, text: &str) -> ExitCode {
    eprintln!("error: {text}");
    ExitCode::from(code)
}
