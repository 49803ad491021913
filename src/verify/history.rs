//! Each drop of the history, compared with the catalog: one table, one `table_deleted_from`, and the rows
//! that the history counted.
//!
//! Drops that a restore of the catalog took back are only reported. Only drops above the expiry floor are
//! checked: below it the server's expiry deletes the snapshot and purges the rows. The newest drops come
//! first, so a check whose budget runs out has seen the most important ones.

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::checks::drops::{
    EndedRows, RecordedDrop, SnapshotChanges, changes_of, ended_in, noted_undone, recorded_drops,
};
use crate::catalog::drop_lifecycle::unindexed::{has_ended_index, server_is_newer};
use crate::catalog::live_file::Counts;
use crate::catalog::restore::undone;

/// Drops in one piece of the history.
const PIECE: i64 = 200;

/// Files that the drops of one statement ended, a single larger drop aside.
const FILES: i64 = 20_000;

/// Looks at every drop above the floor.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let catalog_id = scene.catalog.catalog_id;
    let has_index = has_ended_index(probe.turn().await?).await?;
    if !has_index {
        let uncounted = "the rows that drops ended were not counted";
        match server_is_newer(probe.turn().await?).await? {
            true => findings.gaps.push(format!(
                "the server's index hog_data_file_ended is missing: {uncounted}; tailrace doctor \
                 says how to build it"
            )),
            false => findings.unsupported.push(format!(
                "the server has no index hog_data_file_ended, as those before V19: {uncounted}"
            )),
        }
    }
    let mut drops = NewestFirst::new();
    while let Some(piece) = drops.next(probe, scene).await? {
        let ids = |drops: &[RecordedDrop]| -> Vec<i64> {
            drops.iter().map(|drop| drop.snapshot_id).collect()
        };
        let changes = changes_of(probe.turn().await?, catalog_id, &ids(&piece)).await?;
        for (drop, changes) in piece.iter().zip(&changes) {
            add_all(scene, findings, drop, wrong_changes(drop, changes));
        }
        if !has_index {
            continue;
        }
        for drops in by_files(&piece) {
            let ended = ended_in(probe.turn().await?, catalog_id, &ids(drops)).await?;
            for drop in drops {
                add_all(scene, findings, drop, wrong_rows(drop, &ended));
            }
        }
    }
    let noted = noted_undone(probe.turn().await?, catalog_id, scene.only).await?;
    let undone = noted + drops.undone;
    if undone > 0 {
        findings.notes.push(format!(
            "{undone} {} undone: the catalog was restored to a time before, and their data may be \
             live again",
            if undone == 1 { "drop is" } else { "drops are" }
        ));
    }
    Ok(())
}

fn add_all(scene: &Scene<'_>, findings: &mut Findings, drop: &RecordedDrop, problems: Vec<String>) {
    for problem in problems {
        findings.add(Sample {
            table: Some(scene.name(drop.table_id)),
            snapshot_id: Some(drop.snapshot_id),
            problem,
            ..Sample::default()
        });
    }
}

/// The drops of a catalog above its floor, piece by piece.
pub struct NewestFirst {
    before: Option<i64>,
    /// How many of them were left out because a restore took them back, which no pass has noted.
    pub undone: i64,
}

impl NewestFirst {
    /// From the newest on.
    pub fn new() -> Self {
        NewestFirst { before: Some(i64::MAX), undone: 0 }
    }

    /// The next piece, of the tables in scope and without drops that are undone; `None` after the last
    /// one.
    pub async fn next(
        &mut self,
        probe: &mut Probe<'_>,
        scene: &Scene<'_>,
    ) -> Result<Option<Vec<RecordedDrop>>, Stop> {
        let Some(before) = self.before else { return Ok(None) };
        let (turn, floor) = (probe.turn().await?, scene.state.floor);
        let mut drops =
            recorded_drops(turn, scene.catalog.catalog_id, floor, before, PIECE).await?;
        let is_last = (drops.len() as i64) < PIECE;
        self.before = drops.last().filter(|_| !is_last).map(|drop| drop.snapshot_id);
        drops.retain(|drop| scene.has(drop.table_id));
        let restored = scene.restored()?;
        if restored.is_some() {
            let ids: Vec<_> = drops.iter().map(|drop| drop.drop_id).collect();
            let turn = probe.turn().await?;
            let undone = undone(turn, scene.catalog.catalog_id, restored, &ids).await?;
            self.undone += undone.len() as i64;
            drops.retain(|drop| !undone.contains(&drop.drop_id));
        }
        Ok(Some(drops))
    }
}

/// The drops in groups of which each ended a bounded number of files.
fn by_files(drops: &[RecordedDrop]) -> Vec<&[RecordedDrop]> {
    let (mut groups, mut from, mut files) = (Vec::new(), 0, 0_i64);
    for (at, drop) in drops.iter().enumerate() {
        files = files.saturating_add(drop.counts.files.max(1));
        if files > FILES && at > from {
            groups.push(&drops[from..at]);
            (from, files) = (at, drop.counts.files);
        }
    }
    groups.push(&drops[from..]);
    groups
}

/// What is wrong with the changes of a drop's snapshot: it must have one `table_deleted_from` of the
/// drop's table, and beside it at most one `table_altered` of the same table.
fn wrong_changes(drop: &RecordedDrop, found: &SnapshotChanges) -> Vec<String> {
    if !found.exists {
        return vec!["there is no such snapshot".to_owned()];
    }
    let count = |kind: &str| {
        let is_it = |change: &&(String, i64)| change.0 == kind && change.1 == drop.table_id;
        found.changes.iter().filter(is_it).count()
    };
    let (deleted, altered) = (count("table_deleted_from"), count("table_altered"));
    let mut problems = Vec::new();
    if deleted != 1 {
        problems.push(format!("it has {deleted} changes table_deleted_from of the table, not one"));
    }
    if altered > 1 {
        problems.push(format!("it has {altered} changes table_altered of the table"));
    }
    let others = found.changes.len() - deleted - altered;
    if others > 0 {
        problems.push(format!("it has {others} changes that no drop makes"));
    }
    problems
}

/// What is wrong with the rows that a drop's snapshot ended.
fn wrong_rows(drop: &RecordedDrop, ended: &[EndedRows]) -> Vec<String> {
    let of_drop = || ended.iter().filter(|rows| rows.snapshot_id == drop.snapshot_id);
    let mut problems = Vec::new();
    let own = of_drop().find(|rows| rows.table_id == drop.table_id);
    let counts = own.map_or(Counts::default(), |rows| rows.counts);
    for (what, there, recorded) in [
        ("files", counts.files, drop.counts.files),
        ("delete files", counts.delete_files, drop.counts.delete_files),
        ("records", counts.records, drop.counts.records),
        ("bytes", counts.bytes, drop.counts.bytes),
    ] {
        if there != recorded {
            problems.push(format!("it ended {there} {what}, and the history says {recorded}"));
        }
    }
    for rows in of_drop().filter(|rows| rows.table_id != drop.table_id) {
        let Counts { files, .. } = rows.counts;
        problems.push(format!("it ended {files} files of table {} as well", rows.table_id));
    }
    problems
}

#[cfg(test)]
mod tests;
