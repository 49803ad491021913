//! The drop-commit itself: plan outside the lock, prove inside it.
//!
//! Who may commit in between, and why nothing is lost or left:
//! - **Between planning and the grant** anybody may. An append adds files with ids from the
//!   counter on that was read before planning: they are looked for again under the lock, and those
//!   that nobody has examined are, by their own keys, in the write itself ([`super::LateRule`]); so are
//!   vectors, whose ids come from the same counter. A compaction or a truncate ends planned files:
//!   only what is live is ended; its outputs have new ids. DDL, a policy's change and a replaced
//!   table are seen by the guards.
//! - **After the grant** nobody who writes file rows, for all of them hold the commit lock. The
//!   guard statement and the write are READ COMMITTED statements that begin after the grant, so
//!   they see everything that was committed before it.
//! - **If we die** anywhere before COMMIT, the server rolls back: by the broken connection, or by
//!   `idle_in_transaction_session_timeout` where the client is only stopped. If we die at COMMIT,
//!   the row of our history, written in the same transaction, tells which.

use uuid::Uuid;

use super::hold::{HeldLock, Times, bounds};
use super::plan::{Asked, Plan};
use super::request::{Attempt, DropError, DropOutcome, DropRequest, Limits, Receipt, Refusal};
use crate::catalog::busy::busy_tuples;
use crate::catalog::discovery::{Counts, TupleOfSpec};
use crate::catalog::failure::Failure;
use crate::catalog::guard::{UnderLock, read_under_lock};
use crate::catalog::history::{HistoryRow, history};
use crate::catalog::session::Session;
use crate::catalog::tail::{DropWrite, Written, write_drop};

/// How often a drop that met a locked row looks which tuples are busy and goes on without them.
const TRIES_PAST_BUSY_ROWS: usize = 3;

/// Ends every live file of the tuples and its vector in one snapshot, or does nothing.
///
/// Takes the catalog's commit lock for the guards and the writes: waits at most
/// `limits.lock_timeout` for it, then holds it for three round trips, four where rows were locked,
/// whatever the number of tuples and files. The pages that it will write to have been read before.
/// A tuple with a row that somebody else has locked is left out (`busy`); the others go. The session
/// must not be in a transaction.
pub async fn drop_tuples(
    connection: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
) -> Attempt {
    attempt(connection, request, limits, true).await
}

/// As [`drop_tuples`], but reads no page for the sake of the write: only to measure what that is
/// good for.
pub async fn drop_tuples_unwarmed(
    connection: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
) -> Attempt {
    attempt(connection, request, limits, false).await
}

async fn attempt(
    connection: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
    is_warmed: bool,
) -> Attempt {
    let mut times = Times::default();
    let result = try_past_busy_rows(connection, request, limits, is_warmed, &mut times).await;
    Attempt { result, lock_wait: times.wait, lock_hold: times.hold }
}

enum Tried {
    Written(Written, Vec<i32>),
    Nothing(Vec<i32>),
    Refused(Refusal),
    /// A row that the write needed was locked for longer than the row lock timeout.
    RowsLocked,
}

async fn try_past_busy_rows(
    connection: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
    is_warmed: bool,
    times: &mut Times,
) -> Result<DropOutcome, DropError> {
    for past_busy in 0..=TRIES_PAST_BUSY_ROWS {
        let busy_first = past_busy > 0;
        let Some(plan) = Plan::of_request(connection, request, busy_first).await? else {
            return Ok(DropOutcome::Refused(Refusal::Gone));
        };
        if is_warmed {
            plan.warm(connection, request.table.catalog_id).await?;
        }
        let drop_id = Uuid::new_v4();
        match try_once(connection, request, limits, &plan, drop_id, busy_first, times).await? {
            Tried::RowsLocked => {}
            Tried::Refused(refusal) => return Ok(DropOutcome::Refused(refusal)),
            Tried::Nothing(busy) => {
                return Ok(DropOutcome::NothingMatches { busy: indexes(&busy) });
            }
            Tried::Written(written, busy) => {
                let details = read_history(connection, drop_id, request.tuples).await;
                return Ok(DropOutcome::Dropped(Receipt {
                    snapshot_id: written.snapshot_id,
                    counts: written.counts,
                    per_tuple: details
                        .unwrap_or_else(|| vec![Counts::default(); request.tuples.len()]),
                    busy: indexes(&busy),
                }));
            }
        }
    }
    // Rows were locked anew each time that we looked: all of these tuples wait for the next pass.
    Ok(DropOutcome::NothingMatches { busy: (0..request.tuples.len()).collect() })
}

async fn try_once(
    connection: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
    plan: &Plan,
    drop_id: Uuid,
    busy_first: bool,
    times: &mut Times,
) -> Result<Tried, DropError> {
    let held = HeldLock::take(connection, request.table.catalog_id, limits, times).await?;
    let Some(mut held) = held else { return Ok(Tried::Refused(Refusal::LockNotHad)) };
    match under_lock(held.connection(), request, limits, plan, drop_id, busy_first).await {
        Ok(Tried::Written(written, busy)) => match held.commit(times).await {
            Ok(()) => Ok(Tried::Written(written, busy)),
            // A deferred constraint or trigger refused it: the server has answered.
            Err(error) if Failure::of(&error) == Failure::Content => {
                Err(DropError::Database(error))
            }
            Err(error) => Err(DropError::AnswerLost { drop_id, busy: indexes(&busy), error }),
        },
        other => {
            held.release(times).await;
            other
        }
    }
}

/// All that happens between grant and COMMIT: the guards in one round trip, then the write in
/// another; after a first meeting with locked rows, one between them that finds out whose.
async fn under_lock(
    connection: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
    plan: &Plan,
    drop_id: Uuid,
    busy_first: bool,
) -> Result<Tried, DropError> {
    let table = request.table;
    let state = match read_under_lock(
        connection,
        table.catalog_id,
        table.table_id,
        plan.outset.head,
        bounds(limits),
    )
    .await
    {
        Ok(state) => state,
        // Only the policy rows are asked for NOWAIT: somebody is writing them.
        Err(error) if Failure::of(&error) == Failure::LockNotAvailable => {
            return Ok(Tried::Refused(Refusal::PolicyChanged));
        }
        Err(error) => return Err(hold_error(error)),
    };
    if let Some(refusal) = refusal(request, state.as_ref()) {
        return Ok(Tried::Refused(refusal));
    }
    let mut busy = Vec::new();
    if busy_first {
        busy = busy_tuples(connection, table.catalog_id, table.table_id, &plan.files)
            .await
            .map_err(hold_error)?;
    }
    let asked = Asked::without_busy(request, plan, &busy);
    let write = DropWrite {
        catalog_id: table.catalog_id,
        table_id: table.table_id,
        table_uuid: table.table_uuid,
        tuples: &asked.tuples,
        planned: &asked.files,
        late_from: (!request.is_piece).then_some(plan.outset.counter),
        without_late: &asked.without_late,
        late_bound: request.late.and_then(|late| late.rule.bound()),
        examined_below: request.found_below,
        vectors: &asked.vectors,
        vectors_from: plan.outset.counter,
        author: request.author,
        message: request.message,
        fence: request.fence,
        whole_table: false,
        drop_id,
        policy_revision: request.policy.as_ref().map(|policy| policy.revision),
    };
    match write_drop(connection, &write).await {
        Ok(Some(Written { kept, .. })) if kept > 0 => Err(DropError::Kept(kept)),
        Ok(Some(written)) => Ok(Tried::Written(written, busy)),
        Ok(None) => Ok(Tried::Nothing(busy)),
        Err(error) if Failure::of(&error) == Failure::LockNotAvailable => Ok(Tried::RowsLocked),
        Err(error) => Err(hold_error(error)),
    }
}

/// The guards, on what was read under the lock.
fn refusal(request: &DropRequest<'_>, state: Option<&UnderLock>) -> Option<Refusal> {
    let Some(state) = state else { return Some(Refusal::Gone) };
    if state.is_restored {
        return Some(Refusal::Restored);
    }
    let table = request.table;
    let same_incarnation = state.table_uuid == Some(table.table_uuid);
    let same_name = state
        .live_as
        .as_ref()
        .is_some_and(|(namespace, name)| *namespace == table.namespace && *name == table.table);
    if !same_incarnation || !same_name {
        Some(Refusal::Gone)
    } else if !state.is_parquet {
        Some(Refusal::NotParquet)
    } else if request.policy.as_ref().is_some_and(|policy| !policy.holds(state)) {
        Some(Refusal::PolicyChanged)
    } else {
        None
    }
}

fn hold_error(error: sqlx::Error) -> DropError {
    match Failure::of(&error) {
        Failure::StatementCancelled => DropError::HoldExceeded,
        _ => DropError::Database(error),
    }
}

/// What each tuple gave, in the request's order; `None` if the connection broke after COMMIT,
/// which takes nothing back.
async fn read_history(
    connection: &mut Session,
    drop_id: Uuid,
    tuples: &[TupleOfSpec],
) -> Option<Vec<Counts>> {
    let row = history(connection, drop_id).await.ok().flatten()?;
    Some(per_tuple(&row, tuples))
}

/// The history's counts in the order of the tuples.
pub fn per_tuple(row: &HistoryRow, tuples: &[TupleOfSpec]) -> Vec<Counts> {
    let by_tuple: std::collections::HashMap<_, _> =
        row.partitions.iter().map(|(tuple, counts)| (tuple, *counts)).collect();
    tuples.iter().map(|tuple| by_tuple.get(tuple).copied().unwrap_or_default()).collect()
}

fn indexes(tuple_numbers: &[i32]) -> Vec<usize> {
    tuple_numbers.iter().filter_map(|number| usize::try_from(*number).ok()).collect()
}
