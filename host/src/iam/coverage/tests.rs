//! Coverage against the sets of single permissions that grants stand for.

use std::collections::BTreeSet;

use super::super::sample::{AGENTS, NS, Sample};
use super::*;

const CASES: u64 = 2_000;

/// One permission on one resource; the empty id stands for resources that do not exist yet.
type Single = (Action, Kind, Option<String>, String);

/// Everything that a grant permits, one by one, with `administer` on Agents reading their logs.
fn singles(grant: &Grant) -> BTreeSet<Single> {
    let namespaces: Vec<Option<String>> = [None, Some(NS[0]), Some(NS[1]), Some("ns_later")]
        .into_iter()
        .map(|namespace| namespace.map(str::to_owned))
        .collect();
    let ids = AGENTS.into_iter().chain(NS).chain(["ins_1", ""]);
    let mut all = BTreeSet::new();
    for namespace in namespaces {
        for id in ids.clone() {
            let within = match &grant.reach {
                Reach::Installation => true,
                Reach::Namespace(own) => namespace.as_deref() == Some(own.as_str()),
                Reach::Exact(own, target) => {
                    namespace.as_deref() == own.as_ref().map(NamespaceId::as_str)
                        && target.id == id
                        && target.kind == grant.kind
                }
            };
            if within {
                all.insert((grant.action, grant.kind, namespace.clone(), id.to_owned()));
                if (grant.action, grant.kind) == (Action::Administer, Kind::Agent) {
                    all.insert((Action::ReadLogs, grant.kind, namespace.clone(), id.to_owned()));
                }
            }
        }
    }
    all
}

fn sample_grants(sample: &mut Sample) -> Vec<Grant> {
    let rows = sample.rows();
    rows.bindings.iter().flat_map(binding_grants).collect()
}

#[test]
fn what_is_covered_is_a_subset_of_what_is_held() {
    let (mut covered, mut refused) = (0, 0);
    for seed in 0..CASES {
        let mut sample = Sample::new(seed);
        let (caller, target) = (sample_grants(&mut sample), sample_grants(&mut sample));
        let held: BTreeSet<Single> = caller.iter().flat_map(singles).collect();
        match uncovered(&caller, &target) {
            Some(missing) => {
                refused += 1;
                // One grant of the caller must cover one of the target: two narrow ones are not a broad one.
                assert!(
                    !caller.iter().any(|grant| singles(grant).is_superset(&singles(missing))),
                    "seed {seed}"
                );
            }
            None => {
                covered += 1;
                let wanted: BTreeSet<Single> = target.iter().flat_map(singles).collect();
                assert!(held.is_superset(&wanted), "seed {seed}: {caller:?} {target:?}");
            }
        }
    }
    assert!(covered > 100 && refused > 100, "the sample is too thin: {covered} covered, {refused} refused");
}

#[test]
fn administer_covers_reading_logs_and_nothing_else_substitutes() {
    let grant = |action| Grant { action, kind: Kind::Agent, reach: Reach::Installation };
    assert!(grant(Action::Administer).covers(&grant(Action::ReadLogs)));
    assert!(!grant(Action::ReadLogs).covers(&grant(Action::Administer)));
    assert!(!grant(Action::Administer).covers(&grant(Action::Read)));
    assert!(!grant(Action::Deploy).covers(&grant(Action::Operate)));
}

#[test]
fn an_exact_grant_on_the_installation_covers_almost_nothing() {
    let target = Target { kind: Kind::Installation, id: "ins_1".to_owned() };
    let exact =
        Grant { action: Action::Administer, kind: Kind::Installation, reach: Reach::Exact(None, target) };
    let whole = Grant { reach: Reach::Installation, ..exact.clone() };
    assert!(exact.covers(&exact));
    assert!(whole.covers(&exact));
    assert!(!exact.covers(&whole));
}
