//! `occ version`

use serde_json::{Value, json};

use super::text;
use crate::client::Call;
use crate::failure::{Failure, Result};
use crate::output;
use crate::session::Session;

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub(super) fn run(session: &Session, server: bool) -> Result<()> {
    let contract = if server { Some(contract(session)?) } else { None };
    if session.form().is_machine() {
        let mut document = json!({"client": VERSION});
        if let (Some(contract), Some(document)) = (contract, document.as_object_mut()) {
            document.insert("server".to_owned(), json!(contract));
        }
        return session.print().document(&document);
    }
    output::out(&format!("occ {VERSION}\n"))?;
    match contract {
        Some(contract) => output::out(&format!("server {}\n", output::cell_text(&contract))),
        None => Ok(()),
    }
}

/// Contract version of the server, from its OpenAPI document; takes no credential.
fn contract(session: &Session) -> Result<String> {
    let raw = session.open_client()?.send_raw(&Call::get("/openapi.json"))?;
    let document: Value = serde_json::from_slice(&raw.body).map_err(Failure::invalid_response)?;
    match text(&document, "/info/version") {
        "" => Err(Failure::invalid_response("the OpenAPI document has no version")),
        version => Ok(version.to_owned()),
    }
}
