use super::*;
use crate::catalog::triage::tables::{PolicyLook, StateLook, TableLook};
use crate::catalog::triage::work::EarliestEnds;
use crate::sweep::triage::tests::{self, at, facts, mirror, policy};

const LEAD: Duration = Duration::from_secs(86_400);

/// A table that enforces, and of which everything is known and done; a full pass was long ago.
fn quiet() -> TableLook {
    let mut look = tests::quiet();
    let long_ago = at("2026-01-17T00:00:00Z").to_chrono();
    look.state.iter_mut().for_each(|state| state.full_pass_at = long_ago);
    look
}

fn of(facts: &Facts<'_>) -> Todo {
    todo(facts, &rules(at("2026-09-17T12:00:00Z").plus(LEAD), Duration::from_secs(60)))
}

/// What there is to do in a table that differs from the quiet one in this.
fn with(change: impl FnOnce(&mut TableLook)) -> Todo {
    let mut look = quiet();
    change(&mut look);
    of(&facts(&look))
}

fn with_state(change: impl FnMut(&mut StateLook)) -> Todo {
    with(|look| look.state.iter_mut().for_each(change))
}

const NOTHING: Todo = Todo { mirrors: false, claims: false };
const CLAIMS: Todo = Todo { mirrors: false, claims: true };
const MIRRORS: Todo = Todo { mirrors: true, claims: false };
const BOTH: Todo = Todo { mirrors: true, claims: true };

#[test]
fn where_nothing_came_up_there_is_nothing_to_do() {
    assert_eq!(with(|_| {}), NOTHING);
}

/// Seven days and `compaction.lead` before the end of what falls due.
#[test]
fn what_expires_within_compaction_lead_is_looked_for() {
    let look = quiet();
    let ends = |text| {
        let ends = EarliestEnds { any: Some(at(text)), since_looked: None };
        of(&Facts { ends, ..facts(&look) })
    };
    assert_eq!(ends("2026-09-11T12:00:00Z"), CLAIMS);
    assert_eq!(ends("2026-09-11T12:00:00.000001Z"), NOTHING);
}

#[test]
fn each_reason_is_enough() {
    let look = quiet();
    assert_eq!(of(&Facts { has_new_files: true, ..facts(&look) }), CLAIMS);
    assert_eq!(of(&Facts { is_in_doubt: true, ..facts(&look) }), CLAIMS);
    assert_eq!(of(&Facts { schema_version: 5, ..facts(&look) }), CLAIMS);
    assert_eq!(of(&Facts { schema_version: 5, shape: Some("shape"), ..facts(&look) }), NOTHING);
    assert_eq!(with(|look| look.state = None), CLAIMS);
    assert_eq!(with_state(|state| state.source_field_id = 3), CLAIMS);
    assert_eq!(with_state(|state| state.rules = None), CLAIMS);
    assert_eq!(with_state(|state| state.policy_revision = Some(6)), CLAIMS);
    assert_eq!(with_state(|state| state.owes_full_pass = true), CLAIMS);
    assert_eq!(with_state(|state| state.full_pass_at = None), CLAIMS);
}

/// It brings work to a pass, and says nothing of what ends within `compaction.lead`.
#[test]
fn what_only_a_pass_has_to_do_is_left_to_it() {
    let look = quiet();
    assert_eq!(of(&Facts { is_named: true, ..facts(&look) }), NOTHING);
    assert_eq!(with_state(|state| state.is_reading = true), NOTHING);
    assert_eq!(with_state(|state| state.outcome = None), NOTHING);
}

#[test]
fn only_what_enforces_is_claimed() {
    for (change, expected) in [
        ((|_| {}) as fn(&mut TableLook), CLAIMS),
        (|look| look.stored = Some(policy("observe")), NOTHING),
        (|look| look.stored = Some(policy("paused")), NOTHING),
        (|look| look.stored = Some(policy("of another version")), NOTHING),
        (|look| look.stored = Some(PolicyLook { keep_seconds: 59, ..policy("enforce") }), NOTHING),
        (|look| look.is_parquet = false, NOTHING),
    ] {
        let mut look = quiet();
        change(&mut look);
        assert_eq!(of(&Facts { has_new_files: true, ..facts(&look) }), expected, "{look:?}");
    }
}

#[test]
fn a_property_is_mirrored_where_it_may_say_something_new() {
    // What the property says, what is mirrored of it, and whether a stored policy wins.
    let set = |text: Option<&str>, mirrored: Option<PolicyLook>, is_stored: bool| {
        with(|look| {
            (look.has_property, look.property) = (text.is_some(), text.map(str::to_owned));
            look.mirror = mirrored;
            if !is_stored {
                look.stored = None;
            }
        })
    };
    let refused = || Some(PolicyLook { problem: Some("no".to_owned()), ..mirror("a") });
    let short = || Some(PolicyLook { keep_seconds: 59, ..mirror("a") });
    assert_eq!(set(Some("a"), Some(mirror("a")), false), NOTHING);
    for is_stored in [false, true] {
        let news = if is_stored { MIRRORS } else { BOTH };
        assert_eq!(set(Some("b"), Some(mirror("a")), is_stored), news);
        assert_eq!(set(Some("a"), None, is_stored), news);
        assert_eq!(set(None, Some(mirror("a")), is_stored), news);
        assert_eq!(set(Some("a"), refused(), is_stored), news);
        assert_eq!(set(Some("a"), short(), is_stored), MIRRORS);
    }
    // No text at all.
    assert_eq!(with(|look| look.has_property = true), MIRRORS);
    // That a pass has looked at the text says nothing of what is mirrored since.
    let back = with(|look| {
        (look.has_property, look.property) = (true, Some("a".to_owned()));
        look.mirror = Some(mirror("b"));
        look.state.iter_mut().for_each(|state| state.property = Some("a".to_owned()));
    });
    assert_eq!(back, MIRRORS);
}

/// The text says what it said, and what it names may be another column.
#[test]
fn a_property_is_read_again_where_the_table_may_be_another() {
    let mirrored = |look: &mut TableLook| {
        (look.has_property, look.property) = (true, Some("a".to_owned()));
        look.mirror = Some(mirror("a"));
    };
    let mut look = quiet();
    mirrored(&mut look);
    assert_eq!(of(&facts(&look)), NOTHING);
    assert_eq!(of(&Facts { schema_version: 5, ..facts(&look) }), BOTH);
    let unknown = with(|look| {
        mirrored(look);
        look.state = None;
    });
    assert_eq!(unknown, BOTH);
}

#[test]
fn nothing_is_mirrored_of_a_catalog_in_doubt() {
    let mut look = quiet();
    (look.has_property, look.property) = (true, Some("a".to_owned()));
    assert_eq!(of(&Facts { is_in_doubt: true, ..facts(&look) }), CLAIMS);
}

/// The same tables as `tailrace.enforcing_policies` has, or rules would be kept in vain or not at all.
#[test]
fn tables_are_in_the_window_by_the_policy_that_is_in_force() {
    let of = |change: &dyn Fn(&mut TableLook)| {
        let mut look = quiet();
        change(&mut look);
        enforced(&look, Duration::from_secs(60)).map(|table| table.source_field_id)
    };
    let by_property = |text: &'static str, mirrored: PolicyLook| {
        of(&move |look| {
            (look.has_property, look.property) = (true, Some(text.to_owned()));
            (look.stored, look.mirror) = (None, Some(mirrored.clone()));
        })
    };
    assert_eq!(of(&|_| {}), Some(2));
    assert_eq!(of(&|look| look.stored = Some(policy("observe"))), None);
    assert_eq!(of(&|look| look.stored = None), None);
    let kept = |seconds| PolicyLook { keep_seconds: seconds, ..policy("enforce") };
    assert_eq!(of(&|look| look.stored = Some(kept(60))), Some(2));
    assert_eq!(of(&|look| look.stored = Some(kept(59))), None);
    // A stored policy wins, whatever is mirrored.
    let other = PolicyLook { source_field_id: 9, ..mirror("a") };
    assert_eq!(of(&|look| look.mirror = Some(other.clone())), Some(2));
    assert_eq!(by_property("a", other.clone()), Some(9));
    assert_eq!(by_property("b", other.clone()), None);
    assert_eq!(
        by_property("a", PolicyLook { problem: Some("no".to_owned()), ..other.clone() }),
        None
    );
    let gone = of(&|look| (look.stored, look.mirror) = (None, Some(other.clone())));
    assert_eq!(gone, None);
}
