//! The stage of a drop, from retained to gone, and what holds it up there. Pure.

use serde::Serialize;
use utoipa::ToSchema;

use crate::catalog::drop_lifecycle::queue::Queue;
use crate::catalog::drop_lifecycle::read::{Consumer, DropRow, FloorRules};
use crate::rules::instant::UtcInstant;

/// How far a drop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// Snapshots before the drop can still be read: its files are kept for them.
    Retained,
    /// The floor has passed it; the server has not deleted all of its rows yet.
    Purging,
    /// No row is left; objects may still wait in the server's queue.
    Queued,
    /// No row is left, and nothing in the queue that could be the drop's.
    Gone,
    /// The catalog does not know the drop: it was restored to a time before. Its data may be back.
    Undone,
}

impl Stage {
    /// The stage as JSON has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Retained => "retained",
            Self::Purging => "purging",
            Self::Queued => "queued",
            Self::Gone => "gone",
            Self::Undone => "undone",
        }
    }
}

/// What holds a drop up at the moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Hold {
    /// The catalog's `snapshot_retention_seconds` is not over for the last snapshot before the
    /// drop.
    Retention {
        /// Null keeps it for ever.
        seconds: Option<i64>,
        /// When it will be over, if nobody changes it.
        until: Option<UtcInstant>,
    },
    /// A consumer has not applied the drop yet, and the catalog heeds its consumers.
    Consumer(Consumer),
    /// The floor may move past it: the server's expiry has not done so yet.
    Expiry,
    /// The server's expiry has not deleted all of its rows yet.
    Purge,
    /// Objects in the server's queue that may be the drop's, or that were queued before its last.
    Queue {
        /// How many, up to 100 000; there may be more then.
        objects: i64,
        /// How many of them the server tried and has not drained: those in `stuck` of the report.
        stuck: i64,
    },
    /// Nothing but the next pass, which will note it.
    Pass,
}

/// How many of its rows are left: `None` where the server has no index that tells.
pub type FilesLeft = Option<i64>;

/// Where a drop is, and what holds it up there. `files_left` counts only for a drop that the floor
/// has passed. What passes noted counts only where nothing speaks against it: rows may be back by a restore.
pub fn judge(
    drop: &DropRow,
    rules: &FloorRules,
    files_left: FilesLeft,
    queue: &Queue,
    now: UtcInstant,
) -> (Stage, Vec<Hold>) {
    // It wins over whatever was noted before: what is gone may be back.
    if drop.is_undone {
        let noted = drop.noted.undone_at.map(|_| Vec::new());
        return (Stage::Undone, noted.unwrap_or_else(|| vec![Hold::Pass]));
    }
    if drop.snapshot_id > rules.floor {
        return (Stage::Retained, below_floor(drop, rules, now));
    }
    if files_left.is_some_and(|files| files > 0) {
        return (Stage::Purging, vec![Hold::Purge]);
    }
    if drop.noted.gone_at.is_some() {
        return (Stage::Gone, Vec::new());
    }
    if let Some((_, mark)) = drop.noted.purged {
        let held = match queue.at_or_below(mark) {
            0 => Hold::Pass,
            objects => Hold::Queue { objects, stuck: queue.stuck_at_or_below(mark) },
        };
        return (Stage::Queued, vec![held]);
    }
    match files_left {
        // Its mark is not known yet: at the most it is the end of the queue.
        Some(0) if queue.undrained > 0 => {
            let stuck = queue.stuck_at_or_below(i64::MAX);
            (Stage::Queued, vec![Hold::Queue { objects: queue.undrained, stuck }, Hold::Pass])
        }
        Some(0) => (Stage::Queued, vec![Hold::Pass]),
        _ => (Stage::Purging, vec![Hold::Purge]),
    }
}

/// What keeps the floor below a drop. By the contract it moves up to the oldest snapshot that is
/// younger than the retention: so to the drop's once the one before it is older. And not past the
/// lowest offset of a heeded consumer.
fn below_floor(drop: &DropRow, rules: &FloorRules, now: UtcInstant) -> Vec<Hold> {
    let mut held = Vec::new();
    match rules.retention_seconds {
        None => held.push(Hold::Retention { seconds: None, until: None }),
        Some(seconds) => {
            let length = std::time::Duration::from_secs(seconds.unsigned_abs());
            let until = drop.before_at.map(|before| before.plus(length));
            if until.is_some_and(|until| until >= now) {
                held.push(Hold::Retention { seconds: Some(seconds), until });
            }
        }
    }
    let behind = |consumer: &&Consumer| consumer.committed_snapshot < drop.snapshot_id;
    held.extend(rules.consumers.iter().filter(behind).cloned().map(Hold::Consumer));
    if held.is_empty() {
        held.push(Hold::Expiry);
    }
    held
}
