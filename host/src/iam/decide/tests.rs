//! The table of the rules, and random policies against the rules written out as sets.

use super::super::sample::{AGENTS, NS, Sample};
use super::*;

const CASES: u64 = 10_000;

fn identity() -> IdentityRow {
    IdentityRow {
        id: "spn_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b12".parse().unwrap(),
        kind: IdentityKind::ServicePrincipal,
        namespace: None,
        agent: None,
        disabled: false,
    }
}

fn binding(id: &str, pairs: &[Pair]) -> BindingRow {
    BindingRow {
        id: id.parse().unwrap(),
        namespace: Some(NS[0].parse().unwrap()),
        group: None,
        target: None,
        role: "role_1".parse().unwrap(),
        role_namespace: None,
        pairs: pairs.iter().copied().collect(),
    }
}

fn rows(bindings: Vec<BindingRow>) -> PrincipalRows {
    PrincipalRows { identity: Some(identity()), bindings, restrictions: Vec::new() }
}

fn read(namespace: &str, agent: &str) -> Access {
    Access::item(Action::Read, Kind::Agent, &namespace.parse().unwrap(), agent)
}

const READ: Pair = (Action::Read, Kind::Agent);

#[test]
fn a_binding_grants_in_its_namespace_alone() {
    let rows = rows(vec![binding("binding_1", &[READ])]);
    assert_eq!(decide(&rows, &read(NS[0], "agt_a")).reason, Reason::Allowed);
    assert_eq!(decide(&rows, &read(NS[1], "agt_a")).reason, Reason::NoGrant);
}

#[test]
fn no_action_implies_another() {
    let rows = rows(vec![binding("binding_1", &[(Action::Administer, Kind::Agent)])]);
    assert_eq!(decide(&rows, &read(NS[0], "agt_a")).reason, Reason::NoGrant);
}

#[test]
fn an_exact_binding_grants_on_its_resource_alone() {
    let target = Some(Target { kind: Kind::Agent, id: "agt_a".to_owned() });
    let rows = rows(vec![BindingRow { target, ..binding("binding_1", &[READ]) }]);
    assert!(decide(&rows, &read(NS[0], "agt_a")).allowed);
    assert!(!decide(&rows, &read(NS[0], "agt_b")).allowed);
}

#[test]
fn groups_count_for_humans_alone() {
    let group = Some("grp_1".parse().unwrap());
    let mut rows = rows(vec![BindingRow { group, ..binding("binding_1", &[READ]) }]);
    assert_eq!(decide(&rows, &read(NS[0], "agt_a")).reason, Reason::NoGrant);
    rows.identity = Some(IdentityRow { kind: IdentityKind::Principal, ..identity() });
    let decision = decide(&rows, &read(NS[0], "agt_a"));
    assert!(decision.allowed);
    assert_eq!(decision.evidence.groups.len(), 1);
}

#[test]
fn an_identity_of_a_namespace_stays_in_it() {
    let mut rows = rows(vec![BindingRow { namespace: None, ..binding("binding_1", &[READ]) }]);
    rows.identity = Some(IdentityRow { namespace: Some(NS[0].parse().unwrap()), ..identity() });
    assert_eq!(decide(&rows, &read(NS[0], "agt_a")).reason, Reason::Allowed);
    assert_eq!(decide(&rows, &read(NS[1], "agt_a")).reason, Reason::OutOfScope);
    let administer = Access {
        action: Action::Administer,
        kind: Kind::Installation,
        id: "ins_1".to_owned(),
        namespace: None,
    };
    assert_eq!(decide(&rows, &administer).reason, Reason::OutOfScope);
}

#[test]
fn unknown_and_disabled_identities_are_refused_without_evidence() {
    let mut rows = rows(vec![binding("binding_1", &[READ])]);
    rows.identity = Some(IdentityRow { disabled: true, ..identity() });
    assert_eq!(decide(&rows, &read(NS[0], "agt_a")), Decision::refused(Reason::UnknownIdentity));
    rows.identity = None;
    assert_eq!(decide(&rows, &read(NS[0], "agt_a")), Decision::refused(Reason::UnknownIdentity));
}

#[test]
fn a_restriction_wins_and_evidence_names_every_row() {
    let mut rows = rows(vec![binding("binding_2", &[READ]), binding("binding_1", &[READ])]);
    rows.restrictions.push(RestrictionRow {
        id: "rst_1".to_owned(),
        namespace: None,
        action: Action::Read,
        kind: Kind::Agent,
        resource_id: Some("agt_a".to_owned()),
    });
    let decision = decide(&rows, &read(NS[0], "agt_a"));
    assert_eq!((decision.allowed, decision.reason), (false, Reason::Restricted));
    let bindings: Vec<&str> = decision.evidence.bindings.iter().map(BindingId::as_str).collect();
    assert_eq!(bindings, ["binding_1", "binding_2"]);
    assert_eq!(decision.evidence.restrictions.len(), 1);
    assert!(decide(&rows, &read(NS[0], "agt_b")).allowed);
}

#[test]
fn a_request_names_its_scope() {
    let rows = rows(vec![binding("binding_1", &[READ])]);
    let request = Access { namespace: None, ..read(NS[0], "agt_a") };
    assert_eq!(decide(&rows, &request), Decision::refused(Reason::InvalidRequest));
    let other = Access { id: NS[1].to_owned(), ..Access::namespace(Action::Read, &NS[0].parse().unwrap()) };
    assert_eq!(decide(&rows, &other), Decision::refused(Reason::InvalidRequest));
}

/// Every request that a binding grants, listed one by one.
fn universe() -> Vec<Access> {
    let mut all = Vec::new();
    for &action in Action::ALL {
        for &kind in Kind::ALL {
            for namespace in [None, Some(NS[0]), Some(NS[1])] {
                let ids = AGENTS.into_iter().chain(NS).chain(["ins_1"]);
                all.extend(ids.map(|id| Access {
                    action,
                    kind,
                    id: id.to_owned(),
                    namespace: namespace.map(|namespace| namespace.parse().unwrap()),
                }));
            }
        }
    }
    all
}

/// Removing a row that evidence does not name never changes the decision; removing every named
/// binding takes the grant away, and removing every named Restriction gives it back.
fn assert_evidence_is_exact(rows: &PrincipalRows, request: &Access, decision: &Decision) {
    for index in 0..rows.bindings.len() {
        if !decision.evidence.bindings.contains(&rows.bindings[index].id) {
            let mut fewer = rows.clone();
            fewer.bindings.remove(index);
            assert_eq!(decide(&fewer, request), *decision, "{rows:?} {request:?}");
        }
    }
    let mut without = rows.clone();
    without.bindings.retain(|binding| !decision.evidence.bindings.contains(&binding.id));
    assert!(!decide(&without, request).allowed, "{rows:?} {request:?}");
    if decision.reason == Reason::Restricted {
        let mut free = rows.clone();
        free.restrictions.retain(|restriction| !decision.evidence.restrictions.contains(&restriction.id));
        assert_eq!(decide(&free, request).reason, Reason::Allowed, "{rows:?} {request:?}");
    }
}

/// The rules of the page, each as one set of row indexes, without sharing code with `decide`.
fn model(rows: &PrincipalRows, request: &Access) -> Reason {
    let Some(identity) = &rows.identity else {
        return Reason::UnknownIdentity;
    };
    if identity.disabled {
        return Reason::UnknownIdentity;
    }
    if let Some(home) = &identity.namespace
        && Some(home) != request.namespace.as_ref()
    {
        return Reason::OutOfScope;
    }
    let scopes = [None, request.namespace.clone()];
    let targets = [None, Some(Target { kind: request.kind, id: request.id.clone() })];
    let subjects_count = |binding: &&BindingRow| match identity.kind {
        IdentityKind::Principal => true,
        IdentityKind::ServicePrincipal => binding.group.is_none(),
    };
    let granted = rows.bindings.iter().filter(subjects_count).any(|binding| {
        scopes.contains(&binding.namespace)
            && scopes.contains(&binding.role_namespace)
            && targets.contains(&binding.target)
            && binding.pairs.iter().any(|pair| *pair == (request.action, request.kind))
    });
    let restricted = rows.restrictions.iter().any(|restriction| {
        scopes.contains(&restriction.namespace)
            && [None, Some(request.id.clone())].contains(&restriction.resource_id)
            && (restriction.action, restriction.kind) == (request.action, request.kind)
    });
    match (granted, restricted) {
        (false, _) => Reason::NoGrant,
        (true, true) => Reason::Restricted,
        (true, false) => Reason::Allowed,
    }
}

#[test]
fn random_policies_decide_as_the_rules_say() {
    let mut allowed = 0;
    let mut restricted = 0;
    for seed in 0..CASES {
        let mut sample = Sample::new(seed);
        let (rows, request) = (sample.rows(), sample.access());
        let decision = decide(&rows, &request);
        if !request.is_well_formed() {
            assert_eq!(decision.reason, Reason::InvalidRequest, "seed {seed}");
            continue;
        }
        assert_eq!(decision.reason, model(&rows, &request), "seed {seed}: {rows:?} {request:?}");
        assert_eq!(decision.allowed, decision.reason == Reason::Allowed);
        allowed += u32::from(decision.allowed);
        restricted += u32::from(decision.reason == Reason::Restricted);
        assert_evidence_is_exact(&rows, &request, &decision);
    }
    assert!(
        allowed > 100 && restricted > 10,
        "the sample is too thin: {allowed} allowed, {restricted} restricted"
    );
}

#[test]
fn a_row_about_one_request_changes_no_other() {
    let universe = universe();
    for seed in 0..100 {
        let mut sample = Sample::new(seed);
        let rows = sample.rows();
        let mut more = rows.clone();
        let restriction = RestrictionRow {
            id: "rst_new".to_owned(),
            namespace: Some(NS[0].parse().unwrap()),
            action: Action::Read,
            kind: Kind::Agent,
            resource_id: Some("agt_a".to_owned()),
        };
        more.restrictions.push(restriction);
        for request in &universe {
            if *request != read(NS[0], "agt_a") {
                assert_eq!(decide(&rows, request), decide(&more, request), "seed {seed}: {request:?}");
            }
        }
    }
}
