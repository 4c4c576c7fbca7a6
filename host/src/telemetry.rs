//! Logs: one JSON object a line, or text for people. Names of events and fields are stable.
//!
//! An event is written as `tracing::info!(requestId = %id, "http.completed")`: the message is
//! the event's name, the fields follow. Values that look like a credential are replaced.

use std::fmt;
use std::io::Write;

use serde_json::{Map, Value};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::clock::Clock;
use crate::config::LogFormat;

/// Longest value of a field, in characters.
const VALUE_CHARS_MAX: usize = 1024;
/// What stands in the place of a value that looks like a credential.
const HIDDEN: &str = "(hidden)";

/// Starts logging for this process. Does nothing when it was started before.
///
/// `service` is one of `occ-api`, `occ-worker`, `occ-bootstrap`, `occ-migration`, `occ-dev`.
pub fn start(service: &'static str, format: LogFormat, level: &str, clock: Clock) {
    let filter = EnvFilter::new(format!("warn,occ_host={level},occ_queue={level},occ_driver={level}"));
    let lines = Lines { service, format, clock };
    let started = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
    drop(started);
}

struct Lines {
    service: &'static str,
    format: LogFormat,
    clock: Clock,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = *event.metadata().level();
        let now = self.clock.now();
        let line = match self.format {
            LogFormat::Json => json_line(self.service, level, now, fields),
            LogFormat::Text => text_line(level, now, &fields),
        };
        // Start-up failures and idle database errors belong on stderr, all else on stdout.
        let written = if level == Level::ERROR || line.contains("database.idle-client-error") {
            writeln!(std::io::stderr().lock(), "{line}")
        } else {
            writeln!(std::io::stdout().lock(), "{line}")
        };
        drop(written);
    }
}

fn json_line(service: &str, level: Level, now: OffsetDateTime, fields: Fields) -> String {
    let mut line = Map::new();
    line.insert("severity".to_owned(), severity(level).into());
    line.insert("time".to_owned(), now.format(&Rfc3339).unwrap_or_default().into());
    line.insert("service".to_owned(), service.into());
    line.insert("event".to_owned(), fields.event.into());
    for (name, value) in fields.list {
        line.insert(name.to_owned(), value);
    }
    Value::Object(line).to_string()
}

fn text_line(level: Level, now: OffsetDateTime, fields: &Fields) -> String {
    let time = now.time();
    let mut line = format!(
        "{:02}:{:02}:{:02} {:<7} {}",
        time.hour(),
        time.minute(),
        time.second(),
        severity(level),
        fields.event
    );
    for (name, value) in &fields.list {
        line.push_str(&format!(" {name}={value}"));
    }
    line
}

fn severity(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => "WARNING",
        Level::INFO => "INFO",
        Level::DEBUG | Level::TRACE => "DEBUG",
    }
}

#[derive(Default)]
struct Fields {
    event: String,
    list: Vec<(&'static str, Value)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Value) {
        if matches!(field.name(), "message" | "event") {
            self.event = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        } else if !field.name().starts_with("log.") {
            self.list.push((field.name(), value));
        }
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, Value::String(safe(value)));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, Value::String(safe(&format!("{value:?}"))));
    }
}

/// Cuts long values and hides those that look like a credential.
fn safe(value: &str) -> String {
    let looks_secret = ["occ_", "sk-", "Bearer ", "ghp_", "github_pat_", "-----BEGIN"].iter().any(|mark| {
        value.match_indices(mark).any(|(at, _)| {
            value
                .get(at + mark.len()..)
                .is_some_and(|rest| rest.len() >= 20 && !rest.starts_with("migrations"))
        })
    });
    let url_with_password = value.split_once("://").is_some_and(|(_, rest)| {
        rest.split(['/', '?'])
            .next()
            .and_then(|authority| authority.split_once('@'))
            .is_some_and(|(user, _)| user.contains(':'))
    });
    if looks_secret || url_with_password {
        return HIDDEN.to_owned();
    }
    value
        .chars()
        .take(VALUE_CHARS_MAX)
        .map(|character| if character.is_control() { ' ' } else { character })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_hidden_and_ids_are_not() {
        assert_eq!(safe("occ_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"), HIDDEN);
        assert_eq!(safe("postgres://occ_app:canary@db/occ"), HIDDEN);
        assert_eq!(
            safe("agt_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904"),
            "agt_0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904"
        );
        assert_eq!(safe("two\nlines"), "two lines");
    }
}
