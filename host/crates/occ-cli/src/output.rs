//! The one home of printing: resources in four forms, tables, notices and errors.
//!
//! Data goes to standard output, everything else to standard error.

mod table;

use std::io::Write as _;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::failure::{Exit, Failure, Result};

pub(crate) use table::{View, at, cell, cell_text};

/// How data is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// Columns for people.
    Table,
    /// The bare resource or array.
    Json,
    /// The same as YAML.
    Yaml,
    /// Ids, one a line.
    Name,
    /// Lines of a log.
    Text,
}

impl Form {
    /// A form that programs read?
    pub(crate) fn is_machine(self) -> bool {
        matches!(self, Self::Json | Self::Yaml)
    }
}

/// Prints in the form that was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    form: Form,
}

impl Printer {
    /// A printer of one form.
    pub(crate) fn new(form: Form) -> Self {
        Self { form }
    }

    /// The form.
    pub(crate) fn form(self) -> Form {
        self.form
    }

    /// One resource.
    pub(crate) fn resource(self, view: &View, value: &Value) -> Result<()> {
        match self.form {
            Form::Table | Form::Text => out(&table::render(view, std::slice::from_ref(value))),
            Form::Name => out(&names(view, std::slice::from_ref(value))?),
            Form::Json | Form::Yaml => self.document(value),
        }
    }

    /// A list.
    pub(crate) fn list(self, view: &View, values: &[Value]) -> Result<()> {
        match self.form {
            Form::Table | Form::Text if values.is_empty() => out("No resources found.\n"),
            Form::Table | Form::Text => out(&table::render(view, values)),
            Form::Name => out(&names(view, values)?),
            Form::Json | Form::Yaml => self.document(&Value::Array(values.to_vec())),
        }
    }

    /// A document that has no table: JSON unless YAML was asked for.
    pub(crate) fn document(self, value: &Value) -> Result<()> {
        let text = match self.form {
            Form::Yaml => yaml(value)?,
            _ => pretty(value)?,
        };
        out(&text)
    }

    /// That something is gone.
    pub(crate) fn deleted(self, kind: &str, id: &str) -> Result<()> {
        match self.form {
            Form::Table | Form::Text => out(&format!("Deleted {kind} {}.\n", cell_text(id))),
            Form::Name => out(&format!("{id}\n")),
            Form::Json | Form::Yaml => self.document(&json!({"deleted": true, "kind": kind, "id": id})),
        }
    }

    /// That something will be gone.
    pub(crate) fn deleting(self, kind: &str, id: &str) -> Result<()> {
        match self.form {
            Form::Table | Form::Text => out(&format!("Deleting {kind} {}.\n", cell_text(id))),
            Form::Name => out(&format!("{id}\n")),
            Form::Json | Form::Yaml => self.document(&json!({"deleted": false, "kind": kind, "id": id})),
        }
    }

    /// The failure that ends the program.
    pub(crate) fn failure(self, failure: &Failure) {
        let text = match self.form {
            Form::Json => pretty(&failure.to_json()),
            Form::Yaml => yaml(&failure.to_json()),
            _ => Ok(failure.to_text() + "\n"),
        };
        // Standard error may be closed; there is nowhere else to say so.
        let _ = std::io::stderr().lock().write_all(text.unwrap_or_default().as_bytes());
    }
}

fn names(view: &View, values: &[Value]) -> Result<String> {
    let mut text = String::new();
    for value in values {
        let id = value.pointer(view.id).and_then(Value::as_str);
        text.push_str(id.ok_or_else(|| Failure::invalid_response("a resource has no id"))?);
        text.push('\n');
    }
    Ok(text)
}

/// JSON over several lines, with a line break at the end.
pub(crate) fn pretty(value: &Value) -> Result<String> {
    serde_json::to_string_pretty(value).map(|text| text + "\n").map_err(Failure::invalid_response)
}

/// The same as YAML.
pub(crate) fn yaml(value: &Value) -> Result<String> {
    let mut text = serde_saphyr::to_string(value).map_err(Failure::invalid_response)?;
    if !text.ends_with('\n') {
        text.push('\n');
    }
    Ok(text)
}

/// Writes data. A reader that has gone away ends the program well.
///
/// # Errors
/// Standard output cannot be written.
pub(crate) fn out(text: &str) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => std::process::exit(0),
        outcome => outcome
            .map_err(|error| Failure::local(Exit::Failed, "OUTPUT", format!("standard output: {error}"))),
    }
}

/// Writes a line beside the data.
pub(crate) fn notice(text: &str) {
    let line = format!("{}\n", crate::failure::printable(text));
    // Standard error may be closed; what it says is not part of the outcome.
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}
