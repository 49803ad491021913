//! How long the server's cleanup will take, which objects it cannot delete, and how many commits the catalog
//! has.

use super::{Finding, Level, listed, roughly};
use crate::catalog::inventory::maintenance_state::{Churn, Drained};
use crate::catalog::removal_queue::{self, Namer, Stuck};
use crate::rules::instant::UtcInstant;

const CHECK: &str = "removal_queue";
const SNAPSHOTS: &str = "snapshots";

/// The queue is counted up to here.
pub const COUNTED_TO: i64 = 100_000;

/// What cleanup drains by its compiled default (contract, "What happens to the objects"), where too little
/// was drained of late to tell. Servers are run with up to 150 times that.
const DEFAULT_PER_HOUR: f64 = 4_000.0;

/// Fewer rows than this tell no pace.
const TELLING: i64 = 100;

/// A queue that takes longer than this is worth a word.
const LONG: f64 = 24.0 * 3600.0;

/// The depth of the queue, without what is stuck in it, and how long it takes.
pub fn of_queue(catalog: &str, undrained: i64, stuck: i64, drained: &Drained) -> Finding {
    let undrained = match undrained {
        COUNTED_TO.. => undrained,
        _ => undrained.saturating_sub(stuck),
    };
    if undrained <= 0 {
        let but = if stuck > 0 { ", but what is stuck" } else { "" };
        return Finding::ok(CHECK, format!("no object waits to be deleted{but}"))
            .of_catalog(catalog);
    }
    let measured = (drained.rows >= TELLING && drained.seconds > 0.0)
        .then(|| drained.rows as f64 / drained.seconds * 3600.0);
    let per_hour = measured.unwrap_or(DEFAULT_PER_HOUR);
    let seconds = undrained as f64 / per_hour * 3600.0;
    let depth = match undrained {
        COUNTED_TO.. => format!("{COUNTED_TO} objects or more wait"),
        1 => "1 object waits".to_owned(),
        _ => format!("{undrained} objects wait"),
    };
    let pace = match measured {
        Some(_) => format!("{per_hour:.0} an hour, as of late"),
        None => {
            format!("{per_hour:.0} an hour, the server's default, for too few were drained of late")
        }
    };
    let what = format!(
        "{depth} to be deleted: about {} at {pace}",
        // Rounded up to a second: what waits takes some time.
        roughly(seconds.ceil() as i64)
    );
    let finding = match seconds > LONG {
        true => Finding::new(
            Level::Warning,
            CHECK,
            what,
            "the objects of what is dropped now are kept, and paid for, that much longer",
            "raise the pace of the server's cleanup for a while; sweep.removal_queue_ceiling keeps \
             passes from running ahead of it",
        ),
        false => Finding::ok(CHECK, what),
    };
    finding.of_catalog(catalog)
}

/// What cleanup tried, and has not drained; `by_path` says whether the rows were looked for that name it.
pub fn of_stuck(catalog: &str, stuck: &[Stuck], by_path: bool) -> Option<Finding> {
    let number = stuck.len();
    let objects = match number {
        0 => return None,
        1 => "1 queued object was".to_owned(),
        _ if number as i64 >= removal_queue::TOLD => {
            format!("{number} queued objects or more were")
        }
        _ => format!("{number} queued objects were"),
    };
    let told: Vec<String> = stuck.iter().map(|stuck| describe(stuck, by_path)).collect();
    let finding = Finding::new(
        Level::Warning,
        CHECK,
        format!("{objects} tried and not drained: {}", listed(&told)),
        "the server skips a path at each run that a row still names, so the object is never \
         deleted; and drops whose objects were queued after it are shown as queued as long as it \
         waits",
        "see which row is right: several name one path, or it was queued although a file has it. tailrace \
         writes neither paths nor the queue, so whoever runs the server has to settle it; where no row \
         names it, the server's log says why the object is not deleted",
    );
    Some(finding.of_catalog(catalog))
}

fn describe(stuck: &Stuck, by_path: bool) -> String {
    let Stuck { path, attempts, .. } = stuck;
    let since = UtcInstant::from(stuck.scheduled_at);
    let by = match &stuck.named_by {
        Some(namer) => format!("named by {}", named_by(namer)),
        None if by_path => "named by no file or vector, an upload may name it".to_owned(),
        None => "which row names it is unknown before V17".to_owned(),
    };
    format!("{path} (queued {since}, attempts {attempts}, {by})")
}

/// The row, for people.
fn named_by(namer: &Namer) -> String {
    let kind = if namer.is_vector { "vector" } else { "data file" };
    let table = namer.table.clone().unwrap_or_else(|| format!("table {}", namer.table_id));
    let state = match namer.end_snapshot {
        None => "live".to_owned(),
        Some(snapshot_id) => format!("ended in snapshot {snapshot_id}"),
    };
    format!("{kind} {} of {table}, {state}", namer.file_id)
}

/// Snapshots an hour, and how many of them are ours.
pub fn of_snapshots(catalog: &str, churn: &Churn) -> Finding {
    let per_hour = |snapshots: i64| snapshots as f64 / churn.seconds.max(1.0) * 3600.0;
    let what = format!(
        "{:.0} snapshots in the last hour, {:.0} of them by tailrace",
        per_hour(churn.snapshots),
        per_hour(churn.ours)
    );
    let finding = match churn.ours * 2 > churn.snapshots {
        true => Finding::new(
            Level::Note,
            SNAPSHOTS,
            what,
            "each is one more to expire and to read past; where tailrace made more than half of \
             them, it works off a backlog or the catalog is quiet",
            "nothing for a backlog; else raise sweep.max_files_per_commit as far as the hold allows",
        ),
        false => Finding::ok(SNAPSHOTS, what),
    };
    finding.of_catalog(catalog)
}
