//! Agents: the draft, its tag, stop and delete.

use serde_json::{Value, json};

use super::documents;
use super::support::{Api, Result};

#[tokio::test]
async fn a_draft_is_edited_by_what_is_sent() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    let made = api.get(&agent.path()).await?;
    let expected = json!({
        "id": agent.id, "namespaceId": namespace, "name": agent.name, "servicePrincipalId": agent.principal,
        "configurationId": agent.configuration, "backendId": null,
        "harnessAuth": {"method": "api_key", "source": {"kind": "secret", "namespaceId": namespace, "id": agent.secret}},
        "executionMode": "embedded", "desiredRuntimeState": "stopped", "status": "active",
        "createdAt": made.data()["createdAt"],
    });
    assert_eq!(made.data(), &expected);
    assert_eq!(made.etag.as_deref(), Some("\"v1\""));

    let only = json!({"configurationId": agent.configuration, "rollbackPolicy": "manual"});
    let edited = api.patch(&agent.path(), &only).await?;
    assert_eq!((edited.status, edited.etag.as_deref()), (200, Some("\"v2\"")), "{edited:?}");
    assert_eq!(edited.data()["rollbackPolicy"], json!("manual"));
    assert_eq!(edited.data()["harnessAuth"], expected["harnessAuth"]);
    let back =
        json!({"configurationId": agent.configuration, "rollbackPolicy": "automatic", "harnessAuth": null});
    let edited = api.patch(&agent.path(), &back).await?;
    assert_eq!((edited.data().get("rollbackPolicy"), &edited.data()["harnessAuth"]), (None, &json!(null)));

    let stale = api.patch_with(&agent.path(), &only, &[("if-match", "\"v2\"")]).await?;
    assert_eq!((stale.status, stale.etag.as_deref()), (412, Some("\"v3\"")), "{stale:?}");
    let renamed = json!({"configurationId": agent.configuration, "name": "other"});
    let refused = api.patch(&agent.path(), &renamed).await?;
    assert_eq!((refused.status, refused.names("/name")), (400, true), "{refused:?}");
    Ok(())
}

#[tokio::test]
async fn what_is_not_built_is_refused_by_name() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let configuration = api.configuration(&namespace, &documents::valid()).await?;
    let path = format!("/namespaces/{namespace}/agents");
    let source =
        json!({"kind": "secret", "namespaceId": namespace, "id": "sec_00000000-0000-4000-8000-000000000000"});
    let fields: [(&str, Value); 8] = [
        ("backendId", json!("openai")),
        ("plugins", json!({"github": {"enabled": true}})),
        ("pluginApprovers", json!([{"channel": "slack", "id": "U1"}])),
        ("repositoryBindings", json!([{"repositoryRef": "r"}])),
        ("credentialSources", json!([{"sourceId": "cs_1"}])),
        ("harnessAuth", json!({"method": "codex_pat", "source": source})),
        ("harnessAuth", json!({"method": "oauth", "source": source})),
        ("harnessAuth", json!({"method": "credential_source", "source": "cs_1"})),
    ];
    for (field, value) in fields {
        let answer =
            api.post(&path, &json!({"name": "a", "configurationId": configuration, field: value})).await?;
        assert_eq!(
            (answer.status, answer.code()),
            (501, "NOT_IMPLEMENTED".to_owned()),
            "{field}: {answer:?}"
        );
        assert!(answer.text.contains(field), "{field}: {answer:?}");
    }
    let retired = json!({"method": "chatgpt_service_account", "source": source});
    let answer = api
        .post(&path, &json!({"name": "a", "configurationId": configuration, "harnessAuth": retired}))
        .await?;
    assert_eq!((answer.status, answer.names("/harnessAuth/method")), (400, true), "{answer:?}");
    assert_eq!(api.get(&path).await?.data(), &json!([]));
    Ok(())
}

#[tokio::test]
async fn references_must_be_there() -> Result<()> {
    let api = Api::start().await?;
    let namespace = api.namespace().await?;
    let configuration = api.configuration(&namespace, &documents::valid()).await?;
    let path = format!("/namespaces/{namespace}/agents");
    let absent = json!({"name": "a", "configurationId": "cfg_00000000-0000-4000-8000-000000000000"});
    assert_eq!(api.post(&path, &absent).await?.status, 404);
    let auth = |namespace: &str| {
        let id = "sec_00000000-0000-4000-8000-000000000000";
        json!({"method": "api_key", "source": {"kind": "secret", "namespaceId": namespace, "id": id}})
    };
    let absent = json!({"name": "a", "configurationId": configuration, "harnessAuth": auth(&namespace)});
    assert_eq!(api.post(&path, &absent).await?.status, 404);
    let foreign = auth("ns_00000000-0000-4000-8000-000000000000");
    let answer = api
        .post(&path, &json!({"name": "a", "configurationId": configuration, "harnessAuth": foreign}))
        .await?;
    assert_eq!((answer.status, answer.names("/harnessAuth/source/namespaceId")), (400, true), "{answer:?}");
    let body = json!({"name": "a", "configurationId": configuration});
    assert_eq!(api.post(&path, &body).await?.status, 201);
    let again = api.post(&path, &body).await?;
    assert_eq!((again.status, again.code()), (409, "RESOURCE_CONFLICT".to_owned()));
    assert!(again.text.contains("Agent"), "{again:?}");
    let held = api.delete(&format!("/namespaces/{namespace}/configurations/{configuration}")).await?;
    assert_eq!(held.status, 409, "{held:?}");
    Ok(())
}

#[tokio::test]
async fn stop_and_delete_may_be_repeated() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    let stop = format!("{}/stop", agent.path());
    for _ in 0..2 {
        let stopped = api.post_empty(&stop).await?;
        assert_eq!(
            (stopped.status, &stopped.data()["desiredRuntimeState"]),
            (202, &json!("stopped")),
            "{stopped:?}"
        );
    }
    assert_eq!(api.work_rows("agent.stop").await?, 0, "an Agent that does not run needs no work to stop");
    for _ in 0..2 {
        let deleting = api.delete(&agent.path()).await?;
        assert_eq!((deleting.status, &deleting.data()["status"]), (202, &json!("deleting")), "{deleting:?}");
    }
    assert_eq!(api.work_rows("agent.delete").await?, 1);
    assert_eq!(api.audit_actions("openclaw.agents.delete").await?, 1);
    for (answer, what) in [
        (api.patch(&agent.path(), &json!({"configurationId": agent.configuration})).await?, "update"),
        (api.post_empty(&stop).await?, "stop"),
        (api.post_empty(&format!("{}/deploy", agent.path())).await?, "deploy"),
    ] {
        assert_eq!((answer.status, answer.code()), (409, "AGENT_DELETING".to_owned()), "{what}: {answer:?}");
    }
    assert_eq!(api.get(&agent.path()).await?.status, 200);
    Ok(())
}
