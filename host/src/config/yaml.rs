//! A strict YAML reader: one document, no anchors, aliases, tags or duplicate keys; then
//! the screening that keeps secrets and foreign identities out of the file.

use serde_json::Value;

use super::Problem;

/// Largest Installation YAML.
pub const YAML_BYTES_MAX: usize = 1024 * 1024;
/// Deepest nesting.
const DEPTH_MAX: usize = 24;
/// Largest magnitude of a number that survives JSON everywhere.
const NUMBER_MAX: f64 = 9_007_199_254_740_991.0;
/// Keys that may not appear anywhere.
const KEYS_REFUSED: [&str; 6] =
    ["installationId", "installation_id", "__proto__", "constructor", "prototype", "secretRef"];
/// Endings of keys under which a string would be a credential.
const KEY_ENDINGS: [&str; 8] =
    ["password", "apikey", "api_key", "token", "privatekey", "clientsecret", "credential", "credentials"];
/// Beginnings of strings that are credentials wherever they stand.
const STRING_BEGINNINGS: [&str; 10] = [
    "Bearer ",
    "sk-",
    "-----BEGIN PRIVATE",
    "-----BEGIN RSA PRIVATE",
    "-----BEGIN EC PRIVATE",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "AKIA",
];

/// Parses and screens. Every problem of the stage that failed.
pub(super) fn read(text: &str) -> Result<Value, Vec<Problem>> {
    if text.len() > YAML_BYTES_MAX {
        return Err(vec![Problem::new("", format!("must have at most {YAML_BYTES_MAX} bytes"))]);
    }
    let budget =
        serde_saphyr::budget! { max_depth: DEPTH_MAX, max_documents: 1, max_anchors: 0, max_aliases: 0 };
    let options = serde_saphyr::options! {
        budget: budget,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        reject_unsupported_tags: true,
        reject_tagged_field_names: true,
        with_snippet: false,
    };
    let value: Value = serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        vec![Problem::new(
            "",
            format!("is not the YAML that is accepted here: {}", first_line(&error.to_string())),
        )]
    })?;
    let mut problems = Vec::new();
    screen(&value, "", &mut problems);
    if problems.is_empty() { Ok(value) } else { Err(problems) }
}

fn screen(value: &Value, at: &str, problems: &mut Vec<Problem>) {
    match value {
        Value::Number(number) if number.as_f64().is_none_or(|number| number.abs() > NUMBER_MAX) => {
            problems.push(Problem::new(at, "must lie within ±(2^53-1)"));
        }
        Value::String(text) if STRING_BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) => {
            problems.push(Problem::new(at, "looks like a credential; give it by file or environment"));
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                screen(item, &format!("{at}/{index}"), problems);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                let path = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                let plain: String = key.to_ascii_lowercase().replace('-', "");
                if KEYS_REFUSED.contains(&key.as_str()) {
                    problems.push(Problem::new(path, "is a key that is refused here"));
                } else if member.is_string() && KEY_ENDINGS.iter().any(|ending| plain.ends_with(ending)) {
                    problems
                        .push(Problem::new(path, "looks like a credential; give it by file or environment"));
                } else {
                    screen(member, &path, problems);
                }
            }
        }
        _ => {}
    }
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
