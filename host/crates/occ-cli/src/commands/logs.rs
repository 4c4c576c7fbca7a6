//! `occ agent logs`

use std::time::Duration;

use clap::{Args, ValueEnum};
use occ_api::ids::{AgentId, RevisionId};
use serde_json::Value;

use super::{agent, runtime, text};
use crate::client::Call;
use crate::failure::{Failure, Result};
use crate::output::{self, Form, notice};
use crate::session::Session;
use crate::{duration, interrupt, names};

/// Pause between reads while following.
const PAUSE: Duration = Duration::from_secs(2);
/// Longest `--since`.
const SINCE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Lines of a log.
#[derive(Debug, Args)]
pub(crate) struct Logs {
    /// Id or name of the Agent
    agent: String,
    /// Whose lines
    #[arg(long, value_enum)]
    source: Origin,
    /// Id of the revision
    #[arg(long, value_name = "REVISION")]
    revision: Option<String>,
    /// Name of one instance
    #[arg(long, value_name = "POD")]
    pod: Option<String>,
    /// Lines of the instance before the last restart
    #[arg(long, conflicts_with = "follow")]
    previous: bool,
    /// Newest lines, 1 to 1000
    #[arg(long, value_name = "LINES", value_parser = clap::value_parser!(u32).range(1..=1000))]
    tail: Option<u32>,
    /// Not older than this, at most 24h
    #[arg(long, value_name = "DURATION", value_parser = since)]
    since: Option<Duration>,
    /// Go on reading until Ctrl-C
    #[arg(long)]
    follow: bool,
    /// Least severe lines that are shown
    #[arg(long, value_enum)]
    level: Option<Level>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Origin {
    Gateway,
    Agent,
    Sandbox,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

fn since(text: &str) -> std::result::Result<Duration, String> {
    duration::parse(text)
        .and_then(|since| if since > SINCE_MAX { Err("must be at most 24h".to_owned()) } else { Ok(since) })
}

/// One view of one log.
struct View<'a> {
    session: &'a Session,
    flags: &'a Logs,
    path: String,
}

pub(super) fn run(session: &Session, flags: &Logs) -> Result<()> {
    let form = session.form();
    if matches!(form, Form::Yaml | Form::Name) {
        return Err(Failure::usage("logs are printed as text or json"));
    }
    let given: Option<RevisionId> = flags.revision.as_deref().map(names::id).transpose()?;
    let agent: AgentId = names::agent(session, &flags.agent)?;
    let revision = match given {
        Some(revision) => revision,
        None => runtime::choose(session, &agent)?,
    };
    let path = format!("{}/deployments/{revision}/runtime/logs", agent::path(session, &agent)?);
    let view = View { session, flags, path };
    let mut cursor = view.show(&session.api()?.send(&view.first())?.data)?;
    if !flags.follow {
        return Ok(());
    }
    interrupt::ends_well();
    let mut pause = PAUSE;
    loop {
        std::thread::sleep(pause);
        pause = PAUSE;
        let call = match &cursor {
            Some(cursor) => view.next(cursor),
            None => view.first(),
        };
        match session.api()?.send(&call) {
            Ok(answer) => cursor = view.show(&answer.data)?,
            Err(failure) => match failure.status() {
                Some(429) => pause = PAUSE.max(Duration::from_secs(failure.retry_after_secs().unwrap_or(0))),
                Some(504) => {}
                Some(400) if failure.code() == "RUNTIME_LOGS_CURSOR_INVALID" && cursor.is_some() => {
                    notice("notice: the view has ended; a new one begins");
                    cursor = None;
                }
                None if failure.is_connection() => {
                    notice(&format!("notice: {}; trying again", failure.message()))
                }
                _ => return Err(failure),
            },
        }
    }
}

impl View<'_> {
    /// The request that opens the view.
    fn first(&self) -> Call {
        let call = self.same().query_if("tailLines", self.flags.tail.map(|tail| tail.to_string()));
        let call = call.query_if("sinceSeconds", self.flags.since.map(|since| since.as_secs().to_string()));
        if self.flags.previous { call.query("previous", "true") } else { call }
    }

    /// The request that goes on.
    fn next(&self, cursor: &str) -> Call {
        self.same().query("cursor", cursor)
    }

    fn same(&self) -> Call {
        let level = self.flags.level.map(|level| word(&level));
        Call::get(&self.path)
            .query("source", word(&self.flags.source))
            .query_if("pod", self.flags.pod.as_deref())
            .query_if("minLevel", level)
    }

    /// Prints a page and returns where to go on.
    fn show(&self, page: &Value) -> Result<Option<String>> {
        let records = page.get("records").and_then(Value::as_array);
        let records = records.ok_or_else(|| Failure::invalid_response("a page of a log has no records"))?;
        let mut lines = String::new();
        for record in records {
            match text(record, "/kind") {
                "gap" => notice(&format!(
                    "notice: lines are missing ({}). {}",
                    text(record, "/reason"),
                    text(record, "/remedy")
                )),
                "withheld" => {
                    let count = record.get("count").and_then(Value::as_u64).unwrap_or_default();
                    notice(&format!("notice: {count} lines withheld ({})", text(record, "/reason")));
                }
                _ if self.session.form() == Form::Json => {}
                _ => lines.push_str(&line(record)),
            }
            if self.session.form() == Form::Json {
                lines.push_str(&record.to_string());
                lines.push('\n');
            }
        }
        if page.get("truncated").and_then(Value::as_bool) == Some(true) {
            notice("notice: older lines were left out; --tail and --since show fewer or newer ones");
        }
        if !lines.is_empty() {
            output::out(&lines)?;
        }
        Ok(page.get("cursor").and_then(Value::as_str).map(str::to_owned))
    }
}

/// One line for people.
fn line(record: &Value) -> String {
    let message: String = text(record, "/message")
        .chars()
        .map(
            |character| {
                if character != '\t' && occ_api::error::is_unprintable(character) { '?' } else { character }
            },
        )
        .collect();
    let time = record.get("time").and_then(Value::as_str).unwrap_or("-");
    format!("{} {:<5} {message}\n", output::cell_text(time), output::cell_text(text(record, "/level")))
}

fn word<T: ValueEnum>(value: &T) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_cannot_move_the_cursor() {
        let record =
            json!({"time": "2026-03-02T10:05:59.1Z", "level": "info", "message": "a\tb\u{1b}[2J\nc"});
        assert_eq!(line(&record), "2026-03-02T10:05:59.1Z info  a\tb?[2J?c\n");
        assert_eq!(line(&json!({"time": null, "level": "warn", "message": "x"})), "- warn  x\n");
    }

    #[test]
    fn since_has_a_limit() {
        assert_eq!(since("24h"), Ok(SINCE_MAX));
        assert!(since("25h").is_err());
    }
}
