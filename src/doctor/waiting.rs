//! Partitions that have expired and wait, as passes have noted it.

use super::governed::Governed;
use super::{Finding, Level, NAMES_SHOWN};
use crate::instant::UtcInstant;
use crate::sweep::waiting::{WaitReason, Waiting};

const CHECK: &str = "waiting";

/// What is busy, or kept for its evidence, is said when it has waited for longer, in seconds.
const LONG: u64 = 24 * 3600;

/// Each table with partitions that the database refuses or that are too large, and each with some that
/// have waited for long.
pub fn findings(catalog: &str, governed: &[Governed], now: UtcInstant) -> Vec<Finding> {
    let found: Vec<Finding> = governed.iter().flat_map(|table| of_table(table, now)).collect();
    match found.is_empty() && !governed.is_empty() {
        true => {
            let what = "no expired partition is refused, too large or kept for long";
            vec![Finding::ok(CHECK, what).of_catalog(catalog)]
        }
        false => found,
    }
}

fn of_table(table: &Governed, now: UtcInstant) -> Vec<Finding> {
    let of = |wanted: fn(WaitReason) -> bool, longer_than: u64| -> Vec<&Waiting> {
        let waiting = table.waiting.tuples.iter().filter(|waiting| wanted(waiting.reason));
        waiting.filter(|one| now.distance(one.since).as_secs() >= longer_than).collect()
    };
    let families = [
        (
            Level::Warning,
            of(|reason| reason == WaitReason::Poisoned, 0),
            "cannot be dropped",
            "the database refuses to end their files, and ends others of the table; each is tried \
             again by itself, after pauses of up to a day, and stays until it goes through",
            "look at what the database says: at the trigger or the constraint, or at the row; once \
             that is mended the next look drops them, or `tailrace drop` does at once",
        ),
        (
            Level::Warning,
            of(|reason| reason == WaitReason::Oversize, 0),
            "too large for one commit",
            "sweep.oversize is skip, so they stay",
            "raise sweep.max_files_per_tuple, or let sweep.oversize be split",
        ),
        (
            Level::Note,
            of(|reason| reason == WaitReason::Busy, LONG),
            "busy at each pass for a day or longer",
            "somebody else holds locks on rows of their files, so no pass ends them",
            "see which session holds them for so long (pg_locks, pg_stat_activity)",
        ),
        (
            Level::Note,
            of(|reason| matches!(reason, WaitReason::Evidence(_)), LONG),
            "expired by value and kept for evidence for a day or longer",
            "their column statistics name newer rows, or their values may be of an earlier spec",
            "see `tailrace plan` for what each waits for; `tailrace spec trust` vouches for values",
        ),
    ];
    families
        .into_iter()
        .filter(|(_, waiting, ..)| !waiting.is_empty())
        .map(|(level, waiting, what, why, to_do)| {
            let partitions = if waiting.len() == 1 { "partition" } else { "partitions" };
            let what = format!("{} {partitions} {what}: {}", waiting.len(), told(&waiting));
            Finding::new(level, CHECK, what, why, to_do).of_table(&table.table.identity)
        })
        .collect()
}

/// The first of them with all that is known, and how many more there are.
fn told(waiting: &[&Waiting]) -> String {
    let shown: Vec<_> = waiting.iter().take(NAMES_SHOWN).map(|one| one.in_words()).collect();
    let shown = shown.join("; ");
    match waiting.len().saturating_sub(NAMES_SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more"),
    }
}
