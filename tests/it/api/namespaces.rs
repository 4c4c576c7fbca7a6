//! Namespaces: names for ever, deletion when empty, and whose deletion it is.

use std::time::{Duration, Instant};

use serde_json::json;

use super::documents;
use super::support::{Api, Result, unique};

#[tokio::test]
async fn a_namespace_is_asked_for_and_queued() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let name = unique("tenant");
    let key = [("idempotency-key", "make")];
    let made = api.post_with("/namespaces", &json!({"name": name}), &key).await?;
    assert_eq!((made.status, &made.data()["status"]), (201, &json!("provisioning")), "{made:?}");
    assert_eq!(api.post_with("/namespaces", &json!({"name": name}), &key).await?.id(), made.id());
    let path = format!("/namespaces/{}", made.id());
    let began = Instant::now();
    let waited = api.get(&format!("{path}?wait=1")).await?;
    assert_eq!(waited.data(), made.data());
    assert!(began.elapsed() >= Duration::from_secs(1), "it did not wait");
    let listed = api.get("/namespaces").await?;
    assert!(listed.data().as_array().is_some_and(|all| all.contains(made.data())), "{listed:?}");
    let twice = api.post("/namespaces", &json!({"name": name})).await?;
    assert_eq!((twice.status, twice.code()), (409, "RESOURCE_CONFLICT".to_owned()));
    for (body, pointer) in
        [(json!({"name": ""}), "/name"), (json!({}), "/name"), (json!({"name": "a", "x": 1}), "/x")]
    {
        let answer = api.post("/namespaces", &body).await?;
        assert_eq!((answer.status, answer.names(pointer)), (400, true), "{answer:?}");
    }
    let adopted =
        api.post("/namespaces", &json!({"name": unique("n"), "existingNamespace": "team-a"})).await?;
    assert_eq!((adopted.status, adopted.code()), (501, "NOT_IMPLEMENTED".to_owned()));
    assert!(adopted.text.contains("existingNamespace"), "{adopted:?}");
    Ok(())
}

#[tokio::test]
async fn only_an_empty_namespace_is_deleted() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let path = format!("/namespaces/{namespace}");
    let agent = api.agent(&namespace, &documents::valid()).await?;
    let full = api.delete(&path).await?;
    assert_eq!((full.status, full.code()), (409, "NAMESPACE_NOT_EMPTY".to_owned()));
    let message = full.error()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        message.starts_with("The Namespace is not empty: 1 Agents, 1 Configurations, 1 Secrets: "),
        "{message}"
    );
    for id in [&agent.id, &agent.configuration, &agent.secret] {
        assert!(message.contains(id.as_str()), "{message}");
    }
    let (blind, _) = api.caller(&[("delete", "namespace"), ("read", "secret")]).await?;
    let hidden = blind.delete(&path).await?.error()["message"].as_str().unwrap_or_default().to_owned();
    assert!(
        hidden.contains(&agent.secret)
            && !hidden.contains(&agent.id)
            && !hidden.contains(&agent.configuration),
        "{hidden}"
    );

    let empty = api.ready_namespace().await?;
    let path = format!("/namespaces/{empty}");
    for _ in 0..2 {
        let deleting = api.delete(&path).await?;
        assert_eq!((deleting.status, &deleting.data()["status"]), (202, &json!("deleting")), "{deleting:?}");
    }
    assert_eq!(api.work_rows("namespace.delete").await?, 1);
    assert_eq!(api.audit_actions("openclaw.namespaces.delete").await?, 1);
    let late = api.post(&format!("{path}/configurations"), &json!({"kind": "agent", "values": {}})).await?;
    assert_eq!((late.status, late.code()), (409, "RESOURCE_CONFLICT".to_owned()), "{late:?}");
    let secret = api.post(&format!("{path}/secrets"), &json!({"name": "a", "value": "b"})).await?;
    assert_eq!((secret.status, secret.code()), (409, "NAMESPACE_NOT_READY".to_owned()), "{secret:?}");

    let name = api.get(&path).await?.data()["name"].clone();
    api.sql(&format!("update occ.namespaces set deleted_at = now() where id = '{empty}'")).await?;
    assert_eq!(api.get(&path).await?.status, 404);
    let reserved = api.post("/namespaces", &json!({"name": name})).await?;
    assert_eq!(reserved.status, 409);
    assert!(reserved.text.contains("never free again"), "{reserved:?}");
    Ok(())
}

#[tokio::test]
async fn a_deletion_is_its_initiators_until_the_right_is_lost() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let path = format!("/namespaces/{namespace}");
    let (initiator, binding) = api.caller(&[("delete", "namespace")]).await?;
    assert_eq!(initiator.delete(&path).await?.status, 202);
    let other = api.delete(&path).await?;
    assert_eq!((other.status, other.code()), (403, "FORBIDDEN".to_owned()), "{other:?}");
    assert!(other.text.contains("another actor"), "{other:?}");

    let failed = "update occ.work set state = 'failed_permanent', reason_code = 'AUTHORIZATION_DENIED', completed_at = now() \
                  where kind = 'namespace.delete'";
    api.sql(failed).await?;
    assert_eq!(initiator.delete(&path).await?.status, 202);
    assert_eq!(api.audit_actions("openclaw.work.retry").await?, 1);
    api.sql(failed).await?;
    assert_eq!(api.delete(&format!("/iam/access-bindings/{binding}")).await?.status, 204);
    assert_eq!(initiator.delete(&path).await?.status, 403);
    assert_eq!(api.delete(&path).await?.status, 202);
    assert_eq!(api.audit_actions("openclaw.work.takeover").await?, 1);
    let queued = "select count(*) from occ.work where kind = 'namespace.delete' and state = 'queued'";
    assert_eq!(api.number(queued).await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_reader_sees_and_does_not_touch() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    let base = format!("/namespaces/{namespace}");
    let (stranger, _) = api.caller(&[("read", "installation")]).await?;
    let (reader, _) = api
        .caller(&[("read", "namespace"), ("read", "agent"), ("read", "configuration"), ("read", "secret")])
        .await?;
    let secret = format!("{base}/secrets/{}", agent.secret);
    let configuration = format!("{base}/configurations/{}", agent.configuration);
    for path in [&base, &agent.path(), &secret, &configuration] {
        assert_eq!((stranger.get(path).await?.status, reader.get(path).await?.status), (403, 200), "{path}");
        let absent = format!("{}0", &path[..path.len() - 1]);
        assert_eq!(stranger.get(&absent).await?.status, 403, "absence is for those who may read: {absent}");
    }
    let body = json!({"kind": "agent", "values": {}});
    let update = json!({"configurationId": agent.configuration});
    let denied = [
        reader.post(&format!("{base}/configurations"), &body).await?,
        reader.patch(&agent.path(), &update).await?,
        reader.patch(&secret, &json!({"value": "x"})).await?,
        reader.delete(&configuration).await?,
        reader.delete(&agent.path()).await?,
        reader.post_empty(&format!("{}/deploy", agent.path())).await?,
        reader.post_empty(&format!("{}/stop", agent.path())).await?,
    ];
    for answer in &denied {
        assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN".to_owned()), "{answer:?}");
    }
    let audited = "select count(*) from occ.audit_events where kind = 'authorization_denial'";
    assert_eq!(api.number(audited).await?, i64::try_from(denied.len() + 8)?);
    assert_eq!(stranger.get("/namespaces").await?.data(), &json!([]));
    let (some, _) = api.caller(&[("read", "namespace")]).await?;
    assert_eq!(
        some.get(&format!("{base}/agents")).await?.data(),
        &json!([]),
        "items need a grant of their own"
    );
    Ok(())
}

#[tokio::test]
async fn pages_put_together_are_the_whole_list() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let path = format!("/namespaces/{namespace}/secrets");
    for _ in 0..5 {
        api.secret(&namespace, &unique("s")).await?;
    }
    let whole = api.get(&path).await?;
    let mut seen = Vec::new();
    let mut next = format!("{path}?limit=2");
    loop {
        let page = api.get(&next).await?;
        let items = page.data().as_array().cloned().unwrap_or_default();
        assert!(items.len() <= 2);
        seen.extend(items);
        api.secret(&namespace, &unique("meanwhile")).await?;
        match page.next_cursor() {
            Some(cursor) if seen.len() < 5 => next = format!("{path}?limit=2&cursor={cursor}"),
            _ => break,
        }
    }
    assert_eq!(seen.get(..5), whole.data().as_array().map(Vec::as_slice));
    let cursor = api.get(&format!("{path}?limit=1")).await?.next_cursor().unwrap_or_default();
    let foreign = api.get(&format!("/namespaces/{namespace}/agents?cursor={cursor}")).await?;
    assert_eq!((foreign.status, foreign.names("/cursor")), (400, true), "{foreign:?}");
    Ok(())
}
