//! Small random policies for the tests of the pure parts: few words, so that rows often touch.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use occ_api::ids::{IdentityId, NamespaceId};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::access::{Access, Action, Kind, Pair};
use super::decide::{BindingRow, IdentityKind, IdentityRow, PrincipalRows, RestrictionRow, Target};

pub(super) const NS: [&str; 2] =
    ["ns_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b10", "ns_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b11"];
pub(super) const AGENTS: [&str; 3] = ["agt_a", "agt_b", "agt_c"];
static NAMESPACES: LazyLock<[NamespaceId; 2]> = LazyLock::new(|| NS.map(|id| id.parse().unwrap()));
static IDENTITY: LazyLock<IdentityId> =
    LazyLock::new(|| "spn_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b12".parse().unwrap());
const INSTALLATION: &str = "ins_1";
const KINDS: [Kind; 4] = [Kind::Installation, Kind::Namespace, Kind::Agent, Kind::Secret];
const ACTIONS: [Action; 4] = [Action::Create, Action::Read, Action::Operate, Action::Administer];
const ROWS_MAX: usize = 6;

/// Draws policies and requests, the same for the same seed.
pub(super) struct Sample(StdRng);

impl Sample {
    pub(super) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    pub(super) fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    pub(super) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())]
    }

    pub(super) fn namespace(&mut self) -> Option<NamespaceId> {
        let index = self.below(3);
        NAMESPACES.get(index).cloned()
    }

    fn id(&mut self, kind: Kind) -> String {
        match kind {
            Kind::Installation => INSTALLATION.to_owned(),
            Kind::Namespace => self.pick(&NS).to_owned(),
            _ => self.pick(&AGENTS).to_owned(),
        }
    }

    pub(super) fn pair(&mut self) -> Pair {
        (self.pick(&ACTIONS), self.pick(&KINDS))
    }

    pub(super) fn pairs(&mut self) -> BTreeSet<Pair> {
        (0..=self.below(4)).map(|_| self.pair()).collect()
    }

    fn target(&mut self) -> Option<Target> {
        let kind = self.pick(&KINDS);
        self.chance(40).then(|| Target { kind, id: self.id(kind) })
    }

    pub(super) fn binding(&mut self, index: usize) -> BindingRow {
        let namespace = self.namespace();
        BindingRow {
            id: format!("binding_{index}").parse().unwrap(),
            group: self.chance(30).then(|| format!("grp_{}", self.below(2)).parse().unwrap()),
            target: self.target(),
            role: format!("role_{}", self.below(4)).parse().unwrap(),
            role_namespace: if self.chance(70) { None } else { namespace.clone() },
            namespace,
            pairs: self.pairs(),
        }
    }

    pub(super) fn restriction(&mut self, index: usize) -> RestrictionRow {
        let (action, kind) = self.pair();
        RestrictionRow {
            id: format!("rst_{index}"),
            namespace: self.namespace(),
            action,
            kind,
            resource_id: self.chance(50).then(|| self.id(kind)),
        }
    }

    pub(super) fn rows(&mut self) -> PrincipalRows {
        let human = self.chance(50);
        let identity = IdentityRow {
            id: IDENTITY.clone(),
            kind: if human { IdentityKind::Principal } else { IdentityKind::ServicePrincipal },
            namespace: if human { None } else { self.namespace() },
            agent: None,
            disabled: self.chance(5),
        };
        PrincipalRows {
            identity: self.chance(95).then_some(identity),
            bindings: (0..self.below(ROWS_MAX)).map(|index| self.binding(index)).collect(),
            restrictions: (0..self.below(3)).map(|index| self.restriction(index)).collect(),
        }
    }

    pub(super) fn access(&mut self) -> Access {
        let (action, kind) = self.pair();
        let namespace = self.namespace();
        let id = match (action, &namespace) {
            (Action::Create, Some(namespace)) => namespace.to_string(),
            (_, Some(namespace)) if kind == Kind::Namespace && self.chance(80) => namespace.to_string(),
            _ => self.id(kind),
        };
        Access { action, kind, id, namespace }
    }
}
