use serde_json::json;

use super::*;
use crate::error::FieldCode;

fn strict(text: &str) -> Result<Value, (String, FieldCode)> {
    parse_strict(text.as_bytes(), 4, Some(("values", 6))).map_err(|fault| (fault.path, fault.code))
}

#[test]
fn plain_json_reads_as_serde_json_reads_it() {
    for text in [
        "{}",
        "[]",
        "null",
        " true ",
        "-0.5e+3",
        "12345678901234567890",
        r#""a\u00e9\ud83e\udd80\n""#,
        r#"{"a":[1,{"b":null}],"c":"x"}"#,
    ] {
        assert_eq!(strict(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
    }
}

#[test]
fn what_a_lenient_reader_accepts_is_refused_with_its_place() {
    for (text, path, code) in [
        (r#"{"a":1,"a":2}"#, "/a", FieldCode::InvalidValue),
        (r#"{"a":{"b":1,"b":1}}"#, "/a/b", FieldCode::InvalidValue),
        (r#"{"__proto__":1}"#, "/__proto__", FieldCode::InvalidValue),
        (r#"{"a/b":"\u0000"}"#, "/a~1b", FieldCode::InvalidValue),
        (r#"["\ud800"]"#, "/0", FieldCode::InvalidValue),
        (r#"["\ud800\u0041"]"#, "/0", FieldCode::InvalidValue),
        (r#"["\udc00"]"#, "/0", FieldCode::InvalidValue),
        (r#"{"n":1e999}"#, "/n", FieldCode::InvalidValue),
        (r#"{"n":01}"#, "/n", FieldCode::InvalidFormat),
        ("[1,]", "/1", FieldCode::InvalidFormat),
        ("{} x", "", FieldCode::InvalidFormat),
        ("\"\u{1}\"", "", FieldCode::InvalidFormat),
        ("", "", FieldCode::InvalidFormat),
        ("[[[[[1]]]]]", "/0/0/0/0", FieldCode::TooDeep),
    ] {
        assert_eq!(strict(text), Err((path.to_owned(), code)), "{text}");
    }
}

#[test]
fn an_open_document_has_a_depth_of_its_own() {
    assert!(strict(r#"{"values":[[[[[[1]]]]]]}"#).is_ok());
    assert_eq!(strict(r#"{"values":[[[[[[[1]]]]]]]}"#).unwrap_err().1, FieldCode::TooDeep);
    assert!(parse_strict("[".repeat(1_000_000).as_bytes(), DEPTH_MAX, None).is_err());
}

#[test]
fn every_fault_of_an_object_is_reported() {
    let value = json!({"name": 7, "other": 1, "nested": {"id": "x", "more": 2}});
    let mut object = Object::new(&value, "");
    let name = object.text("name", |_| Ok(()));
    let kind = object.word("kind", |word| (word == "agent").then_some(()));
    let nested = object
        .required("nested")
        .and_then(|value| object.nested("nested", value, |nested| nested.id::<crate::ids::AgentId>("id")));
    let faults = object.finish(name.zip(kind).zip(nested)).unwrap_err();
    let found: Vec<(&str, FieldCode)> =
        faults.iter().map(|fault| (fault.path.as_str(), fault.code)).collect();
    assert_eq!(
        found,
        [
            ("/name", FieldCode::InvalidType),
            ("/kind", FieldCode::Required),
            ("/nested/id", FieldCode::InvalidFormat),
            ("/nested/more", FieldCode::UnknownField),
            ("/other", FieldCode::UnknownField),
        ]
    );
}
