//! When the objects of dropped files are deleted: the catalog's retention, and what holds its expiry floor.

use chrono::{DateTime, Utc};

use super::{Finding, Level, at, roughly};
use crate::catalog::inventory::consumers::Consumer;
use crate::catalog::inventory::maintenance_state::Retention;
use crate::installation::rights::as_identifier;

const CHECK: &str = "retention";
const FLOOR: &str = "floor";

/// How long snapshots should stay: the one advice, which docs/drops.md has in the same words. The
/// number is for whoever knows these two lengths.
const ADVICE: &str = "the longer of two times: the longest read of a table, and the time within which you want to be \
                      able to repair a drop";

/// A retention up to this is no news.
const LONG: i64 = 24 * 3600;

/// How far the floor may lag behind the retention before it is said: expiry is a loop.
const LAG: i64 = 3600;

/// How long snapshots stay.
///
/// What a retention deletes is gone for good, so the statement that sets one has a place where the
/// number goes and no number: as it stands it only fails.
pub fn of_seconds(catalog: &str, schema: &str, retention: &Retention) -> Finding {
    let set = format!(
        "update {}.hog_catalog set snapshot_retention_seconds = SECONDS where name = '{}';",
        as_identifier(schema),
        catalog.replace('\'', "''")
    );
    let finding = match retention.seconds {
        None => Finding::new(
            Level::Warning,
            CHECK,
            "snapshot_retention_seconds is null: snapshots stay for ever",
            "so do the objects of all that is dropped: readers no longer see them, and nobody \
             deletes them",
            format!(
                "if nobody needs the old snapshots, set a retention, through the server or by the statement below \
                 ({ADVICE}); what only older snapshots show is then deleted for good:"
            ),
        )
        .with(vec![set]),
        Some(seconds) if seconds > LONG => Finding::new(
            Level::Note,
            CHECK,
            format!("snapshots stay for {}", roughly(seconds)),
            format!(
                "an object is deleted {} after its partition was dropped at the earliest",
                roughly(seconds)
            ),
            format!("if that is longer than necessary, set a shorter one through the server: {ADVICE}"),
        ),
        Some(seconds) => Finding::ok(
            CHECK,
            format!(
                "snapshots stay for {}: an object is deleted that long after its drop at the earliest",
                roughly(seconds)
            ),
        ),
    };
    finding.of_catalog(catalog)
}

/// What holds the floor: a consumer, or that nobody moves it; nothing to say where snapshots stay
/// for ever.
pub fn of_floor(
    catalog: &str,
    retention: &Retention,
    slowest: Option<&Consumer>,
) -> Option<Finding> {
    let seconds = retention.seconds?;
    let Retention { floor, head, now, .. } = *retention;
    let is_too_old = |time: DateTime<Utc>| (now - time).num_seconds() > seconds;
    let behind = format!("the floor is at {floor}, {} snapshots behind the head", head - floor);
    // Without the consumer the floor would go on to the oldest snapshot that is young enough.
    let pinning = slowest.filter(|consumer| {
        retention.consumer_floor
            && consumer.committed_snapshot < head
            && consumer.committed_time.is_some_and(is_too_old)
    });
    let finding = match (pinning, retention.oldest_time) {
        (Some(consumer), _) => Finding::new(
            Level::Warning,
            FLOOR,
            format!(
                "the consumer {:?} holds the floor: it is at {} since {} ({behind})",
                consumer.consumer_id,
                consumer.committed_snapshot,
                at(consumer.updated_at)
            ),
            "no object of a dropped partition is deleted while the expiry floor is below the drop",
            "let it read on; if it is gone for good, delete its offset through the server",
        ),
        (None, Some(oldest)) if floor < head && (now - oldest).num_seconds() > seconds + LAG => {
            Finding::new(
                Level::Warning,
                FLOOR,
                format!("{behind}, its oldest snapshot is of {}", at(oldest)),
                "nothing holds it, so the server's expiry does not run or does not keep up, and no \
                 object of a dropped partition is deleted",
                "look at the server's expiry loop",
            )
        }
        _ => Finding::ok(FLOOR, format!("{behind}, and no consumer holds it")),
    };
    Some(finding.of_catalog(catalog))
}
