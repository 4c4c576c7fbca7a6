//! Medians, ratios, one table and one JSON file.

use std::future::Future;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Runs of each side.
pub(crate) const RUNS: usize = 7;
/// Two runs of one side may differ by this share.
const NOISE_MAX: f64 = 0.2;

/// One row of the table.
#[derive(Debug)]
pub(crate) struct Measure {
    row: u32,
    name: &'static str,
    unit: &'static str,
    ours: Vec<f64>,
    /// Empty: an absolute number.
    anchor: Vec<f64>,
    /// What the ratio must reach.
    floor: f64,
    /// True when a larger value is better: then the ratio is ours by anchor and has to be above the floor.
    more_is_better: bool,
}

impl Measure {
    /// Runs both sides in turn.
    pub(crate) async fn against<A, B>(
        row: u32,
        name: &'static str,
        unit: &'static str,
        (floor, more_is_better): (f64, bool),
        mut ours: impl FnMut() -> A,
        mut anchor: impl FnMut() -> B,
    ) -> Result<Self>
    where
        A: Future<Output = Result<f64>>,
        B: Future<Output = Result<f64>>,
    {
        let mut measure = Self {
            row,
            name,
            unit,
            ours: Vec::new(),
            anchor: Vec::new(),
            floor,
            more_is_better,
        };
        for _ in 0..RUNS {
            measure.ours.push(ours().await.with_context(|| name)?);
            measure.anchor.push(anchor().await.with_context(|| name)?);
        }
        Ok(measure)
    }

    /// A number without an anchor.
    pub(crate) fn absolute(row: u32, name: &'static str, unit: &'static str, value: f64, most: f64) -> Self {
        Self {
            row,
            name,
            unit,
            ours: vec![value],
            anchor: Vec::new(),
            floor: most,
            more_is_better: false,
        }
    }

    fn ratio(&self) -> Option<f64> {
        let (ours, anchor) = (median(&self.ours)?, median(&self.anchor)?);
        (!noisy(&self.ours) && !noisy(&self.anchor)).then(|| ours / anchor)
    }

    fn verdict(&self) -> String {
        let value = if self.anchor.is_empty() {
            median(&self.ours)
        } else {
            self.ratio()
        };
        match value {
            None => "noisy".to_owned(),
            Some(value) => {
                let held = if self.more_is_better {
                    value >= self.floor
                } else {
                    value <= self.floor
                };
                format!("{value:.2} ({})", if held { "held" } else { "MISSED" })
            }
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "row": self.row, "name": self.name, "unit": self.unit, "ours": self.ours, "anchor": self.anchor,
            "ratio": self.ratio(), "bound": self.floor, "moreIsBetter": self.more_is_better,
        })
    }
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

fn noisy(values: &[f64]) -> bool {
    let (least, most) = values.iter().fold((f64::MAX, 0.0_f64), |(least, most), value| {
        (least.min(*value), most.max(*value))
    });
    most > least * (1.0 + NOISE_MAX)
}

/// Every row that ran.
#[derive(Debug)]
pub(crate) struct Report {
    measures: Vec<Measure>,
}

impl Report {
    pub(crate) fn new(measures: Vec<Measure>) -> Self {
        Self { measures }
    }

    #[expect(clippy::print_stdout, reason = "the bench's output")]
    pub(crate) fn print(&self) {
        println!(
            "{:>3} {:<52} {:>12} {:>12} {:<6} {:>7}  ratio",
            "row", "measure", "ours", "anchor", "unit", "bound"
        );
        for measure in &self.measures {
            let show = |values: &[f64]| median(values).map_or("-".to_owned(), |value| format!("{value:.2}"));
            println!(
                "{:>3} {:<52} {:>12} {:>12} {:<6} {:>7.2}  {}",
                measure.row,
                measure.name,
                show(&measure.ours),
                show(&measure.anchor),
                measure.unit,
                measure.floor,
                measure.verdict(),
            );
        }
    }

    /// Writes both sides of each ratio, the load of the machine and the version.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let document = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "cpus": std::thread::available_parallelism().map_or(0, usize::from),
            "load": load.trim(),
            "rows": self.measures.iter().map(Measure::to_json).collect::<Vec<_>>(),
        });
        std::fs::write(path, serde_json::to_vec_pretty(&document)?)
            .with_context(|| format!("{}", path.display()))
    }
}
