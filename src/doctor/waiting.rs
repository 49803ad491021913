//! Partitions that have expired and wait, as passes have noted them.

use super::table_facts::TableFacts;
use super::{Finding, Level, NAMES_SHOWN};
use crate::rules::expiry::KeptReason;
use crate::rules::instant::UtcInstant;
use crate::sweep::waiting::{WaitReason, Waiting};

const CHECK: &str = "waiting";

/// What is busy, or kept for its evidence, is said when it has waited for longer, in seconds.
const LONG: u64 = 24 * 3600;

/// Each table with partitions that the database refuses or that are too large, and each with some that
/// have waited for long.
pub fn findings(catalog: &str, tables: &[TableFacts], now: UtcInstant) -> Vec<Finding> {
    let found: Vec<Finding> = tables.iter().flat_map(|table| of_table(table, now)).collect();
    match found.is_empty() && !tables.is_empty() {
        true => {
            let what = "no expired partition is refused, too large or kept for long";
            vec![Finding::ok(CHECK, what).of_catalog(catalog)]
        }
        false => found,
    }
}

fn of_table(table: &TableFacts, now: UtcInstant) -> Vec<Finding> {
    // Of those that are only counted it is not known how long they have waited.
    let at_once = |wanted: fn(WaitReason) -> bool| {
        let waiting = table.waiting.tuples.iter().filter(|waiting| wanted(waiting.reason));
        (waiting.collect::<Vec<_>>(), table.waiting.more_of(wanted))
    };
    let for_long = |wanted: fn(WaitReason) -> bool| {
        let (mut waiting, _) = at_once(wanted);
        waiting.retain(|one| now.distance(one.since).as_secs() >= LONG);
        (waiting, 0)
    };
    let families = [
        (
            Level::Warning,
            at_once(|reason| reason == WaitReason::Poisoned),
            "cannot be dropped",
            "the database refuses to end their files, and ends others of the table; each is tried \
             again by itself, after pauses of up to 6 hours, and stays until it goes through",
            "look at what the database says: at the trigger or the constraint, or at the row; once \
             that is mended the next look drops them, or `tailrace drop` does at once",
        ),
        (
            Level::Warning,
            at_once(|reason| reason == WaitReason::Oversize),
            "too large for one commit",
            "sweep.oversize is skip, so they stay",
            "raise sweep.max_files_per_tuple, or let sweep.oversize be split",
        ),
        (
            Level::Warning,
            at_once(|reason| reason == WaitReason::Evidence(KeptReason::BlastRadius)),
            "held for their number",
            "they would go otherwise than by time alone: the rule changed or their files came late, and \
             they are more of the table than guard.max_drop_fraction allows",
            "see `tailrace plan` for what they are and for the command that lets them go",
        ),
        (
            Level::Note,
            for_long(|reason| reason == WaitReason::Busy),
            "busy at each pass for a day or longer",
            "somebody else holds locks on rows of their files, so no pass ends them",
            "see which session holds them for so long (pg_locks, pg_stat_activity)",
        ),
        (
            Level::Note,
            for_long(|reason| {
                let others = [KeptReason::Held, KeptReason::BlastRadius, KeptReason::AmongNewest];
                matches!(reason, WaitReason::Evidence(reason) if !others.contains(&reason))
            }),
            "expired by value and kept for evidence for a day or longer",
            "their column statistics name newer rows, or their values may be of an earlier spec",
            "see `tailrace plan` for what each waits for; `tailrace spec trust` declares the values of a spec as trusted",
        ),
    ];
    families
        .into_iter()
        .map(|(level, (waiting, more), what, why, to_do)| {
            let count = waiting.len().saturating_add(more);
            let partitions = if count == 1 { "partition" } else { "partitions" };
            let what = format!("{count} {partitions} {what}: {}", told(&waiting, more));
            (
                count,
                Finding::new(level, CHECK, what, why, to_do)
                    .of_table(&table.governed.live.identity),
            )
        })
        .filter(|(count, _)| *count > 0)
        .map(|(_, finding)| finding)
        .collect()
}

/// The first of them with all that is known, and how many more there are.
fn told(waiting: &[&Waiting], more: usize) -> String {
    let mut shown: Vec<_> = waiting.iter().take(NAMES_SHOWN).map(|one| one.describe()).collect();
    if shown.is_empty() {
        shown.push("which ones is not remembered".to_owned());
    } else if let more @ 1.. = (waiting.len() - shown.len()).saturating_add(more) {
        shown.push(format!("and {more} more"));
    }
    shown.join("; ")
}
