//! Arguments that name a resource: an id, checked here, or for some kinds a unique name.

use occ_api::ids::{AgentId, ConfigurationId, IdError, NamespaceId, RevisionId, SecretId, TypedId};
use serde_json::Value;

use crate::client::Call;
use crate::failure::{Exit, Failure, Result};
use crate::session::Session;

/// Characters of a UUID.
const UUID_CHARS: usize = 36;
/// Prefixes of ids; one of them before as many characters is meant as an id.
const PREFIXES: [&str; 14] = [
    "ins_", "ns_", "cfg_", "agt_", "sec_", "rev_", "aud_", "req_", "prn_", "spn_", "cs_", "sa_", "pre_",
    "cls_",
];

/// An id, or a name that is looked up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Named<T> {
    /// Its form was checked.
    Id(T),
    /// Matched exactly.
    Name(String),
}

/// What the kinds with names have in common.
pub(crate) trait Kind: TypedId {
    /// In commands, e.g. `agent`.
    const NOUN: &'static str;
}

impl Kind for NamespaceId {
    const NOUN: &'static str = "namespace";
}
impl Kind for AgentId {
    const NOUN: &'static str = "agent";
}
impl Kind for SecretId {
    const NOUN: &'static str = "secret";
}
impl Kind for ConfigurationId {
    const NOUN: &'static str = "configuration";
}
impl Kind for RevisionId {
    const NOUN: &'static str = "revision";
}

impl<T: Kind> Named<T> {
    /// Reads an argument: what looks like an id must be one of this kind.
    ///
    /// # Errors
    /// An id of another kind or form.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let own = T::FORM.split('<').next().unwrap_or_default();
        let id_of_another =
            |prefix: &&str| text.strip_prefix(*prefix).is_some_and(|rest| rest.len() == UUID_CHARS);
        if text.starts_with(own) || PREFIXES.iter().any(id_of_another) {
            return T::parse(text).map(Self::Id).map_err(|error| wrong::<T>(text, error));
        }
        if text.is_empty() {
            return Err(Failure::usage(format!("the {} must not be empty", T::NAME)));
        }
        Ok(Self::Name(text.to_owned()))
    }
}

/// Reads an argument that must be an id.
///
/// # Errors
/// An id of another kind or form.
pub(crate) fn id<T: Kind>(text: &str) -> Result<T> {
    T::parse(text).map_err(|error| wrong::<T>(text, error))
}

fn wrong<T: Kind>(text: &str, error: IdError) -> Failure {
    let list = match T::NOUN {
        "revision" => "occ agent revisions AGENT".to_owned(),
        noun => format!("occ {noun} list"),
    };
    Failure::usage(format!("`{text}` is no {} id; it {error}", T::NAME)).hint(list)
}

/// Finds a Namespace.
///
/// # Errors
/// No or two matches.
pub(crate) fn namespace(session: &Session, named: &Named<NamespaceId>) -> Result<NamespaceId> {
    find(session, named, || Ok("/namespaces".to_owned()))
}

/// Finds a resource of the Namespace by its id or name.
///
/// # Errors
/// No or two matches.
pub(crate) fn in_namespace<T: Kind>(session: &Session, named: &Named<T>, collection: &str) -> Result<T> {
    find(session, named, || session.in_namespace(collection))
}

/// Finds an Agent.
///
/// # Errors
/// A wrong id; no or two matches.
pub(crate) fn agent(session: &Session, text: &str) -> Result<AgentId> {
    in_namespace(session, &Named::parse(text)?, "agents")
}

/// Finds a Secret.
///
/// # Errors
/// A wrong id; no or two matches.
pub(crate) fn secret(session: &Session, text: &str) -> Result<SecretId> {
    in_namespace(session, &Named::parse(text)?, "secrets")
}

fn find<T: Kind>(session: &Session, named: &Named<T>, path: impl FnOnce() -> Result<String>) -> Result<T> {
    let name = match named {
        Named::Id(id) => return Ok(id.clone()),
        Named::Name(name) => name,
    };
    let all = session.api()?.list(&Call::get(path()?), None)?;
    let mut matches = all.iter().filter(|item| item.get("name").and_then(Value::as_str) == Some(name));
    let none = || {
        Failure::local(Exit::NotFound, "NO_SUCH_NAME", format!("there is no {} named `{name}`", T::NAME))
            .hint(format!("occ {} list", T::NOUN))
    };
    let found = matches.next().ok_or_else(none)?;
    if matches.next().is_some() {
        let why = format!("more than one {} is named `{name}`; use its id", T::NAME);
        return Err(
            Failure::local(Exit::NotFound, "AMBIGUOUS_NAME", why).hint(format!("occ {} list", T::NOUN))
        );
    }
    let id = found.get("id").and_then(Value::as_str).unwrap_or_default();
    T::parse(id).map_err(|_| Failure::invalid_response("a resource has no id of its kind"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const UUID: &str = "0b7e54c1-91d2-4c3f-8a60-5d2f7be1c904";

    #[test]
    fn what_looks_like_an_id_must_be_one_of_the_kind() {
        let agent = format!("agt_{UUID}");
        assert_eq!(Named::<AgentId>::parse(&agent).unwrap(), Named::Id(AgentId::parse(&agent).unwrap()));
        assert_eq!(Named::<AgentId>::parse("concierge").unwrap(), Named::Name("concierge".to_owned()));
        assert_eq!(Named::<AgentId>::parse("sa_bot").unwrap(), Named::Name("sa_bot".to_owned()));
        for wrong in [format!("ns_{UUID}"), "agt_x".to_owned(), agent.clone() + "0", String::new()] {
            let failure = Named::<AgentId>::parse(&wrong).unwrap_err();
            assert_eq!(failure.exit(), Exit::Usage, "{wrong}");
        }
        let failure = id::<ConfigurationId>("c.yaml").unwrap_err();
        assert!(failure.to_text().contains("hint: occ configuration list"), "{}", failure.to_text());
    }
}
