//! Input files: JSON or YAML, from a path or standard input, and secret values.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use crate::failure::{Exit, Failure, Result};

/// Largest input file.
const INPUT_BYTES_MAX: u64 = 4 * 1024 * 1024;
/// Deepest nesting of an input file; the server's own limits are lower or equal.
const DEPTH_MAX: usize = 66;

/// Reads a file or, for `-`, standard input.
///
/// # Errors
/// Unreadable, too large.
fn bytes(path: &Path) -> Result<Vec<u8>> {
    let mut found = Vec::new();
    let read = if path == Path::new("-") {
        std::io::stdin().lock().take(INPUT_BYTES_MAX + 1).read_to_end(&mut found)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(INPUT_BYTES_MAX + 1).read_to_end(&mut found))
    };
    read.map_err(|error| Failure::file(path, &error))?;
    if u64::try_from(found.len()).unwrap_or(u64::MAX) > INPUT_BYTES_MAX {
        return Err(invalid(path, format!("is larger than {INPUT_BYTES_MAX} bytes")));
    }
    Ok(found)
}

/// Reads a document. A file that ends in `.json` is JSON; one that ends in `.yaml` or `.yml` is YAML; of
/// anything else the first character decides.
///
/// # Errors
/// Unreadable, neither JSON nor YAML, duplicate keys.
pub(crate) fn document(path: &Path) -> Result<Value> {
    let bytes = bytes(path)?;
    let text = String::from_utf8(bytes).map_err(|_| invalid(path, "is not UTF-8"))?;
    parse(path, text.strip_prefix('\u{feff}').unwrap_or(&text))
}

fn parse(path: &Path, text: &str) -> Result<Value> {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    match extension {
        "json" => json(path, text),
        "yaml" | "yml" => yaml(path, text),
        _ if text.trim_start().starts_with(['{', '[']) => json(path, text).or_else(|failure| {
            // `{a: b}` is YAML too.
            yaml(path, text).map_err(|_| failure)
        }),
        _ => yaml(path, text),
    }
}

fn json(path: &Path, text: &str) -> Result<Value> {
    occ_api::json::parse_strict(text.as_bytes(), DEPTH_MAX, None).map_err(|fault| {
        // serde_json knows the line; it accepts what is refused here only for its content.
        match serde_json::from_str::<Value>(text) {
            Err(error) => invalid(path, format!("is not JSON: {error}")),
            Ok(_) => invalid(path, format!("is refused at `{}`: it {}", fault.path, fault.code.phrase())),
        }
    })
}

fn yaml(path: &Path, text: &str) -> Result<Value> {
    let budget =
        serde_saphyr::budget! { max_depth: DEPTH_MAX, max_documents: 1, max_anchors: 0, max_aliases: 0 };
    let options = serde_saphyr::options! {
        budget: budget,
        duplicate_keys: serde_saphyr::DuplicateKeyPolicy::Error,
        merge_keys: serde_saphyr::MergeKeyPolicy::AsOrdinary,
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        invalid(path, format!("is not YAML: {}", error.to_string().lines().next().unwrap_or_default()))
    })
}

/// Reads a secret value; one line break at the end is not part of it.
///
/// # Errors
/// Unreadable, empty, not text.
pub(crate) fn secret_value(path: &Path) -> Result<String> {
    let text = String::from_utf8(bytes(path)?).map_err(|_| invalid(path, "is not UTF-8"))?;
    let value = text.strip_suffix('\n').map_or(text.as_str(), |line| line.strip_suffix('\r').unwrap_or(line));
    if value.is_empty() {
        return Err(invalid(path, "is empty"));
    }
    Ok(value.to_owned())
}

fn invalid(path: &Path, why: impl std::fmt::Display) -> Failure {
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    Failure::local(Exit::Usage, "INVALID_INPUT", format!("{name} {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(name: &str, text: &str) -> Result<Value> {
        parse(Path::new(name), text)
    }

    #[test]
    fn json_and_yaml_mean_the_same() {
        let expected =
            json!({"name": "ci", "permissions": [{"action": "operate", "resourceKind": "secret"}]});
        let yaml = "name: ci\npermissions:\n  - action: operate\n    resourceKind: secret\n";
        for (name, text) in [
            ("a.yaml", yaml),
            ("-", yaml),
            ("a.json", &expected.to_string()),
            ("-", &expected.to_string()),
            ("-", "{name: ci, permissions: [{action: operate, resourceKind: secret}]}"),
        ] {
            assert_eq!(read(name, text).unwrap(), expected, "{name}: {text}");
        }
    }

    #[test]
    fn yaml_words_stay_words() {
        assert_eq!(
            read("-", "a: yes\nb: '1'\nc: 1\nd: null\ne: on").unwrap(),
            json!({"a": "yes", "b": "1", "c": 1, "d": null, "e": "on"})
        );
    }

    #[test]
    fn what_is_printed_as_yaml_reads_back_the_same() {
        let texts = [
            "yes",
            "no",
            "on",
            "null",
            "~",
            "true",
            "1",
            "1e3",
            "0x10",
            ".5",
            "2026-03-02",
            "- a",
            "a: b",
            "#x",
            "x #y",
            "",
            " lead",
            "trail ",
            "two\nlines\n",
            "\n",
            "\ttab",
            "\u{202e}",
            "é🦀",
            "@x",
            "`x",
            "%x",
            "!tag",
            "&a",
            "*a",
            "'",
            "\"",
            "\\",
            "a'b\"c",
            "---",
            "...",
            "{a}",
            "[a]",
            "?",
            "|",
            ">",
            "=",
            "<<",
        ];
        let members: serde_json::Map<String, Value> =
            texts.iter().map(|text| ((*text).to_owned(), json!([text, {"t": text}]))).collect();
        let value = json!({"texts": texts.to_vec(), "members": members, "empty": [{}, []], "numbers": [0, -1, 1.5, 1e300, 9_007_199_254_740_993_u64]});
        let text = crate::output::yaml(&value).unwrap();
        assert_eq!(read("-.yaml", &text).unwrap(), value, "{text}");
    }

    #[test]
    fn what_is_ambiguous_is_refused_and_named() {
        for (name, text, why) in [
            ("c.json", "{\"a\":1,\"a\":2}", "refused at `/a`"),
            ("c.json", "{\"a\":", "is not JSON: EOF"),
            ("c.yaml", "a: 1\na: 2", "is not YAML"),
            ("c.yaml", "a: &x 1\nb: *x", "is not YAML"),
            ("-", "{\"a\":1,\"a\":2}", "refused at `/a`"),
        ] {
            let failure = read(name, text).unwrap_err();
            assert!(failure.message().contains(why), "{text}: {}", failure.message());
            assert_eq!(failure.exit(), Exit::Usage);
        }
    }

    #[test]
    fn one_line_break_ends_a_value() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("value");
        for (written, value) in
            [("key\n", "key"), ("key\r\n", "key"), ("key\n\n", "key\n"), (" key ", " key ")]
        {
            std::fs::write(&file, written).unwrap();
            assert_eq!(secret_value(&file).unwrap(), value);
        }
        for refused in ["", "\n"] {
            std::fs::write(&file, refused).unwrap();
            assert_eq!(secret_value(&file).unwrap_err().exit(), Exit::Usage);
        }
    }
}
