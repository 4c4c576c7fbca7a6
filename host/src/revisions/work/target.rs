//! What a pass about a revision begins with, and the guard that every pass goes through.
//!
//! **The row holds keys alone**: everything here is read anew by each pass.

use occ_api::ids::{AgentId, NamespaceId, RevisionId};
use occ_api::types::{DesiredRuntimeState, NamespaceStatus};
use occ_queue::{Pass, Verdict};

use super::locations;
use crate::agents::{self, Agent};
use crate::db::{self, PgConnection};
use crate::drivers::types as driver;
use crate::drivers::types::RevisionRef;
use crate::error::Error;
use crate::iam::{Iam, Scope};
use crate::namespaces::{self, Namespace};
use crate::revisions::{self, Revision};
use crate::secrets;
use crate::worker::compute::Operation;
use crate::worker::effect::{self, Fault, Subject};
use crate::worker::store::{self, Deployed};
use crate::worker::{Context, guard};

/// One revision, its Agent, and every revision of that Agent.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) scope: Scope,
    pub(super) namespace: Namespace,
    pub(super) agent: Agent,
    pub(super) revision: Revision,
    history: Vec<Deployed>,
}

impl Target {
    /// Guards 1 to 4: the row's shape, its owners, the Namespace and the Agent.
    pub(super) async fn load(cx: &Context, pass: &Pass) -> Result<Self, Fault> {
        let claim = pass.claim();
        let invalid = |_| Fault::permanent("INVALID_TARGET");
        let namespace: NamespaceId = db::id(&claim.owner.namespace_id).map_err(invalid)?;
        let agent: AgentId = db::id(claim.owner.agent_id.as_deref().unwrap_or_default()).map_err(invalid)?;
        let revision: RevisionId =
            db::id(claim.owner.revision_id.as_deref().unwrap_or_default()).map_err(invalid)?;
        let actor = db::id(&claim.actor_id).map_err(|_| Fault::permanent("ACTOR_REVOKED"))?;
        let scope = Iam::system_scope(&actor, &namespace);
        let mut conn = cx.db.acquire().await.map_err(Error::from)?;
        let target = read(&mut conn, scope, &namespace, &agent, &revision).await?;
        if target.namespace.status != NamespaceStatus::Ready {
            return Err(Fault::permanent("NAMESPACE_NOT_READY"));
        }
        if target.agent.is_deleting() {
            return Err(Fault::complete("REVISION_STOPPED"));
        }
        Ok(target)
    }

    /// The same, read again: the pointer may have moved in this very pass.
    pub(super) async fn again(&self, cx: &Context) -> Result<Self, Fault> {
        let mut conn = cx.db.acquire().await.map_err(Error::from)?;
        read(&mut conn, self.scope.clone(), &self.namespace.id, &self.agent.id, &self.revision.id).await
    }

    /// Guards 6 to 12 of the way forward; the first that fires ends the pass.
    pub(super) async fn admit(&self, cx: &Context, pass: &Pass) -> Result<(), Fault> {
        if self.agent.desired != DesiredRuntimeState::Running {
            self.leave(cx, pass).await?;
            return Err(Fault::complete("REVISION_STOPPED"));
        }
        if !self.is_active() {
            let newer = self.agent.last_revision_number > self.revision.number;
            let passed = self.active_number().is_some_and(|active| active > self.revision.number);
            if newer || passed {
                self.leave(cx, pass).await?;
                return Err(Fault::complete("REVISION_SUPERSEDED"));
            }
        }
        // Service first: what is on its way back arrives before anything new begins.
        let own = self.revision.reference();
        if self.history.iter().any(|deployed| deployed.rolling_back && deployed.reference != own) {
            return Err(Fault::wait("REVISION_INCOMPLETE"));
        }
        let snapshot = &self.revision.snapshot;
        if !cx.compute.takes_over(&snapshot.compute.id, &snapshot.compute.version) {
            return Err(Fault::permanent("COMPUTE_DRIVER_MISMATCH"));
        }
        if !cx.compute.harness_approved(&snapshot.harness_plugin.id) {
            return Err(Fault::permanent("HARNESS_DESCRIPTOR_MISMATCH"));
        }
        let mut conn = cx.db.acquire().await.map_err(Error::from)?;
        guard::revision(cx, pass, &mut conn, &self.namespace.id, &self.agent.id, snapshot).await?;
        self.secrets_stand(&mut conn).await?;
        if snapshot.is_intact() { Ok(()) } else { Err(Fault::permanent("INVALID_ADMITTED_REVISION")) }
    }

    /// Every Secret that the revision names is ready, in the store where it was, and the same object.
    pub(super) async fn secrets_stand(&self, conn: &mut PgConnection) -> Result<(), Fault> {
        let snapshot = &self.revision.snapshot;
        let found = secrets::get_ready(conn, &self.scope, &snapshot.secret_ids()).await?;
        let stands = snapshot.secrets.iter().all(|frozen| {
            found.iter().any(|secret| {
                secret.id == frozen.id
                    && secret.store == snapshot.secret_store
                    && secret.backend_uid == frozen.uid
            })
        });
        if stands { Ok(()) } else { Err(Fault::permanent("SECRET_BINDING_UNAVAILABLE")) }
    }

    /// What this revision put up is removed when it is not wanted any more, unless the pointer is on it.
    async fn leave(&self, cx: &Context, pass: &Pass) -> Result<(), Fault> {
        if self.is_active() { Ok(()) } else { self.retire_own(cx, pass).await }
    }

    /// Removes this revision's candidate.
    pub(super) async fn retire_own(&self, cx: &Context, pass: &Pass) -> Result<(), Fault> {
        let (agent, own) = (self.driver_agent(), [self.revision.reference()]);
        let serving = self.agent.active_revision.as_ref().and_then(|id| self.reference_of(id));
        let run =
            || effect::change(cx, pass, self.subject(), Operation::Retire(&agent, &own, serving.as_ref()));
        effect::step(cx, pass, "retire-own", run).await
    }

    /// The same, for a row that fails anyway: what is left is removed by the next deploy or stop.
    pub(super) async fn try_retire_own(&self, cx: &Context, pass: &Pass) {
        if let Err(fault) = self.retire_own(cx, pass).await {
            tracing::info!(event = "revision.candidate-kept", revision = %self.revision.id, ?fault);
        }
    }

    /// Takes every lower revision out of service: two revisions of one state cannot run at once.
    pub(super) async fn clear_way(&self, cx: &Context, pass: &Pass) -> Result<(), Fault> {
        let mut conn = cx.db.acquire().await.map_err(Error::from)?;
        let Some(active) = &self.agent.active_revision else {
            return Ok(());
        };
        let active = revisions::get(&mut conn, &self.scope, &self.agent.id, active).await?;
        drop(conn);
        let lower = active.to_driver(&self.namespace, locations(&active.snapshot));
        effect::change(cx, pass, self.subject(), Operation::Deactivate(&lower)).await
    }

    /// Is the pointer on this revision?
    pub(super) fn is_active(&self) -> bool {
        self.agent.active_revision.as_ref() == Some(&self.revision.id)
    }

    /// The revision that serves while this one is prepared: the pointer's, or the predecessor once published.
    pub(super) fn serving(&self, pass: &Pass) -> Option<RevisionRef> {
        if !self.is_active() {
            return self.agent.active_revision.as_ref().and_then(|id| self.reference_of(id));
        }
        self.reference_of(&self.previous_of_own(pass)?)
    }

    /// The predecessor that `publish` recorded.
    pub(super) fn previous_of_own(&self, pass: &Pass) -> Option<RevisionId> {
        let own = self
            .history
            .iter()
            .find(|deployed| deployed.reference.revision_id == self.revision.id.as_str())?;
        own.previous.clone().or_else(|| db::id(pass.claim().previous_revision_id.as_deref()?).ok())
    }

    /// Where a failure goes back to: the pointer's revision if it ended activated, else where that one
    /// would have gone; a half-activated one is no place to go back to.
    pub(super) fn predecessor(&self) -> Option<RevisionId> {
        let active = self.agent.active_revision.as_ref()?;
        let deployed =
            self.history.iter().find(|deployed| deployed.reference.revision_id == active.as_str())?;
        if deployed.activated { Some(active.clone()) } else { deployed.previous.clone() }
    }

    /// Every revision below this one.
    pub(super) fn lower(&self) -> Vec<RevisionRef> {
        self.references(|reference| reference.number < self.revision.number)
    }

    /// This revision and every one below it, but the one that serves.
    pub(super) fn all_but(&self, serving: &RevisionId) -> Vec<RevisionRef> {
        self.references(|reference| {
            reference.number <= self.revision.number && reference.revision_id != serving.as_str()
        })
    }

    fn references(&self, wanted: impl Fn(&RevisionRef) -> bool) -> Vec<RevisionRef> {
        self.history
            .iter()
            .map(|deployed| &deployed.reference)
            .filter(|found| wanted(found))
            .cloned()
            .collect()
    }

    pub(super) fn reference_of(&self, id: &RevisionId) -> Option<RevisionRef> {
        self.references(|reference| reference.revision_id == id.as_str()).pop()
    }

    fn active_number(&self) -> Option<u64> {
        let active = self.agent.active_revision.as_ref()?;
        self.reference_of(active).map(|reference| reference.number)
    }

    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            namespace: &self.namespace.id,
            agent: Some(&self.agent.id),
            revision: Some(&self.revision.id),
        }
    }

    pub(super) fn driver_agent(&self) -> driver::Agent {
        self.driver_revision().agent
    }

    pub(super) fn driver_revision(&self) -> driver::Revision {
        self.revision.to_driver(&self.namespace, locations(&self.revision.snapshot))
    }
}

/// One read of everything that the pass decides with.
async fn read(
    conn: &mut PgConnection,
    scope: Scope,
    namespace: &NamespaceId,
    agent: &AgentId,
    revision: &RevisionId,
) -> Result<Target, Fault> {
    let found = async {
        let namespace = namespaces::get(&mut *conn, namespace).await?;
        let agent = agents::get(&mut *conn, &scope, agent).await?;
        let revision = revisions::get(&mut *conn, &scope, &agent.id, revision).await?;
        let history = store::history(&mut *conn, &scope, &agent.id).await?;
        Ok::<_, Error>((namespace, agent, revision, history))
    }
    .await;
    match found {
        Ok((namespace, agent, revision, history)) => {
            Ok(Target { scope, namespace, agent, revision, history })
        }
        Err(error) if error.api_code() == occ_api::error::ErrorCode::NotFound => {
            Err(Fault::End(Verdict::fail("INVALID_REVISION_OWNER")))
        }
        Err(error) => Err(error.into()),
    }
}
