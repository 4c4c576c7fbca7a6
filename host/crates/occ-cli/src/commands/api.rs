//! `occ api METHOD PATH`: any route, with the configured credential.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;
use ureq::http::Method;

use crate::client::{Call, segment};
use crate::failure::{Failure, Result};
use crate::session::Session;
use crate::{input, output};

/// Any request.
#[derive(Debug, Args)]
#[command(after_help = "Example: occ api GET /namespaces --query limit=1")]
pub(crate) struct Api {
    /// GET, POST, PATCH, PUT or DELETE
    method: String,
    /// From the first /, without a query
    path: String,
    /// Body, JSON or YAML; - is standard input
    #[arg(long, short = 'f', value_name = "FILE")]
    file: Option<PathBuf>,
    /// NAME=VALUE, may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    query: Vec<String>,
    /// Key under which a POST may be repeated
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Entity tag for a conditional write
    #[arg(long, value_name = "TAG")]
    if_match: Option<String>,
}

pub(super) fn run(session: &Session, command: Api) -> Result<()> {
    let method = method(&command.method)?;
    let mut path = target(&command.path)?;
    for (index, pair) in command.query.iter().enumerate() {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("`{pair}` is not of the form NAME=VALUE")))?;
        path.push(if index == 0 { '?' } else { '&' });
        path.push_str(&format!("{}={}", segment(name), segment(value)));
    }
    let body = command.file.as_deref().map(input::document).transpose()?;
    let mut call = Call::of(method, path).if_match(command.if_match);
    if let Some(body) = body {
        call = call.body(body);
    }
    if command.idempotency_key.is_some() {
        call = call.repeatable(command.idempotency_key);
    }
    let raw = session.api()?.send_raw(&call)?;
    if raw.body.is_empty() {
        return Ok(());
    }
    match serde_json::from_slice::<Value>(&raw.body) {
        Ok(document) => {
            let data = if document.get("meta").is_some() { document.get("data").cloned() } else { None };
            session.print().document(&data.unwrap_or(document))
        }
        // A log download, for one.
        Err(_) => output::out(&String::from_utf8_lossy(&raw.body)),
    }
}

fn method(text: &str) -> Result<Method> {
    match text.to_ascii_uppercase().as_str() {
        "GET" => Ok(Method::GET),
        "POST" => Ok(Method::POST),
        "PATCH" => Ok(Method::PATCH),
        "PUT" => Ok(Method::PUT),
        "DELETE" => Ok(Method::DELETE),
        _ => Err(Failure::usage(format!("`{text}` is no method; there are GET, POST, PATCH, PUT, DELETE"))),
    }
}

/// A path cannot lead to another origin: it begins with one slash.
fn target(path: &str) -> Result<String> {
    let plain = path.starts_with('/') && !path.starts_with("//") && !path.contains(['?', '#', '\\', '@']);
    if plain && path.chars().all(|character| character.is_ascii_graphic()) {
        return Ok(path.to_owned());
    }
    Err(Failure::usage(format!(
        "`{path}` is no path; it begins with one / and has no query (--query has a flag)"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_stays_on_the_server() {
        assert!(target("/namespaces/ns_1/agents").is_ok());
        for wrong in [
            "namespaces",
            "//evil.example.com/",
            "/a?b=c",
            "/a#b",
            "http://evil.example.com",
            "/a b",
            "/\\evil",
            "",
        ] {
            assert!(target(wrong).is_err(), "{wrong}");
        }
        assert!(method("trace").is_err());
    }
}
