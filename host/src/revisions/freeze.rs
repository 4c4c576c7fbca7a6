//! What a deploy and a rollback decide before anything is written.
//!
//! The order of refusals is that of the contract: the caller's grants, the state of Agent and
//! Namespace, what the plugins refuse, what the Agent's own principal lacks, an unavailable driver.

use std::collections::{BTreeMap, BTreeSet};

use occ_api::error::{ErrorCode, FieldCode, FieldError};
use occ_api::ids::{AgentId, ConfigurationId, NamespaceId, RevisionId, SecretId};
use occ_api::types;
use serde_json::Value;

use super::model::{self, FrozenAuth, FrozenConfiguration, FrozenSecret, Revision, Snapshot};
use super::plan::{self, Planned};
use super::store;
use crate::agents::{self, Agent, Auth};
use crate::app::App;
use crate::configurations::{self, Configuration};
use crate::db::PgConnection;
use crate::error::{Error, Result};
use crate::http::Request;
use crate::iam::{Access, Action, Kind, Scope, decide as iam_decide};
use crate::namespaces;
use crate::secrets::{self, Secret};

/// What a dry run cannot know.
const NOT_CHECKED: [&str; 3] = ["secret-values", "image-pull", "cluster-capacity"];

/// What is to be frozen, by whom.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) namespace: NamespaceId,
    pub(super) agent: AgentId,
    pub(super) source: Wanted,
    /// Grants of the caller; the first is the one whose evidence is kept.
    pub(super) needs: Vec<Access>,
}

/// Where the snapshot comes from.
#[derive(Debug, Clone)]
pub(super) enum Wanted {
    /// The Agent's draft.
    Draft,
    /// This earlier revision, else the newest activated one that differs from the active one.
    Earlier(Option<RevisionId>),
}

/// What was read, before any plugin was asked.
#[derive(Debug)]
pub(super) struct Inputs {
    scope: Scope,
    agent: Agent,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Draft { configuration: Box<Configuration>, auth: Option<FrozenAuth> },
    Earlier(Box<Revision>),
}

/// A decided freeze: what to store, and what must still be true when it is.
#[derive(Debug)]
pub(super) struct Decided {
    pub(super) agent: Agent,
    pub(super) snapshot: Snapshot,
    pub(super) rollback_of: Option<RevisionId>,
    /// Secrets as they were read.
    pub(super) secrets: Vec<Secret>,
}

impl Ask {
    pub(super) fn new(rq: &Request, source: Wanted) -> Result<Self> {
        let (namespace, agent) = (rq.namespace()?, rq.agent()?);
        let needs = vec![Access::item(Action::Deploy, Kind::Agent, &namespace, &agent)];
        Ok(Self { namespace, agent, source, needs })
    }

    fn needs_of(&self, configuration: &ConfigurationId, secrets: &BTreeSet<SecretId>) -> Vec<Access> {
        let read = Access::item(Action::Read, Kind::Configuration, &self.namespace, configuration);
        let operate =
            secrets.iter().map(|id| Access::item(Action::Operate, Kind::Secret, &self.namespace, id));
        self.needs.iter().take(1).cloned().chain([read]).chain(operate).collect()
    }
}

/// Demands the caller's grants and reads what they are about. Nothing is said about the state of
/// anything yet: a stored answer of an equal request comes next.
pub(super) async fn read(app: &App, rq: &Request, ask: &mut Ask) -> Result<Inputs> {
    let scope = app
        .iam
        .require(app, &rq.caller, ask.needs.first().ok_or_else(|| Error::internal("no grant"))?)
        .await?;
    let mut conn = app.db.acquire().await?;
    let agent = agents::get(&mut conn, &scope, &ask.agent).await?;
    let (source, mut needs) = match &ask.source {
        Wanted::Draft => {
            let configuration = configurations::get(&mut conn, &scope, &agent.draft.configuration).await?;
            let auth = auth_of(&agent.draft.auth)?;
            let secrets = model::secret_ids(auth.as_ref(), &configuration.secret_bindings);
            let needs = ask.needs_of(&configuration.id, &secrets);
            (Source::Draft { configuration: Box::new(configuration), auth }, needs)
        }
        Wanted::Earlier(id) => {
            let revision = earlier(&mut conn, app, rq, &scope, &agent, id.as_ref()).await?;
            let mut needs =
                ask.needs_of(&revision.snapshot.configuration.id, &revision.snapshot.secret_ids());
            needs.push(Access::item(Action::Read, Kind::AgentRevision, &ask.namespace, &revision.id));
            (Source::Earlier(Box::new(revision)), needs)
        }
    };
    drop(conn);
    std::mem::swap(&mut ask.needs, &mut needs);
    app.iam.require_all(app, &rq.caller, &ask.needs).await?;
    Ok(Inputs { scope, agent, source })
}

/// The revision to go back to. Read on it is demanded before it is looked up by id.
async fn earlier(
    conn: &mut PgConnection,
    app: &App,
    rq: &Request,
    scope: &Scope,
    agent: &Agent,
    id: Option<&RevisionId>,
) -> Result<Revision> {
    if let Some(id) = id {
        app.iam
            .require(app, &rq.caller, &Access::item(Action::Read, Kind::AgentRevision, &agent.namespace, id))
            .await?;
        return super::get(conn, scope, &agent.id, id).await;
    }
    agents::demand_active(agent)?;
    let Some(active) = &agent.active_revision else {
        return Err(Error::conflict("The Agent has no active revision to go back from: name the revision."));
    };
    let active = super::get(conn, scope, &agent.id, active).await?;
    store::rollback_candidate(conn, scope, &active)
        .await?
        .ok_or_else(|| Error::conflict("No earlier activated revision differs from the active one."))
}

/// Checks the state of things, asks the plugins, and makes the snapshot. Writes nothing.
pub(super) async fn decide(app: &App, rq: &Request, ask: &Ask, inputs: Inputs) -> Result<Decided> {
    let Inputs { scope, agent, source } = inputs;
    agents::demand_active(&agent)?;
    let mut conn = app.db.acquire().await?;
    namespaces::demand_ready(&namespaces::get(&mut conn, &ask.namespace).await?)?;
    drop(conn);
    match source {
        Source::Draft { configuration, auth } => {
            let planned = match plan::resolve(app, &agent, &configuration, auth.as_ref()).await {
                Err(error) if error.api_code() != ErrorCode::DependencyUnavailable => return Err(error),
                planned => planned,
            };
            let secrets =
                secrets_of(app, rq, &scope, &agent, auth.as_ref(), &configuration.secret_bindings).await?;
            let snapshot = assemble(app, &agent, *configuration, auth, &secrets, planned?)?;
            Ok(Decided { agent, snapshot, rollback_of: None, secrets })
        }
        Source::Earlier(revision) => {
            if agent.active_revision.as_ref() == Some(&revision.id) {
                return Err(Error::conflict("The revision is the active one already."));
            }
            let acceptable = match plan::accepts(app, &revision.snapshot).await {
                Err(error) if error.api_code() != ErrorCode::DependencyUnavailable => return Err(error),
                acceptable => acceptable,
            };
            let snapshot = revision.snapshot;
            let secrets = secrets_of(
                app,
                rq,
                &scope,
                &agent,
                snapshot.harness_auth.as_ref(),
                &snapshot.secret_bindings,
            )
            .await?;
            demand_same(&snapshot, &agent, &secrets)?;
            acceptable?;
            Ok(Decided { agent, snapshot, rollback_of: Some(revision.id), secrets })
        }
    }
}

/// What a dry run answers: the revision that a deploy would make now.
pub(super) fn preview(decided: &Decided) -> types::DryRun {
    let agent = &decided.agent;
    let number = agent.last_revision_number + 1;
    types::DryRun {
        dry_run: true,
        revision: model::fields(&agent.namespace, &agent.id, number, &decided.snapshot, None),
        not_checked: NOT_CHECKED.map(str::to_owned).to_vec(),
    }
}

/// The Secrets that would be used; the Agent's own principal must be allowed to.
async fn secrets_of(
    app: &App,
    rq: &Request,
    scope: &Scope,
    agent: &Agent,
    auth: Option<&FrozenAuth>,
    bindings: &BTreeMap<String, SecretId>,
) -> Result<Vec<Secret>> {
    let mut conn = app.db.acquire().await?;
    demand_principal(&mut conn, app, rq, agent, auth, bindings).await?;
    let wanted = model::secret_ids(auth, bindings);
    let found = secrets::get_ready(&mut conn, scope, &wanted).await?;
    if found.len() != wanted.len() {
        return Err(Error::conflict("A Secret that the deployment uses is gone or being deleted."));
    }
    Ok(found)
}

/// A Secret that was deleted and made again is another one.
fn demand_same(snapshot: &Snapshot, agent: &Agent, secrets: &[Secret]) -> Result<()> {
    let frozen: BTreeMap<&SecretId, Option<&String>> =
        snapshot.secrets.iter().map(|secret| (&secret.id, secret.uid.as_ref())).collect();
    let same = secrets.iter().all(|secret| frozen.get(&secret.id) == Some(&secret.backend_uid.as_ref()));
    if same && snapshot.principal_id == agent.principal {
        return Ok(());
    }
    Err(Error::conflict("A Secret that the revision used is gone."))
}

/// Demands that the Agent's own principal may use each Secret; the refusal names the first that
/// it may not, so that the caller can bind it.
pub(super) async fn demand_principal(
    conn: &mut PgConnection,
    app: &App,
    rq: &Request,
    agent: &Agent,
    auth: Option<&FrozenAuth>,
    bindings: &BTreeMap<String, SecretId>,
) -> Result<()> {
    let mut uses: Vec<(String, &SecretId)> = Vec::new();
    if let Some(id) = auth.and_then(|auth| auth.secret_id.as_ref()) {
        uses.push(("/harnessAuth/source/id".to_owned(), id));
    }
    uses.extend(bindings.iter().map(|(name, id)| (format!("/secretBindings/{name}"), id)));
    if uses.is_empty() {
        return Ok(());
    }
    let rows = app.iam.load(conn, &agent.principal, Some(&agent.namespace)).await?;
    for (path, secret) in uses {
        let access = Access::item(Action::Operate, Kind::Secret, &agent.namespace, secret);
        let decision = iam_decide::decide(&rows, &access);
        if !decision.allowed {
            let message =
                format!("The Agent's principal {} lacks operate on Secret {secret}.", agent.principal);
            let error = app.iam.refuse_naming(&rq.caller, &access, decision, &message);
            return Err(error.with_details(vec![FieldError::new(&path, FieldCode::InvalidValue)]));
        }
    }
    Ok(())
}

fn auth_of(auth: &Auth) -> Result<Option<FrozenAuth>> {
    match auth {
        Auth::Unset => Ok(None),
        Auth::Runtime => Ok(Some(FrozenAuth { method: "runtime".to_owned(), secret_id: None })),
        Auth::ApiKey(secret) => {
            Ok(Some(FrozenAuth { method: "api_key".to_owned(), secret_id: Some(secret.clone()) }))
        }
        Auth::Unreadable => Err(Error::new(
            ErrorCode::NotImplemented,
            "The Agent's harnessAuth was stored by a newer version: set it again.",
        )),
    }
}

fn assemble(
    app: &App,
    agent: &Agent,
    configuration: Configuration,
    auth: Option<FrozenAuth>,
    secrets: &[Secret],
    planned: Planned,
) -> Result<Snapshot> {
    let digest = |value: &Value| {
        model::digest(value).map_err(|error| Error::internal("a document has no digest").caused_by(error))
    };
    let plan_digest = model::digest(&planned.plan)
        .map_err(|error| Error::internal("a plan has no digest").caused_by(error))?;
    Ok(Snapshot {
        schema: model::SNAPSHOT_SCHEMA,
        principal_id: agent.principal.clone(),
        configuration_digest: digest(&configuration.document)?,
        configuration: FrozenConfiguration {
            id: configuration.id,
            kind: "agent".to_owned(),
            generation: configuration.generation,
            document: configuration.document,
        },
        secret_bindings: configuration.secret_bindings,
        harness_auth: auth,
        platform: planned.platform,
        harness_plugin: planned.harness,
        compute: planned.compute,
        secret_store: app.secrets.kind().to_owned(),
        secrets: secrets
            .iter()
            .map(|secret| FrozenSecret { id: secret.id.clone(), uid: secret.backend_uid.clone() })
            .collect(),
        plan: planned.plan,
        plan_digest,
    })
}
