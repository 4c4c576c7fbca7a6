//! JSON: canonical text and pointers.

use serde_json::Value;

/// Canonical text: keys sorted, two spaces, one newline at the end. The same value
/// always gives the same bytes, so a second rendering can be compared with the first.
#[must_use]
pub fn canonical(value: &Value) -> String {
    format!("{value:#}\n")
}

/// `base` with one more JSON Pointer token (RFC 6901: `~` and `/` escaped).
#[must_use]
pub fn pointer(base: &str, token: &str) -> String {
    format!("{base}/{}", token.replace('~', "~0").replace('/', "~1"))
}

/// 64-bit FNV-1a of `bytes` in hex: tells renderings apart, proves nothing.
#[must_use]
pub fn fingerprint(bytes: &[u8]) -> String {
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{hash:016x}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn canonical_text_does_not_depend_on_the_order_of_keys() {
        let one: Value = serde_json::from_str(r#"{"b":1,"a":{"d":[],"c":"ü"}}"#).unwrap();
        let two = json!({"a": {"c": "ü", "d": []}, "b": 1});
        assert_eq!(canonical(&one), canonical(&two));
        assert_eq!(canonical(&one), "{\n  \"a\": {\n    \"c\": \"ü\",\n    \"d\": []\n  },\n  \"b\": 1\n}\n");
    }

    #[test]
    fn pointers_escape_what_the_syntax_uses() {
        assert_eq!(pointer("/models", "openai/gpt~5"), "/models/openai~1gpt~05");
    }

    #[test]
    fn fingerprints_follow_the_published_vectors() {
        assert_eq!(fingerprint(b""), "cbf29ce484222325");
        assert_eq!(fingerprint(b"foobar"), "85944171f73967e8");
    }
}
