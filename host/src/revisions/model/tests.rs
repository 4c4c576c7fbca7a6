use serde_json::json;

use super::*;

#[test]
fn the_digest_does_not_depend_on_the_order_of_keys() {
    let one = digest(&json!({"b": [1, {"y": 2, "x": 1}], "a": null})).unwrap();
    let two = digest(&json!({"a": null, "b": [1, {"x": 1, "y": 2}]})).unwrap();
    let other = digest(&json!({"a": null, "b": [1, {"x": 1, "y": 3}]})).unwrap();
    assert_eq!(one, two);
    assert_ne!(one, other);
    // sha256 of {"a":null}
    assert_eq!(digest(&json!({"a": null})).unwrap().len(), "sha256:".len() + 64);
}

#[test]
fn pointers_of_the_harness_become_pointers_of_the_api() {
    let cases = [
        ("/configuration/agents/list", "/values/agents/list"),
        (
            "/configuration/agents/defaults/models/openai~1m/agentRuntime/id",
            "/values/agents/defaults/models/openai~1m/agentRuntime/id",
        ),
        ("/configuration", "/values"),
        ("/mode", "/executionMode"),
        ("/auth/method", "/harnessAuth/method"),
        ("/configurations", "/configurations"),
        ("", ""),
    ];
    for (from, to) in cases {
        assert_eq!(api_pointer(from), to);
    }
}
