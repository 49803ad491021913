//! What keeps a partition from being dropped, by facts that were read. Pure.

use super::report::{Block, Outlook};
use crate::guards::Guards;
use crate::policy::{Mode, Policy};
use crate::rules::expiry::{KeptReason, Verdict};
use crate::rules::instant::UtcInstant;
use crate::sweep::evidence::Withheld;
use crate::sweep::plan::NOT_PARQUET;
use crate::sweep::waiting::{WaitReason, Waiting};

/// What was read of a partition.
pub struct Facts<'a> {
    pub now: UtcInstant,
    pub guards: &'a Guards,
    /// The hold that keeps it.
    pub held_by: Option<i64>,
    /// The policy, or why the one that somebody asked for is not followed; `None` where nobody asked.
    pub policy: Option<Result<&'a Policy, &'a String>>,
    pub is_parquet: bool,
    /// What its values say under the policy.
    pub verdict: &'a Verdict,
    /// What its evidence keeps.
    pub withheld: Option<Withheld>,
    /// What passes have noted of it.
    pub waiting: Option<Waiting>,
    /// Why a pass would do nothing in the catalog now.
    pub clock_refused: Option<String>,
    /// How many objects wait, where that is above `sweep.removal_queue_ceiling`.
    pub queue: Option<i64>,
}

/// What they come to.
pub struct Blocks {
    pub outlook: Outlook,
    pub blocked_by: Vec<Block>,
    pub expires_at: Option<UtcInstant>,
}

/// Everything that keeps the partition, and what becomes of it.
pub fn blocks(facts: &Facts<'_>, files: i64) -> Blocks {
    let mut found: Vec<Block> = Vec::new();
    let mut block = |by, what: String, until| found.push(Block { by, what, until });
    if let Some(pause) = &facts.guards.pause {
        block("pause", pause.describe(), pause.until);
    }
    let hold = facts.guards.holds.iter().find(|hold| Some(hold.hold_id) == facts.held_by);
    if let Some(hold) = hold {
        block("hold", hold.describe(), hold.until);
    }
    let policy = match facts.policy {
        None => None,
        Some(Ok(_)) if !facts.is_parquet => {
            block("format", NOT_PARQUET.to_owned(), None);
            None
        }
        Some(Ok(policy)) => Some(policy),
        Some(Err(problem)) => {
            block("policy", format!("the policy is not followed: {problem}"), None);
            None
        }
    };
    if let Some(policy) = policy
        && policy.mode != Mode::Enforce
        && facts.guards.pause.is_none()
    {
        let pending = policy.pending.as_ref().filter(|it| it.terms.mode == Mode::Enforce);
        let waits = pending.map(|pending| format!("; {}", pending.describe()));
        let what = format!("the policy's mode is {}{}", policy.mode, waits.unwrap_or_default());
        block("mode", what, pending.and_then(|pending| pending.until));
    }
    if let Some(why) = &facts.clock_refused {
        block("clock", why.clone(), None);
    }
    if let Some(queue) = facts.queue {
        let what = format!(
            "at least {queue} files wait for the server to delete their objects, more than \
             sweep.removal_queue_ceiling"
        );
        block("removal_queue", what, None);
    }
    let keep = policy.map(|policy| policy.keep.length());
    let (is_expired, expires_at) = match facts.verdict {
        Verdict::Expired { range_end, .. } => (true, keep.map(|keep| range_end.plus(keep))),
        Verdict::Kept { reason, leaves_at } => {
            if policy.is_some() && !matches!(reason, KeptReason::NotExpired | KeptReason::Future) {
                block(reason.name(), words(*reason).to_owned(), *leaves_at);
            }
            (false, *leaves_at)
        }
    };
    if let Some(kept) = &facts.withheld {
        let newest = kept.newest.map(|newest| format!(": its newest row is of {newest}"));
        let what = format!("{}{}", words(kept.reason), newest.unwrap_or_default());
        block(kept.reason.name(), what, kept.leaves_at);
    }
    if let Some(waiting) = &facts.waiting
        && !matches!(waiting.reason, WaitReason::Evidence(_))
    {
        block(waiting.reason.name(), waiting.describe(), waiting.next_look);
    }
    let outlook = match (files, policy) {
        (0, _) => Outlook::NoFiles,
        (_, None) => Outlook::NoPolicy,
        _ if is_expired && found.is_empty() => Outlook::NextPass,
        _ if is_expired => Outlook::Blocked,
        _ if expires_at.is_none() => Outlook::Never,
        _ => Outlook::NotExpired,
    };
    Blocks { outlook, blocked_by: found, expires_at }
}

/// Why a partition is kept, for people.
fn words(reason: KeptReason) -> &'static str {
    match reason {
        KeptReason::NotExpired => "it has not expired",
        KeptReason::Future => "its range starts after now",
        KeptReason::AmbiguousSpec => {
            "its values may mean another time, or be of another field of an earlier spec, and nothing proves otherwise"
        }
        KeptReason::NewerRowsThanPartition => {
            "the column statistics of one of its files name newer rows than its values"
        }
        KeptReason::Held => "a hold keeps it",
        KeptReason::BlastRadius => {
            "it goes otherwise than by time alone, with more of the table than guard.max_drop_fraction allows; \
             `tailrace plan` shows what lets it go"
        }
        KeptReason::AmongNewest => {
            "it is among the newest time values, which the policy keeps (keep_last)"
        }
        KeptReason::Null => "its time value is null: its time is unknown",
        KeptReason::Malformed => "its time value is no value of its transform: its time is unknown",
        KeptReason::OutOfRange => "its time value is beyond what the database can hold",
        KeptReason::Incomplete => "its values are not those of its spec",
        KeptReason::UnknownSpec => "its spec is not known, or was seen with several definitions",
        KeptReason::Uncovered => "its spec has no time field on the policy's column",
    }
}

#[cfg(test)]
mod tests;
