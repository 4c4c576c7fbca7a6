//! What the suite found, for people (a table) and for CI (JUnit).

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use super::Finding;
use crate::abi::Kind;

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The component keeps this rule.
    Passed,
    /// It does not; one sentence.
    Failed(String),
}

/// One check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Stable name.
    pub name: &'static str,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Duration,
}

/// Every check of one component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The component's file.
    pub file: String,
    /// What it was tested as.
    pub kind: Kind,
    /// In the order in which they ran.
    pub checks: Vec<Check>,
}

impl Report {
    pub(super) fn new(file: &Path, kind: Kind) -> Self {
        Self { file: file.display().to_string(), kind, checks: Vec::new() }
    }

    pub(super) fn add(&mut self, name: &'static str, started: Instant, finding: Finding) {
        let outcome = finding.map_or_else(Outcome::Failed, |()| Outcome::Passed);
        self.checks.push(Check { name, outcome, duration: started.elapsed() });
    }

    /// Did the component pass every check?
    #[must_use]
    pub fn passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// Checks that it failed.
    pub fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks.iter().filter(|check| check.outcome != Outcome::Passed)
    }

    /// One line a check, then a summary.
    #[must_use]
    pub fn table(&self) -> String {
        let width = self.checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
        let mut text = String::new();
        for check in &self.checks {
            let (word, why) = match &check.outcome {
                Outcome::Passed => ("pass", ""),
                Outcome::Failed(why) => ("FAIL", why.as_str()),
            };
            let ms = check.duration.as_millis();
            let line = format!("{word}  {:width$}  {ms:>6} ms  {why}", check.name);
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let (failed, all) = (self.failed().count(), self.checks.len());
        let verdict = if failed == 0 { "passed" } else { "failed" };
        let _ = writeln!(text, "{}: {verdict} as {}, {} of {all} checks", self.file, self.kind, all - failed);
        text
    }

    /// The same as a JUnit document.
    #[must_use]
    pub fn junit(&self) -> String {
        let seconds = |time: Duration| time.as_secs_f64();
        let total: Duration = self.checks.iter().map(|check| check.duration).sum();
        let mut text = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" time=\"{:.3}\">\n",
            escape(&self.file),
            self.checks.len(),
            self.failed().count(),
            seconds(total),
        );
        for check in &self.checks {
            let head = format!(
                "  <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
                self.kind,
                check.name,
                seconds(check.duration)
            );
            let _ = match &check.outcome {
                Outcome::Passed => writeln!(text, "{head}/>"),
                Outcome::Failed(why) => {
                    writeln!(text, "{head}>\n    <failure message=\"{}\"/>\n  </testcase>", escape(why))
                }
            };
        }
        text.push_str("</testsuite>\n");
        text
    }
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_reads_as_table_and_as_junit() {
        let check = |name, outcome| Check { name, outcome, duration: Duration::from_millis(5) };
        let report = Report {
            file: "a<b>.wasm".to_owned(),
            kind: Kind::Compute,
            checks: vec![
                check("stop-keeps-state", Outcome::Passed),
                check("retire", Outcome::Failed("says \"no\" & stops".to_owned())),
            ],
        };
        assert!(!report.passed());
        let table = report.table();
        assert!(table.contains("pass  stop-keeps-state       5 ms\n"), "{table}");
        assert!(table.contains("FAIL  retire                 5 ms  says \"no\" & stops\n"), "{table}");
        assert!(table.ends_with("failed as compute, 1 of 2 checks\n"), "{table}");
        let junit = report.junit();
        assert!(junit.contains("name=\"a&lt;b&gt;.wasm\" tests=\"2\" failures=\"1\""), "{junit}");
        assert!(junit.contains("message=\"says &quot;no&quot; &amp; stops\""), "{junit}");
    }
}
