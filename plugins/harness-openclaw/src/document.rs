//! Reading the configuration: values with the JSON Pointers that name them.

use occ_plugin_sdk::json::pointer;
use serde_json::{Map, Value};

/// Where the configuration is in the request.
const BASE: &str = "/configuration";

/// One value of the configuration and its pointer into the request.
#[derive(Debug, Clone)]
pub(crate) struct Node<'a> {
    pub(crate) path: String,
    /// `None` where the document has nothing; the path still says where it would be.
    pub(crate) value: Option<&'a Value>,
}

impl<'a> Node<'a> {
    pub(crate) fn root(document: &'a Value) -> Self {
        Self { path: BASE.to_owned(), value: Some(document) }
    }

    /// The member of this name.
    pub(crate) fn get(&self, name: &str) -> Node<'a> {
        Node { path: pointer(&self.path, name), value: self.value.and_then(|value| value.get(name)) }
    }

    /// The value below these member names, one after the other.
    pub(crate) fn at(&self, names: &[&str]) -> Node<'a> {
        names.iter().fold(self.clone(), |node, name| node.get(name))
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        self.value.and_then(Value::as_str)
    }

    pub(crate) fn object(&self) -> Option<&'a Map<String, Value>> {
        self.value.and_then(Value::as_object)
    }

    /// Every member, or every item by its index.
    pub(crate) fn children(&self) -> Vec<Node<'a>> {
        let child =
            |name: &str, value: &'a Value| Node { path: pointer(&self.path, name), value: Some(value) };
        match self.value {
            Some(Value::Object(members)) => members.iter().map(|(name, value)| child(name, value)).collect(),
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(at, value)| child(&at.to_string(), value)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Members with their names.
    pub(crate) fn members(&self) -> Vec<(&'a str, Node<'a>)> {
        let members = self.object().into_iter().flatten();
        members
            .map(|(name, value)| {
                (name.as_str(), Node { path: pointer(&self.path, name), value: Some(value) })
            })
            .collect()
    }
}

/// The environment variable that a native `{source: env, provider, id}` reference reads.
pub(crate) fn env_reference(value: &Value) -> Option<&str> {
    let source = value.get("source").and_then(Value::as_str)?;
    if source == "env" { value.get("id").and_then(Value::as_str) } else { None }
}
