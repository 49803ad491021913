use std::time::Duration;

use super::{Pending, PendingTerms, PolicyLimits};
use crate::catalog::specs::TableShape;
use crate::guards::Guards;
use crate::policy::present::PolicyField;
use crate::policy::{Mode, Policy, Source};
use crate::rules::instant::UtcInstant;
use crate::rules::keep::Keep;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: PolicyLimits = PolicyLimits { min_keep: MINUTE, grace: Duration::from_secs(3_600) };
const NONE: PolicyLimits = PolicyLimits { min_keep: MINUTE, grace: Duration::ZERO };

fn policy(keep: &str, keep_last: Option<i32>, mode: Mode) -> Policy {
    Policy {
        source: Source::Stored,
        field: PolicyField::of("at", 1, &TableShape::default()),
        source_field_id: 1,
        keep: Keep::parse(keep).expect("a keep"),
        keep_last,
        mode,
        fence: false,
        revision: 0,
        property_text: None,
        is_confirmed: false,
        pending: None,
        guards: Guards::default(),
    }
}

fn enforced(keep: &str) -> Policy {
    policy(keep, None, Mode::Enforce)
}

/// What is in force of a policy: keep, newest values, mode; and whether anything waits.
fn in_force(policy: &Policy) -> (&str, Option<i32>, Mode, bool) {
    (policy.keep.text(), policy.keep_last, policy.mode, policy.pending.is_some())
}

#[test]
fn what_drops_earlier_waits_and_what_keeps_longer_does_not() {
    use Mode::{Enforce, Observe, Paused};
    let of = |keep, keep_last, mode| policy(keep, keep_last, mode);
    for (before, asked, expected) in [
        (Some(enforced("90d")), enforced("7d"), ("90d", None, Enforce, true)),
        (Some(enforced("7d")), enforced("90d"), ("90d", None, Enforce, false)),
        (Some(enforced("7d")), enforced("168h"), ("168h", None, Enforce, false)),
        // Each keeps what the other does not.
        (Some(of("7d", Some(3), Enforce)), enforced("90d"), ("90d", Some(3), Enforce, true)),
        (Some(enforced("90d")), of("7d", Some(3), Enforce), ("90d", Some(3), Enforce, true)),
        (
            Some(of("7d", Some(3), Enforce)),
            of("7d", Some(2), Enforce),
            ("7d", Some(3), Enforce, true),
        ),
        (
            Some(of("7d", Some(2), Enforce)),
            of("7d", Some(3), Enforce),
            ("7d", Some(3), Enforce, false),
        ),
        (None, enforced("7d"), ("7d", None, Observe, true)),
        (Some(of("7d", None, Observe)), enforced("7d"), ("7d", None, Observe, true)),
        (Some(of("7d", None, Paused)), enforced("7d"), ("7d", None, Paused, true)),
        (Some(enforced("90d")), of("1d", None, Observe), ("1d", None, Observe, false)),
        (None, of("1d", None, Observe), ("1d", None, Observe, false)),
    ] {
        let after = asked.clone().after(before.as_ref(), HOUR);
        assert_eq!(in_force(&after), expected, "{before:?} {asked:?}");
        assert_eq!(after.asked(), asked);
    }
    // Nothing was dropped by one that keeps too short.
    let after = enforced("90d").after(Some(&enforced("30s")), HOUR);
    assert_eq!(in_force(&after), ("90d", None, Observe, true));
    // By another column nothing was dropped.
    let other = Policy { source_field_id: 2, ..enforced("7d") };
    let after = enforced("7d").after(Some(&other), HOUR);
    assert_eq!(in_force(&after), ("7d", None, Observe, true));
}

#[test]
fn what_is_confirmed_and_what_has_no_grace_waits_for_nothing() {
    let confirmed = Policy { is_confirmed: true, ..enforced("7d") };
    assert_eq!(confirmed.clone().after(None, HOUR), confirmed);
    assert_eq!(enforced("7d").after(None, NONE), enforced("7d"));
}

/// Whoever sets the same again every minute comes to an end; whoever shortens it again waits anew.
#[test]
fn what_keeps_as_long_as_what_waits_waits_no_longer() {
    let until: UtcInstant = "2026-12-03T13:00:00Z".parse().expect("a time");
    let terms = PendingTerms {
        keep: "7d".to_owned(),
        keep_seconds: 7 * 86_400,
        keep_last: None,
        mode: Mode::Enforce,
    };
    let waiting = |before: Policy| {
        let pending = Some(Pending { until: Some(until), terms: terms.clone() });
        Policy { pending, ..before }
    };
    for before in [enforced("90d"), policy("7d", None, Mode::Observe)] {
        let before = waiting(before);
        for (keep, expected) in [("7d", Some(until)), ("8d", Some(until)), ("6d", None)] {
            let after = enforced(keep).after(Some(&before), HOUR);
            assert_eq!(after.pending.map(|pending| pending.until), Some(expected), "{keep}");
        }
    }
    // What was in force is in force again, and nothing waits.
    let back = enforced("90d").after(Some(&waiting(enforced("90d"))), HOUR);
    assert_eq!(in_force(&back), ("90d", None, Mode::Enforce, false));
}
