use super::*;
use crate::catalog::discovery::Counts;
use crate::window::evidence::Doubt;

const HOUR: Duration = Duration::from_secs(3_600);

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

fn expired(day: i64) -> ExpiredTuple {
    let tuple = StoredTuple { keys: vec![0], values: vec![Some(day.to_string())] };
    ExpiredTuple {
        tuple: TupleOfSpec { spec_id: 1, tuple },
        lead: 0,
        display: format!("day {day}"),
        range_end: UtcInstant::from_days(i128::from(day) + 1),
        doubt: Doubt::default(),
        newest: None,
        counts: Counts { files: 2, ..Counts::default() },
        ids: vec![1, 2],
    }
}

fn stored(list: &WaitingList) -> Remembered {
    let json = serde_json::to_value(list.to_remember()).expect("JSON");
    serde_json::from_value(json).expect("its own JSON")
}

#[test]
fn pauses_double_from_a_quarter_of_an_hour_to_a_day_and_since_stays() {
    let mut now = at("2026-11-30T12:00:00Z");
    let first = now;
    let mut list = WaitingList::default();
    let mut minutes = Vec::new();
    for number in 1..=9 {
        let news = list.refuse(&expired(1), "no", "no".to_owned(), now).is_some();
        assert_eq!(news, number == 1, "told once");
        list = WaitingList::of(stored(&list), now);
        let waiting = list.poison(&expired(1).tuple).expect("remembered");
        assert_eq!((waiting.tries, waiting.since, waiting.seen_at), (number, first, now));
        let next = waiting.next_look.expect("a time");
        minutes.push(next.distance(now).as_secs() / 60);
        now = next;
    }
    assert_eq!(minutes, [15, 30, 60, 120, 240, 480, 960, 1_440, 1_440]);
    assert!(
        list.refuse(&expired(1), "something else", "something else".to_owned(), now).is_some(),
        "told again"
    );
}

#[test]
fn since_is_kept_only_for_the_same_reason() {
    let (first, second) = (at("2026-11-30T12:00:00Z"), at("2026-11-30T13:00:00Z"));
    let mut list = WaitingList::default();
    assert_eq!(list.keep(&expired(1), WaitReason::Busy, None, first), None);
    assert_eq!(list.keep(&expired(1), WaitReason::Busy, None, second), None);
    let since = |list: &WaitingList| stored(list).tuples[0].since;
    assert_eq!(since(&list), first);
    assert_eq!(list.keep(&expired(1), WaitReason::Oversize, None, second), None);
    assert_eq!(since(&list), second);
    list.refuse(&expired(1), "no", "no".to_owned(), second);
    let evidence = WaitReason::Evidence(KeptReason::NewerRowsThanPartition);
    let released = list.keep(&expired(1), evidence, None, second);
    assert_eq!(released.and_then(|waiting| waiting.error), Some("no".to_owned()));
    assert_eq!(stored(&list).tuples[0].reason, evidence);
    assert_eq!(stored(&list).tuples[0].error, None);
}

#[test]
fn what_a_pass_did_not_meet_is_forgotten_only_when_it_has_seen_all() {
    let now = at("2026-11-30T12:00:00Z");
    let mut list = WaitingList::default();
    for day in 1..=3 {
        list.keep(&expired(day), WaitReason::Busy, None, now);
    }
    list.refuse(&expired(4), "no", "no".to_owned(), now);
    let mut next = WaitingList::of(stored(&list), now);
    next.meet(&expired(2), now);
    assert_eq!(next.went(&expired(3).tuple), None);
    // A pass that stops here keeps what it did not look at.
    assert_eq!(stored(&next).tuples.len(), 3);
    let released: Vec<_> = next.forget_unmet().into_iter().map(|waiting| waiting.display).collect();
    assert_eq!(released, ["day 4"]);
    let left: Vec<_> = stored(&next).tuples.into_iter().map(|waiting| waiting.display).collect();
    assert_eq!(left, ["day 2"]);
}

#[test]
fn the_list_is_bounded_poisoned_ones_first_and_the_oldest_before_others() {
    let now = at("2026-11-30T12:00:00Z");
    let mut list = WaitingList::default();
    let most = i64::try_from(MOST).expect("small");
    for day in 0..most {
        list.keep(&expired(day), WaitReason::Busy, None, now);
    }
    list.keep(&expired(most), WaitReason::Oversize, None, now);
    list.refuse(&expired(most + 1), "no", "no".to_owned(), now);
    let remembered = list.to_remember();
    assert_eq!(remembered.tuples.len(), MOST);
    assert_eq!(remembered.tuples[0].display, format!("day {}", most + 1));
    assert_eq!(remembered.tuples[1].display, "day 0");
    assert_eq!(remembered.tuples[MOST - 1].display, format!("day {}", most - 2));
    let more = [("busy".to_owned(), 1), ("oversize".to_owned(), 1)];
    assert_eq!(remembered.more, BTreeMap::from(more));
}

#[test]
fn a_memory_that_no_pass_has_kept_up_or_can_have_written_says_nothing() {
    let noon = at("2026-11-30T12:00:00Z");
    let mut list = WaitingList::default();
    list.keep(&expired(1), WaitReason::Busy, None, noon);
    list.refuse(&expired(2), "no", "no".to_owned(), noon);
    let of =
        |day: i64| stored(&list).tuples.into_iter().find(|one| one.key() == expired(day).tuple);
    let (busy, poisoned) = (of(1).expect("busy"), of(2).expect("poisoned"));
    let second = Duration::from_secs(1);
    for (waiting, last) in [(&busy, noon.plus(HOUR)), (&poisoned, noon.plus(HOUR + HOUR / 4))] {
        assert!(waiting.is_current(noon, HOUR), "{waiting:?}");
        assert!(waiting.is_current(last, HOUR), "{waiting:?}");
        assert!(!waiting.is_current(last.plus(second), HOUR), "{waiting:?}");
        assert!(!waiting.is_current(noon.minus(second), HOUR), "{waiting:?}");
    }
    let earlier = WaitingList::of(stored(&list), noon.minus(second));
    assert_eq!(earlier.to_remember(), Remembered::default());
}

#[test]
fn names_are_those_of_the_json() {
    use WaitReason::{Busy, Evidence, Oversize, Poisoned};
    for reason in [Poisoned, Oversize, Busy, Evidence(KeptReason::AmbiguousSpec)] {
        let json = serde_json::to_value(reason).expect("JSON");
        assert_eq!(json, reason.name());
        assert_eq!(serde_json::from_value::<WaitReason>(json).expect("read back"), reason);
    }
}
