//! How long the server's cleanup has to go, and how busy the catalog's commits are.

use super::{Finding, Level, roughly};
use crate::catalog::inventory::upkeep::{Churn, Drained};

const CHECK: &str = "removal_queue";
const SNAPSHOTS: &str = "snapshots";

/// The queue is counted up to here.
pub const COUNTED_TO: i64 = 100_000;

/// What cleanup drains at its standing settings, from production (contract, "What happens to the
/// objects"), where too little was drained of late to tell.
const USUAL_PER_HOUR: f64 = 4_000.0;

/// Fewer rows than this tell no pace.
const TELLING: i64 = 100;

/// A queue that takes longer than this is worth a word.
const LONG: f64 = 24.0 * 3600.0;

/// The depth of the queue, and how long it takes.
pub fn of_queue(catalog: &str, undrained: i64, drained: &Drained) -> Finding {
    if undrained == 0 {
        return Finding::ok(CHECK, "no object waits to be deleted").of_catalog(catalog);
    }
    let measured = (drained.rows >= TELLING && drained.seconds > 0.0)
        .then(|| drained.rows as f64 / drained.seconds * 3600.0);
    let per_hour = measured.unwrap_or(USUAL_PER_HOUR);
    let seconds = undrained as f64 / per_hour * 3600.0;
    let depth = match undrained {
        COUNTED_TO.. => format!("{COUNTED_TO} objects or more wait"),
        1 => "1 object waits".to_owned(),
        _ => format!("{undrained} objects wait"),
    };
    let pace = match measured {
        Some(_) => format!("{per_hour:.0} an hour, as of late"),
        None => format!("{per_hour:.0} an hour, as is usual"),
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
            "that much longer the objects of what is dropped now stay and are paid for",
            "raise the pace of the server's cleanup for a while; sweep.removal_queue_ceiling keeps \
             passes from running ahead of it",
        ),
        false => Finding::ok(CHECK, what),
    };
    finding.of_catalog(catalog)
}

/// Snapshots an hour, and how many of them are ours.
pub fn of_snapshots(catalog: &str, churn: &Churn) -> Finding {
    let per_hour = |snapshots: i64| snapshots as f64 / churn.seconds.max(1.0) * 3600.0;
    let what = format!(
        "{:.0} snapshots in the last hour, {:.0} of them ours",
        per_hour(churn.snapshots),
        per_hour(churn.ours)
    );
    let finding = match churn.ours * 2 > churn.snapshots {
        true => Finding::new(
            Level::Note,
            SNAPSHOTS,
            what,
            "each is one more to expire and to read past; more than half being ours, a backlog is \
             worked off or the catalog is quiet",
            "nothing for a backlog; else raise sweep.max_files_per_commit as far as the hold allows",
        ),
        false => Finding::ok(SNAPSHOTS, what),
    };
    finding.of_catalog(catalog)
}
