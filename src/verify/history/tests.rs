use super::*;

fn drop_of(snapshot_id: i64, files: i64) -> RecordedDrop {
    RecordedDrop {
        drop_id: uuid::Uuid::nil(),
        snapshot_id,
        table_id: 7,
        policy_revision: Some(1),
        dropped_at: chrono::DateTime::UNIX_EPOCH,
        counts: Counts { files, delete_files: 1, records: 10 * files, bytes: 100 * files },
        tuples: Some(Vec::new()),
    }
}

#[test]
fn a_snapshot_has_one_deletion_and_at_most_one_alteration() {
    let deleted = ("table_deleted_from", 7);
    let altered = ("table_altered", 7);
    type Case<'a> = (&'a [(&'a str, i64)], &'a [&'a str]);
    let table: [Case<'_>; 8] = [
        (&[deleted], &[]),
        (&[altered, deleted], &[]),
        (&[], &["it has 0 changes table_deleted_from of the table, not one"]),
        (&[deleted, deleted], &["it has 2 changes table_deleted_from of the table, not one"]),
        (&[altered, altered, deleted], &["it has 2 changes table_altered of the table"]),
        (
            &[("table_deleted_from", 8)],
            &[
                "it has 0 changes table_deleted_from of the table, not one",
                "it has 1 changes that no drop makes",
            ],
        ),
        (&[deleted, ("table_altered", 8)], &["it has 1 changes that no drop makes"]),
        (&[deleted, ("table_compacted", 7)], &["it has 1 changes that no drop makes"]),
    ];
    for (changes, expected) in table {
        let changes = changes.iter().map(|(kind, table)| ((*kind).to_owned(), *table)).collect();
        let found = SnapshotChanges { exists: true, changes };
        assert_eq!(wrong_changes(&drop_of(3, 2), &found), expected, "{found:?}");
    }
    let gone = SnapshotChanges::default();
    assert_eq!(wrong_changes(&drop_of(3, 2), &gone), ["there is no such snapshot"]);
}

#[test]
fn the_rows_are_those_of_the_history_and_of_one_table() {
    let rows = |snapshot_id, table_id, files| EndedRows {
        snapshot_id,
        table_id,
        counts: Counts { files, delete_files: 1, records: 10 * files, bytes: 100 * files },
    };
    let drop = drop_of(3, 2);
    assert_eq!(wrong_rows(&drop, &[rows(3, 7, 2), rows(4, 8, 1)]), Vec::<String>::new());
    assert_eq!(
        wrong_rows(&drop, &[rows(3, 7, 1)]),
        [
            "it ended 1 files, and the history says 2",
            "it ended 10 records, and the history says 20",
            "it ended 100 bytes, and the history says 200",
        ]
    );
    assert_eq!(
        wrong_rows(&drop, &[rows(3, 8, 5), rows(3, 7, 2)]),
        ["it ended 5 files of table 8 as well"]
    );
    assert_eq!(wrong_rows(&drop, &[]).len(), 4);
}

#[test]
fn groups_are_bounded_and_leave_nothing_out() {
    let drops: Vec<_> =
        [15_000, 6_000, 1, 90_000, 0, 20_000].iter().map(|files| drop_of(0, *files)).collect();
    let groups: Vec<Vec<i64>> = by_files(&drops)
        .iter()
        .map(|group| group.iter().map(|drop| drop.counts.files).collect())
        .collect();
    assert_eq!(groups, [vec![15_000], vec![6_000, 1], vec![90_000], vec![0, 20_000]]);
}
