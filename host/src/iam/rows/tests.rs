//! Rows that break a rule are skipped one by one.

use super::super::sample::NS;
use super::*;

const IDENTITY: &str = "spn_3f0c2a9e-7b1d-4c55-9a51-0c8e6f2d4b12";

fn binding(id: &str) -> RawRow {
    RawRow {
        record: "binding".to_owned(),
        id: id.to_owned(),
        namespace_id: Some(NS[0].to_owned()),
        role_id: Some("role_1".to_owned()),
        pairs: vec!["read agent".to_owned()],
        ..RawRow::default()
    }
}

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

#[test]
fn broken_bindings_are_skipped_and_named() {
    let broken = [
        RawRow { namespace_id: text("nowhere"), ..binding("binding_scope") },
        RawRow { role_namespace_id: text(NS[1]), ..binding("binding_role_elsewhere") },
        RawRow { role_id: None, ..binding("binding_roleless") },
        RawRow { resource_kind: text("agent"), ..binding("binding_half_target") },
        RawRow { resource_kind: text("pod"), resource_id: text("x"), ..binding("binding_kind") },
        RawRow {
            resource_kind: text("installation"),
            resource_id: text("ins_1"),
            ..binding("binding_inside_out")
        },
        RawRow {
            resource_kind: text("agent"),
            resource_id: text("agt_1"),
            pairs: vec!["create agent".to_owned()],
            ..binding("binding_exact_create")
        },
        RawRow {
            role_namespace_id: text(NS[0]),
            pairs: vec!["administer installation".to_owned()],
            ..binding("binding_role_reaches_out")
        },
    ];
    let expected: Vec<String> = broken.iter().map(|row| row.id.clone()).collect();
    let mut raw: Vec<RawRow> = broken.into_iter().collect();
    raw.push(binding("binding_good"));
    let (rows, invalid) = parse(raw);
    assert_eq!(rows.bindings.len(), 1);
    assert_eq!(rows.bindings[0].id.as_str(), "binding_good");
    assert_eq!(invalid.iter().map(|row| row.id.clone()).collect::<Vec<_>>(), expected);
    assert!(invalid.iter().all(|row| row.record == "binding"));
}

#[test]
fn a_pair_that_nobody_knows_can_only_fail_to_match() {
    let pairs = ["read agent", "use agent", "deploy secret", "nonsense"].map(str::to_owned).to_vec();
    let (rows, invalid) = parse(vec![RawRow { pairs, ..binding("binding_1") }]);
    assert_eq!(invalid, []);
    assert_eq!(rows.bindings[0].pairs, BTreeSet::from([(Action::Read, Kind::Agent)]));
}

#[test]
fn an_unreadable_scope_of_a_restriction_still_denies() {
    let restriction = |pair: &str| RawRow {
        record: "restriction".to_owned(),
        id: "rst_1".to_owned(),
        namespace_id: text("nowhere"),
        resource_kind: text("agent"),
        resource_id: text("agt_1"),
        pairs: vec![pair.to_owned()],
        ..RawRow::default()
    };
    let (rows, invalid) = parse(vec![restriction("read agent")]);
    assert_eq!(invalid, []);
    assert_eq!(rows.restrictions[0].namespace, None);
    assert_eq!(rows.restrictions[0].resource_id.as_deref(), Some("agt_1"));
    let (rows, invalid) = parse(vec![restriction("eat agent")]);
    assert_eq!((rows.restrictions.len(), invalid.len()), (0, 1));
}

#[test]
fn the_identity_row_carries_what_decides() {
    let row = RawRow {
        record: "identity".to_owned(),
        id: IDENTITY.to_owned(),
        resource_kind: text("principal"),
        resource_id: text("2026-03-02 10:00:00+00"),
        ..RawRow::default()
    };
    let (rows, _) = parse(vec![row]);
    let identity = rows.identity.unwrap();
    assert_eq!((identity.kind, identity.disabled), (IdentityKind::Principal, true));
}
