//! What pauses and holds say to an explicit drop, which they refuse whole.

use super::{Execution, Selection};
use crate::catalog::tuples::TupleOfSpec;
use crate::explicit::problem::Problem;
use crate::guards::Guards;
use crate::rules::hold::HeldPartition;

/// So many held partitions are named in an answer.
const NAMED: usize = 20;

impl Execution<'_> {
    /// Refuses what a pause covers or a hold keeps.
    pub(super) fn heed(&self, guards: &Guards) -> Result<(), Problem> {
        if let Some(pause) = &guards.pause {
            return Err(Problem::Paused(pause.describe()));
        }
        let held = guards.held();
        if held.is_empty() {
            return Ok(());
        }
        let Selection::Tuples { tuples, book, .. } = self.selection else {
            // A truncate names no tuples, so any hold of the table may keep some of what it ends.
            let words: Vec<_> =
                guards.holds.iter().take(NAMED).map(|hold| hold.describe()).collect();
            let listed: Vec<&HeldPartition> =
                guards.holds.iter().filter_map(|hold| hold.partitions.as_ref()).flatten().collect();
            return Err(Problem::TableHeld {
                words: words.join("; "),
                more: listed.len().saturating_sub(NAMED),
                held: listed.into_iter().take(NAMED).cloned().collect(),
            });
        };
        let mut ids = Vec::new();
        let mut kept = Vec::new();
        for TupleOfSpec { spec_id, tuple } in tuples {
            let Some(id) = held.by(book, Some(*spec_id), tuple) else { continue };
            if !ids.contains(&id) {
                ids.push(id);
            }
            kept.push(HeldPartition { spec_id: *spec_id, values: tuple.values.clone() });
        }
        if kept.is_empty() {
            return Ok(());
        }
        let by = guards.holds.iter().filter(|hold| ids.contains(&hold.hold_id)).take(NAMED);
        let words: Vec<_> = by.map(|hold| hold.describe()).collect();
        let more = kept.len().saturating_sub(NAMED);
        kept.truncate(NAMED);
        let asked = tuples.len();
        Err(Problem::PartitionHeld { asked, held: kept, more, words: words.join("; ") })
    }
}
