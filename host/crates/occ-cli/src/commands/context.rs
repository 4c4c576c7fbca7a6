//! `occ context`: saved contexts. No request is made.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};

use crate::contexts::{Context, Contexts, ContextsError};
use crate::failure::{Failure, Result};
use crate::origin::Origin;
use crate::output::{self, View, at, cell};
use crate::session::Session;
use crate::settings;

const VIEW: View =
    View {
        id: "/name",
        columns: &[
            cell("", |context| {
                if context.get("current") == Some(&json!(true)) { "*".to_owned() } else { " ".to_owned() }
            }),
            at("NAME", "/name"),
            at("URL", "/url"),
            at("NAMESPACE", "/namespace"),
            at("SERVICE KEY FILE", "/serviceKeyFile"),
        ],
    };

/// What can be done with contexts.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All of them; * marks the current one
    List,
    /// Make one the current one
    Use {
        /// Its name
        name: String,
    },
    /// Save the values of the global flags under a name; what is not given stays as it was
    Set {
        /// Its name
        name: String,
    },
    /// Forget one
    Delete {
        /// Its name
        name: String,
    },
    /// Show one, by default the one in use
    Show {
        /// Its name
        name: Option<String>,
    },
}

pub(super) fn run(session: &Session, command: Command) -> Result<()> {
    let path = settings::config_path(&session.global, &session.environment)?;
    let mut saved = Contexts::load(&path).map_err(settings::failed)?;
    match command {
        Command::List => {
            let rows: Vec<Value> =
                saved.contexts.iter().map(|context| shown(&saved, context)).collect::<Result<_>>()?;
            session.print().list(&VIEW, &rows)
        }
        Command::Use { name } => {
            demand(&saved, &name)?;
            saved.current_context = Some(name.clone());
            saved.save(&path).map_err(settings::failed)?;
            output::notice(&format!("context {name} is the current one"));
            Ok(())
        }
        Command::Set { name } => {
            let context = changed(session, saved.find(&name).cloned(), name)?;
            let kept = context.clone();
            saved.put(context).map_err(settings::failed)?;
            if saved.current().is_none() {
                saved.current_context = Some(kept.name.clone());
            }
            saved.save(&path).map_err(settings::failed)?;
            session.print().resource(&VIEW, &shown(&saved, &kept)?)
        }
        Command::Delete { name } => {
            saved.remove(&name).map_err(settings::failed)?;
            saved.save(&path).map_err(settings::failed)?;
            session.print().deleted("context", &name)
        }
        Command::Show { name } => {
            let in_use = session.global.context.as_ref().or(session.environment.context.as_ref());
            let name = name.or_else(|| in_use.cloned()).or_else(|| saved.current_context.clone());
            let name = name.ok_or_else(|| {
                Failure::usage("there is no current context")
                    .hint("occ context use NAME, or occ context set NAME --url URL")
            })?;
            let context = demand(&saved, &name)?;
            session.print().resource(&VIEW, &shown(&saved, context)?)
        }
    }
}

fn demand<'a>(saved: &'a Contexts, name: &str) -> Result<&'a Context> {
    saved.find(name).ok_or_else(|| settings::failed(ContextsError::Unknown(name.to_owned())))
}

fn shown(saved: &Contexts, context: &Context) -> Result<Value> {
    let mut value = serde_json::to_value(context).map_err(Failure::invalid_response)?;
    if let Some(members) = value.as_object_mut() {
        members.insert("current".to_owned(), json!(saved.current_context.as_deref() == Some(&context.name)));
    }
    Ok(value)
}

/// The context with the flags put in.
fn changed(session: &Session, before: Option<Context>, name: String) -> Result<Context> {
    let global = &session.global;
    let mut context = before.unwrap_or_else(|| Context { name, ..Context::default() });
    if let Some(url) = &global.url {
        context.url = Origin::parse(url)?.as_str().to_owned();
    }
    if context.url.is_empty() {
        return Err(Failure::usage("a new context needs --url"));
    }
    if let Some(namespace) = &global.namespace {
        // Its form was checked; a name is looked up when it is used.
        context.namespace = Some(namespace.clone());
    }
    if let Some(file) = &global.service_key_file {
        settings::read_key(file)?;
        context.service_key_file = Some(absolute(file)?);
    }
    if let Some(file) = &global.ca_bundle {
        context.ca_bundle = Some(absolute(file)?);
    }
    if let Some(form) = global.output {
        let value = clap::ValueEnum::to_possible_value(&form);
        context.output = value.map(|value| value.get_name().to_owned());
    }
    Ok(context)
}

fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).map_err(|error| Failure::file(path, &error))
}
