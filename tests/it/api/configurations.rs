//! Configurations: what is refused when a document is stored, and that a refusal stores nothing.

use serde_json::{Value, json};

use super::documents::{self, Verdict};
use super::support::{Api, Result};

fn body(values: &Value) -> Value {
    json!({"kind": "agent", "values": values})
}

#[tokio::test]
async fn a_document_is_refused_with_its_pointer_and_nothing_is_stored() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let path = format!("/namespaces/{namespace}/configurations");
    let mut stored = 0;
    for (name, document, verdict) in documents::cases() {
        let answer = api.post(&path, &body(&document)).await?;
        match verdict {
            Verdict::Create(pointer) => {
                assert_eq!(answer.status, 400, "{name}: {answer:?}");
                assert_eq!(answer.code(), "INVALID_REQUEST", "{name}");
                assert!(answer.names(pointer), "{name}: {answer:?}");
                assert!(!answer.text.contains("0123456789abcdef"), "{name}: the value is echoed: {answer:?}");
            }
            Verdict::Accepted | Verdict::Deploy(_) => {
                assert_eq!(answer.status, 201, "{name}: {answer:?}");
                assert_eq!(answer.data()["values"], document, "{name}");
                stored += 1;
            }
        }
    }
    let list = api.get(&path).await?;
    assert_eq!(list.data().as_array().map(Vec::len), Some(stored));
    Ok(())
}

#[tokio::test]
async fn the_shape_of_a_document_is_bounded() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let path = format!("/namespaces/{namespace}/configurations");
    for values in [json!([]), json!("text"), json!(null), json!(7)] {
        let answer = api.post(&path, &body(&values)).await?;
        assert_eq!((answer.status, answer.names("/values")), (400, true), "{answer:?}");
    }
    let nested = |levels: usize| {
        let inner = "{\"a\":".repeat(levels - 1);
        format!("{{\"kind\":\"agent\",\"values\":{inner}{{}}{}}}", "}".repeat(levels - 1))
    };
    assert_eq!(api.post_text(&path, nested(64)).await?.status, 201);
    let deep = api.post_text(&path, nested(65)).await?;
    assert_eq!((deep.status, deep.detail_code(0)), (400, "TOO_DEEP".to_owned()), "{deep:?}");
    let mut document = documents::valid();
    documents::put(&mut document, "/note", json!("x".repeat(1_000_001)));
    let long = api.post(&path, &body(&document)).await?;
    assert_eq!((long.status, long.names("/values")), (400, true), "{long:?}");
    documents::put(&mut document, "/note", json!("x".repeat(1_100_000)));
    let large = api.post(&path, &body(&document)).await?;
    assert_eq!((large.status, large.code()), (413, "PAYLOAD_TOO_LARGE".to_owned()));
    for twice in
        [r#"{"kind":"agent","values":{"a":1,"a":2}}"#, r#"{"kind":"agent","values":{"__proto__":{}}}"#]
    {
        let answer = api.post_text(&path, twice.to_owned()).await?;
        assert_eq!((answer.status, answer.detail_code(0)), (400, "INVALID_VALUE".to_owned()), "{answer:?}");
    }
    assert_eq!(api.get(&path).await?.data().as_array().map(Vec::len), Some(1));
    Ok(())
}

#[tokio::test]
async fn of_two_writers_with_one_tag_exactly_one_wins() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let made =
        api.post(&format!("/namespaces/{namespace}/configurations"), &body(&documents::valid())).await?;
    assert_eq!(made.etag.as_deref(), Some("\"v1\""));
    let path = format!("/namespaces/{namespace}/configurations/{}", made.id());
    let change = |note: &str| json!({"values": documents::with("/note", json!(note))});
    let (left, right) = (change("left"), change("right"));
    let tag = [("if-match", "\"v1\"")];
    let (left, right) = tokio::join!(api.patch_with(&path, &left, &tag), api.patch_with(&path, &right, &tag));
    let (left, right) = (left?, right?);
    let mut statuses = [left.status, right.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412], "{left:?} {right:?}");
    let loser = if left.status == 412 { &left } else { &right };
    assert_eq!(loser.etag.as_deref(), Some("\"v2\""));
    let now = api.get(&path).await?;
    assert_eq!((now.data()["generation"].clone(), now.etag.as_deref()), (json!(2), Some("\"v2\"")));
    assert_eq!(api.patch(&path, &change("third")).await?.data()["generation"], json!(3));
    Ok(())
}

#[tokio::test]
async fn bindings_are_kept_cleared_and_hold_the_secret() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let secret = api.secret(&namespace, "slack").await?;
    let reference = json!({"kind": "secret", "namespaceId": namespace, "id": secret});
    let bound = json!({"SLACK_TOKEN": {"source": reference}});
    let made = api
        .post(
            &format!("/namespaces/{namespace}/configurations"),
            &json!({"kind": "agent", "values": documents::valid(), "secretBindings": bound}),
        )
        .await?;
    assert_eq!(made.status, 201, "{made:?}");
    assert_eq!(made.data()["secretBindings"]["SLACK_TOKEN"]["delivery"], json!({"type": "env"}));
    let path = format!("/namespaces/{namespace}/configurations/{}", made.id());
    let secret_path = format!("/namespaces/{namespace}/secrets/{secret}");

    let kept = api.patch(&path, &json!({"values": documents::valid()})).await?;
    assert_eq!(kept.data()["secretBindings"], made.data()["secretBindings"]);
    let refused = api.delete(&secret_path).await?;
    assert_eq!((refused.status, refused.code()), (409, "RESOURCE_CONFLICT".to_owned()));
    assert!(refused.text.contains(&made.id()), "{refused:?}");
    let consumers = api.get(&secret_path).await?.data()["consumers"].clone();
    assert_eq!(consumers["configurations"], json!([made.id()]));

    let cleared = api.patch(&path, &json!({"values": documents::valid(), "secretBindings": {}})).await?;
    assert_eq!(cleared.data().get("secretBindings"), None);
    assert_eq!(api.delete(&secret_path).await?.status, 204);
    assert_eq!(api.get(&secret_path).await?.status, 404);

    let absent = api.patch(&path, &json!({"values": documents::valid(), "secretBindings": bound})).await?;
    assert_eq!(absent.status, 404, "{absent:?}");
    let other = api.namespace().await?;
    let foreign = json!({"A": {"source": {"kind": "secret", "namespaceId": other, "id": secret}}});
    let answer = api.patch(&path, &json!({"values": documents::valid(), "secretBindings": foreign})).await?;
    assert_eq!(
        (answer.status, answer.names("/secretBindings/A/source/namespaceId")),
        (400, true),
        "{answer:?}"
    );
    for reserved in ["OPENAI_API_KEY", "openclaw_x", "PATH", "1A"] {
        let taken = json!({reserved: {"source": reference}});
        let answer =
            api.patch(&path, &json!({"values": documents::valid(), "secretBindings": taken})).await?;
        assert_eq!(
            (answer.status, answer.names(&format!("/secretBindings/{reserved}"))),
            (400, true),
            "{answer:?}"
        );
    }
    Ok(())
}
