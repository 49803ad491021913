//! The commit of a drop. It is planned without the commit lock, and checked again under the lock.
//! It is committed whole or not at all. A pass, an explicit drop and a truncate each make a
//! [`DropWrite`], which [`commit_once`] commits; [`Authority`] lists where they differ.

use super::guard::{Authority, Refusal};
use super::hold::{HeldLock, Times, millis};
use super::request::{DropError, Limits};
use crate::catalog::busy::{CATALOGS, busy_tuples, locked_table};
use crate::catalog::commit_guards::{GUARDS, Question, look};
use crate::catalog::commit_tail::{Written, write_drop};
use crate::catalog::drop_write::DropWrite;
use crate::catalog::errors::{
    Failure, is_locked_row_of, is_refusal, is_wait_for_row_of, is_wait_for_table,
};
use crate::catalog::receipts::{self, CameOfIt};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::catalog::tuples::TupleOfSpec;
use crate::guards::approval;
use crate::rules::hold::HeldPartition;

/// The result of one try.
#[derive(Debug)]
pub enum Tried {
    /// It was carried out, and committed where anything was written.
    Done(Done),
    /// It gave up, and wrote nothing.
    Refused(Refusal),
}

/// A drop that was carried out.
#[derive(Debug)]
pub struct Done {
    /// What was written; `None` where no live file matched, and there is no snapshot.
    pub written: Option<Written>,
    /// The head under the lock, before it.
    pub head: i64,
    /// The schema version after it.
    pub schema_version: i64,
    /// The indexes of the tuples that were left out because somebody else had locked a row.
    pub busy: Vec<i32>,
}

/// What became of the work under the lock.
enum Worked {
    Done(Done),
    Refused(Refusal),
    /// A lock of a row or of a table could not be acquired in time.
    LockTimeout(sqlx::Error),
}

/// Takes the commit lock, checks the guards, writes, and commits; or rolls back. With
/// `look_for_busy`, tuples of which somebody else has locked a row are left out.
///
/// If tailrace dies before COMMIT, the server rolls back: because the connection is broken, or by
/// `idle_in_transaction_session_timeout` where the client is only stopped. If tailrace dies at
/// COMMIT, the drop's row in the history, written in the same transaction, shows whether the drop
/// was committed.
pub async fn commit_once(
    session: &mut Session,
    table: &TableIdentity,
    drop: DropWrite<'_>,
    authority: Authority<'_>,
    limits: &Limits,
    look_for_busy: bool,
    times: &mut Times,
) -> Result<Tried, DropError> {
    let (catalog_id, drop_id) = (drop.catalog_id, drop.drop_id);
    let Some(mut held) = HeldLock::acquire(session, catalog_id, limits, times).await? else {
        return Ok(Tried::Refused(Refusal::LockNotAcquired));
    };
    let worked = under_lock(held.session(), table, drop, authority, limits, look_for_busy).await;
    match worked {
        // A COMMIT would wait for disk and replicas.
        Ok(Worked::Done(done)) if done.written.is_none() && authority.receipt().is_none() => {
            held.release(times).await;
            Ok(Tried::Done(done))
        }
        // The server bounds each statement; their sum, with what lies between them, only we do here.
        Ok(Worked::Done(_)) if held.length() > limits.max_hold => {
            held.release(times).await;
            Err(DropError::HoldExceeded)
        }
        Ok(Worked::Done(done)) => match held.commit(times).await {
            Ok(()) => Ok(Tried::Done(done)),
            // A deferred constraint or trigger refused it: the server has answered.
            Err(error) if is_refusal(&error) => Err(refused(error)),
            Err(error) => Err(DropError::AnswerLost { drop_id, busy: indexes(&done.busy), error }),
        },
        Ok(Worked::Refused(refusal)) => {
            held.release(times).await;
            Ok(Tried::Refused(refusal))
        }
        Ok(Worked::LockTimeout(error)) => {
            held.release(times).await;
            Ok(Tried::Refused(whose_lock(session, &error).await))
        }
        Err(error) => {
            held.release(times).await;
            Err(error)
        }
    }
}

/// Everything between the grant of the lock and COMMIT: the guards in one round trip, the write in
/// another, then the receipt. After a try that met locked rows, one more round trip before the write
/// finds the tuples of these rows.
///
/// Other writers may have committed between planning and the grant. An append adds files whose ids are
/// at or above the counter that was read before planning. These files are looked for again here. Those
/// that nobody has examined are examined in the write itself, by their own keys ([`super::LateRule`]).
/// Vectors are looked for in the same way, as their ids come from the same counter. A compaction or a
/// truncate ends planned files; only live files are ended here. The outputs of a compaction have new
/// ids. The guards detect DDL, a change of the policy, of pauses and of holds, and a replaced table.
///
/// After the grant no other writer of file rows commits, because every such writer takes the commit
/// lock. The guard statement and the write are READ COMMITTED statements that begin after the
/// grant, so they see everything that was committed before it.
///
/// Of two requests with one key, the second to get the commit lock finds the receipt of the first
/// here, before any other guard, and is answered from it. The receipt and the drop are one
/// transaction, so a client that was cut off at any moment learns by a retry what became of its
/// request.
async fn under_lock(
    session: &mut Session,
    table: &TableIdentity,
    mut drop: DropWrite<'_>,
    authority: Authority<'_>,
    limits: &Limits,
    look_for_busy: bool,
) -> Result<Worked, DropError> {
    let question = question(&drop, &authority, limits);
    let state = match look(session, &question).await {
        // Rows of policies and of guards alone are asked for NOWAIT: somebody is writing them.
        Err(error)
            if Failure::of(&error) == Failure::LockNotAvailable && !is_wait_for_table(&error) =>
        {
            return Ok(Worked::Refused(match is_locked_row_of(&error, GUARDS) {
                true => Refusal::GuardsChanged,
                false => Refusal::PolicyChanged,
            }));
        }
        other => match in_time(other)? {
            Ok(state) => state,
            Err(late) => return Ok(late),
        },
    };
    let (head, schema_version) = match (authority.refuses(table, state.as_ref()), &state) {
        (None, Some(state)) => (state.head, state.schema_version),
        (refusal, _) => return Ok(Worked::Refused(refusal.unwrap_or(Refusal::Gone))),
    };
    let mut busy = Vec::new();
    if look_for_busy {
        let looked = busy_tuples(session, drop.catalog_id, drop.table_id, &drop.files).await;
        match in_time(looked)? {
            Ok(found) => busy = found,
            Err(late) => return Ok(late),
        }
        if !busy.is_empty() {
            drop = drop.without(&busy);
        }
    }
    let written = match in_time(write_drop(session, &drop).await)? {
        Ok(Some(Written { kept, .. })) if kept > 0 => return Err(DropError::Kept(kept)),
        Ok(written) => written,
        Err(late) => return Ok(late),
    };
    if let Some(refusal) = authority.refuses_size(written.map_or(0, |it| it.counts.files)) {
        return Ok(Worked::Refused(refusal));
    }
    // In the same transaction: what is rolled back stays approved.
    if authority.uses_approval() && written.is_some() {
        let ended = drop.tuples.iter().map(|TupleOfSpec { spec_id, tuple }| HeldPartition {
            spec_id: *spec_id,
            values: tuple.values.clone(),
        });
        let table = (drop.catalog_id, drop.table_id);
        if let Err(late) = in_time(approval::use_up(session, table, ended).await)? {
            return Ok(late);
        }
    }
    let schema_version = written.map_or(schema_version, |written| written.schema_version);
    if let Some(receipt) = authority.receipt() {
        let (catalog_id, drop_id) = (drop.catalog_id, written.map(|_| drop.drop_id));
        let came_of_it = CameOfIt { catalog_id, head, schema_version, drop_id };
        if let Err(late) = in_time(receipts::write(session, receipt, came_of_it).await)? {
            return Ok(late);
        }
    }
    Ok(Worked::Done(Done { written, head, schema_version, busy }))
}

/// What a drop asks under the lock, in this name.
pub fn question<'a>(
    drop: &'a DropWrite<'_>,
    authority: &Authority<'_>,
    limits: &Limits,
) -> Question<'a> {
    let about = Question {
        catalog_id: drop.catalog_id,
        table_id: drop.table_id,
        head: drop.outset.head,
        hold_ms: millis(limits.max_hold),
        for_drop: true,
        ..Question::NOTHING
    };
    match authority {
        Authority::Policy(guard) => Question {
            for_policy: true,
            newest_as_of: guard.and_then(|guard| guard.newest_as_of),
            ..about
        },
        Authority::Operator(guard) => Question {
            idempotency_key: guard.receipt.map(|receipt| receipt.idempotency_key),
            read_snapshot: guard.read_snapshot,
            tuples: &drop.tuples,
            whole_table: drop.whole_table,
            ..about
        },
    }
}

/// An answer that came, or that a lock could not be acquired in time.
fn in_time<T>(answer: sqlx::Result<T>) -> Result<Result<T, Worked>, DropError> {
    match answer {
        Ok(answer) => Ok(Ok(answer)),
        Err(error) => match Failure::of(&error) {
            Failure::LockNotAvailable => Ok(Err(Worked::LockTimeout(error))),
            _ => Err(refused(error)),
        },
    }
}

fn refused(error: sqlx::Error) -> DropError {
    match Failure::of(&error) {
        Failure::StatementCancelled => DropError::HoldExceeded,
        _ => DropError::Database(error),
    }
}

/// Which lock could not be acquired, asked without the commit lock.
pub async fn whose_lock(session: &mut Session, error: &sqlx::Error) -> Refusal {
    if is_wait_for_table(error) {
        let table = locked_table(session).await.ok().flatten();
        return table.map_or(Refusal::RowsLocked, Refusal::TableLocked);
    }
    match is_wait_for_row_of(error, CATALOGS) {
        true => Refusal::CatalogLocked,
        false => Refusal::RowsLocked,
    }
}

/// Indexes of tuples, as the caller counts them.
pub fn indexes(tuple_numbers: &[i32]) -> Vec<usize> {
    tuple_numbers.iter().filter_map(|number| usize::try_from(*number).ok()).collect()
}
