use super::*;
use crate::rules::expiry::evidence::Doubt;

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

fn of(policy: bool, verdict: &Verdict, files: i64) -> (Outlook, Vec<&'static str>) {
    let (guards, problem) = (Guards::default(), "its field is gone".to_owned());
    let facts = Facts {
        now: at("2026-12-01T00:00:00Z"),
        guards: &guards,
        held_by: None,
        policy: policy.then_some(Err(&problem)),
        is_parquet: true,
        verdict,
        withheld: None,
        waiting: None,
        clock_refused: None,
        queue: None,
    };
    let Blocks { outlook, blocked_by, .. } = blocks(&facts, files);
    (outlook, blocked_by.into_iter().map(|block| block.by).collect())
}

#[test]
fn without_a_policy_that_is_followed_nothing_is_dropped() {
    let range_end = at("2026-09-18T00:00:00Z");
    let expired = Verdict::Expired { range_end, doubt: Doubt::default() };
    assert_eq!(of(false, &expired, 3), (Outlook::NoPolicy, vec![]));
    assert_eq!(of(true, &expired, 3), (Outlook::NoPolicy, vec!["policy"]));
    assert_eq!(of(false, &expired, 0), (Outlook::NoFiles, vec![]));
    let unknown = Verdict::Kept { reason: KeptReason::Null, leaves_at: None };
    assert_eq!(of(false, &unknown, 1), (Outlook::NoPolicy, vec![]));
}
