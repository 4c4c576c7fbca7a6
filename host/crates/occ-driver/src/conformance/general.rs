//! Rules for every kind: description, settings, start.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::subject::Subject;
use super::{Finding, Named};
use crate::abi::{Answer, Call};

pub(super) const CHECKS: &[Named] = &[
    ("description-is-stable", description_is_stable),
    ("settings-schema-is-closed", settings_schema_is_closed),
    ("settings-are-accepted", settings_are_accepted),
    ("unknown-setting-is-refused", unknown_setting_is_refused),
    ("preflight-succeeds", preflight_succeeds),
];

fn description_is_stable(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let first = subject.description();
        if first.name.trim().is_empty() {
            return Err("describe: name is empty".to_owned());
        }
        match subject.world().call(Call::Describe).await? {
            Answer::Description(second) if second == *first => Ok(()),
            _ => Err("describe answers differently the second time".to_owned()),
        }
    }
    .boxed()
}

fn settings_schema_is_closed(subject: &Subject) -> BoxFuture<'_, Finding> {
    let open = open_at(&subject.description().settings_schema, "");
    async move {
        match open {
            None => Ok(()),
            Some(at) => {
                Err(format!("settings-schema{at}: an object without additionalProperties: false or a schema"))
            }
        }
    }
    .boxed()
}

/// Where a schema lets unknown members of an object pass.
fn open_at(schema: &Value, at: &str) -> Option<String> {
    let object = schema.as_object()?;
    let describes_object = object.get("type") == Some(&json!("object")) || object.contains_key("properties");
    let closes = |key: &str| object.get(key).is_some_and(|rest| *rest == json!(false) || rest.is_object());
    if describes_object && !closes("additionalProperties") && !closes("unevaluatedProperties") {
        return Some(at.to_owned());
    }
    let one = |key: &str| object.get(key).and_then(|inner| open_at(inner, &format!("{at}/{key}")));
    let named = |key: &str| {
        let members = object.get(key)?.as_object()?;
        members.iter().find_map(|(name, inner)| open_at(inner, &format!("{at}/{key}/{name}")))
    };
    let listed = |key: &str| {
        let items = object.get(key)?.as_array()?;
        items.iter().enumerate().find_map(|(index, inner)| open_at(inner, &format!("{at}/{key}/{index}")))
    };
    ["additionalProperties", "items", "not", "if", "then", "else"]
        .into_iter()
        .find_map(one)
        .or_else(|| ["properties", "patternProperties", "$defs"].into_iter().find_map(named))
        .or_else(|| ["prefixItems", "anyOf", "oneOf", "allOf"].into_iter().find_map(listed))
}

fn settings_are_accepted(subject: &Subject) -> BoxFuture<'_, Finding> {
    subject.check_settings(subject.settings()).boxed()
}

fn unknown_setting_is_refused(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move {
        let mut settings = subject.settings().clone();
        let Some(members) = settings.as_object_mut() else {
            return Err("settings are no object".to_owned());
        };
        members.insert("conformanceUnknown".to_owned(), json!(true));
        match subject.check_settings(&settings).await {
            Ok(()) => Err("a setting that the schema does not know is accepted".to_owned()),
            Err(why) if why.starts_with("settings: ") => Ok(()),
            Err(why) => Err(why),
        }
    }
    .boxed()
}

fn preflight_succeeds(subject: &Subject) -> BoxFuture<'_, Finding> {
    async move { subject.world().call(Call::Preflight).await.map(|_| ()) }.boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_object_is_found_wherever_it_is() {
        let closed = json!({"type": "object", "additionalProperties": false, "properties": {
            "a": {"type": "object", "additionalProperties": {"type": "string"}}
        }, "$defs": {"b": {"type": "array", "items": {"type": "string"}}}});
        assert_eq!(open_at(&closed, ""), None);
        let deep = json!({"type": "object", "additionalProperties": false, "$defs": {
            "b": {"type": "array", "items": {"properties": {"x": {}}}}
        }});
        assert_eq!(open_at(&deep, "").as_deref(), Some("/$defs/b/items"));
        assert_eq!(open_at(&json!({"type": "object"}), "").as_deref(), Some(""));
    }
}
