//! Secrets: names for values that nobody reads back.

use serde_json::json;

use super::documents;
use super::support::{Api, Result};

const CANARY: &str = "canary-8c1d0f5e";

#[tokio::test]
async fn a_value_goes_in_and_never_comes_out() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let path = format!("/namespaces/{namespace}/secrets");
    let made = api.post(&path, &json!({"name": "openai", "value": CANARY})).await?;
    assert_eq!((made.status, made.etag.as_deref()), (201, Some("\"v1\"")), "{made:?}");
    let one = format!("{path}/{}", made.id());
    let rotated = api.patch(&one, &json!({"value": format!("{CANARY}-2")})).await?;
    assert_eq!((rotated.status, rotated.etag.as_deref()), (200, Some("\"v2\"")), "{rotated:?}");
    let got = api.get(&one).await?;
    let listed = api.get(&path).await?;
    for answer in [&made, &rotated, &got, &listed] {
        assert!(!answer.text.contains(CANARY), "{answer:?}");
    }
    assert_eq!(got.data()["ref"], json!({"kind": "secret", "namespaceId": namespace, "id": made.id()}));
    assert_eq!(api.audit_rows_with(CANARY).await?, 0);
    assert_eq!(api.rows_with("occ.idempotency_keys", CANARY).await?, 0);
    assert_eq!(api.rows_with("occ.secret_values", CANARY).await?, 0);
    Ok(())
}

#[tokio::test]
async fn values_and_names_have_bounds() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let path = format!("/namespaces/{namespace}/secrets");
    let longest = api.post(&path, &json!({"name": "longest", "value": "é".repeat(32_768)})).await?;
    assert_eq!(longest.status, 201, "{longest:?}");
    for (value, code) in [("é".repeat(32_769), "TOO_LONG"), (String::new(), "INVALID_VALUE")] {
        let answer = api.post(&path, &json!({"name": "other", "value": value})).await?;
        assert_eq!(
            (answer.status, answer.names("/value"), answer.detail_code(0)),
            (400, true, code.to_owned())
        );
    }
    let large = api.post(&path, &json!({"name": "large", "value": "x".repeat(160 * 1024)})).await?;
    assert_eq!(large.status, 413);
    let both = api.post(&path, &json!({"name": " spaced", "value": "", "extra": 1})).await?;
    assert_eq!(both.status, 400);
    assert!(both.names("/name") && both.names("/value") && both.names("/extra"), "{both:?}");
    let twice = api.post(&path, &json!({"name": "longest", "value": "x"})).await?;
    assert_eq!((twice.status, twice.code()), (409, "RESOURCE_CONFLICT".to_owned()));
    assert!(twice.text.contains("Secret"), "{twice:?}");
    assert_eq!(api.get(&path).await?.data().as_array().map(Vec::len), Some(1));
    Ok(())
}

#[tokio::test]
async fn a_draft_holds_its_secret_until_it_lets_go() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    let one = format!("/namespaces/{namespace}/secrets/{}", agent.secret);
    let refused = api.delete(&one).await?;
    assert_eq!((refused.status, refused.code()), (409, "RESOURCE_CONFLICT".to_owned()));
    assert!(refused.text.contains(&agent.id), "{refused:?}");
    assert_eq!(api.get(&one).await?.data()["consumers"]["agents"], json!([agent.id]));
    let let_go = json!({"configurationId": agent.configuration, "harnessAuth": null});
    assert_eq!(api.patch(&agent.path(), &let_go).await?.data()["harnessAuth"], json!(null));
    assert_eq!(api.delete(&one).await?.status, 204);
    Ok(())
}

#[tokio::test]
async fn a_repeated_creation_makes_one_secret() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let path = format!("/namespaces/{namespace}/secrets");
    let key = [("idempotency-key", "make-openai")];
    let body = json!({"name": "openai", "value": CANARY});
    let first = api.post_with(&path, &body, &key).await?;
    let second = api.post_with(&path, &body, &key).await?;
    assert_eq!((first.status, second.status, second.id()), (201, 201, first.id()), "{second:?}");
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    let other = api.post_with(&path, &json!({"name": "openai", "value": "another"}), &key).await?;
    assert_eq!((other.status, other.code()), (422, "IDEMPOTENCY_KEY_REUSED".to_owned()));
    Ok(())
}
