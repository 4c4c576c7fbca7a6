//! Medians, ratios, verdicts, one table and one JSON file.

use std::fmt::Display;
use std::future::Future;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use crate::machine::Machine;

/// Runs of each side.
pub(crate) const RUNS: usize = 7;
/// Two runs of one side may differ by this share.
const NOISE_MAX: f64 = 0.2;
/// A measure whose runs differ more is taken again this often; the quietest one counts.
const ATTEMPTS_MAX: usize = 3;

/// One row of the table.
#[derive(Debug, Default)]
pub(crate) struct Measure {
    row: String,
    name: String,
    unit: &'static str,
    ours: Vec<f64>,
    /// Empty: an absolute number.
    anchor: Vec<f64>,
    /// What the ratio, or the absolute number, must reach.
    floor: Option<f64>,
    /// What it should reach.
    goal: Option<f64>,
    /// True when a larger value is better: then the ratio is ours by anchor and has to be above the floor.
    more_is_better: bool,
    /// Why there are no numbers.
    absent: Option<Absent>,
}

/// Why a row has no numbers.
#[derive(Debug)]
enum Absent {
    /// What it needs is not here.
    NotRun(String),
    /// It went wrong, which is a defect.
    Failed(String),
}

/// What became of a row.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    /// The goal is reached.
    Goal,
    /// The floor holds.
    Held,
    /// The floor does not hold.
    Missed,
    /// Runs of one side differ too much for a ratio.
    Noisy,
    /// Nothing was promised.
    Shown,
    /// No numbers, and why.
    Absent(String),
}

impl Measure {
    /// Runs both sides in turn.
    pub(crate) async fn against<A, B>(
        row: impl Display,
        name: impl Into<String>,
        unit: &'static str,
        bound: (f64, bool),
        ours: impl FnMut() -> A,
        anchor: impl FnMut() -> B,
    ) -> Result<Self>
    where
        A: Future<Output = Result<f64>>,
        B: Future<Output = Result<f64>>,
    {
        Self::against_in_pieces(1, row, name, unit, bound, ours, anchor).await
    }

    /// Runs both sides in turn; a run is the median of so many pieces, which take turns as well. Short pieces
    /// let what else happens on the machine meet both sides.
    pub(crate) async fn against_in_pieces<A, B>(
        pieces: usize,
        row: impl Display,
        name: impl Into<String>,
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
            row: row.to_string(),
            name: name.into(),
            unit,
            floor: Some(floor),
            more_is_better,
            ..Self::default()
        };
        // Connections open, statements are prepared, caches fill.
        ours().await.with_context(|| measure.name.clone())?;
        anchor().await.with_context(|| measure.name.clone())?;
        let mut quietest = f64::INFINITY;
        for _ in 0..ATTEMPTS_MAX {
            let (mut mine, mut theirs) = (Vec::new(), Vec::new());
            for _ in 0..RUNS {
                let (mut left, mut right) = (Vec::new(), Vec::new());
                for _ in 0..pieces {
                    left.push(ours().await.with_context(|| measure.name.clone())?);
                    right.push(anchor().await.with_context(|| measure.name.clone())?);
                }
                mine.extend(median(&left));
                theirs.extend(median(&right));
            }
            let noise = noise(&mine).max(noise(&theirs));
            if noise < quietest {
                quietest = noise;
                (measure.ours, measure.anchor) = (mine, theirs);
            }
            if noise <= NOISE_MAX {
                break;
            }
        }
        Ok(measure)
    }

    /// A number without an anchor.
    pub(crate) fn absolute(
        row: impl Display,
        name: impl Into<String>,
        unit: &'static str,
        value: f64,
        most: f64,
    ) -> Self {
        Self { floor: Some(most), ..Self::shown(row, name, unit, vec![value]) }
    }

    /// Numbers without an anchor and without a promise.
    pub(crate) fn shown(
        row: impl Display,
        name: impl Into<String>,
        unit: &'static str,
        ours: Vec<f64>,
    ) -> Self {
        Self { row: row.to_string(), name: name.into(), unit, ours, ..Self::default() }
    }

    /// A row whose input is not here.
    pub(crate) fn not_run(row: impl Display, name: impl Into<String>, why: impl Display) -> Self {
        let absent = Some(Absent::NotRun(why.to_string()));
        Self { row: row.to_string(), name: name.into(), absent, ..Self::default() }
    }

    /// A row that went wrong.
    pub(crate) fn failed(row: impl Display, why: &anyhow::Error) -> Self {
        Self { row: row.to_string(), absent: Some(Absent::Failed(format!("{why:#}"))), ..Self::default() }
    }

    /// What it should reach.
    pub(crate) fn goal(self, goal: f64) -> Self {
        Self { goal: Some(goal), ..self }
    }

    /// More runs of our side, for numbers without an anchor.
    pub(crate) fn runs(self, ours: Vec<f64>) -> Self {
        Self { ours, ..self }
    }

    /// The row with another name, both sides and no promise: what is printed beside another row.
    pub(crate) fn beside(&self, name: impl Into<String>, ours: Vec<f64>, anchor: Vec<f64>) -> Self {
        let (row, unit) = (self.row.clone(), self.unit);
        Self { row, name: name.into(), unit, ours, anchor, ..Self::default() }
    }

    /// Numbers of our side and of the anchor.
    pub(crate) fn sides(&self) -> (&[f64], &[f64]) {
        (&self.ours, &self.anchor)
    }

    fn noisy(&self) -> bool {
        !self.anchor.is_empty() && noise(&self.ours).max(noise(&self.anchor)) > NOISE_MAX
    }

    fn ratio(&self) -> Option<f64> {
        let (ours, anchor) = (median(&self.ours)?, median(&self.anchor)?);
        (!self.noisy() && anchor > 0.0).then(|| ours / anchor)
    }

    pub(crate) fn verdict(&self) -> Verdict {
        match &self.absent {
            Some(Absent::NotRun(why)) => return Verdict::Absent(format!("not run: {why}")),
            Some(Absent::Failed(why)) => return Verdict::Absent(format!("failed: {why}")),
            None if self.noisy() => return Verdict::Noisy,
            None => {}
        }
        let value = if self.anchor.is_empty() { median(&self.ours) } else { self.ratio() };
        let (Some(value), Some(floor)) = (value, self.floor) else {
            return Verdict::Shown;
        };
        let reached = |bound: f64| {
            if self.more_is_better { value >= bound } else { value <= bound }
        };
        match (self.goal.is_some_and(reached), reached(floor)) {
            (true, _) => Verdict::Goal,
            (false, true) => Verdict::Held,
            (false, false) => Verdict::Missed,
        }
    }

    fn fails(&self) -> bool {
        self.verdict() == Verdict::Missed || matches!(self.absent, Some(Absent::Failed(_)))
    }

    fn cells(&self) -> [String; 8] {
        let side = |values: &[f64]| {
            median(values).map_or(String::new(), |value| format!("{} {}", short(value), self.unit))
        };
        let bound = |bound: Option<f64>| {
            let sign = if self.more_is_better { ">=" } else { "<=" };
            bound.map_or(String::new(), |bound| format!("{sign} {}", short(bound)))
        };
        let verdict = match self.verdict() {
            Verdict::Goal => "goal".to_owned(),
            Verdict::Held => "held".to_owned(),
            Verdict::Missed => "MISSED".to_owned(),
            Verdict::Noisy => {
                format!("noisy: {:.0} % and {:.0} %", noise(&self.ours) * 100.0, noise(&self.anchor) * 100.0)
            }
            Verdict::Shown => String::new(),
            Verdict::Absent(why) => why,
        };
        let ratio = self.ratio().map_or(String::new(), short);
        let (ours, anchor) = (side(&self.ours), side(&self.anchor));
        [
            self.row.clone(),
            self.name.clone(),
            ours,
            anchor,
            ratio,
            bound(self.floor),
            bound(self.goal),
            verdict,
        ]
    }

    fn to_json(&self) -> Value {
        let [_, _, _, _, _, _, _, verdict] = self.cells();
        json!({
            "row": self.row, "name": self.name, "unit": self.unit, "ours": self.ours, "anchor": self.anchor,
            "oursMedian": median(&self.ours), "anchorMedian": median(&self.anchor), "ratio": self.ratio(),
            "floor": self.floor, "goal": self.goal, "moreIsBetter": self.more_is_better, "verdict": verdict,
        })
    }
}

/// The value in the middle.
pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// How much the largest value lies above the smallest, as a share of the smallest.
fn noise(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    if least > 0.0 && least.is_finite() { most / least - 1.0 } else { f64::INFINITY }
}

/// Three digits that matter.
fn short(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// One line for who waits, on stderr.
#[expect(clippy::print_stderr, reason = "the bench's progress")]
pub(crate) fn say(line: &str) {
    eprintln!("{line}");
}

/// Every row that ran, and where.
#[derive(Debug)]
pub(crate) struct Report {
    machine: Machine,
    /// Load averages when it began and when it ended.
    load: Vec<String>,
    measures: Vec<Measure>,
}

impl Report {
    pub(crate) fn begin() -> Self {
        Self { machine: Machine::look(), load: vec![Machine::load()], measures: Vec::new() }
    }

    /// How the database server is set up.
    pub(crate) fn database(&mut self, mode: String) {
        self.machine.database = mode;
    }

    /// Takes the rows that a part measured; when it went wrong, also why.
    pub(crate) fn add(&mut self, rows: &str, measures: Vec<Measure>, ended: Result<()>) {
        self.measures.extend(measures);
        if let Err(error) = ended {
            self.measures.push(Measure::failed(rows, &error));
        }
    }

    /// Was a floor missed, or did a row go wrong?
    pub(crate) fn fails(&self) -> bool {
        self.measures.iter().any(Measure::fails)
    }

    #[expect(clippy::print_stdout, reason = "the bench's output")]
    pub(crate) fn print(&mut self) {
        self.load.push(Machine::load());
        let head =
            ["row", "measure", "ours", "anchor", "ratio", "floor", "goal", "verdict"].map(str::to_owned);
        let lines: Vec<[String; 8]> =
            std::iter::once(head).chain(self.measures.iter().map(Measure::cells)).collect();
        let mut widths = [0_usize; 8];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = cell.chars().count().max(*width);
            }
        }
        println!("{}", self.machine);
        println!("load {}", self.load.join(" -> "));
        for line in &lines {
            let cells: Vec<String> =
                line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            println!("{}", cells.join("  ").trim_end());
        }
    }

    /// Writes both sides of each ratio, the machine, its load and the versions.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let document = json!({
            "schema": 1,
            "machine": self.machine,
            "load": self.load,
            "rows": self.measures.iter().map(Measure::to_json).collect::<Vec<_>>(),
        });
        std::fs::write(path, serde_json::to_vec_pretty(&document)?)
            .with_context(|| format!("{}", path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measure(ours: &[f64], anchor: &[f64], floor: f64, goal: f64, more_is_better: bool) -> Measure {
        let shown = Measure::shown(1, "", "us", ours.to_vec());
        Measure { anchor: anchor.to_vec(), floor: Some(floor), goal: Some(goal), more_is_better, ..shown }
    }

    #[test]
    fn a_ratio_is_judged_by_its_direction() {
        assert_eq!(measure(&[11.0], &[10.0], 2.0, 1.2, false).verdict(), Verdict::Goal);
        assert_eq!(measure(&[15.0], &[10.0], 2.0, 1.2, false).verdict(), Verdict::Held);
        assert_eq!(measure(&[21.0], &[10.0], 2.0, 1.2, false).verdict(), Verdict::Missed);
        assert_eq!(measure(&[4.0], &[10.0], 0.5, 0.8, true).verdict(), Verdict::Missed);
        assert_eq!(measure(&[9.0], &[10.0], 0.5, 0.8, true).verdict(), Verdict::Goal);
        assert_eq!(Measure::absolute(10, "", "ms", 51.0, 50.0).verdict(), Verdict::Missed);
    }

    #[test]
    fn a_noisy_row_shows_both_medians_and_misses_nothing() {
        let noisy = measure(&[10.0, 11.0, 13.0], &[1.0, 1.0], 2.0, 1.2, false);
        assert_eq!((noisy.verdict(), noisy.ratio()), (Verdict::Noisy, None));
        let cells = noisy.cells();
        assert_eq!((cells[2].as_str(), cells[3].as_str()), ("11.0 us", "1.00 us"));
        assert!(!noisy.fails());
    }

    #[test]
    fn only_a_missed_floor_or_a_defect_fails() {
        let mut report = Report::begin();
        report.add("9", vec![Measure::not_run(9, "", "npm is missing")], Ok(()));
        assert!(!report.fails());
        report.add("8", Vec::new(), Err(anyhow::anyhow!("broken")));
        assert!(report.fails());
    }
}
