use super::*;

fn under_lock(stored: Option<i64>, mirror: Option<i64>, property: Option<&str>) -> UnderLock {
    UnderLock {
        head: 1,
        schema_version: 1,
        floor: 0,
        has_receipt: false,
        table_uuid: None,
        live_as: None,
        is_parquet: true,
        property: property.map(|text| Value::String(text.to_owned())),
        stored_revision: stored,
        property_revision: mirror,
        guard_revision: Some(3),
        is_paused: false,
        is_restored: false,
        newest_changed: false,
        ddl_since: false,
        files_since: None,
    }
}

#[test]
fn the_policy_in_force_must_be_the_planned_one() {
    let guard = |source, text: Option<&str>| PolicyGuard {
        source,
        revision: 5,
        property_text: text.map(str::to_owned),
        guard_revision: 3,
        uses_approval: false,
        newest_as_of: None,
    };
    let (stored, property) = (guard(Source::Stored, None), guard(Source::Property, Some("a")));
    for (now, stored_holds, property_holds) in [
        (under_lock(Some(5), None, None), true, false),
        (under_lock(Some(6), None, None), false, false),
        (under_lock(None, None, None), false, false),
        (under_lock(None, Some(5), Some("a")), false, true),
        (under_lock(None, Some(5), Some("b")), false, false),
        (under_lock(None, Some(5), None), false, false),
        (under_lock(None, Some(6), Some("a")), false, false),
        (under_lock(Some(5), Some(5), Some("a")), true, false),
    ] {
        assert_eq!(
            (stored.holds(&now), property.holds(&now)),
            (stored_holds, property_holds),
            "{now:?}"
        );
    }
}

#[test]
fn the_guard_revision_must_be_the_planned_one() {
    let policy = |guard_revision| PolicyGuard {
        source: Source::Stored,
        revision: 5,
        property_text: None,
        guard_revision,
        uses_approval: false,
        newest_as_of: None,
    };
    let operator = |guard_revision| OperatorGuard { guard_revision, ..operator() };
    for (under_lock_now, refuses) in [(Some(3), false), (Some(4), true), (None, true)] {
        let state = UnderLock { guard_revision: under_lock_now, ..under_lock(Some(5), None, None) };
        let is_otherwise = |authority: Authority<'_>| authority.is_guarded_otherwise(&state);
        assert_eq!(
            (
                is_otherwise(Authority::Policy(Some(&policy(3)))),
                is_otherwise(Authority::Operator(&operator(Some(3))))
            ),
            (refuses, refuses),
            "{under_lock_now:?}"
        );
    }
    // A dry run plans by none and reads none.
    let state = UnderLock { guard_revision: None, ..under_lock(Some(5), None, None) };
    assert!(!Authority::Operator(&operator(None)).is_guarded_otherwise(&state));
}

fn operator<'a>() -> OperatorGuard<'a> {
    OperatorGuard {
        expected_table_uuid: None,
        read_snapshot: None,
        max_files: 1,
        receipt: None,
        guard_revision: Some(3),
    }
}

fn table() -> TableIdentity {
    TableIdentity {
        catalog_id: 1,
        catalog: "lake".to_owned(),
        table_id: 2,
        table_uuid: Uuid::from_u128(7),
        namespace: "events".to_owned(),
        table: "raw".to_owned(),
    }
}

/// The table as it was planned, and nothing in the way.
fn as_planned() -> UnderLock {
    let table = table();
    UnderLock {
        table_uuid: Some(table.table_uuid),
        live_as: Some((table.namespace, table.table)),
        ..under_lock(None, None, None)
    }
}

fn refused(guard: &OperatorGuard<'_>, state: UnderLock) -> Option<Refusal> {
    Authority::Operator(guard).refuses(&table(), Some(&state))
}

/// A retry gets the first answer, whatever else is in the way by now.
#[test]
fn a_receipt_comes_before_all_other_guards() {
    let guard = operator();
    let with = |state| UnderLock { has_receipt: true, ..state };
    assert_eq!(refused(&guard, as_planned()), None);
    for in_the_way in [
        as_planned(),
        UnderLock { is_restored: true, ..as_planned() },
        UnderLock { live_as: None, table_uuid: None, ..as_planned() },
        UnderLock { is_paused: true, ..as_planned() },
        UnderLock { guard_revision: Some(4), ..as_planned() },
    ] {
        assert_eq!(refused(&guard, with(in_the_way)), Some(Refusal::HasReceipt));
    }
}

#[test]
fn the_uuid_must_be_the_planned_and_the_expected_one() {
    let other = Uuid::from_u128(8);
    let expects = |expected| OperatorGuard { expected_table_uuid: Some(expected), ..operator() };
    assert_eq!(refused(&expects(table().table_uuid), as_planned()), None);
    assert_eq!(refused(&expects(other), as_planned()), Some(Refusal::Recreated));
    let replaced = UnderLock { table_uuid: Some(other), ..as_planned() };
    assert_eq!(refused(&operator(), replaced), Some(Refusal::Gone));
}

/// Of a policy that keeps the newest values nothing passes that is not proven, and nothing below the floor is.
#[test]
fn the_newest_values_must_be_those_that_were_looked_for() {
    let of = |newest_as_of| PolicyGuard {
        source: Source::Stored,
        revision: 5,
        property_text: None,
        guard_revision: 3,
        uses_approval: false,
        newest_as_of,
    };
    let state = |newest_changed, floor| UnderLock {
        newest_changed,
        floor,
        stored_revision: Some(5),
        ..as_planned()
    };
    let refused =
        |guard: PolicyGuard, state| Authority::Policy(Some(&guard)).refuses(&table(), Some(&state));
    for (as_of, changed, floor, expected) in [
        (None, true, 9, None),
        (Some(7), false, 0, None),
        (Some(7), false, 8, None),
        (Some(7), false, 9, Some(Refusal::NewestChanged)),
        (Some(7), true, 0, Some(Refusal::NewestChanged)),
        (Some(NEVER), false, 0, Some(Refusal::NewestChanged)),
    ] {
        let said = (as_of, changed, floor);
        assert_eq!(refused(of(as_of), state(changed, floor)), expected, "{said:?}");
    }
    // What was told is told only of a policy that keeps them.
    assert_eq!(of(None).newest_as_of(Some(7)), of(None));
    assert_eq!(of(Some(NEVER)).newest_as_of(None), of(Some(NEVER)));
    assert_eq!(of(Some(NEVER)).newest_as_of(Some(7)), of(Some(7)));
    // A policy that is another one is told first.
    let other = UnderLock { stored_revision: Some(6), ..state(true, 0) };
    assert_eq!(refused(of(Some(7)), other), Some(Refusal::PolicyChanged));
}
