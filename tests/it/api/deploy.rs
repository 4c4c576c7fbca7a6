//! Deploy: the freeze, its order of refusals, dry run, rollback, and races.

use serde_json::{Value, json};

use super::documents::{self, Verdict};
use super::support::{Agent, Answer, Api, Result};

async fn deploy(api: &Api, agent: &Agent) -> Result<Answer> {
    api.post_empty(&format!("{}/deploy", agent.path())).await
}

async fn dry_run(api: &Api, agent: &Agent) -> Result<Answer> {
    api.post_empty(&format!("{}/deploy?dryRun=true", agent.path())).await
}

async fn replace(api: &Api, agent: &Agent, values: &Value) -> Result<()> {
    let path = format!("/namespaces/{}/configurations/{}", agent.namespace, agent.configuration);
    let answer = api.patch(&path, &json!({"values": values})).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    Ok(())
}

/// Sends a document through the operations and demands its verdict; a refusal stores no revision.
async fn judge(api: &Api, agent: &Agent, name: &str, document: &Value, verdict: Verdict) -> Result<()> {
    let configurations = format!("/namespaces/{}/configurations", agent.namespace);
    if let Verdict::Create(pointer) = verdict {
        let answer = api.post(&configurations, &json!({"kind": "agent", "values": document})).await?;
        assert_eq!((answer.status, answer.names(pointer)), (400, true), "{name}: {answer:?}");
        return Ok(());
    }
    replace(api, agent, document).await?;
    let before = api.table_rows("occ.agent_revisions").await?;
    let tried = dry_run(api, agent).await?;
    let answer = deploy(api, agent).await?;
    let after = api.table_rows("occ.agent_revisions").await?;
    if let Verdict::Deploy(pointer) = verdict {
        assert_eq!((answer.status, answer.code()), (400, "INVALID_REQUEST".to_owned()), "{name}: {answer:?}");
        assert!(answer.names(pointer), "{name}: {answer:?}");
        assert_eq!(tried.error(), answer.error(), "{name}: a dry run answers as a deploy would");
        assert_eq!(after, before, "{name}");
    } else {
        assert_eq!((tried.status, answer.status), (200, 202), "{name}: {tried:?} {answer:?}");
        assert_eq!(after, before + 1, "{name}");
    }
    Ok(())
}

#[tokio::test]
async fn every_document_gets_its_verdict() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    api.grant(&agent).await?;
    for (name, document, verdict) in documents::cases() {
        judge(&api, &agent, name, &document, verdict).await?;
    }
    Ok(())
}

/// The same for a folder of documents with an `index.json`: `OCC_TEST_OPENCLAW_CONFIGURATIONS` names it.
#[tokio::test]
async fn every_document_of_the_folder_gets_its_verdict() -> Result<()> {
    let Some(folder) = occ_tests::environment::configurations() else {
        return Ok(());
    };
    let read =
        |name: &str| -> Result<Value> { Ok(serde_json::from_slice(&std::fs::read(folder.join(name))?)?) };
    let index = read("index.json")?;
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    api.grant(&agent).await?;
    for name in index["accepted"].as_array().unwrap() {
        let name = name.as_str().unwrap();
        judge(&api, &agent, name, &read(&format!("accepted-{name}.json"))?, Verdict::Accepted).await?;
    }
    for refused in index["refused"].as_array().unwrap() {
        let name = refused["name"].as_str().unwrap();
        let pointer: &'static str = refused["path"].as_str().unwrap().to_owned().leak();
        let verdict = match refused["at"].as_str() {
            Some("createConfiguration") => Verdict::Create(pointer),
            _ => Verdict::Deploy(pointer),
        };
        judge(&api, &agent, name, &read(&format!("refused-{name}.json"))?, verdict).await?;
    }
    Ok(())
}

#[tokio::test]
async fn the_agents_own_principal_needs_the_secret() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    for answer in [dry_run(&api, &agent).await?, deploy(&api, &agent).await?] {
        assert_eq!((answer.status, answer.code()), (403, "FORBIDDEN".to_owned()), "{answer:?}");
        let expected =
            format!("The Agent's principal {} lacks operate on Secret {}.", agent.principal, agent.secret);
        assert_eq!(answer.error()["message"], json!(expected));
        assert!(answer.names("/harnessAuth/source/id"), "{answer:?}");
    }
    let binding = api.grant(&agent).await?;
    assert_eq!(deploy(&api, &agent).await?.status, 202);
    let revoked = api.delete(&format!("/namespaces/{namespace}/iam/access-bindings/{binding}")).await?;
    assert_eq!(revoked.status, 204, "{revoked:?}");
    assert_eq!(deploy(&api, &agent).await?.status, 403);
    assert_eq!(api.table_rows("occ.agent_revisions").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_dry_run_shows_the_revision_and_stores_nothing() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    api.grant(&agent).await?;
    let before = api.fingerprint().await?;
    let tried = dry_run(&api, &agent).await?;
    assert_eq!(tried.status, 200, "{tried:?}");
    assert_eq!(tried.data()["dryRun"], json!(true));
    assert_eq!(tried.data()["notChecked"], json!(["secret-values", "image-pull", "cluster-capacity"]));
    assert_eq!(api.fingerprint().await?, before, "a dry run left a row");
    assert_eq!(api.get(&agent.path()).await?.data()["desiredRuntimeState"], json!("stopped"));
    let frozen = deploy(&api, &agent).await?;
    let mut shown = frozen.data().clone();
    let fields = shown.as_object_mut().unwrap();
    fields.remove("id");
    fields.remove("createdAt");
    assert_eq!(tried.data()["revision"], shown);
    Ok(())
}

#[tokio::test]
async fn a_revision_keeps_what_was_frozen() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    api.grant(&agent).await?;
    let key = [("idempotency-key", "first")];
    let path = format!("{}/deploy", agent.path());
    let first = api.post_empty_with(&path, &key).await?;
    assert_eq!((first.status, &first.data()["revision"]), (202, &json!(1)), "{first:?}");
    assert_eq!(api.post_empty_with(&path, &key).await?.id(), first.id());
    assert_eq!(first.data()["harness"]["id"], json!("openclaw"));
    assert_eq!(first.data()["configuration"], documents::valid());
    replace(&api, &agent, &documents::with("/note", json!("later"))).await?;
    let kept = api.get(&format!("{}/revisions/{}", agent.path(), first.id())).await?;
    assert_eq!(kept.data(), first.data());
    let second = deploy(&api, &agent).await?;
    assert_eq!(
        (&second.data()["revision"], &second.data()["configurationGeneration"]),
        (&json!(2), &json!(2))
    );
    let list = api.get(&format!("{}/revisions", agent.path())).await?;
    let numbers: Vec<&Value> = list.data().as_array().unwrap().iter().map(|item| &item["revision"]).collect();
    assert_eq!(numbers, [&json!(2), &json!(1)]);
    let status = api.get(&format!("{}/deployments/{}", agent.path(), first.id())).await?;
    assert_eq!(
        (&status.data()["status"], &status.data()["error"]),
        (&json!("queued"), &json!(null)),
        "{status:?}"
    );
    assert_eq!(
        api.table_rows("occ.agent_credentials").await?,
        1,
        "one generated credential for both revisions"
    );
    Ok(())
}

#[tokio::test]
async fn a_rollback_needs_somewhere_to_go() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    let agent = api.agent(&namespace, &documents::valid()).await?;
    let binding = api.grant(&agent).await?;
    let path = format!("{}/rollback", agent.path());
    let nothing = api.post(&path, &json!({})).await?;
    assert_eq!((nothing.status, nothing.code()), (409, "RESOURCE_CONFLICT".to_owned()), "{nothing:?}");
    let first = deploy(&api, &agent).await?.id();
    replace(&api, &agent, &documents::with("/note", json!("second"))).await?;
    let second = deploy(&api, &agent).await?.id();
    api.settle(&first, "REVISION_ACTIVATED").await?;
    api.settle(&second, "REVISION_ACTIVATED").await?;
    api.activate(&agent, &second).await?;

    let active = api.post(&path, &json!({"revisionId": second})).await?;
    assert_eq!(active.status, 409, "{active:?}");
    let absent = api.post(&path, &json!({"revisionId": "rev_00000000-0000-4000-8000-000000000000"})).await?;
    assert_eq!(absent.status, 404, "{absent:?}");
    let third = api.post(&path, &json!({})).await?;
    assert_eq!((third.status, &third.data()["revision"]), (202, &json!(3)), "{third:?}");
    assert_eq!(third.data()["rollbackOf"], json!(first));
    assert_eq!(third.data()["configuration"], documents::valid());
    assert_eq!(third.data()["configurationGeneration"], json!(1));
    assert_eq!(api.audit_actions("openclaw.agents.rollback").await?, 1);

    assert_eq!(
        api.delete(&format!("/namespaces/{namespace}/iam/access-bindings/{binding}")).await?.status,
        204
    );
    assert_eq!(api.post(&path, &json!({"revisionId": first})).await?.status, 403);
    Ok(())
}

#[tokio::test]
async fn racing_writers_of_one_agent_have_one_order() -> Result<()> {
    let api = Api::start_without_worker().await?;
    let namespace = api.ready_namespace().await?;
    for round in 0..5 {
        let agent = api.agent(&namespace, &documents::valid()).await?;
        api.grant(&agent).await?;
        let before = api.audit_of(&agent.id).await?.len();
        let stop = format!("{}/stop", agent.path());
        let path = agent.path();
        let (one, two, stopped, deleted) = tokio::join!(
            deploy(&api, &agent),
            deploy(&api, &agent),
            api.post_empty(&stop),
            api.delete(&path)
        );
        let (one, two, stopped, deleted) = (one?, two?, stopped?, deleted?);
        assert_eq!(deleted.status, 202, "{round}: {deleted:?}");
        let mut numbers: Vec<i64> = Vec::new();
        for answer in [&one, &two] {
            match answer.status {
                202 => numbers.push(answer.data()["revision"].as_i64().unwrap()),
                409 => assert!(
                    ["AGENT_DELETING", "RESOURCE_CONFLICT"].contains(&answer.code().as_str()),
                    "{answer:?}"
                ),
                _ => panic!("{round}: {answer:?}"),
            }
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (1..=i64::try_from(numbers.len())?).collect::<Vec<_>>(), "{round}");
        assert!(matches!(stopped.status, 202 | 409), "{round}: {stopped:?}");
        let audited = api.audit_of(&agent.id).await?;
        let count = |action: &str| audited.iter().skip(before).filter(|seen| *seen == action).count();
        assert_eq!(count("openclaw.agents.deploy"), numbers.len(), "{round}");
        assert_eq!(count("openclaw.agents.delete"), 1, "{round}");
        assert_eq!(
            audited.last().map(String::as_str),
            Some("openclaw.agents.delete"),
            "{round}: nothing follows a delete"
        );
        let last = api.get(&agent.path()).await?;
        assert_eq!(
            (&last.data()["status"], &last.data()["desiredRuntimeState"]),
            (&json!("deleting"), &json!("stopped"))
        );
    }
    Ok(())
}
