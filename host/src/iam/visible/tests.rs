//! The filter equals deciding item by item.

use super::super::access::Access;
use super::super::decide::decide;
use super::super::sample::{AGENTS, NS, Sample};
use super::*;

const CASES: u64 = 3_000;

/// Agents live in the first Namespace but for the last of them.
fn home_of(agent: &str) -> NamespaceId {
    let index = usize::from(agent == AGENTS[2]);
    NS[index].parse().unwrap()
}

/// Resources of a random policy keep to the Namespace that they live in.
fn consistent(mut rows: PrincipalRows) -> PrincipalRows {
    for binding in &mut rows.bindings {
        let Some(target) = &binding.target else { continue };
        binding.namespace = match target.kind {
            Kind::Installation => None,
            Kind::Namespace => Some(target.id.parse().unwrap()),
            _ => Some(home_of(&target.id)),
        };
        binding.role_namespace = binding.role_namespace.take().and(binding.namespace.clone());
    }
    for restriction in &mut rows.restrictions {
        let Some(id) = &restriction.resource_id else {
            continue;
        };
        restriction.namespace = match restriction.kind {
            Kind::Installation => None,
            Kind::Namespace => Some(id.parse().unwrap()),
            _ => Some(home_of(id)),
        };
    }
    rows
}

#[test]
fn a_list_in_a_namespace_shows_what_each_item_would() {
    let mut shown = 0;
    for seed in 0..CASES {
        let rows = consistent(Sample::new(seed).rows());
        for kind in [Kind::Agent, Kind::Secret] {
            for namespace in NS {
                let namespace: NamespaceId = namespace.parse().unwrap();
                let filter = visible(&rows, Action::Read, kind, Some(&namespace));
                for agent in AGENTS.into_iter().filter(|agent| home_of(agent) == namespace) {
                    let decision = decide(&rows, &Access::item(Action::Read, kind, &namespace, agent));
                    assert_eq!(
                        filter.shows(namespace.as_str(), agent),
                        decision.allowed,
                        "seed {seed} {rows:?}"
                    );
                    shown += u32::from(decision.allowed);
                }
            }
        }
    }
    assert!(shown > 100, "the sample is too thin: {shown}");
}

#[test]
fn a_list_across_namespaces_shows_what_each_item_would() {
    for seed in 0..CASES {
        let rows = consistent(Sample::new(seed).rows());
        let agents = visible(&rows, Action::Read, Kind::Agent, None);
        for agent in AGENTS {
            let namespace = home_of(agent);
            let decision = decide(&rows, &Access::item(Action::Read, Kind::Agent, &namespace, agent));
            assert_eq!(agents.shows(namespace.as_str(), agent), decision.allowed, "seed {seed} {rows:?}");
        }
        let namespaces = visible(&rows, Action::Read, Kind::Namespace, None);
        for namespace in NS {
            let decision = decide(&rows, &Access::namespace(Action::Read, &namespace.parse().unwrap()));
            assert_eq!(namespaces.shows(namespace, namespace), decision.allowed, "seed {seed} {rows:?}");
        }
    }
}
