//! `cargo xtask bench [--long] [--json FILE] [--row N]`: what the product costs, against an anchor in the same run.
//!
//! Both sides run interleaved, at least seven times each; the ratio is that of the medians. When two runs of
//! one side differ by more than a fifth the row says `noisy` and has no ratio.

mod queue;
mod report;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use report::{Measure, Report};

/// What was asked for.
#[derive(Debug, Clone, Default)]
pub(crate) struct Options {
    /// Also what takes minutes.
    pub(crate) long: bool,
    json: Option<PathBuf>,
    row: Option<u32>,
}

impl Options {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} wants a value"));
            match word.as_str() {
                "--long" => options.long = true,
                "--json" => options.json = Some(value()?.into()),
                "--row" => options.row = Some(value()?.parse().context("--row wants a number")?),
                _ => bail!("unknown option {word}: there are --long, --json FILE and --row N"),
            }
        }
        Ok(options)
    }

    /// Is this row of the table wanted?
    pub(crate) fn wants(&self, row: u32) -> bool {
        self.row.is_none_or(|only| only == row)
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let options = Options::parse(std::env::args().skip(1))?;
    let mut measures: Vec<Measure> = Vec::new();
    queue::run(&options, &mut measures).await?;
    let report = Report::new(measures);
    report.print();
    match &options.json {
        Some(path) => report.write(path),
        None => Ok(()),
    }
}
