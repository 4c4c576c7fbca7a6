//! One Agent from its first deployment to its end, through a real worker and a double of the gateway.

use serde_json::{Value, json};

use super::documents;
use super::support::{Agent, Answer, Api, Result};

/// Seconds that one wait may take; a settled deployment answers earlier.
const WAIT: &str = "wait=60";

async fn settled(api: &Api, agent: &Agent, accepted: &Answer) -> Result<Value> {
    assert_eq!(accepted.status, 202, "{accepted:?}");
    let answer = api.get(&format!("{}/deployments/{}?{WAIT}", agent.path(), accepted.id())).await?;
    Ok(answer.data().clone())
}

async fn deployed(api: &Api, agent: &Agent) -> Result<String> {
    let accepted = api.post_empty(&format!("{}/deploy", agent.path())).await?;
    let deployment = settled(api, agent, &accepted).await?;
    assert_eq!(deployment["status"], json!("succeeded"), "{deployment}");
    assert_eq!((&deployment["progress"], &deployment["error"]), (&json!(null), &json!(null)));
    assert_eq!(api.get(&agent.path()).await?.data()["activeRevisionId"], json!(accepted.id()));
    Ok(accepted.id())
}

/// Looks until a GET of the path satisfies `done`.
async fn until(api: &Api, path: &str, done: impl Fn(&Answer) -> bool) -> Answer {
    occ_tests::wait::eventually(path, || async {
        let answer = api.get(path).await.map_err(|error| error.to_string())?;
        if done(&answer) { Ok(answer) } else { Err(format!("{answer:?}")) }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_lives_from_deploy_to_delete() -> Result<()> {
    let api = Api::start_with_worker().await?;
    let made = api.post("/namespaces", &json!({"name": "lifecycle"})).await?;
    let namespace = made.id();
    let ready = api.get(&format!("/namespaces/{namespace}?{WAIT}")).await?;
    assert_eq!(ready.data()["status"], json!("ready"), "{ready:?}");
    let agent = api.agent(&namespace, &documents::valid()).await?;
    api.grant(&agent).await?;

    let first = deployed(&api, &agent).await?;
    let configuration = format!("/namespaces/{namespace}/configurations/{}", agent.configuration);
    let second_values = json!({"values": documents::with("/double", json!({"FLOOD_MIB": 1}))});
    assert_eq!(api.patch(&configuration, &second_values).await?.status, 200);
    let second = deployed(&api, &agent).await?;
    looks_at_runtime(&api, &agent, &second).await?;

    let back = api.post(&format!("{}/rollback", agent.path()), &json!({})).await?;
    assert_eq!(back.data()["rollbackOf"], json!(first), "{back:?}");
    let deployment = settled(&api, &agent, &back).await?;
    assert_eq!(deployment["status"], json!("succeeded"), "{deployment}");
    let third = api.get(&agent.path()).await?.data()["activeRevisionId"].clone();
    assert_eq!(third, json!(back.id()));
    let earlier = api.get(&format!("{}/deployments/{first}", agent.path())).await?;
    assert_eq!(
        earlier.data()["status"],
        json!("succeeded"),
        "a later deployment rewrites nothing: {earlier:?}"
    );

    let in_use = api.delete(&format!("/namespaces/{namespace}/secrets/{}", agent.secret)).await?;
    assert_eq!(in_use.status, 409, "{in_use:?}");
    assert_eq!(api.post_empty(&format!("{}/stop", agent.path())).await?.status, 202);
    until(&api, &agent.path(), |answer| answer.data().get("activeRevisionId").is_none()).await;
    assert_eq!(api.delete(&agent.path()).await?.status, 202);
    until(&api, &agent.path(), |answer| answer.status == 404).await;
    assert_eq!(api.table_rows("occ.agent_credentials").await?, 0);
    assert_eq!(api.rows_with("occ.iam_bindings", &agent.principal).await?, 0);

    assert_eq!(api.delete(&configuration).await?.status, 204);
    assert_eq!(api.delete(&format!("/namespaces/{namespace}/secrets/{}", agent.secret)).await?.status, 204);
    assert_eq!(api.delete(&format!("/namespaces/{namespace}")).await?.status, 202);
    until(&api, &format!("/namespaces/{namespace}"), |answer| answer.status == 404).await;
    api.end().await
}

async fn looks_at_runtime(api: &Api, agent: &Agent, revision: &str) -> Result<()> {
    let runtime_path = format!("{}/deployments/{revision}/runtime", agent.path());
    let runtime = api.get(&runtime_path).await?;
    assert_eq!((runtime.status, &runtime.data()["revisionId"]), (200, &json!(revision)), "{runtime:?}");
    let pod = &runtime.data()["pods"][0];
    assert_eq!(
        (&pod["role"], &pod["name"], &pod["ready"]),
        (&json!("gateway"), &json!(agent.id), &json!(true))
    );
    let source = &runtime.data()["sources"][0];
    assert_eq!(
        (&source["id"], &source["available"], &source["pods"][0]["uid"]),
        (&json!("gateway"), &json!(true), &pod["uid"])
    );
    let url = runtime.data()["endpoints"][0]["url"].as_str().unwrap_or_default().to_owned();
    let probed = reqwest::get(format!("{url}/readyz")).await?;
    assert_eq!(probed.status().as_u16(), 200);

    let logs = format!("{runtime_path}/logs");
    let page = api.get(&format!("{logs}?source=gateway&tailLines=5")).await?;
    assert_eq!((page.status, &page.data()["source"]), (200, &json!("gateway")), "{page:?}");
    assert_eq!(page.data()["stream"]["podUid"], pod["uid"]);
    let records = page.data()["records"].as_array().cloned().unwrap_or_default();
    assert!(!records.is_empty() && records.len() <= 5, "{page:?}");
    let cursor = page.data()["cursor"].as_str().unwrap_or_default().to_owned();
    let next = api.get(&format!("{logs}?source=gateway&cursor={cursor}")).await?;
    assert_eq!(next.status, 200, "{next:?}");
    assert_eq!(
        api.audit_actions("openclaw.agents.runtime_logs.view").await?,
        1,
        "a follow-up belongs to its view"
    );
    let download = api.get(&format!("{logs}?source=gateway&download=true")).await?;
    assert_eq!(download.header("content-type"), Some("text/plain; charset=utf-8"));
    assert_eq!(api.audit_actions("openclaw.agents.runtime_logs.download").await?, 1);

    for (query, status, code) in [
        ("source=gateway&pod=other", 400, "RUNTIME_LOGS_POD_INVALID"),
        ("source=agent", 400, "RUNTIME_LOGS_SOURCE_UNAVAILABLE"),
        ("source=sandbox", 400, "RUNTIME_LOGS_SOURCE_UNAVAILABLE"),
        ("source=sandbox&previous=true", 400, "RUNTIME_LOGS_POD_INVALID"),
        ("source=gateway&cursor=v1.a.b", 400, "RUNTIME_LOGS_CURSOR_INVALID"),
        ("tailLines=5", 400, "INVALID_REQUEST"),
        ("source=gateway&tailLines=0200", 400, "INVALID_REQUEST"),
    ] {
        let answer = api.get(&format!("{logs}?{query}")).await?;
        assert_eq!((answer.status, answer.code()), (status, code.to_owned()), "{query}: {answer:?}");
    }
    let one = format!("{logs}?source=gateway&tailLines=1");
    let burst = futures_util::future::join_all((0..15).map(|_| api.get(&one))).await;
    let burst = burst.into_iter().collect::<Result<Vec<Answer>>>()?;
    let limited = burst.iter().find(|answer| answer.status != 200).unwrap();
    assert_eq!(
        (limited.status, limited.code()),
        (429, "RUNTIME_LOGS_RATE_LIMITED".to_owned()),
        "{limited:?}"
    );
    assert!(limited.header("retry-after").is_some());
    Ok(())
}
