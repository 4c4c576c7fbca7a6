//! `occ doctor`: checks in the order in which things break, each with one line of remedy; never a key.

use std::net::ToSocketAddrs as _;
use std::os::unix::fs::MetadataExt as _;
use std::process::ExitCode;

use serde::Serialize;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::{Rfc2822, Rfc3339};

use super::{auth, text};
use crate::client::{Call, Client, Raw};
use crate::failure::{Exit, Failure, Result};
use crate::origin::Origin;
use crate::output::{View, at};
use crate::session::Session;

/// Contract versions that this client knows.
const CONTRACT: &str = "0.1.";
/// Seconds that clocks may differ.
const CLOCK_SECS_MAX: u64 = 60;
/// Days before its end at which a key is worth a warning.
const KEY_DAYS_MIN: i64 = 7;

const VIEW: View = View {
    id: "/check",
    columns: &[
        at("RESULT", "/result"),
        at("CHECK", "/check"),
        at("DETAIL", "/detail"),
        at("REMEDY", "/remedy"),
    ],
};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// One line of the report.
#[derive(Debug, Serialize)]
struct Line {
    check: &'static str,
    result: Verdict,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Default)]
struct Report(Vec<Line>);

impl Report {
    fn add(&mut self, check: &'static str, result: Verdict, detail: impl Into<String>, remedy: Option<&str>) {
        self.0.push(Line { check, result, detail: detail.into(), remedy: remedy.map(str::to_owned) });
    }

    fn ok(&mut self, check: &'static str, detail: impl Into<String>) {
        self.add(check, Verdict::Ok, detail, None);
    }

    fn fail(&mut self, check: &'static str, failure: &Failure, remedy: &str) {
        self.add(check, Verdict::Fail, failure.message(), Some(remedy));
    }

    fn skip(&mut self, checks: &[&'static str], why: &str) {
        for check in checks {
            self.add(check, Verdict::Skipped, why, None);
        }
    }
}

pub(super) fn run(session: &Session) -> Result<ExitCode> {
    let mut report = Report::default();
    if let Some(origin) = url(session, &mut report) {
        let client = session.open_client()?;
        if server(&client, &origin, &mut report) {
            credential(session, &mut report);
        } else {
            report.skip(
                &["ready", "contract", "clock", "credential", "namespace", "deploy", "plugins", "work"],
                "no server",
            );
        }
    }
    key_file(session, &mut report);
    let failed = report.0.iter().any(|line| line.result == Verdict::Fail);
    let lines: Vec<Value> = report.0.iter().map(|line| json!(line)).collect();
    session.print().list(&VIEW, &lines)?;
    Ok(if failed { ExitCode::from(Exit::Failed.code()) } else { ExitCode::SUCCESS })
}

fn url(session: &Session, report: &mut Report) -> Option<Origin> {
    let origin = match session.settings().and_then(|settings| settings.origin()) {
        Ok(origin) => origin,
        Err(failure) => {
            report.fail("url", &failure, "occ context set NAME --url URL --service-key-file FILE");
            return None;
        }
    };
    report.ok("url", origin.as_str());
    match origin.host_and_port().to_socket_addrs().map(|found| found.count()) {
        Ok(count) if count > 0 => report.ok("dns", format!("{count} addresses")),
        Ok(_) => report.add("dns", Verdict::Fail, "no address", Some("is the host name right?")),
        Err(error) => report.add("dns", Verdict::Fail, error.to_string(), Some("is the host name right?")),
    }
    Some(origin)
}

/// What the server says without a credential; `false` when it does not answer.
fn server(client: &Client, origin: &Origin, report: &mut Report) -> bool {
    let raw = match client.send_raw(&Call::get("/healthz")) {
        Ok(raw) => raw,
        Err(failure) => {
            let remedy = if origin.is_https() {
                "does the server run, and is its CA known (--ca-bundle)?"
            } else {
                "does the server run?"
            };
            report.fail("health", &failure, remedy);
            return false;
        }
    };
    if origin.is_https() {
        report.ok("tls", "the certificate is trusted");
    }
    report.ok("health", "alive");
    ready(client, report);
    match client.send_raw(&Call::get("/openapi.json")).map(|raw| contract(&raw)) {
        Ok(version) if version.starts_with(CONTRACT) => report.ok("contract", version),
        Ok(version) => {
            report.add("contract", Verdict::Warn, version, Some("use the client of the server's release"))
        }
        Err(failure) => report.fail("contract", &failure, "is this an OpenClaw Enterprise server?"),
    }
    clock(&raw, report);
    true
}

/// Ready, or which part is not.
fn ready(client: &Client, report: &mut Report) {
    let raw = match client.look(&Call::get("/readyz")) {
        Ok(raw) if raw.status == 200 => return report.ok("ready", "ready"),
        Ok(raw) => raw,
        Err(failure) => return report.fail("ready", &failure, "does the server run?"),
    };
    let body: Value = serde_json::from_slice(&raw.body).unwrap_or_default();
    let checks = body.get("checks").and_then(Value::as_object).into_iter().flatten();
    let failed: Vec<&str> =
        checks.filter(|(_, state)| state.as_str() != Some("ok")).map(|(part, _)| part.as_str()).collect();
    let detail = format!("status {}; failed: {}", raw.status, failed.join(", "));
    report.add("ready", Verdict::Fail, detail, Some("the server's log says more"));
}

fn contract(raw: &Raw) -> String {
    let document: Value = serde_json::from_slice(&raw.body).unwrap_or_default();
    text(&document, "/info/version").to_owned()
}

fn clock(raw: &Raw, report: &mut Report) {
    let date = raw.header("date").and_then(|date| OffsetDateTime::parse(date, &Rfc2822).ok());
    let Some(date) = date else {
        return report.skip(&["clock"], "the server sends no date");
    };
    let secs = (OffsetDateTime::now_utc() - date).whole_seconds().unsigned_abs();
    if secs > CLOCK_SECS_MAX {
        report.add(
            "clock",
            Verdict::Warn,
            format!("differs by {secs} s"),
            Some("set this machine's or the server's clock"),
        );
    } else {
        report.ok("clock", format!("differs by {secs} s"));
    }
}

fn credential(session: &Session, report: &mut Report) {
    let rest = ["namespace", "deploy", "plugins", "work"];
    match session.api().and_then(|api| api.get("/installation")) {
        Ok(installation) => report.ok("credential", format!("accepted by {}", text(&installation, "/name"))),
        Err(failure) if failure.status() == Some(403) => {
            report.ok("credential", "accepted, may not read the Installation")
        }
        Err(failure) => {
            report.fail(
                "credential",
                &failure,
                "occ service-key create makes a new key; --service-key-file uses it",
            );
            return report.skip(&rest, "no credential");
        }
    }
    namespace(session, report);
    plugins(session, report);
    match session
        .api()
        .and_then(|api| api.list(&Call::get("/work").query("state", "failed_permanent"), Some(100)))
    {
        Ok(items) if items.is_empty() => report.ok("work", "none failed"),
        Ok(items) => {
            let detail = format!("{} items failed for good", items.len());
            report.add("work", Verdict::Warn, detail, Some("occ work list --state failed_permanent"));
        }
        Err(failure) => report.add("work", Verdict::Skipped, failure.message(), None),
    }
}

fn namespace(session: &Session, report: &mut Report) {
    let id = match session.namespace_if_named() {
        Ok(Some(id)) => id,
        Ok(None) => return report.skip(&["namespace", "deploy"], "no Namespace is set"),
        Err(failure) => {
            report.fail("namespace", &failure, "occ namespace list");
            return report.skip(&["deploy"], "no Namespace");
        }
    };
    match session.api().and_then(|api| api.get(format!("/namespaces/{id}"))) {
        Ok(found) if text(&found, "/status") == "ready" => {
            report.ok("namespace", format!("{} is ready", text(&found, "/name")))
        }
        Ok(found) => {
            let detail = format!("it is {}", text(&found, "/status"));
            report.add("namespace", Verdict::Fail, detail, Some("occ work list --state failed_permanent"));
        }
        Err(failure) => {
            report.fail("namespace", &failure, "occ namespace list");
            return report.skip(&["deploy"], "no Namespace");
        }
    }
    let call = Call::get("/iam/can-i")
        .query("action", "deploy")
        .query("resourceKind", "agent")
        .query("resourceId", id.as_str())
        .query("namespaceId", id.as_str());
    match session.api().and_then(|api| api.send(&call)) {
        Ok(answer) if answer.data.get("allowed") == Some(&json!(true)) => {
            report.ok("deploy", "may deploy any Agent")
        }
        Ok(answer) => {
            let detail = format!("may not deploy every Agent ({})", text(&answer.data, "/reason"));
            report.add("deploy", Verdict::Warn, detail, Some("occ auth explain deploy agent"));
        }
        Err(failure) => report.fail("deploy", &failure, "occ auth explain deploy agent"),
    }
}

fn plugins(session: &Session, report: &mut Report) {
    match session.api().and_then(|api| api.list(&Call::get("/plugins"), None)) {
        Ok(plugins) => {
            let bad: Vec<&str> = plugins
                .iter()
                .filter(|plugin| text(plugin, "/state") == "failed")
                .map(|plugin| text(plugin, "/id"))
                .collect();
            if bad.is_empty() {
                report.ok("plugins", format!("{} loaded", plugins.len()));
            } else {
                report.add(
                    "plugins",
                    Verdict::Fail,
                    format!("failed: {}", bad.join(", ")),
                    Some("occ plugin list"),
                );
            }
        }
        Err(failure) if failure.status() == Some(403) => {
            report.skip(&["plugins"], "needs administer on the Installation")
        }
        Err(failure) => report.fail("plugins", &failure, "occ plugin list"),
    }
}

fn key_file(session: &Session, report: &mut Report) {
    let Some(path) = auth::key_file(session) else {
        return report.skip(&["key file"], "none is set");
    };
    let found = std::fs::metadata(&path);
    match &found {
        Ok(found) if found.mode() & 0o077 != 0 => {
            report.add("key file", Verdict::Warn, "others can read it", Some("chmod 600 the key file"));
        }
        Ok(_) => report.ok("key file", "private"),
        Err(error) => {
            return report.add(
                "key file",
                Verdict::Fail,
                error.to_string(),
                Some("--service-key-file names another"),
            );
        }
    }
    let document: Value = std::fs::read_to_string(&path)
        .ok()
        .and_then(|text| serde_json::from_str(&text).ok())
        .unwrap_or_default();
    let Ok(expires) = OffsetDateTime::parse(text(&document, "/data/expiresAt"), &Rfc3339) else {
        return report.skip(&["key expiry"], "the key file does not say");
    };
    let days = (expires - OffsetDateTime::now_utc()).whole_days();
    if days < KEY_DAYS_MIN {
        let detail = format!("{days} days left");
        report.add("key expiry", Verdict::Warn, detail, Some("occ service-key create makes a new one"));
    } else {
        report.ok("key expiry", format!("{days} days left"));
    }
}
