//! Receipts of explicit drops, compared with their snapshots and the history.
//!
//! Receipts of drops that a restore of the catalog took back are only reported. The receipt of a request that
//! committed nothing names no snapshot of tailrace; it names the head of its time, which a restore may have
//! taken back.

use std::time::Duration;

use uuid::Uuid;

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use crate::catalog::checks::CatalogState;
use crate::catalog::checks::receipts::{ComparedReceipt, compared_receipts, oldest_drop};
use crate::catalog::restore::{compared_after, undone};
use crate::rules::instant::UtcInstant;

/// Receipts in one piece.
const PIECE: i64 = 1_000;

/// History is kept for at least so long, whatever `history.keep` is or was.
const KEPT: Duration = Duration::from_secs(24 * 3600);

/// Looks at every receipt.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    let oldest = oldest_drop(probe.turn().await?).await?.map(UtcInstant::from);
    let restored = scene.restored()?;
    let (mut after, mut of_undone) = (Uuid::nil(), 0);
    loop {
        let turn = probe.turn().await?;
        let receipts = compared_receipts(turn, scene.catalog.catalog_id, after, PIECE).await?;
        let ids: Vec<Uuid> = receipts.iter().filter_map(|receipt| receipt.drop_id).collect();
        let turn = probe.turn().await?;
        let undone = undone(turn, scene.catalog.catalog_id, restored, &ids).await?;
        for receipt in &receipts {
            // A receipt names no table: one without a drop is of none in particular.
            let table = receipt.drop_table_id;
            if table.map_or(scene.only.is_some(), |table_id| !scene.has(table_id)) {
                continue;
            }
            let is_undone = receipt.drop_id.map_or_else(
                || receipt.committed && receipt.snapshot_id > compared_after(restored),
                |drop_id| undone.contains(&drop_id),
            );
            if is_undone {
                of_undone += 1;
                continue;
            }
            for problem in problems(receipt, &scene.state, oldest) {
                findings.add(Sample {
                    table: table.map(|table_id| scene.name(table_id)),
                    snapshot_id: Some(receipt.snapshot_id),
                    problem: format!("the receipt {} {problem}", receipt.idempotency_key),
                    ..Sample::default()
                });
            }
        }
        match receipts.last() {
            Some(last) if receipts.len() as i64 == PIECE => after = last.idempotency_key,
            _ => break,
        }
    }
    if of_undone > 0 {
        findings.notes.push(format!(
            "{of_undone} {} undone: the catalog was restored to a time before",
            if of_undone == 1 {
                "receipt is of a drop that is"
            } else {
                "receipts are of drops that are"
            }
        ));
    }
    Ok(())
}

/// What does not agree with a receipt; `oldest` is when the oldest drop of the drop history was made.
fn problems(
    receipt: &ComparedReceipt,
    state: &CatalogState,
    oldest: Option<UtcInstant>,
) -> Vec<&'static str> {
    let mut problems = Vec::new();
    if !receipt.committed {
        // Nothing is said of a snapshot of ours.
    } else if receipt.snapshot_id > state.head {
        problems.push("names a snapshot above the head");
    } else if receipt.snapshot_id >= state.floor.max(1) {
        match receipt.snapshot_schema_version {
            None => problems.push("names a snapshot that is not there"),
            Some(version) if version != receipt.schema_version => {
                problems.push("has another schema version than its snapshot");
            }
            Some(_) => {}
        }
    }
    match (receipt.committed, receipt.drop_table_id) {
        (false, _) if !receipt.is_empty => {
            problems.push("says that nothing was committed, and that something ended");
        }
        (true, Some(_)) if !receipt.agrees => {
            problems.push("does not say what the history says of its drop");
        }
        (true, None) => {
            let created_at = UtcInstant::from(receipt.created_at);
            let is_kept = created_at.plus(KEPT) > UtcInstant::from(state.now)
                || oldest.is_some_and(|oldest| oldest < created_at);
            if is_kept {
                problems.push("belongs to a drop that the history does not have");
            }
        }
        _ => {}
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(day: i128) -> chrono::DateTime<chrono::Utc> {
        UtcInstant::from_days(day).to_chrono().expect("a time")
    }

    /// Of a committed drop of the fifth day, in which all agrees.
    fn receipt() -> ComparedReceipt {
        ComparedReceipt {
            idempotency_key: Uuid::nil(),
            drop_id: Some(Uuid::nil()),
            snapshot_id: 5,
            committed: true,
            created_at: day(5),
            is_empty: false,
            schema_version: 2,
            snapshot_schema_version: Some(2),
            drop_table_id: Some(7),
            agrees: true,
        }
    }

    #[test]
    fn each_disagreement_is_reported() {
        let (above, gone) =
            ("names a snapshot above the head", "names a snapshot that is not there");
        let unknown = "belongs to a drop that the history does not have";
        type Case = (fn(&mut ComparedReceipt), Option<i128>, &'static [&'static str]);
        let table: [Case; 12] = [
            (|_| {}, Some(1), &[]),
            (|r| r.snapshot_id = 9, Some(1), &["names a snapshot above the head"]),
            (
                |r| r.snapshot_schema_version = None,
                Some(1),
                &["names a snapshot that is not there"],
            ),
            (|r| r.schema_version = 3, Some(1), &["has another schema version than its snapshot"]),
            // Below the floor expiry has deleted it.
            (|r| (r.snapshot_id, r.snapshot_schema_version) = (2, None), Some(1), &[]),
            (|r| r.agrees = false, Some(1), &["does not say what the history says of its drop"]),
            (
                |r| r.drop_table_id = None,
                Some(4),
                &["belongs to a drop that the history does not have"],
            ),
            // The history of that time may have been purged, but not that of a day ago.
            (|r| r.drop_table_id = None, Some(6), &[]),
            (|r| r.drop_table_id = None, None, &[]),
            (
                |r| (r.drop_table_id, r.created_at) = (None, day(20)),
                None,
                &["belongs to a drop that the history does not have"],
            ),
            (
                |r| r.committed = false,
                Some(1),
                &["says that nothing was committed, and that something ended"],
            ),
            // Nothing matched: it names the head of its time, which another drop may have made.
            (|r| (r.committed, r.is_empty, r.agrees) = (false, true, false), Some(1), &[]),
        ];
        let state = CatalogState { head: 8, floor: 3, floor_time: None, now: day(20) };
        for (number, (change, oldest, expected)) in table.into_iter().enumerate() {
            let mut receipt = receipt();
            change(&mut receipt);
            let found = problems(&receipt, &state, oldest.map(UtcInstant::from_days));
            assert_eq!(found, expected, "case {number}");
        }
        let mut both = receipt();
        (both.snapshot_schema_version, both.agrees) = (None, false);
        both.drop_table_id = None;
        assert_eq!(problems(&both, &state, Some(UtcInstant::from_days(1))), [gone, unknown]);
        both.snapshot_id = 9;
        assert_eq!(problems(&both, &state, Some(UtcInstant::from_days(1))), [above, unknown]);
    }
}
