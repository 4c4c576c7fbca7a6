//! Which server, credential, Namespace and limits a command uses: for each value on its own flag,
//! environment, named context, current context.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::args::Global;
use crate::contexts::{self, Context, Contexts};
use crate::environment::Environment;
use crate::failure::{Exit, Failure, Result};
use crate::origin::Origin;
use crate::output::Form;

/// Time for one request unless a flag or variable says otherwise.
const TIMEOUT_SECS: u64 = 30;
/// Longest time for one request.
const TIMEOUT_SECS_MAX: u64 = 3600;

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A flag.
    Flag,
    /// A variable.
    Environment,
    /// A saved context.
    Context(String),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("flag"),
            Self::Environment => f.write_str("environment"),
            Self::Context(name) => write!(f, "context {name}"),
        }
    }
}

/// A value and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sourced<T> {
    /// The value.
    pub(crate) value: T,
    /// Its source.
    pub(crate) source: Source,
}

/// Everything that was settled.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The server, if one was named.
    pub(crate) url: Option<Sourced<String>>,
    /// File of the service key.
    pub(crate) key_file: Option<Sourced<PathBuf>>,
    /// Id or name of the Namespace.
    pub(crate) namespace: Option<Sourced<String>>,
    /// Additional roots.
    pub(crate) ca_bundle: Option<PathBuf>,
    /// For one request.
    pub(crate) timeout: Duration,
    /// Form of the output, if flag or context name one.
    pub(crate) form: Option<Form>,
}

/// Path of the context file.
pub(crate) fn config_path(global: &Global, environment: &Environment) -> Result<PathBuf> {
    match global.config.clone().or_else(|| environment.config.clone()) {
        Some(path) => Ok(path),
        None => contexts::default_path(environment).map_err(failed),
    }
}

/// A failure of the context file.
pub(crate) fn failed(error: contexts::ContextsError) -> Failure {
    let exit = match error {
        contexts::ContextsError::Unknown(_) => Exit::NotFound,
        _ => Exit::Usage,
    };
    Failure::local(exit, "CONTEXT", error.to_string())
}

impl Settings {
    /// Settles all values.
    ///
    /// # Errors
    /// Unreadable contexts, a context that does not exist, a timeout that is none.
    pub(crate) fn resolve(global: &Global, environment: &Environment) -> Result<Self> {
        let saved = match config_path(global, environment) {
            Ok(path) => Contexts::load(&path).map_err(failed)?,
            // Without a home there are no contexts; flags and variables may suffice.
            Err(_) if environment.config_dir.is_none() => Contexts::default(),
            Err(failure) => return Err(failure),
        };
        let named = global.context.as_ref().or(environment.context.as_ref());
        let named = match named {
            Some(name) => {
                Some(saved.find(name).ok_or_else(|| failed(contexts::ContextsError::Unknown(name.clone())))?)
            }
            None => None,
        };
        let levels: Vec<&Context> = named.into_iter().chain(saved.current()).collect();
        Self::settle(global, environment, &levels)
    }

    fn settle(global: &Global, environment: &Environment, levels: &[&Context]) -> Result<Self> {
        let url =
            first(global.url.clone(), environment.url.clone(), levels, |context| Some(context.url.clone()));
        // What belongs to an origin is used for that origin alone.
        let own: Vec<&Context> =
            levels.iter().copied().filter(|context| belongs(context, url.as_ref())).collect();
        let timeout = match global.timeout_seconds {
            Some(secs) => secs,
            None => environment.timeout_seconds.as_deref().map_or(Ok(TIMEOUT_SECS), timeout_secs)?,
        };
        Ok(Self {
            key_file: first(
                global.service_key_file.clone(),
                environment.service_key_file.clone(),
                &own,
                |context| context.service_key_file.clone(),
            ),
            namespace: first(global.namespace.clone(), environment.namespace.clone(), &own, |context| {
                context.namespace.clone()
            }),
            ca_bundle: first(global.ca_bundle.clone(), environment.ca_bundle.clone(), &own, |context| {
                context.ca_bundle.clone()
            })
            .map(|found| found.value),
            timeout: Duration::from_secs(timeout),
            form: global
                .output
                .or_else(|| levels.iter().find_map(|context| form(context.output.as_deref()?))),
            url,
        })
    }

    /// The server.
    ///
    /// # Errors
    /// None was named, or it is not an origin.
    pub(crate) fn origin(&self) -> Result<Origin> {
        let url = self.url.as_ref().ok_or_else(|| {
            Failure::local(Exit::Usage, "NO_URL", "no URL: give --url, set OCC_URL, or use a context")
                .hint("occ context list")
        })?;
        Origin::parse(&url.value)
    }

    /// The service key.
    ///
    /// # Errors
    /// No key file was named, or it holds no key.
    pub(crate) fn key(&self) -> Result<String> {
        let file = self.key_file.as_ref().ok_or_else(|| {
            Failure::local(
                Exit::Denied,
                "NO_CREDENTIAL",
                "no credential: give --service-key-file, set OCC_SERVICE_KEY_FILE, or use a context that has one",
            )
        })?;
        read_key(&file.value)
    }
}

/// Reads `data.key` of a key file.
///
/// # Errors
/// Unreadable, not JSON, no usable key. The content is never shown.
pub(crate) fn read_key(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, &error))?;
    let wrong = |why: &str| Failure::local(Exit::Usage, "KEY_FILE", format!("{} {why}", path.display()));
    let document: serde_json::Value = serde_json::from_str(&text).map_err(|_| wrong("is not JSON"))?;
    let key = document.pointer("/data/key").and_then(|key| key.as_str());
    let key = key.ok_or_else(|| wrong("has no text at data.key"))?;
    if key.trim().is_empty() || key.contains(['\r', '\n']) {
        return Err(wrong("has a blank key or one with a line break at data.key"));
    }
    Ok(key.to_owned())
}

fn belongs(context: &Context, url: Option<&Sourced<String>>) -> bool {
    let Some(url) = url else { return false };
    match (Origin::parse(&context.url), Origin::parse(&url.value)) {
        (Ok(own), Ok(used)) => own == used,
        _ => context.url == url.value,
    }
}

fn first<T>(
    flag: Option<T>,
    variable: Option<T>,
    levels: &[&Context],
    of: impl Fn(&Context) -> Option<T>,
) -> Option<Sourced<T>> {
    if let Some(value) = flag {
        return Some(Sourced { value, source: Source::Flag });
    }
    if let Some(value) = variable {
        return Some(Sourced { value, source: Source::Environment });
    }
    levels.iter().find_map(|context| {
        of(context).map(|value| Sourced { value, source: Source::Context(context.name.clone()) })
    })
}

/// Reads a number of seconds for `--timeout-seconds`.
///
/// # Errors
/// Says the range.
pub(crate) fn timeout_secs(text: &str) -> Result<u64> {
    let secs = text.parse::<u64>().ok().filter(|secs| (1..=TIMEOUT_SECS_MAX).contains(secs));
    secs.ok_or_else(|| {
        Failure::usage(format!("the timeout must be whole seconds from 1 to {TIMEOUT_SECS_MAX}"))
    })
}

fn form(text: &str) -> Option<Form> {
    <Form as clap::ValueEnum>::from_str(text, false).ok()
}

#[cfg(test)]
mod tests;
