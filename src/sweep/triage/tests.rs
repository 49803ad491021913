use super::*;
use crate::catalog::tables::{Catalog, TableIdentity};
use crate::rules::clock_guard::{Accepted, Boot, RefusedSince};
use crate::sweep::memory::RULES_NUMBER;

const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

fn now() -> UtcInstant {
    at("2026-09-17T12:00:00Z")
}

fn rules() -> Rules {
    Rules {
        now: now(),
        kind: Kind::Regular,
        min_keep: Duration::from_secs(60),
        full_pass_every: DAY,
        spreads_full_passes: false,
    }
}

pub(crate) fn policy(mode: &str) -> PolicyLook {
    PolicyLook {
        revision: 7,
        mode: mode.to_owned(),
        field: "day(at)".to_owned(),
        source_field_id: 2,
        keep: "7d".to_owned(),
        keep_seconds: 7 * 86_400,
        property_text: None,
        problem: None,
    }
}

pub(crate) fn mirror(text: &str) -> PolicyLook {
    PolicyLook { property_text: Some(text.to_owned()), ..policy("enforce") }
}

/// A table that enforces, and of which everything is known and done.
pub(crate) fn quiet() -> TableLook {
    TableLook {
        identity: TableIdentity {
            catalog_id: 1,
            catalog: "lake".to_owned(),
            table_id: 3,
            table_uuid: Uuid::from_u128(5),
            namespace: "events".to_owned(),
            table: "raw".to_owned(),
        },
        is_parquet: true,
        has_property: false,
        property: None,
        guard_revision: 3,
        stored: Some(policy("enforce")),
        mirror: None,
        state: Some(StateLook {
            source_field_id: 2,
            through_snapshot: 40,
            full_pass_at: at("2026-09-17T00:00:00Z").to_chrono(),
            owes_full_pass: false,
            is_reading: false,
            rules: Some(RULES_NUMBER.into()),
            policy_revision: Some(7),
            guard_revision: 3,
            schema_version: Some(4),
            shape: Some("shape".to_owned()),
            property: None,
            outcome: Some("nothing_to_do".to_owned()),
            error: None,
            counted: None,
            unlooked: 0,
            quiet_until: None,
        }),
    }
}

pub(crate) fn facts(look: &TableLook) -> Facts<'_> {
    Facts {
        look,
        schema_version: 4,
        shape: None,
        ends: EarliestEnds::default(),
        has_new_files: false,
        is_named: false,
        is_in_doubt: false,
    }
}

/// What the work is, of a table that differs from the quiet one in this.
fn with(change: impl FnOnce(&mut TableLook)) -> Vec<Reason> {
    let mut look = quiet();
    change(&mut look);
    work(&facts(&look), &rules()).map(|work| work.reasons).unwrap_or_default()
}

fn with_state(change: impl FnMut(&mut StateLook)) -> Vec<Reason> {
    with(|look| look.state.iter_mut().for_each(change))
}

#[test]
fn where_nothing_came_up_there_is_no_work() {
    assert_eq!(with(|_| {}), []);
}

/// Each reason alone: whoever takes one away leaves a table out that has work.
#[test]
fn each_reason_is_enough() {
    let look = quiet();
    let of = |facts: Facts<'_>| work(&facts, &rules()).map(|work| work.reasons).unwrap_or_default();
    assert_eq!(of(Facts { is_named: true, ..facts(&look) }), [Reason::Named]);
    assert_eq!(of(Facts { is_in_doubt: true, ..facts(&look) }), [Reason::Catalog]);
    assert_eq!(of(Facts { has_new_files: true, ..facts(&look) }), [Reason::NewFiles]);
    let end = |text| EarliestEnds { any: Some(at(text)), since_looked: None };
    assert_eq!(of(Facts { ends: end("2026-09-10T12:00:00Z"), ..facts(&look) }), [Reason::Due]);
    assert_eq!(of(Facts { ends: end("2026-09-10T12:00:01Z"), ..facts(&look) }), []);
    // Another schema_version, with the same shape, with another one, and with none that is known.
    let redefined = Facts { schema_version: 5, ..facts(&look) };
    assert_eq!(of(Facts { shape: Some("shape"), ..redefined }), []);
    assert_eq!(of(Facts { shape: Some("other"), ..redefined }), [Reason::Shape]);
    assert_eq!(of(redefined), [Reason::Shape]);

    assert_eq!(with(|look| look.state = None), [Reason::Unknown]);
    assert_eq!(with_state(|state| state.source_field_id = 3), [Reason::OtherField]);
    assert_eq!(with_state(|state| state.policy_revision = Some(6)), [Reason::PolicyRevision]);
    assert_eq!(with_state(|state| state.policy_revision = None), [Reason::PolicyRevision]);
    assert_eq!(with_state(|state| state.guard_revision = 2), [Reason::GuardRevision]);
    assert_eq!(with_state(|state| state.schema_version = None), [Reason::Shape]);
    assert_eq!(with_state(|state| state.rules = Some(2)), [Reason::Rules]);
    assert_eq!(with_state(|state| state.rules = None), [Reason::Rules]);
    assert_eq!(with_state(|state| state.is_reading = true), [Reason::FullScan]);
    assert_eq!(with_state(|state| state.owes_full_pass = true), [Reason::FullPass]);
    assert_eq!(with_state(|state| state.full_pass_at = None), [Reason::FullPass]);
    let a_day_ago = at("2026-09-16T12:00:00Z").to_chrono();
    assert_eq!(with_state(|state| state.full_pass_at = a_day_ago), [Reason::FullPass]);
    assert_eq!(with_state(|state| state.outcome = None), [Reason::Unfinished]);
}

#[test]
fn outcomes_that_stand_are_these() {
    let stands =
        |name: &&str| with_state(|state| state.outcome = Some((*name).to_owned())).is_empty();
    let all = [
        "dropped",
        "nothing_to_do",
        "observed",
        "paused",
        "partial",
        "held_back",
        "busy",
        "poisoned",
        "policy_changed",
        "oversize",
        "lock_timeout",
        "clock_behind",
        "clock_skew",
        "unhealthy",
        "gone",
        "failed",
        "of another version",
    ];
    let standing: Vec<&str> = all.into_iter().filter(stands).collect();
    assert_eq!(
        standing,
        ["dropped", "nothing_to_do", "observed", "busy", "poisoned", "oversize", "unhealthy"]
    );
}

#[test]
fn a_policy_that_is_not_followed_is_told_each_time() {
    assert_eq!(with(|look| look.is_parquet = false), [Reason::Policy]);
    let stored = |change: fn(&mut PolicyLook)| with(|look| look.stored.iter_mut().for_each(change));
    assert_eq!(stored(|policy| policy.keep_seconds = 59), [Reason::Policy]);
    assert_eq!(stored(|policy| policy.mode = "mirrored".to_owned()), [Reason::Policy]);
    assert_eq!(
        with(|look| {
            look.stored = None;
            (look.has_property, look.property) = (true, Some("{}".to_owned()));
            look.mirror = Some(PolicyLook { problem: Some("no".to_owned()), ..mirror("{}") });
        }),
        [Reason::Policy, Reason::Property]
    );
}

#[test]
fn a_property_is_news_until_it_is_mirrored() {
    let set = |look: &mut TableLook, text: &str| {
        (look.has_property, look.property) = (true, Some(text.to_owned()));
    };
    // Alone: mirrored, another one, not yet mirrored, gone.
    let alone = |mirrored: Option<&str>, text: Option<&str>| {
        with(|look| {
            look.stored = None;
            look.mirror = mirrored.map(mirror);
            text.iter().for_each(|text| set(look, text));
        })
    };
    assert_eq!(alone(Some("a"), Some("a")), []);
    assert_eq!(alone(Some("a"), Some("b")), [Reason::Property]);
    assert_eq!(alone(None, Some("b")), [Reason::Property]);
    assert_eq!(alone(Some("a"), None), [Reason::Property]);
    // No text at all.
    assert_eq!(with(|look| look.has_property = true), [Reason::Property]);
    // Beside a stored policy one that is refused is looked at once.
    assert_eq!(with(|look| set(look, "no JSON")), [Reason::Property]);
    let known = with(|look| {
        set(look, "no JSON");
        let noted = look.property.clone();
        look.state.iter_mut().for_each(|state| state.property = noted.clone());
    });
    assert_eq!(known, []);
}

#[test]
fn a_paused_table_has_work_in_its_property_alone() {
    let paused = |look: &mut TableLook| look.stored = Some(policy("paused"));
    let unknown = with(|look| {
        paused(look);
        look.state = None;
    });
    assert_eq!(unknown, []);
    let mut look = quiet();
    paused(&mut look);
    let due = EarliestEnds { any: Some(UtcInstant::EARLIEST), since_looked: None };
    let facts = Facts { ends: due, has_new_files: true, schema_version: 9, ..facts(&look) };
    assert_eq!(work(&facts, &rules()), None);
    let property = with(|look| {
        paused(look);
        (look.has_property, look.property) = (true, Some("{}".to_owned()));
    });
    assert_eq!(property, [Reason::Property]);
}

/// What would be dropped is there in each pass, and is logged once.
#[test]
fn a_table_that_observes_is_looked_at_when_something_falls_due() {
    let mut look = quiet();
    look.stored = Some(policy("observe"));
    let old = Some(at("2026-01-01T00:00:00Z"));
    let ends = |since_looked| EarliestEnds { any: old, since_looked };
    let of = |ends| work(&Facts { ends, ..facts(&look) }, &rules()).map(|work| work.reasons);
    assert_eq!(of(ends(None)), None);
    assert_eq!(of(ends(Some(at("2026-09-11T00:00:00Z")))), None);
    assert_eq!(of(ends(Some(at("2026-09-10T00:00:00Z")))), Some(vec![Reason::Due]));
}

#[test]
fn what_is_due_comes_first_then_what_came_late() {
    let look = quiet();
    let steps = |facts| work(&facts, &rules()).map(|work| work.steps);
    let due = EarliestEnds { any: Some(at("2026-09-10T11:59:59Z")), since_looked: None };
    let all = Facts { ends: due, has_new_files: true, is_named: true, ..facts(&look) };
    let all_steps = Steps { due: Some(1_000_000_000), late: true, rest: true };
    assert_eq!(steps(all), Some(all_steps));
    let due_and_late = Facts { is_named: false, ..all };
    assert_eq!(steps(due_and_late), Some(Steps { rest: false, ..all_steps }));
    let late = Facts { ends: EarliestEnds::default(), ..due_and_late };
    assert_eq!(steps(late), Some(Steps { due: None, late: true, rest: false }));
    assert_eq!(steps(Facts { has_new_files: false, ..late }), None);
    // What is due of another column is not.
    let mut other = quiet();
    other.state.iter_mut().for_each(|state| state.source_field_id = 3);
    let facts = Facts { look: &other, ..due_and_late };
    assert_eq!(steps(facts), Some(Steps { due: None, ..all_steps }));
}

#[test]
fn a_wake_is_for_what_is_due_in_tables_that_enforce() {
    let wake = Rules { kind: Kind::Wake, ..rules() };
    let due = EarliestEnds { any: Some(at("2026-09-10T12:00:00Z")), since_looked: None };
    let of = |change: &dyn Fn(&mut TableLook), ends| {
        let mut look = quiet();
        change(&mut look);
        let all = Facts { ends, has_new_files: true, is_named: true, ..facts(&look) };
        work(&all, &wake).map(|work| work.reasons)
    };
    let only_due = Some(vec![Reason::Due]);
    assert_eq!(of(&|_| {}, due), only_due);
    assert_eq!(of(&|_| {}, EarliestEnds::default()), None);
    assert_eq!(of(&|look| look.stored = Some(policy("observe")), due), None);
    assert_eq!(of(&|look| look.stored = Some(policy("paused")), due), None);
    assert_eq!(of(&|look| look.is_parquet = false, due), None);
    let quiet_until = |text: &str| {
        let until = at(text).to_chrono();
        of(&|look| look.state.iter_mut().for_each(|state| state.quiet_until = until), due)
    };
    assert_eq!(quiet_until("2026-09-17T12:00:00Z"), only_due);
    assert_eq!(quiet_until("2026-09-17T12:00:01Z"), None);
}

#[test]
fn what_is_left_out_has_the_report_of_its_last_pass() {
    let report = |change: &dyn Fn(&mut TableLook)| {
        let mut look = quiet();
        change(&mut look);
        left_out(&look, Some("at"), now()).expect("a report")
    };
    let state = |outcome: &'static str, error: Option<&'static str>| {
        report(&move |look| {
            look.state.iter_mut().for_each(|state| {
                state.outcome = Some(outcome.to_owned());
                state.error = error.map(str::to_owned);
                state.counted = at("2026-09-17T00:00:00Z").to_chrono().map(|at| (4, 5, at));
            });
        })
    };
    let poisoned = state("poisoned", Some("a trigger"));
    assert_eq!(
        (poisoned.outcome, poisoned.error.as_deref()),
        (Outcome::Poisoned, Some("a trigger"))
    );
    assert_eq!(poisoned.field.as_deref(), Some("day(at)"));
    assert_eq!((poisoned.column.as_deref(), poisoned.keep.as_deref()), (Some("at"), Some("7d")));
    assert_eq!(poisoned.cutoff, Some(at("2026-09-10T12:00:00Z")));
    assert_eq!(poisoned.full, Some(false));
    let counted =
        Counted { undatable_files: 4, uncovered_files: 5, at: at("2026-09-17T00:00:00Z") };
    assert_eq!(poisoned.counted, Some(counted));
    // What was dropped is no news.
    assert_eq!(state("dropped", None).outcome, Outcome::NothingToDo);
    let observed = report(&|look| {
        look.stored = Some(policy("observe"));
        look.state.iter_mut().for_each(|state| state.outcome = Some("observed".to_owned()));
    });
    assert_eq!((observed.outcome, observed.full), (Outcome::Observed, None));
    let paused = report(&|look| {
        look.stored = Some(policy("paused"));
        look.state.iter_mut().for_each(|state| state.error = Some("old".to_owned()));
    });
    assert_eq!((paused.outcome, paused.error, paused.full), (Outcome::Paused, None, None));
}

fn catalog() -> CatalogLook {
    CatalogLook {
        catalog: Catalog { catalog_id: 1, name: "lake".to_owned() },
        head: 40,
        head_time: None,
        schema_version: 4,
        is_whole: true,
        agrees: true,
        newest_time: None,
        is_behind: false,
        newest_through: Some(40),
        specs_copied_at_version: Some(4),
        has_undated_copies: false,
        has_older_epoch: false,
    }
}

fn accepted(ago: Duration) -> Memory {
    let boot = Some(Boot { millis: 0, process: Uuid::from_u128(1) });
    let accepted = Accepted { now: now().minus(ago), host: Some(now().minus(ago)), boot };
    Memory { accepted: Some(accepted), ..Memory::default() }
}

#[test]
fn each_reason_to_look_after_a_catalog_is_enough() {
    let reading = Reading::rehearsed(now());
    let minute = accepted(Duration::from_secs(60));
    let of = |look: CatalogLook, memory: &Memory, is_restored, has_due_marks| {
        let facts = CatalogFacts { look: &look, is_restored, memory, has_due_marks };
        catalog_reasons(&facts, &reading, Duration::from_secs(300))
    };
    let looked = |look| of(look, &minute, false, false);
    assert_eq!(looked(catalog()), []);
    assert_eq!(looked(CatalogLook { is_whole: false, ..catalog() }), [CatalogReason::NotWhole]);
    assert_eq!(of(catalog(), &minute, true, false), [CatalogReason::Restored]);
    assert_eq!(looked(CatalogLook { is_behind: true, ..catalog() }), [CatalogReason::Clock]);
    for memory in [
        Memory::default(),
        Memory { is_accepted_once: true, ..minute },
        Memory { refused: Some(RefusedSince { at: now(), by_boot: false }), ..minute },
        // The database's clock went on, and the host's did not.
        Memory {
            accepted: minute.accepted.map(|was| Accepted { now: was.now.minus(DAY), ..was }),
            ..minute
        },
    ] {
        assert_eq!(of(catalog(), &memory, false, false), [CatalogReason::Clock], "{memory:?}");
    }
    for look in [
        CatalogLook { specs_copied_at_version: None, ..catalog() },
        CatalogLook { schema_version: 5, ..catalog() },
        CatalogLook { has_undated_copies: true, ..catalog() },
    ] {
        assert_eq!(looked(look), [CatalogReason::Specs]);
    }
    assert_eq!(of(catalog(), &minute, false, true), [CatalogReason::Marks]);
    assert_eq!(looked(CatalogLook { has_older_epoch: true, ..catalog() }), [CatalogReason::Marks]);
}

#[test]
fn what_is_remembered_of_a_clock_is_renewed_now_and_then() {
    let reading = |process: u128| {
        let boot = Some(Boot { millis: 0, process: Uuid::from_u128(process) });
        Reading { boot, ..Reading::rehearsed(now()) }
    };
    let (fresh, old) = (accepted(CLOCK_STANDS - Duration::from_secs(1)), accepted(CLOCK_STANDS));
    assert!(!is_stale(&fresh, &reading(1)));
    assert!(is_stale(&old, &reading(1)));
    assert!(is_stale(&fresh, &reading(2)), "another process");
    assert!(!is_stale(&fresh, &Reading::rehearsed(now())), "no CLOCK_BOOTTIME to remember");
}
