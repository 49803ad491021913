use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn row(key: &str, ids: impl IntoIterator<Item = i64>) -> ClaimRow {
    ClaimRow { group_key: key.to_owned(), ids: ids.into_iter().collect() }
}

fn after(existing: &[ClaimRow], changes: &Changes) -> BTreeMap<String, Vec<i64>> {
    let mut rows: BTreeMap<_, _> =
        existing.iter().map(|row| (row.group_key.clone(), row.ids.clone())).collect();
    rows.retain(|key, _| !changes.removed.contains(key));
    rows.extend(changes.written.iter().map(|row| (row.group_key.clone(), row.ids.clone())));
    rows
}

#[test]
fn each_state_of_the_rows_and_what_it_needs() {
    let most = MOST_IDS as i64;
    let full = || row("tailrace/0", 0..most);
    let changes_of = |renewed: &[&str], written: Vec<ClaimRow>, removed: &[&str]| {
        let texts = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect();
        Changes { renewed: texts(renewed), written, removed: texts(removed) }
    };
    for (about, existing, wanted, expected) in [
        ("nothing", vec![], vec![], changes_of(&[], vec![], &[])),
        (
            "the first files",
            vec![],
            vec![7, 5],
            changes_of(&[], vec![row("tailrace/0", [5, 7])], &[]),
        ),
        (
            "the same files",
            vec![row("tailrace/3", [5, 7])],
            vec![5, 7],
            changes_of(&["tailrace/3"], vec![], &[]),
        ),
        (
            "one left, one came",
            vec![row("tailrace/0", [5, 7])],
            vec![7, 9],
            changes_of(&[], vec![row("tailrace/0", [7, 9])], &[]),
        ),
        (
            "all left",
            vec![row("tailrace/0", [5])],
            vec![],
            changes_of(&[], vec![], &["tailrace/0"]),
        ),
        (
            "one more than a row holds",
            vec![full()],
            (0..=most).collect(),
            changes_of(&["tailrace/0"], vec![row("tailrace/1", [most])], &[]),
        ),
        (
            "a key that is not next",
            vec![row("tailrace/1", 0..most)],
            (0..=most).collect(),
            changes_of(&["tailrace/1"], vec![row("tailrace/0", [most])], &[]),
        ),
        (
            "three thin rows",
            vec![row("tailrace/0", [1]), row("tailrace/1", [2]), row("tailrace/2", [3])],
            vec![1, 2, 3],
            changes_of(&[], vec![row("tailrace/0", [1, 2, 3])], &["tailrace/1", "tailrace/2"]),
        ),
        (
            "a file named twice",
            vec![row("tailrace/0", [1, 2]), row("tailrace/1", [2])],
            vec![1, 2],
            changes_of(&["tailrace/0"], vec![], &["tailrace/1"]),
        ),
    ] {
        let found = changes(&existing, &wanted.into_iter().collect(), &BTreeSet::new());
        assert_eq!(found, expected, "{about}");
    }
}

#[test]
fn a_key_of_another_claimant_is_not_taken() {
    let taken = BTreeSet::from(["tailrace/0", "tailrace/2", "1:{}"].map(str::to_owned));
    let most = MOST_IDS as i64;
    let found = changes(&[], &(0..=most).collect(), &taken);
    let written = vec![row("tailrace/1", 0..most), row("tailrace/3", [most])];
    assert_eq!(found, Changes { written, ..Changes::default() });
}

#[test]
fn a_release_only_ever_takes_away() {
    let existing = [row("tailrace/0", [1, 2]), row("tailrace/1", [3]), row("tailrace/2", [4])];
    let released = without_others(&existing, &[2, 4, 9].into());
    assert_eq!(
        released,
        Changes {
            renewed: vec![],
            written: vec![row("tailrace/0", [2])],
            removed: vec!["tailrace/1".to_owned()]
        }
    );
}

proptest! {
    /// Whatever rows there are, afterwards they name the wanted files, each once, none more than
    /// it may; and the rows are at most twice as many as needed.
    #[test]
    fn rows_name_the_wanted_files(
        sizes in prop::collection::vec(0_usize..6_000, 0..6), from in 0_i64..9_000,
        wanted in 0_i64..20_000, step in 1_usize..4,
    ) {
        let mut next = 0_i64;
        let existing: Vec<_> = sizes.iter().enumerate().map(|(n, size)| {
            let ids = next..next + *size as i64;
            next = ids.end;
            row(&format!("tailrace/{}", n * 2), ids)
        }).collect();
        let wanted: BTreeSet<i64> = (from..from + wanted).step_by(step).collect();
        let rows = after(&existing, &changes(&existing, &wanted, &BTreeSet::new()));
        let named: Vec<i64> = rows.values().flatten().copied().collect();
        prop_assert_eq!(named.len(), wanted.len());
        prop_assert_eq!(named.into_iter().collect::<BTreeSet<_>>(), wanted.clone());
        prop_assert!(rows.values().all(|ids| (1..=MOST_IDS).contains(&ids.len())));
        prop_assert!(rows.len() <= 2 * wanted.len().div_ceil(MOST_IDS));
    }
}
