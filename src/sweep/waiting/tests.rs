mod pauses;

use super::parts::{MOST_PARTS, PartOf, PartState};
use super::*;
use crate::catalog::live_file::Counts;
use crate::rules::expiry::evidence::Doubt;
use crate::sweep::expired::ExpiredTuple;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

const PAUSES: Pauses = Pauses {
    pass_every: Duration::from_secs(600),
    full_pass_every: Duration::from_secs(24 * 3_600),
    are_heeded: true,
};

fn empty() -> WaitingList {
    WaitingList::of(Remembered::default(), UtcInstant::EARLIEST, PAUSES)
}

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

fn expired(day: i64) -> ExpiredTuple {
    let tuple = StoredTuple { keys: vec![0], values: vec![Some(day.to_string())] };
    ExpiredTuple {
        tuple: TupleOfSpec { spec_id: 1, tuple },
        lookup_key: 0,
        display: format!("day {day}"),
        range_end: UtcInstant::from_days(i128::from(day) + 1),
        doubt: Doubt::default(),
        newest: None,
        is_approved: false,
        counts: Counts { files: 2, ..Counts::default() },
        ids: vec![1, 2],
    }
}

fn stored(list: &WaitingList) -> Remembered {
    list.to_remember()
}

#[test]
fn pauses_double_from_15_minutes_to_6_hours_and_since_stays() {
    let mut now = at("2026-11-30T12:00:00Z");
    let first = now;
    let mut list = empty();
    let mut minutes = Vec::new();
    for number in 1..=9 {
        let news = list.refuse(&expired(1), "no", "no".to_owned(), now).is_some();
        assert_eq!(news, number == 1, "logged once");
        list = WaitingList::of(stored(&list), now, PAUSES);
        let waiting = list.poison(&expired(1).tuple).expect("remembered");
        assert_eq!((waiting.tries, waiting.since, waiting.seen_at), (number, first, now));
        let next = waiting.next_look.expect("a time");
        minutes.push(next.distance(now).as_secs() / 60);
        now = next;
    }
    assert_eq!(minutes, [15, 30, 60, 120, 240, 360, 360, 360, 360]);
    assert!(
        list.refuse(&expired(1), "something else", "something else".to_owned(), now).is_some(),
        "told again"
    );
}

#[test]
fn what_was_looked_for_and_not_met_is_forgotten() {
    let now = at("2026-11-30T12:00:00Z");
    let mut list = empty();
    for day in 1..=2 {
        list.keep(&expired(day), WaitReason::Busy, None, now);
    }
    for day in 3..=4 {
        list.refuse(&expired(day), "no", "no".to_owned(), now);
    }
    let mut next = WaitingList::of(stored(&list), now, PAUSES);
    next.meet(&expired(4), now);
    let released = next.forget_looked(|waiting| waiting.display != "day 1");
    let displays = |list: &[Waiting]| -> Vec<String> {
        list.iter().map(|waiting| waiting.display.clone()).collect()
    };
    assert_eq!(displays(&released), ["day 3"]);
    assert_eq!(displays(&stored(&next).tuples), ["day 4", "day 1"]);
}

#[test]
fn since_is_kept_only_for_the_same_reason() {
    let (first, second) = (at("2026-11-30T12:00:00Z"), at("2026-11-30T13:00:00Z"));
    let mut list = empty();
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
fn what_a_pass_did_not_meet_is_forgotten_only_if_it_saw_all() {
    let now = at("2026-11-30T12:00:00Z");
    let mut list = empty();
    for day in 1..=3 {
        list.keep(&expired(day), WaitReason::Busy, None, now);
    }
    list.refuse(&expired(4), "no", "no".to_owned(), now);
    let mut next = WaitingList::of(stored(&list), now, PAUSES);
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
fn the_list_is_bounded_poisoned_ones_then_the_oldest_first() {
    let now = at("2026-11-30T12:00:00Z");
    let mut list = empty();
    let most = i64::try_from(MOST).expect("small");
    for day in 0..most {
        list.keep(&expired(day), WaitReason::Busy, None, now);
    }
    list.keep(&expired(most), WaitReason::Oversize, None, now);
    list.refuse(&expired(most + 1), "no", "no".to_owned(), now);
    list.keep(&expired(-1), WaitReason::Oversize, None, now);
    list.went(&expired(-1).tuple);
    let remembered = list.to_remember();
    assert_eq!(remembered.tuples.len(), MOST + 1);
    assert_eq!(remembered.tuples[0].display, format!("day {}", most + 1));
    assert_eq!(remembered.tuples[1].display, "day 0");
    assert_eq!(remembered.tuples[MOST].display, format!("day {}", most - 1));
    assert_eq!(remembered.more.counts, BTreeMap::from([("oversize".to_owned(), 1)]));
    // Where there were too many, how often another one was looked at is not known: it has the longest pause.
    assert_eq!(list.next_look_of(&expired(most).tuple), None);
    let mut next = WaitingList::of(remembered, now, PAUSES);
    for (day, pause) in [(most, 360), (0, 10)] {
        let later = now.plus(MINUTE);
        next.keep(&expired(day), WaitReason::Busy, None, later);
        let expected = Some(later.plus(pause * MINUTE));
        assert_eq!(next.next_look_of(&expired(day).tuple), expected, "{day}");
    }
}

#[test]
fn how_many_more_is_kept_until_all_were_met_or_looked_at() {
    let now = at("2026-11-30T12:00:00Z");
    let most = i64::try_from(MOST).expect("small");
    let mut list = WaitingList::of(Remembered::default(), now, PAUSES);
    for day in 0..most + 3 {
        list.keep(&expired(day), WaitReason::Busy, None, now);
    }
    let more = |list: &WaitingList| {
        let More { counts, until } = list.to_remember().more;
        (counts.get("busy").copied(), until)
    };
    // They pause for six hours at most.
    let until = Some(at("2026-11-30T18:00:00Z"));
    assert_eq!(more(&list), (Some(3), until));
    // An hour later, a pass that meets one that is remembered, and one that is not, then another that has gone.
    let later = now.plus(HOUR);
    let mut next = WaitingList::of(stored(&list), later, PAUSES);
    next.went(&expired(3).tuple);
    next.keep(&expired(0), WaitReason::Busy, None, later);
    next.keep(&expired(most), WaitReason::Busy, None, later);
    assert_eq!(more(&next), (Some(3), until));
    // Another one more, and it is counted from then.
    next.keep(&expired(most + 1), WaitReason::Busy, None, later);
    assert_eq!(more(&next), (Some(3), Some(at("2026-11-30T19:00:00Z"))));
    // Where there is room, another one is remembered as those that were not too many are.
    for day in 0..10 {
        next.went(&expired(day).tuple);
    }
    let mut after = WaitingList::of(stored(&next), later, PAUSES);
    after.keep(&expired(most + 2), WaitReason::Busy, None, later);
    assert_eq!(after.next_look_of(&expired(most + 2).tuple), None);
    // A pass that forgets what it has looked for and not met may not have tried what it met.
    after.forget_unmet();
    assert_eq!(more(&after), (Some(3), until));
    after.has_met_all();
    assert_eq!(more(&after), (None, None));
}

#[test]
fn how_many_more_is_forgotten_once_their_look_was_due() {
    let now = at("2026-11-30T12:00:00Z");
    let most = i64::try_from(MOST).expect("small");
    let keep = Duration::ZERO;
    let mut list = WaitingList::of(Remembered::default(), now, PAUSES);
    for day in 0..=most {
        list.keep(&expired(day), WaitReason::Busy, None, now);
    }
    let full = stored(&list);
    let more_at = |mut of: Remembered, keep: Duration, at: UtcInstant, grace: Duration| {
        of.forget_old_more(keep, at, grace);
        of.more_of(|_| true)
    };
    let six = now.plus(6 * HOUR);
    assert_eq!(more_at(full.clone(), keep, six, Duration::ZERO), 1);
    let over = six.plus(Duration::from_nanos(1));
    assert_eq!(more_at(full.clone(), keep, over, Duration::ZERO), 0);
    assert_eq!(more_at(full.clone(), keep, over, MINUTE), 1);
    // What ended after the last one of a full list has expired no earlier than that; with room nobody knows.
    let long = Duration::from_secs(86_400 * 60_000);
    assert_eq!(more_at(full.clone(), long, now, Duration::ZERO), 0);
    let room = Remembered { tuples: full.tuples[1..].to_vec(), ..full };
    assert_eq!(more_at(room, long, now, Duration::ZERO), 1);
    // As earlier versions of the program wrote it.
    let old: More = serde_json::from_str(r#"{"busy": 7}"#).expect("readable");
    assert_eq!((old.counts.get("busy"), old.until), (Some(&7), None));
    let old = Remembered { more: old, ..Remembered::default() };
    assert_eq!(more_at(old, keep, now, Duration::ZERO), 0, "it would stay for good");
    let new = serde_json::to_string(&list.to_remember().more).expect("JSON");
    assert_eq!(new, r#"{"busy":1,"until":"2026-11-30T18:00:00Z"}"#);
}

#[test]
fn a_memory_no_pass_kept_up_or_can_have_written_says_nothing() {
    let noon = at("2026-11-30T12:00:00Z");
    let mut list = empty();
    list.keep(&expired(1), WaitReason::Busy, None, noon);
    list.refuse(&expired(2), "no", "no".to_owned(), noon);
    let of =
        |day: i64| stored(&list).tuples.into_iter().find(|one| one.key() == expired(day).tuple);
    let (busy, poisoned) = (of(1).expect("busy"), of(2).expect("poisoned"));
    let second = Duration::from_secs(1);
    let paused = Waiting { next_look: Some(noon.plus(6 * HOUR)), ..busy.clone() };
    let beyond = Waiting { next_look: Some(noon.plus(6 * HOUR + second)), ..busy.clone() };
    for (waiting, last) in [
        (&busy, noon.plus(HOUR)),
        (&paused, noon.plus(7 * HOUR)),
        (&beyond, noon.plus(HOUR)),
        (&poisoned, noon.plus(HOUR + HOUR / 4)),
    ] {
        assert!(waiting.is_current(noon, HOUR, &PAUSES), "{waiting:?}");
        assert!(waiting.is_current(last, HOUR, &PAUSES), "{waiting:?}");
        assert!(!waiting.is_current(last.plus(second), HOUR, &PAUSES), "{waiting:?}");
        assert!(!waiting.is_current(noon.minus(second), HOUR, &PAUSES), "{waiting:?}");
    }
    let earlier = WaitingList::of(stored(&list), noon.minus(second), PAUSES);
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

/// The days of the tuples that lie in no part, and of those in parts.
fn sorted(list: &mut WaitingList, days: std::ops::Range<i64>) -> (Vec<String>, Vec<Vec<String>>) {
    let (others, parts) = list.parts.sort(days.map(expired).collect());
    let displays = |tuples: Vec<ExpiredTuple>| tuples.into_iter().map(|one| one.display).collect();
    (displays(others), parts.into_iter().map(|part| displays(part.tuples)).collect())
}

fn leave(list: &mut WaitingList, days: &[i64], state: PartState, now: UtcInstant) {
    let tuples: Vec<_> = days.iter().copied().map(expired).collect();
    let part = PartOf { tuples: tuples.iter().collect(), halvings: 1, state };
    list.parts.leave(&part, now);
}

#[test]
fn parts_keep_their_order_and_those_that_failed_alone_come_last() {
    let now = at("2026-11-30T12:00:00Z");
    let mut list = empty();
    leave(&mut list, &[7], PartState::Alone, now);
    leave(&mut list, &[5, 6], PartState::Together, now);
    leave(&mut list, &[1], PartState::Alone, now);
    leave(&mut list, &[2, 3], PartState::Untried, now);
    let mut next = WaitingList::of(stored(&list), now, PAUSES);
    let (others, parts) = sorted(&mut next, 0..9);
    assert_eq!(others, ["day 0", "day 4", "day 8"]);
    let expected: [&[&str]; 4] = [&["day 2", "day 3"], &["day 5", "day 6"], &["day 7"], &["day 1"]];
    assert_eq!(parts, expected);
    // All were met and nothing was left; a pass that met nothing of one keeps it, until one has seen all.
    assert_eq!(stored(&next).parts, []);
    let mut next = WaitingList::of(stored(&list), now, PAUSES);
    sorted(&mut next, 0..4);
    assert_eq!(stored(&next).parts.len(), 2);
    next.parts.forget_unmet(now.plus(HOUR));
    assert_eq!(stored(&next).parts, []);
    // One that is poisoned is known by itself.
    list.refuse(&expired(7), "no", "no".to_owned(), now);
    assert_eq!(stored(&list).parts.len(), 3);
    // What no pass can have written says nothing.
    assert_eq!(WaitingList::of(stored(&list), now.minus(HOUR), PAUSES).to_remember().parts, []);
}

#[test]
fn beyond_the_most_parts_the_oldest_are_made_one() {
    let now = at("2026-11-30T12:00:00Z");
    let mut list = empty();
    let most = i64::try_from(MOST_PARTS).expect("small");
    for day in 0..most + 2 {
        leave(&mut list, &[2 * day], PartState::Untried, now);
    }
    let parts = stored(&list).parts;
    assert_eq!(parts.len(), MOST_PARTS);
    let ends = |at: usize| (parts[at].first.range_end, parts[at].last.range_end, parts[at].state);
    let end = |day| expired(day).range_end;
    assert_eq!(ends(0), (end(0), end(4), PartState::Together));
    assert_eq!(ends(1), (end(6), end(6), PartState::Untried));
}
