//! How long what waits is left alone.

use super::*;

/// The minutes from each look to the next one, if each comes in its time.
fn minutes(reason: WaitReason, pauses: Pauses, looks: usize) -> Vec<Option<u64>> {
    let mut now = at("2026-11-30T12:00:00Z");
    let mut remembered = Remembered::default();
    let mut minutes = Vec::new();
    for number in 1..=looks {
        let mut list = WaitingList::of(remembered, now, pauses);
        assert!(!list.is_paused(&expired(1).tuple, now), "look {number}");
        list.keep(&expired(1), reason, None, now);
        // Another time slice of the same pass is no other look.
        list.keep(&expired(1), reason, None, now);
        let next = list.next_look_of(&expired(1).tuple);
        minutes.push(next.map(|next| next.distance(now).as_secs() / 60));
        assert_eq!(stored(&list).tuples[0].tries as usize, number);
        let ends = next.unwrap_or(now.plus(MINUTE));
        let list = WaitingList::of(stored(&list), now, pauses);
        let before = ends.minus(Duration::from_secs(1));
        assert_eq!(list.is_paused(&expired(1).tuple, before), next.is_some(), "look {number}");
        (remembered, now) = (stored(&list), ends);
    }
    minutes
}

#[test]
fn other_pauses_grow_from_one_pass_to_6_hours_or_a_full_pass() {
    let reasons = [
        WaitReason::Busy,
        WaitReason::Oversize,
        WaitReason::Evidence(KeptReason::AmbiguousSpec),
        WaitReason::Evidence(KeptReason::NewerRowsThanPartition),
    ];
    let grown = [None, Some(10), Some(20), Some(40), Some(80), Some(160), Some(320), Some(360)];
    for reason in reasons {
        assert_eq!(minutes(reason, PAUSES, 9), [&grown[..], &[Some(360)]].concat(), "{reason}");
        let often = Pauses { full_pass_every: HOUR, ..PAUSES };
        let capped = [None, Some(10), Some(20), Some(40), Some(60), Some(60)];
        assert_eq!(minutes(reason, often, 6), capped, "{reason}");
        let seldom = Pauses { pass_every: 24 * HOUR, ..PAUSES };
        assert_eq!(minutes(reason, seldom, 3), [None, Some(360), Some(360)], "{reason}");
    }
}

#[test]
fn no_look_is_after_the_drop_or_the_longest_pause() {
    let noon = at("2026-11-30T12:00:00Z");
    let evidence = WaitReason::Evidence(KeptReason::NewerRowsThanPartition);
    let later = noon.plus(MINUTE);
    for (leaves_in, next_in) in [(3 * MINUTE, 3 * MINUTE), (HOUR, 10 * MINUTE)] {
        let mut list = empty();
        list.keep(&expired(1), evidence, Some(noon.plus(leaves_in)), noon);
        assert_eq!(list.next_look_of(&expired(1).tuple), None);
        list.keep(&expired(1), evidence, Some(later.plus(leaves_in)), later);
        assert_eq!(list.next_look_of(&expired(1).tuple), Some(later.plus(next_in)));
    }
    for (reason, longest) in [(evidence, 6 * HOUR), (WaitReason::Poisoned, 6 * HOUR)] {
        let mut list = empty();
        list.keep(&expired(1), reason, None, noon);
        let mut remembered = stored(&list);
        for (beyond, is_paused) in [(Duration::ZERO, true), (Duration::from_nanos(1), false)] {
            remembered.tuples[0].next_look = Some(noon.plus(longest + beyond));
            let list = WaitingList::of(remembered.clone(), noon, PAUSES);
            assert_eq!(list.is_paused(&expired(1).tuple, noon), is_paused, "{reason} {beyond:?}");
            assert_eq!(stored(&list).tuples[0].since, noon, "it is known all the same");
        }
    }
}

#[test]
fn a_full_pass_heeds_no_pause_but_tries_nothing_twice() {
    let noon = at("2026-11-30T12:00:00Z");
    let later = noon.plus(MINUTE);
    let mut list = empty();
    list.keep(&expired(1), WaitReason::Busy, None, noon);
    list.keep(&expired(1), WaitReason::Busy, None, later);
    list.refuse(&expired(2), "no", "no".to_owned(), noon);
    let paused =
        |list: &WaitingList, now| [1, 2].map(|day| list.is_paused(&expired(day).tuple, now));
    assert_eq!(paused(&list, later), [true, true]);
    let asked_for = Pauses { are_heeded: false, ..PAUSES };
    let mut full = WaitingList::of(stored(&list), later, PAUSES);
    full.heed_no_pause();
    for mut list in [full, WaitingList::of(stored(&list), later, asked_for)] {
        assert_eq!(paused(&list, later), [false, false]);
        list.refuse(&expired(2), "no", "no".to_owned(), later);
        assert_eq!(paused(&list, later), [false, true]);
        assert_eq!(stored(&list).tuples[0].tries, 2);
    }
}
