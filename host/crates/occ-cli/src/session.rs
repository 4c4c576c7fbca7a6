//! What every command gets: settings, the client once it is needed, the Namespace, the printer.

use std::cell::OnceCell;

use occ_api::ids::NamespaceId;

use crate::args::Global;
use crate::client::Client;
use crate::environment::Environment;
use crate::failure::{Failure, Result};
use crate::names::{self, Named};
use crate::output::{Form, Printer};
use crate::settings::Settings;

/// One run of the program.
pub(crate) struct Session {
    /// Global flags.
    pub(crate) global: Global,
    /// Variables.
    pub(crate) environment: Environment,
    settings: OnceCell<Settings>,
    client: OnceCell<Client>,
    namespace: OnceCell<NamespaceId>,
}

impl Session {
    /// Begins; nothing is read yet.
    pub(crate) fn new(global: Global, environment: Environment) -> Self {
        Self {
            global,
            environment,
            settings: OnceCell::new(),
            client: OnceCell::new(),
            namespace: OnceCell::new(),
        }
    }

    /// The settled values.
    ///
    /// # Errors
    /// Contexts that cannot be read.
    pub(crate) fn settings(&self) -> Result<&Settings> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let settings = Settings::resolve(&self.global, &self.environment)?;
        Ok(self.settings.get_or_init(|| settings))
    }

    /// The client with its credential.
    ///
    /// # Errors
    /// No URL, no credential, unreadable files.
    pub(crate) fn api(&self) -> Result<&Client> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let settings = self.settings()?;
        let origin = settings.origin()?;
        let key = settings.key()?;
        let client = Client::new(origin, Some(key), settings.ca_bundle.as_deref(), settings.timeout)?;
        Ok(self.client.get_or_init(|| client))
    }

    /// A client without a credential, for routes that take none.
    ///
    /// # Errors
    /// No URL, an unreadable CA bundle.
    pub(crate) fn open_client(&self) -> Result<Client> {
        let settings = self.settings()?;
        Client::new(settings.origin()?, None, settings.ca_bundle.as_deref(), settings.timeout)
    }

    /// The Namespace that the command is about.
    ///
    /// # Errors
    /// None was named; the name matches none or two.
    pub(crate) fn namespace(&self) -> Result<&NamespaceId> {
        if let Some(namespace) = self.namespace.get() {
            return Ok(namespace);
        }
        let named = self.settings()?.namespace.as_ref().ok_or_else(|| {
            Failure::usage("no Namespace: give --namespace, set OCC_NAMESPACE, or use a context that has one")
                .hint("occ namespace list")
        })?;
        let id = names::namespace(self, &Named::parse(&named.value)?)?;
        Ok(self.namespace.get_or_init(|| id))
    }

    /// The Namespace if one was named.
    ///
    /// # Errors
    /// The name matches none or two.
    pub(crate) fn namespace_if_named(&self) -> Result<Option<&NamespaceId>> {
        match self.settings()?.namespace {
            Some(_) => self.namespace().map(Some),
            None => Ok(None),
        }
    }

    /// Path of a collection in the Namespace.
    ///
    /// # Errors
    /// As [`Session::namespace`].
    pub(crate) fn in_namespace(&self, collection: &str) -> Result<String> {
        Ok(format!("/namespaces/{}/{collection}", self.namespace()?))
    }

    /// The form of the output.
    pub(crate) fn form(&self) -> Form {
        let settled = self.settings().ok().and_then(|settings| settings.form);
        self.global.output.or(settled).unwrap_or(Form::Table)
    }

    /// Prints in that form.
    pub(crate) fn print(&self) -> Printer {
        Printer::new(self.form())
    }

    /// ` --namespace ID` for a command in a hint, when the Namespace came from a flag.
    pub(crate) fn namespace_flag(&self) -> String {
        match (&self.global.namespace, self.namespace.get()) {
            (Some(_), Some(id)) => format!(" --namespace {id}"),
            _ => String::new(),
        }
    }
}
