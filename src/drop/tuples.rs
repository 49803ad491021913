//! A policy's drop: ends whole tuples in one commit, and leaves out tuples of which somebody else
//! has locked a row.

use uuid::Uuid;

use super::commit::{Done, Tried, commit_once, indexes, whose_lock};
use super::guard::{Authority, Refusal};
use super::hold::Times;
use super::plan::of_request;
use super::request::{Attempt, DropError, DropOutcome, DropRequest, Limits, Receipt};
use crate::catalog::drop_history::{HistoryRow, history};
use crate::catalog::errors::Failure;
use crate::catalog::live_file::Counts;
use crate::catalog::session::Session;
use crate::catalog::tuples::TupleOfSpec;

/// How often a drop that met a locked row looks which tuples are busy and goes on without them.
const TRIES_PAST_BUSY_ROWS: usize = 3;

/// Ends every live file of the tuples and its vector in one snapshot, or does nothing.
///
/// Takes the catalog's commit lock for the guards and the writes: waits at most
/// `limits.lock_timeout` for it, then holds it for three round trips, or four where rows were
/// locked, whatever the number of tuples and files. The pages that the write will touch are read
/// before. A tuple with a row that somebody else has locked is left out (`busy`); the others are
/// dropped. The session must not be in a transaction.
pub async fn drop_tuples(
    session: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
) -> Attempt {
    attempt(session, request, limits, true).await
}

/// As [`drop_tuples`], but without prewarming: only to measure the effect of prewarming.
#[cfg(feature = "testing")]
pub async fn drop_tuples_unwarmed(
    session: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
) -> Attempt {
    attempt(session, request, limits, false).await
}

async fn attempt(
    session: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
    is_prewarmed: bool,
) -> Attempt {
    let mut times = Times::default();
    let result = try_past_busy_rows(session, request, limits, is_prewarmed, &mut times).await;
    Attempt { result, lock_wait: times.wait, lock_hold: times.hold }
}

async fn try_past_busy_rows(
    session: &mut Session,
    request: &DropRequest<'_>,
    limits: &Limits,
    is_prewarmed: bool,
    times: &mut Times,
) -> Result<DropOutcome, DropError> {
    let authority = Authority::Policy(request.policy.as_ref());
    for past_busy in 0..=TRIES_PAST_BUSY_ROWS {
        let busy_first = past_busy > 0;
        let drop = match of_request(session, request, busy_first, is_prewarmed).await {
            Ok(Some(drop)) => drop,
            Ok(None) => return Ok(DropOutcome::Refused(Refusal::Gone)),
            Err(error) if Failure::of(&error) == Failure::LockNotAvailable => {
                match whose_lock(session, &error).await {
                    Refusal::RowsLocked => continue,
                    refusal => return Ok(DropOutcome::Refused(refusal)),
                }
            }
            Err(error) => return Err(error.into()),
        };
        let (table, drop_id) = (request.table, drop.drop_id);
        let tried = commit_once(session, table, drop, authority, limits, busy_first, times).await?;
        return Ok(match tried {
            Tried::Refused(Refusal::RowsLocked) => continue,
            Tried::Refused(refusal) => DropOutcome::Refused(refusal),
            Tried::Done(Done { written: None, busy, .. }) => {
                DropOutcome::NothingMatches { busy: indexes(&busy) }
            }
            Tried::Done(Done { written: Some(written), busy, .. }) => {
                let details = read_history(session, drop_id, request.tuples).await;
                DropOutcome::Dropped(Receipt {
                    snapshot_id: written.snapshot_id,
                    counts: written.counts,
                    per_tuple: details
                        .unwrap_or_else(|| vec![Counts::default(); request.tuples.len()]),
                    busy: indexes(&busy),
                })
            }
        });
    }
    // Rows were locked anew each time that we looked: all of these tuples wait for the next pass.
    Ok(DropOutcome::NothingMatches { busy: (0..request.tuples.len()).collect() })
}

/// What each tuple gave, in the request's order; `None` if the connection broke after COMMIT,
/// which takes nothing back.
async fn read_history(
    session: &mut Session,
    drop_id: Uuid,
    tuples: &[TupleOfSpec],
) -> Option<Vec<Counts>> {
    let row = history(session, drop_id).await.ok().flatten()?;
    Some(per_tuple(&row, tuples))
}

/// The history's counts in the order of the tuples.
pub fn per_tuple(row: &HistoryRow, tuples: &[TupleOfSpec]) -> Vec<Counts> {
    let by_tuple: std::collections::HashMap<_, _> =
        row.partitions.iter().map(|(tuple, counts)| (tuple, *counts)).collect();
    tuples.iter().map(|tuple| by_tuple.get(tuple).copied().unwrap_or_default()).collect()
}
