//! `cargo xtask bench [--long] [--json FILE] [--row N] [--deployments N]`: what the product costs, against an
//! anchor in the same run.
//!
//! Both sides run interleaved, at least seven times each; the ratio is that of the medians. When two runs of
//! one side differ by more than a fifth the row says `noisy` and has no ratio. A row whose input is missing
//! says `not run`. The exit code is 1 when a floor is missed or a row went wrong.

mod installation;
mod machine;
mod plugins;
mod queue;
mod report;

use std::fmt::Display;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use occ_tests::environment;

use report::{Measure, Report, say};

/// What was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Also what takes minutes.
    pub(crate) long: bool,
    /// Deployments of the row `deploy`.
    pub(crate) deployments: u32,
    json: Option<PathBuf>,
    row: Option<String>,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self { long: false, deployments: 7, json: None, row: None };
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            match word.as_str() {
                "--long" => options.long = true,
                "--json" => options.json = Some(value()?.into()),
                "--row" => options.row = Some(value()?),
                "--deployments" => {
                    options.deployments = value()?.parse().context("--deployments wants a number")?
                }
                _ => {
                    bail!("unknown option {word}: there are --long, --json FILE, --row N and --deployments N")
                }
            }
        }
        Ok(options)
    }

    /// Is this row of the table wanted?
    pub(crate) fn wants(&self, row: impl Display) -> bool {
        self.row.as_ref().is_none_or(|only| *only == row.to_string())
    }

    /// Where the report goes: `bench.json` in the target folder unless a file was named.
    fn report_file(&self) -> Result<PathBuf> {
        if let Some(file) = &self.json {
            return Ok(file.clone());
        }
        let program = std::env::current_exe()?;
        Ok(program.ancestors().nth(2).context("the program lies in no target folder")?.join("bench.json"))
    }
}

#[tokio::main]
async fn main() -> Result<ExitCode> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut report = Report::begin();

    let mut measures = Vec::new();
    let ended = match environment::plugins() {
        Ok(_) => Box::pin(plugins::run(&options, &mut measures)).await,
        Err(missing) => {
            measures.push(Measure::not_run("1-4", "calls and loads of plugins", missing));
            Ok(())
        }
    };
    report.add("1-4", measures, ended);

    if queue::ROWS.iter().any(|row| options.wants(row)) {
        report.database(queue::mode().await?);
        let mut measures = Vec::new();
        let ended = Box::pin(queue::run(&options, &mut measures)).await;
        report.add("8-12", measures, ended);
    }

    let mut measures = Vec::new();
    let ended = Box::pin(installation::run(&options, &mut measures)).await;
    report.add("deploy, start, memory", measures, ended);

    report.print();
    let file = options.report_file()?;
    report.write(&file)?;
    say(&format!("report: {}", file.display()));
    Ok(if report.fails() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
