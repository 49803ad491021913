//! From what was seen to the checks.

use std::collections::BTreeSet;

use anyhow::Result;
use serde_json::Value;
use tailrace::rules::expiry::KeptReason;
use tailrace::rules::transform::TimeTransform;
use tailrace::sweep::report::PassReport;
use tailrace_kit::lake::{Dump, Table, differences};

use super::checks::Checks;
use super::evidence::{count, named, only_ended, rows_of};
use super::lake::{DemoLake, EVENTS, NAMESPACE, ORDERS, POLICIES, TEAMS, UNDATABLE, UNGOVERNED};
use super::pictures::Pictures;
use super::removal::{Observation, REFUSED, Removal};

/// The tables of the catalog that a drop writes to.
const WRITTEN: [&str; 5] =
    ["hog_catalog", "hog_data_file", "hog_delete_file", "hog_snapshot", "hog_snapshot_change"];

/// All that was seen.
pub struct Findings<'a> {
    /// The lake.
    pub lake: &'a DemoLake,
    /// The last snapshot before the pass.
    pub head: i64,
    /// The catalog's rows right before the pass.
    pub dump_before: &'a Dump,
    /// And right after it.
    pub dump_after: &'a Dump,
    /// The partitions before the pass.
    pub before: &'a Pictures,
    /// And after it.
    pub after: &'a Pictures,
    /// What the pass reported.
    pub report: &'a PassReport,
    /// Objects and rows before the pass.
    pub at_start: &'a Observation,
    /// And after it.
    pub dropped: &'a Observation,
    /// What the server's loops did then.
    pub removal: &'a Removal,
}

impl Findings<'_> {
    /// How many snapshots the pass made.
    pub fn snapshots(&self) -> i64 {
        self.report.tables.iter().map(|table| table.snapshots.len() as i64).sum()
    }

    /// How many partitions it dropped.
    pub fn partitions(&self) -> i64 {
        let snapshots = self.report.tables.iter().flat_map(|table| &table.snapshots);
        snapshots.map(|snapshot| snapshot.partitions.len() as i64).sum()
    }

    /// How many undatable files it left.
    pub fn undatable(&self) -> i64 {
        self.after.governed(ORDERS).kept(KeptReason::AmbiguousSpec)
            + self.after.governed(TEAMS).kept(KeptReason::Null)
    }

    /// All observations, in order.
    pub fn observations(&self) -> [&Observation; 5] {
        let Removal { below, passed, cleaned, .. } = self.removal;
        [self.at_start, self.dropped, below, passed, cleaned]
    }
}

/// Checks all of it.
pub async fn check(seen: &Findings<'_>) -> Result<Checks> {
    let mut checks = Checks::default();
    the_drop(seen, &mut checks);
    the_rows(seen, &mut checks);
    the_objects(seen, &mut checks).await?;
    Ok(checks)
}

/// What was dropped and what was kept.
fn the_drop(seen: &Findings<'_>, checks: &mut Checks) {
    // The pass has a time of its own: the plan is made again for that one.
    let as_of = seen.report.as_of;
    for (place, policy) in POLICIES.iter().enumerate() {
        let (files, vectors) = seen.before.governed(place).expired(as_of);
        let left = seen.before.governed(place).files() - files;
        let report = seen.report.tables.iter().find(|report| report.table == policy.table);
        let ended = report.map(|report| report.counts()).unwrap_or_default();
        let text = |files: i64, vectors: i64, left: i64| {
            format!("{files} files, {vectors} vectors ended; {left} files left")
        };
        checks.equal(
            &format!("{}, as planned", policy.table),
            text(ended.files, ended.delete_files, seen.after.governed(place).files()),
            text(files, vectors, left),
        );
    }
    // By the calendar alone: with 7d, a day is dropped when it ended 7 days ago.
    let oldest = (as_of.days() - 7).to_string();
    checks.equal(
        &format!("{NAMESPACE}.events_raw, oldest day left"),
        seen.after.governed(EVENTS).oldest(),
        TimeTransform::Day.display(Some(&oldest)),
    );
    checks.equal("undatable files, kept", seen.undatable(), UNDATABLE);
}

/// What the pass did to the catalog's rows.
fn the_rows(seen: &Findings<'_>, checks: &mut Checks) {
    let changed = differences(seen.dump_before, seen.dump_after);
    let names: BTreeSet<&str> = changed.keys().map(String::as_str).collect();
    checks.equal(
        "written to",
        names.iter().copied().collect::<Vec<_>>().join(" ").replace("hog_", ""),
        WRITTEN.join(" ").replace("hog_", ""),
    );
    let ended = ["hog_data_file", "hog_delete_file"].map(|table| changed.get(table));
    let rows: usize = ended.iter().flatten().map(|difference| difference.gone.len()).sum();
    let as_they_were: usize = ended
        .iter()
        .flatten()
        .filter(|difference| only_ended(difference))
        .map(|difference| difference.gone.len())
        .sum();
    checks.equal(
        "rows of files and vectors with a new end and no other change",
        as_they_were,
        rows,
    );
    checks.equal("live vectors on ended files", orphans(seen.dump_after), 0);

    let table = &seen.lake.ungoverned;
    let files = file_ids(seen.dump_before, table);
    let own = |dump| rows_of(dump, table.table_id, &files);
    let (before, after) = (own(seen.dump_before), own(seen.dump_after));
    let differing: usize = differences(&before, &after).values().map(|d| d.gone.len()).sum();
    let (rows, more) = (count(&before), count(&after));
    checks.equal(
        &format!("{NAMESPACE}.{UNGOVERNED}, its rows as they were"),
        format!("{} of {more}", rows - differing),
        format!("{rows} of {rows}"),
    );
    let ids: BTreeSet<i64> = numbers(seen.dump_after, "hog_snapshot", "snapshot_id");
    let head = seen.head + seen.snapshots();
    checks.same("snapshot ids from 1 to the head, without a gap", &ids, &(1..=head).collect());
}

/// What became of the objects, and of a reader of the snapshot before the drop.
async fn the_objects(seen: &Findings<'_>, checks: &mut Checks) -> Result<()> {
    let Removal { below, passed, cleaned, .. } = seen.removal;
    let (all, start) = (&seen.at_start.objects, seen.at_start.rows_text());
    let dropped = ended_paths(seen.dump_after);
    checks.same("objects after the pass, all of them", &seen.dropped.objects, all);
    checks.equal(
        "rows at the snapshot before it, by table",
        seen.dropped.rows_text(),
        start.clone(),
    );

    let moved = seen.at_start.floor < below.floor && below.floor <= seen.head;
    let text = format!("{}, then {}", below.floor, passed.floor);
    let reached = passed.floor >= seen.head + seen.snapshots();
    checks.holds("floor below the drop, then past it", moved && reached, text);
    checks.same("objects with the floor below the drop, all of them", &below.objects, all);
    checks.equal("rows at the snapshot before it, by table", below.rows_text(), start);

    checks.equal(
        "the same snapshot with the floor past it",
        passed.rows_text(),
        REFUSED.to_owned(),
    );
    checks.same("objects with the floor past it, before cleanup", &passed.objects, all);
    let removed: BTreeSet<String> = all.difference(&cleaned.objects).cloned().collect();
    checks.same("objects that cleanup deleted, those of the drop", &removed, &dropped);
    checks.equal("objects of it that a row still named", seen.removal.cleanup.violations, 0);
    let tables = seen.lake.governed.iter().chain([&seen.lake.ungoverned]);
    checks.same("objects left, those that rows name", &cleaned.objects, &named(tables).await?);
    Ok(())
}

fn parsed<'a>(dump: &'a Dump, table: &str) -> impl Iterator<Item = Value> + 'a {
    let rows = dump.get(table).map(Vec::as_slice).unwrap_or_default();
    rows.iter().filter_map(|row| serde_json::from_str(row).ok())
}

fn numbers(dump: &Dump, table: &str, column: &str) -> BTreeSet<i64> {
    parsed(dump, table).filter_map(|row| row[column].as_i64()).collect()
}

fn file_ids(dump: &Dump, table: &Table) -> BTreeSet<i64> {
    parsed(dump, "hog_data_file")
        .filter(|row| row["table_id"] == table.table_id)
        .filter_map(|row| row["data_file_id"].as_i64())
        .collect()
}

/// How many live vectors there are on files that ended.
fn orphans(dump: &Dump) -> usize {
    let live: BTreeSet<i64> = parsed(dump, "hog_data_file")
        .filter(|row| row["end_snapshot"].is_null())
        .filter_map(|row| row["data_file_id"].as_i64())
        .collect();
    parsed(dump, "hog_delete_file")
        .filter(|row| row["end_snapshot"].is_null())
        .filter_map(|row| row["data_file_id"].as_i64())
        .filter(|file| !live.contains(file))
        .count()
}

/// The paths of all files and vectors that ended.
fn ended_paths(dump: &Dump) -> BTreeSet<String> {
    let tables = ["hog_data_file", "hog_delete_file"];
    tables
        .iter()
        .flat_map(|table| parsed(dump, table))
        .filter(|row| !row["end_snapshot"].is_null())
        .filter_map(|row| row["path"].as_str().map(str::to_owned))
        .collect()
}
