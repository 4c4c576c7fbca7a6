//! Turns lines of a container into log records. Pure.
//!
//! **Only what is recognised leaves.** A structured line of unknown shape is counted as
//! withheld: nobody knows what its fields hold.

use serde_json::Value;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::drivers::types::LogLine;

/// Most lines of one read.
pub(super) const LINES_MAX: u32 = 1_000;
/// Lines of a read that asks for no number.
pub(super) const LINES_DEFAULT: u32 = 200;
/// Longest input line, in bytes.
const INPUT_LINE_BYTES_MAX: usize = 32 * 1024;
/// Longest message, in bytes; longer ones are cut.
const MESSAGE_BYTES_MAX: usize = 8 * 1024;
/// Longest answer, in bytes of messages.
const ANSWER_BYTES_MAX: usize = 512 * 1024;
/// Longest subsystem, in bytes.
const SUBSYSTEM_BYTES_MAX: usize = 512;
/// Lines whose digest marks where a read ended.
const ANCHOR_LINES_MAX: usize = 32;

/// Severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Debug,
    Info,
    Warn,
    Error,
}

impl Level {
    /// The word of the query and of records.
    pub(super) fn parse(word: &str) -> Option<Self> {
        match word {
            "debug" | "trace" => Some(Self::Debug),
            "info" | "log" => Some(Self::Info),
            "warn" | "warning" => Some(Self::Warn),
            "error" | "fatal" => Some(Self::Error),
            _ => None,
        }
    }
}

/// Why a line does not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withheld {
    UnrecognisedStructured,
    Oversized,
    Malformed,
}

/// Why lines may be missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    StreamReplaced,
    WindowExceeded,
    Truncated,
}

/// One entry of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Record {
    Line(Line),
    Gap(Gap),
    Withheld { count: u32, reason: Withheld },
}

/// One line as it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// RFC 3339, when the container or the line itself says.
    pub(super) time: Option<String>,
    pub(super) error_stream: bool,
    /// Written by OpenClaw's own logger; else plain text.
    pub(super) structured: bool,
    pub(super) level: Option<Level>,
    pub(super) message: String,
    pub(super) subsystem: Option<String>,
    pub(super) truncated: bool,
}

/// What one read answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) records: Vec<Record>,
    pub(super) withheld: u32,
    pub(super) truncated: bool,
}

/// The end of a read, recognised again by the digest of its last lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Anchor {
    pub(super) digest: String,
    pub(super) lines: usize,
}

/// Marks the end of `lines`.
pub(super) fn anchor(lines: &[LogLine]) -> Anchor {
    let last = lines.get(lines.len().saturating_sub(ANCHOR_LINES_MAX)..).unwrap_or_default();
    Anchor { digest: lines_digest(last), lines: last.len() }
}

/// The lines after the mark; `None` when the mark has left the window.
pub(super) fn after<'a>(lines: &'a [LogLine], mark: &Anchor) -> Option<&'a [LogLine]> {
    if mark.lines == 0 {
        return Some(lines);
    }
    (mark.lines..=lines.len()).rev().find_map(|end| {
        let window = lines.get(end - mark.lines..end)?;
        (lines_digest(window) == mark.digest).then(|| lines.get(end..)).flatten()
    })
}

fn lines_digest(lines: &[LogLine]) -> String {
    let mut hash = Sha256::new();
    for line in lines {
        hash.update(line.time_ms.unwrap_or(0).to_be_bytes());
        hash.update([u8::from(line.error_stream)]);
        hash.update(line.text.len().to_be_bytes());
        hash.update(line.text.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

/// Renders lines, at least as severe as `least`, within the bounds of an answer.
pub(super) fn page(lines: &[LogLine], least: Option<Level>, gap: Option<Gap>) -> Page {
    let mut records = Vec::new();
    let mut withheld = 0;
    let mut bytes = 0;
    let mut truncated = false;
    for line in lines.iter().rev() {
        match classify(line) {
            Ok(line) => {
                if matches!((least, line.level), (Some(least), Some(level)) if level < least) {
                    continue;
                }
                bytes += line.message.len();
                if bytes > ANSWER_BYTES_MAX {
                    truncated = true;
                    break;
                }
                records.push(Record::Line(line));
            }
            Err(reason) => {
                withheld += 1;
                match records.last_mut() {
                    Some(Record::Withheld { count, reason: last }) if *last == reason => *count += 1,
                    _ => records.push(Record::Withheld { count: 1, reason }),
                }
            }
        }
    }
    records.extend(truncated.then_some(Record::Gap(Gap::Truncated)));
    records.extend(gap.map(Record::Gap));
    records.reverse();
    Page { records, withheld, truncated }
}

fn classify(raw: &LogLine) -> Result<Line, Withheld> {
    if raw.text.len() > INPUT_LINE_BYTES_MAX {
        return Err(Withheld::Oversized);
    }
    let time = raw.time_ms.and_then(time_text);
    let text = raw.text.trim_end_matches(['\r', '\n']);
    if !text.trim_start().starts_with('{') {
        let (message, truncated) = cut(&visible(text), MESSAGE_BYTES_MAX);
        return Ok(Line {
            time,
            error_stream: raw.error_stream,
            structured: false,
            level: None,
            message,
            subsystem: None,
            truncated,
        });
    }
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(text) else {
        return Err(Withheld::Malformed);
    };
    let word = |name: &str| fields.get(name).and_then(Value::as_str);
    let message = word("message").or_else(|| word("msg")).ok_or(Withheld::UnrecognisedStructured)?;
    let level = word("level").and_then(|level| Level::parse(&level.to_ascii_lowercase()));
    if level.is_none() {
        return Err(Withheld::UnrecognisedStructured);
    }
    let (message, truncated) = cut(&visible(message), MESSAGE_BYTES_MAX);
    Ok(Line {
        time: word("time")
            .filter(|time| OffsetDateTime::parse(time, &Rfc3339).is_ok())
            .map(str::to_owned)
            .or(time),
        error_stream: raw.error_stream,
        structured: true,
        level,
        message,
        subsystem: word("subsystem").map(|name| cut(&visible(name), SUBSYSTEM_BYTES_MAX).0),
        truncated,
    })
}

fn time_text(time_ms: u64) -> Option<String> {
    let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(time_ms) * 1_000_000).ok()?;
    Some(occ_api::time::Timestamp::from(time).to_string())
}

/// Drops terminal control sequences and control characters.
fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => {
                if chars.next_if_eq(&'[').is_some() {
                    while chars.next_if(|c| !('@'..='~').contains(c)).is_some() {}
                    chars.next();
                }
            }
            '\t' => out.push(' '),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

fn cut(text: &str, bytes_max: usize) -> (String, bool) {
    if text.len() <= bytes_max {
        return (text.to_owned(), false);
    }
    let end = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (text.get(..end).unwrap_or_default().to_owned(), true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> LogLine {
        LogLine { time_ms: None, error_stream: false, text: text.to_owned() }
    }

    fn lines(texts: &[&str]) -> Vec<LogLine> {
        texts.iter().map(|text| line(text)).collect()
    }

    #[test]
    fn plain_text_leaves_without_control_sequences() {
        let page = page(&[line("\u{1b}[32m[gateway]\u{1b}[0m listening\u{7}")], None, None);
        let Some(Record::Line(line)) = page.records.first() else { panic!("{page:?}") };
        assert_eq!(line.message, "[gateway] listening");
        assert_eq!((line.level, line.structured, line.truncated), (None, false, false));
    }

    #[test]
    fn structured_lines_leave_only_when_recognised() {
        let page = page(
            &lines(&[
                r#"{"time":"2026-03-02T10:05:59.123456789Z","level":"WARN","subsystem":"gateway","message":"slow"}"#,
                r#"{"level":"info","payload":"sk-secret"}"#,
                r#"{"message":"no level"}"#,
                r#"{"level":"#,
            ]),
            None,
            None,
        );
        assert_eq!(page.withheld, 3);
        assert_eq!(
            page.records.get(1..),
            Some(
                [
                    Record::Withheld { count: 2, reason: Withheld::UnrecognisedStructured },
                    Record::Withheld { count: 1, reason: Withheld::Malformed }
                ]
                .as_slice()
            )
        );
        let Some(Record::Line(line)) = page.records.first() else { panic!("{page:?}") };
        assert_eq!(line.level, Some(Level::Warn));
        assert_eq!(line.subsystem.as_deref(), Some("gateway"));
        assert_eq!(line.time.as_deref(), Some("2026-03-02T10:05:59.123456789Z"));
    }

    #[test]
    fn the_least_level_drops_lesser_lines_and_keeps_text() {
        let input =
            lines(&[r#"{"level":"info","message":"a"}"#, r#"{"level":"error","message":"b"}"#, "plain"]);
        let page = page(&input, Some(Level::Warn), None);
        assert_eq!(page.records.len(), 2);
    }

    #[test]
    fn bounds_hold_for_a_line_and_for_an_answer() {
        let long = "x".repeat(MESSAGE_BYTES_MAX + 1);
        let many: Vec<LogLine> =
            (0..100).map(|_| line(&long)).chain([line(&"y".repeat(INPUT_LINE_BYTES_MAX + 1))]).collect();
        let page = page(&many, None, None);
        assert!(page.truncated);
        assert_eq!(page.records.first(), Some(&Record::Gap(Gap::Truncated)));
        assert_eq!(page.records.last(), Some(&Record::Withheld { count: 1, reason: Withheld::Oversized }));
        assert_eq!(page.records.len(), 1 + ANSWER_BYTES_MAX / MESSAGE_BYTES_MAX + 1);
        let Some(Record::Line(line)) = page.records.get(1) else { panic!("{:?}", page.records.get(1)) };
        assert!(line.truncated && line.message.len() == MESSAGE_BYTES_MAX);
    }

    #[test]
    fn a_mark_finds_its_place_again() {
        let seen = lines(&["a", "b", "c"]);
        let mark = anchor(&seen);
        let grown = lines(&["a", "b", "c", "d", "e"]);
        assert_eq!(after(&grown, &mark), Some(lines(&["d", "e"]).as_slice()));
        assert_eq!(after(&seen, &mark), Some([].as_slice()));
        assert_eq!(after(&lines(&["x", "y", "z"]), &mark), None);
        assert_eq!(after(&grown, &anchor(&[])), Some(grown.as_slice()));
    }
}
