//! Deploys the demo agent as a user would: through the API, with the administrator's key.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use super::echo;
use super::say;

/// Name of the demo agent.
const NAME: &str = "demo";
/// Name of its model key.
const SECRET: &str = "demo-model-key";
/// The configuration for a real provider.
const OPENAI: &str = include_str!("../../../deploy/examples/demo-openai.json");
/// The configuration for the echo model.
const ECHO: &str = include_str!("../../../deploy/examples/demo-echo.json");
/// One long poll.
const WAIT_SECS: u64 = 30;
/// Longest wait for the demo agent.
const PATIENCE: Duration = Duration::from_secs(180);

/// What the demo talks to.
#[derive(Debug)]
pub(super) struct Demo {
    client: Client,
    origin: String,
    key: String,
    namespace: String,
}

/// Where the model comes from.
#[derive(Clone)]
pub(super) enum Model {
    /// The real provider, with this key.
    OpenAi(String),
    /// The echo model on this port.
    Echo(u16),
}

impl Demo {
    /// Reads the administrator's key and finds the Namespace `default`.
    pub(super) async fn connect(origin: &str, key_file: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(key_file)
            .with_context(|| format!("cannot read {}", key_file.display()))?;
        let document: Value = serde_json::from_str(&text)?;
        let key = text_at(&document, "/data/key")?;
        let client = Client::builder().no_proxy().timeout(Duration::from_secs(WAIT_SECS + 10)).build()?;
        let mut demo = Self { client, origin: origin.to_owned(), key, namespace: String::new() };
        let namespaces = demo.get("/namespaces").await?;
        let default = find(&namespaces, "default").context("the Namespace `default` is missing")?;
        demo.namespace = text_at(&default, "/id")?;
        Ok(demo)
    }

    /// Id of the Namespace `default`.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    /// Waits until the Namespace is ready.
    pub(super) async fn namespace_ready(&self) -> Result<()> {
        let path = format!("/namespaces/{}?wait={WAIT_SECS}", self.namespace);
        let namespace = self.get(&path).await?;
        match namespace.pointer("/status").and_then(Value::as_str) {
            Some("ready") => Ok(()),
            status => bail!("the Namespace `default` is {}: occ work list", status.unwrap_or("unreadable")),
        }
    }

    /// Makes everything that the demo agent needs, deploys it and waits for it. Repeatable.
    pub(super) async fn deploy(&self, model: &Model) -> Result<String> {
        let agent = match find(&self.get(&self.path("/agents")).await?, NAME) {
            Some(agent) => agent,
            None => self.create(model).await?,
        };
        let agent_id = text_at(&agent, "/id")?;
        let settled = agent.pointer("/desiredRuntimeState") == Some(&json!("running"))
            && agent.pointer("/activeRevisionId").is_some();
        if settled {
            say(&format!("demo         {agent_id} is deployed already"));
            return Ok(agent_id);
        }
        let revision =
            self.send(Method::POST, &self.path(&format!("/agents/{agent_id}/deploy")), None).await?;
        let revision_id = text_at(&revision, "/id")?;
        say(&format!("demo         deploying {revision_id}; OpenClaw takes 10 to 30 seconds to start"));
        self.wait(&agent_id, &revision_id).await?;
        Ok(agent_id)
    }

    /// Id of the agent of a name.
    pub(super) async fn agent_named(&self, name: &str) -> Result<String> {
        let agents = self.get(&self.path("/agents")).await?;
        let agent =
            find(&agents, name).with_context(|| format!("no agent is named {name:?}: occ agent list"))?;
        text_at(&agent, "/id")
    }

    async fn create(&self, model: &Model) -> Result<Value> {
        let (value, document) = match model {
            Model::OpenAi(key) => (key.clone(), serde_json::from_str::<Value>(OPENAI)?),
            Model::Echo(port) => {
                let mut document: Value = serde_json::from_str(ECHO)?;
                if let Some(url) = document.pointer_mut("/models/providers/openai/baseUrl") {
                    *url = json!(format!("http://127.0.0.1:{port}/v1"));
                }
                (echo::MODEL.to_owned(), document)
            }
        };
        let secret = match find(&self.get(&self.path("/secrets")).await?, SECRET) {
            Some(secret) => secret,
            None => {
                self.send(Method::POST, &self.path("/secrets"), Some(json!({"name": SECRET, "value": value})))
                    .await?
            }
        };
        let configuration = self
            .send(
                Method::POST,
                &self.path("/configurations"),
                Some(json!({"kind": "agent", "values": document})),
            )
            .await?;
        let source = secret.pointer("/ref").cloned().context("the Secret has no reference")?;
        let agent = json!({
            "name": NAME,
            "configurationId": text_at(&configuration, "/id")?,
            "harnessAuth": {"method": "api_key", "source": source},
        });
        let agent = self.send(Method::POST, &self.path("/agents"), Some(agent)).await?;
        let role = json!({"name": "demo: use of its model key", "permissions": [{"action": "operate", "resourceKind": "secret"}]});
        let role = self.send(Method::POST, &self.path("/iam/roles"), Some(role)).await?;
        let binding = json!({
            "subjectKind": "identity",
            "subjectId": text_at(&agent, "/servicePrincipalId")?,
            "roleId": text_at(&role, "/id")?,
            "resourceKind": "secret",
            "resourceId": text_at(&secret, "/id")?,
        });
        self.send(Method::POST, &self.path("/iam/access-bindings"), Some(binding)).await?;
        Ok(agent)
    }

    async fn wait(&self, agent: &str, revision: &str) -> Result<()> {
        let path = self.path(&format!("/agents/{agent}/deployments/{revision}?wait={WAIT_SECS}"));
        let rounds = PATIENCE.as_secs().div_ceil(WAIT_SECS);
        for _ in 0..rounds {
            let deployment = self.get(&path).await?;
            match deployment.pointer("/status").and_then(Value::as_str) {
                Some("succeeded") => return Ok(()),
                Some("failed") => {
                    let code =
                        deployment.pointer("/error/code").and_then(Value::as_str).unwrap_or("without a code");
                    bail!(
                        "the demo agent did not start: {code}. Look at it: occ agent logs {agent} --source gateway"
                    );
                }
                _ => {}
            }
        }
        bail!(
            "the demo agent is not ready after {} s: occ agent deployment-status {agent}",
            PATIENCE.as_secs()
        )
    }

    fn path(&self, rest: &str) -> String {
        format!("/namespaces/{}{rest}", self.namespace)
    }

    async fn get(&self, path: &str) -> Result<Value> {
        self.send(Method::GET, path, None).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let mut request = self
            .client
            .request(method.clone(), format!("{}{path}", self.origin))
            .header("x-api-key", &self.key);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let response = request.send().await.with_context(|| format!("{method} {path} got no answer"))?;
        let status = response.status();
        let mut answer: Value =
            if status == StatusCode::NO_CONTENT { Value::Null } else { response.json().await? };
        if !status.is_success() {
            let message = answer.pointer("/error/message").and_then(Value::as_str).unwrap_or("no message");
            bail!("{method} {path}: {status}: {message}");
        }
        Ok(answer.get_mut("data").map(Value::take).unwrap_or_default())
    }
}

fn find(list: &Value, name: &str) -> Option<Value> {
    list.as_array()?.iter().find(|item| item.pointer("/name").and_then(Value::as_str) == Some(name)).cloned()
}

fn text_at(value: &Value, pointer: &str) -> Result<String> {
    value
        .pointer(pointer)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .with_context(|| format!("an answer has no {pointer}"))
}
