//! A host on a database of its own, and a client that says what came back.

use std::time::Duration;

use anyhow::{Context, bail};
use occ_tests::host::Host;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};

pub(super) use anyhow::Result;

/// A running host and its first administrator.
pub(super) struct Api {
    host: Host,
    client: reqwest::Client,
    owner: PgPool,
}

/// Somebody with a key of their own.
pub(super) struct Caller<'a> {
    api: &'a Api,
    key: String,
}

impl Caller<'_> {
    pub(super) async fn get(&self, path: &str) -> Result<Answer> {
        self.api.send_as(&self.key, Method::GET, path, None, &[]).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.api.send_as(&self.key, Method::POST, path, Some(body.to_string()), &[]).await
    }

    pub(super) async fn post_empty(&self, path: &str) -> Result<Answer> {
        self.api.send_as(&self.key, Method::POST, path, None, &[]).await
    }

    pub(super) async fn patch(&self, path: &str, body: &Value) -> Result<Answer> {
        self.api.send_as(&self.key, Method::PATCH, path, Some(body.to_string()), &[]).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Answer> {
        self.api.send_as(&self.key, Method::DELETE, path, None, &[]).await
    }
}

/// An answer, read whole.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) etag: Option<String>,
    pub(super) text: String,
    headers: reqwest::header::HeaderMap,
    json: Value,
}

/// An Agent with everything it needs, but no grant.
#[derive(Debug, Clone)]
pub(super) struct Agent {
    pub(super) namespace: String,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) principal: String,
    pub(super) configuration: String,
    pub(super) secret: String,
}

impl Agent {
    pub(super) fn path(&self) -> String {
        format!("/namespaces/{}/agents/{}", self.namespace, self.id)
    }
}

impl Answer {
    pub(super) fn data(&self) -> &Value {
        &self.json["data"]
    }

    pub(super) fn error(&self) -> &Value {
        &self.json["error"]
    }

    pub(super) fn id(&self) -> String {
        self.data()["id"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn code(&self) -> String {
        self.error()["code"].as_str().unwrap_or_default().to_owned()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// Is the pointer among the details?
    pub(super) fn names(&self, pointer: &str) -> bool {
        self.error()["details"]
            .as_array()
            .is_some_and(|all| all.iter().any(|detail| detail["path"] == pointer))
    }

    pub(super) fn next_cursor(&self) -> Option<String> {
        self.json["meta"]["nextCursor"].as_str().map(str::to_owned)
    }

    pub(super) fn detail_code(&self, index: usize) -> String {
        self.error()["details"][index]["code"].as_str().unwrap_or_default().to_owned()
    }
}

impl Api {
    /// A host whose work nobody does: what is queued stays queued.
    pub(super) async fn start_without_worker() -> Result<Self> {
        Self::start().await
    }

    pub(super) async fn start() -> Result<Self> {
        Self::of(Box::pin(Host::start()).await?).await
    }

    /// A host with a worker; agents are doubles.
    pub(super) async fn start_with_worker() -> Result<Self> {
        Self::of(Box::pin(Host::with_worker()).await?).await
    }

    async fn of(host: Host) -> Result<Self> {
        let client = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(90)).build()?;
        let owner = host.database.owner().await?;
        Ok(Self { host, client, owner })
    }

    /// Ends host, worker and agents.
    pub(super) async fn end(self) -> Result<()> {
        self.owner.close().await;
        self.host.end().await
    }

    /// Another caller of the same host: a ServicePrincipal of the Installation that holds these pairs
    /// everywhere. Also the id of its one binding.
    pub(super) async fn caller(&self, pairs: &[(&str, &str)]) -> Result<(Caller<'_>, String)> {
        let principal = self.made("/iam/service-principals", &json!({})).await?;
        let permissions: Vec<Value> =
            pairs.iter().map(|(action, kind)| json!({"action": action, "resourceKind": kind})).collect();
        let role = self.made("/iam/roles", &json!({"permissions": permissions})).await?;
        let binding = json!({"subjectKind": "identity", "subjectId": principal, "roleId": role});
        let binding = self.made("/iam/access-bindings", &binding).await?;
        let key = json!({"servicePrincipalId": principal, "name": "test"});
        let issued = self.post("/api/auth/service-keys", &key).await?;
        let key = issued.data()["key"].as_str().with_context(|| format!("no key: {issued:?}"))?.to_owned();
        Ok((Caller { api: self, key }, binding))
    }

    /// A new Namespace, made ready behind the host's back.
    pub(super) async fn ready_namespace(&self) -> Result<String> {
        let made = self.post("/namespaces", &json!({"name": unique("ns")})).await?;
        if made.status != 201 {
            bail!("createNamespace: {made:?}");
        }
        self.sql(&format!("update occ.namespaces set status = 'ready' where id = '{}'", made.id())).await?;
        Ok(made.id())
    }

    /// A Namespace that is ready.
    pub(super) async fn namespace(&self) -> Result<String> {
        self.ready_namespace().await
    }

    pub(super) async fn secret(&self, namespace: &str, name: &str) -> Result<String> {
        let body = json!({"name": name, "value": "value-of-a-test"});
        self.made(&format!("/namespaces/{namespace}/secrets"), &body).await
    }

    pub(super) async fn configuration(&self, namespace: &str, values: &Value) -> Result<String> {
        let body = json!({"kind": "agent", "values": values});
        self.made(&format!("/namespaces/{namespace}/configurations"), &body).await
    }

    /// An Agent with a Configuration and a Secret for its model.
    pub(super) async fn agent(&self, namespace: &str, values: &Value) -> Result<Agent> {
        let configuration = self.configuration(namespace, values).await?;
        let secret = self.secret(namespace, &unique("key")).await?;
        let name = unique("agent");
        let source = json!({"kind": "secret", "namespaceId": namespace, "id": secret});
        let body = json!({
            "name": name, "configurationId": configuration, "harnessAuth": {"method": "api_key", "source": source},
        });
        let made = self.post(&format!("/namespaces/{namespace}/agents"), &body).await?;
        if made.status != 201 {
            bail!("createAgent: {made:?}");
        }
        let principal = made.data()["servicePrincipalId"].as_str().unwrap_or_default().to_owned();
        Ok(Agent { namespace: namespace.to_owned(), id: made.id(), name, principal, configuration, secret })
    }

    /// Lets the Agent's own principal use its Secret; the id of the binding.
    pub(super) async fn grant(&self, agent: &Agent) -> Result<String> {
        let iam = format!("/namespaces/{}/iam", agent.namespace);
        let permissions = json!([{"action": "operate", "resourceKind": "secret"}]);
        let role = self
            .made(&format!("{iam}/roles"), &json!({"name": "secret user", "permissions": permissions}))
            .await?;
        let binding = json!({
            "subjectKind": "identity", "subjectId": agent.principal, "roleId": role,
            "resourceKind": "secret", "resourceId": agent.secret,
        });
        self.made(&format!("{iam}/access-bindings"), &binding).await
    }

    async fn made(&self, path: &str, body: &Value) -> Result<String> {
        let made = self.post(path, body).await?;
        if made.status != 201 {
            bail!("POST {path}: {made:?}");
        }
        Ok(made.id())
    }

    pub(super) async fn get(&self, path: &str) -> Result<Answer> {
        self.send(Method::GET, path, None, &[]).await
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::POST, path, Some(body.to_string()), &[]).await
    }

    pub(super) async fn post_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        self.send(Method::POST, path, Some(body.to_string()), headers).await
    }

    pub(super) async fn post_text(&self, path: &str, body: String) -> Result<Answer> {
        self.send(Method::POST, path, Some(body), &[]).await
    }

    pub(super) async fn post_empty(&self, path: &str) -> Result<Answer> {
        self.send(Method::POST, path, None, &[]).await
    }

    pub(super) async fn post_empty_with(&self, path: &str, headers: &[(&str, &str)]) -> Result<Answer> {
        self.send(Method::POST, path, None, headers).await
    }

    pub(super) async fn patch(&self, path: &str, body: &Value) -> Result<Answer> {
        self.send(Method::PATCH, path, Some(body.to_string()), &[]).await
    }

    pub(super) async fn patch_with(
        &self,
        path: &str,
        body: &Value,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        self.send(Method::PATCH, path, Some(body.to_string()), headers).await
    }

    pub(super) async fn delete(&self, path: &str) -> Result<Answer> {
        self.send(Method::DELETE, path, None, &[]).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        self.send_as(&self.host.key, method, path, body, headers).await
    }

    async fn send_as(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<String>,
        headers: &[(&str, &str)],
    ) -> Result<Answer> {
        let mut request =
            self.client.request(method, format!("{}{path}", self.host.origin)).header("x-api-key", key);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body);
        }
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let text = response.text().await?;
        let json = serde_json::from_str(&text).unwrap_or(Value::Null);
        let etag = headers.get("etag").and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        Ok(Answer { status, etag, text, headers, json })
    }

    /// Runs one statement as the owner of every table.
    pub(super) async fn sql(&self, statement: &str) -> Result<()> {
        let mut conn = self.owner.acquire().await?;
        sqlx::raw_sql(AssertSqlSafe(statement.to_owned()))
            .execute(&mut *conn)
            .await
            .context(statement.to_owned())?;
        Ok(())
    }

    pub(super) async fn number(&self, query: &str) -> Result<i64> {
        Ok(sqlx::query_scalar(AssertSqlSafe(query.to_owned())).fetch_one(&self.owner).await?)
    }

    pub(super) async fn table_rows(&self, table: &str) -> Result<i64> {
        self.number(&format!("select count(*) from {table}")).await
    }

    /// Rows of a table in which a text occurs.
    pub(super) async fn rows_with(&self, table: &str, text: &str) -> Result<i64> {
        self.number(&format!("select count(*) from {table} t where position('{text}' in t::text) > 0")).await
    }

    pub(super) async fn audit_rows_with(&self, text: &str) -> Result<i64> {
        self.rows_with("occ.audit_events", text).await
    }

    pub(super) async fn audit_actions(&self, action: &str) -> Result<i64> {
        self.number(&format!(
            "select count(*) from occ.audit_events where action = '{action}' and outcome = 'success'"
        ))
        .await
    }

    /// Actions that took effect on a resource, in their order.
    pub(super) async fn audit_of(&self, id: &str) -> Result<Vec<String>> {
        let query = format!(
            "select action from occ.audit_events where resource_id = '{id}' and outcome = 'success' order by seq"
        );
        Ok(sqlx::query_scalar(AssertSqlSafe(query)).fetch_all(&self.owner).await?)
    }

    pub(super) async fn work_rows(&self, kind: &str) -> Result<i64> {
        self.number(&format!("select count(*) from occ.work where kind = '{kind}'")).await
    }

    /// Counts of all tables that a deploy writes.
    pub(super) async fn fingerprint(&self) -> Result<Vec<i64>> {
        let mut counts = Vec::new();
        for table in
            ["agent_revisions", "agent_credentials", "work", "work_lane", "audit_events", "idempotency_keys"]
        {
            counts.push(self.table_rows(&format!("occ.{table}")).await?);
        }
        Ok(counts)
    }

    /// Ends the work of a revision as a worker would have.
    pub(super) async fn settle(&self, revision: &str, code: &str) -> Result<()> {
        self.sql(&format!(
            "update occ.work set state = 'succeeded', reason_code = '{code}', completed_at = now() where revision_id = '{revision}'"
        ))
        .await
    }

    /// Moves an Agent's pointer as a worker would have.
    pub(super) async fn activate(&self, agent: &Agent, revision: &str) -> Result<()> {
        self.sql(&format!(
            "update occ.agents set active_revision_id = '{revision}' where id = '{}'",
            agent.id
        ))
        .await
    }
}

/// A name that no other test uses.
pub(super) fn unique(kind: &str) -> String {
    format!("{kind}-{}", uuid::Uuid::new_v4().simple())
}
