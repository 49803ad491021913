//! The execution of an explicit drop: plan outside the lock, receipts and guards inside it, one
//! write, one receipt, COMMIT.
//!
//! What may happen in between is argued in [`crate::drop::commit`]; beyond that, two requests with
//! one key meet at the commit lock: the second finds the first one's receipt under it, before any
//! other guard, and is answered from it. The receipt and the drop are one transaction, so a client
//! that was cut off at any moment learns by a retry what became of its request.

mod guards;

use std::ops::ControlFlow;
use std::time::Duration;

use uuid::Uuid;

use super::problem::Problem;
use super::{Bounds, internal};
use crate::catalog::discovery::{Counts, TupleOfSpec};
use crate::catalog::explicit_guard::look;
use crate::catalog::failure::{Failure, with_row};
use crate::catalog::files::{Search, count_files, count_live, visit};
use crate::catalog::receipts::{self, NewReceipt, ReceiptRow, RequestedTuple};
use crate::catalog::restore::outset;
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::catalog::tail::{DropWrite, Written, prepare_write, write_drop};
use crate::drop::DropError;
use crate::drop::hold::{HeldLock, Times, bounds};
use crate::drop::plan::Plan;
use crate::events;

/// When a client shall try again that did not get the commit lock, or a row.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// So many partitions of a refused request are named in the log.
const TOLD: usize = 20;

/// Which files go.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Those of these tuples.
    Tuples {
        /// The tuples.
        tuples: &'a [TupleOfSpec],
        /// For each the position of the value by which its files are found.
        lead: &'a [usize],
    },
    /// All of the table.
    WholeTable,
}

impl<'a> Selection<'a> {
    fn tuples(&self) -> &'a [TupleOfSpec] {
        match self {
            Self::Tuples { tuples, .. } => tuples,
            Self::WholeTable => &[],
        }
    }

    fn is_whole_table(&self) -> bool {
        matches!(self, Self::WholeTable)
    }
}

/// A request, resolved.
pub struct Execution<'a> {
    pub identity: &'a TableIdentity,
    pub selection: Selection<'a>,
    pub fingerprint: Vec<u8>,
    pub default_spec_id: Option<i64>,
    pub requested: Option<&'a [RequestedTuple]>,
    pub idempotency_key: Option<Uuid>,
    pub expected_table_uuid: Option<Uuid>,
    pub read_snapshot: Option<i64>,
    pub fence: bool,
    pub author: &'a str,
    pub message: &'a str,
    pub bounds: &'a Bounds,
}

/// How an execution ended.
pub enum Done {
    /// It was carried out; the receipt as it stands in the database.
    Receipt(ReceiptRow),
    /// Another request with the same key was there first.
    Earlier(ReceiptRow),
    /// It was carried out and has no key, so no receipt.
    NoReceipt { snapshot_id: i64, schema_version: i64 },
}

/// What a dry run found.
pub struct Found {
    pub head: i64,
    pub schema_version: i64,
    pub counts: Counts,
    pub ended: Vec<(TupleOfSpec, Counts)>,
}

enum UnderLock {
    Written { written: Option<Written>, head: i64, schema_version: i64 },
    HasReceipt,
}

impl Execution<'_> {
    /// Counts what would go, with the guards as they are at this moment. No lock is taken.
    pub async fn dry_run(&self, connection: &mut Session) -> Result<Found, Problem> {
        let state = look(connection, &self.question(None), bounds(&self.bounds.limits))
            .await
            .map_err(internal)?;
        let state = self.guard(state)?;
        let ended = self.count(connection).await?;
        let mut counts = Counts::default();
        ended.iter().for_each(|(_, of_tuple)| counts += *of_tuple);
        self.check_size(counts.files)?;
        Ok(Found { head: state.head, schema_version: state.schema_version, counts, ended })
    }

    /// Carries the request out.
    pub async fn run(&self, connection: &mut Session) -> Result<Done, Problem> {
        let catalog_id = self.identity.catalog_id;
        if let Some(key) = self.idempotency_key
            && receipts::used_by_server(connection, catalog_id, key).await.map_err(internal)?
        {
            return Err(Problem::Validation(
                "idempotency_key was used by a commit of the server: make a fresh one".to_owned(),
            ));
        }
        let plan = self.plan(connection).await?;
        // What cannot be is refused before any writer has to wait for us; and what is asked under
        // the lock has been parsed by then, so that it takes no round trips of its own.
        let state = look(connection, &self.question(plan.outset.head), bounds(&self.bounds.limits))
            .await
            .map_err(internal)?;
        if state.as_ref().is_some_and(|state| state.has_receipt) {
            return Ok(Done::Earlier(self.receipt(connection).await?));
        }
        self.guard(state)?;
        prepare_write(connection).await.map_err(internal)?;
        if self.idempotency_key.is_some() {
            receipts::prepare_write(connection).await.map_err(internal)?;
        }
        let drop_id = Uuid::new_v4();
        match self.locked(connection, &plan, drop_id).await? {
            UnderLock::HasReceipt => Ok(Done::Earlier(self.receipt(connection).await?)),
            UnderLock::Written { .. } if self.idempotency_key.is_some() => {
                Ok(Done::Receipt(self.receipt(connection).await?))
            }
            UnderLock::Written { written, head, schema_version } => Ok(Done::NoReceipt {
                snapshot_id: written.map_or(head, |written| written.snapshot_id),
                schema_version,
            }),
        }
    }

    /// Finds the files without any lock. Too many of them are counted and refused here, before any
    /// writer has to wait for us.
    async fn plan(&self, connection: &mut Session) -> Result<Plan, Problem> {
        let TableIdentity { catalog_id, table_id, .. } = *self.identity;
        // Read first: see `Plan::outset`.
        let outset = outset(connection, catalog_id)
            .await
            .map_err(internal)?
            .ok_or_else(|| self.dropped())?;
        let Selection::Tuples { tuples, lead } = self.selection else {
            let live = count_live(connection, catalog_id, table_id).await.map_err(internal)?;
            self.check_size(live)?;
            return Ok(Plan { files: Vec::new(), vectors: Vec::new(), outset });
        };
        let (mut found, mut files, mut with_vector) = (0_i64, Vec::new(), Vec::new());
        let search = Search { catalog_id, table_id, tuples, lead, from_id: 0 };
        visit(connection, &search, |file| {
            found += 1;
            if found <= self.bounds.max_files {
                files.push((file.data_file_id, file.tuple_no));
            }
            if found <= self.bounds.max_files && file.has_vector {
                with_vector.push((file.data_file_id, file.tuple_no));
            }
            ControlFlow::Continue(())
        })
        .await
        .map_err(internal)?;
        self.check_size(found)?;
        let plan = Plan::of_files(connection, catalog_id, files, &with_vector, outset)
            .await
            .map_err(internal)?;
        plan.warm(connection, catalog_id).await.map_err(internal)?;
        Ok(plan)
    }

    /// Takes the commit lock, works under it, commits or rolls back.
    async fn locked(
        &self,
        connection: &mut Session,
        plan: &Plan,
        drop_id: Uuid,
    ) -> Result<UnderLock, Problem> {
        let mut times = Times::default();
        let (catalog_id, limits) = (self.identity.catalog_id, &self.bounds.limits);
        let held =
            HeldLock::take(connection, catalog_id, limits, &mut times).await.map_err(internal)?;
        let Some(mut held) = held else {
            return Err(queue_timeout("the commit lock was not had in time (drop.lock_timeout)"));
        };
        let worked = self.under_lock(held.connection(), plan, drop_id).await;
        match &worked {
            Ok(UnderLock::Written { written, head, .. }) => {
                // A deferred constraint or trigger refuses it only here.
                held.commit(&mut times).await.map_err(|error| match Failure::of(&error) {
                    Failure::Content => self.refused(&with_row(&error)),
                    _ => internal(error),
                })?;
                self.tell(written.as_ref(), *head, &times);
            }
            Ok(UnderLock::HasReceipt) | Err(_) => held.release(&mut times).await,
        }
        worked
    }

    /// Three round trips, whatever the number of tuples and files: the guards, the write, the
    /// receipt.
    async fn under_lock(
        &self,
        connection: &mut Session,
        plan: &Plan,
        drop_id: Uuid,
    ) -> Result<UnderLock, Problem> {
        let state = look(connection, &self.question(plan.outset.head), bounds(&self.bounds.limits))
            .await
            .map_err(|error| self.hold_problem(error))?;
        if state.as_ref().is_some_and(|state| state.has_receipt) {
            return Ok(UnderLock::HasReceipt);
        }
        let state = self.guard(state)?;
        let write = DropWrite {
            catalog_id: self.identity.catalog_id,
            table_id: self.identity.table_id,
            table_uuid: self.identity.table_uuid,
            tuples: self.selection.tuples(),
            planned: &plan.files,
            late_from: Some(plan.outset.counter),
            vectors: &plan.vectors,
            without_late: &[],
            late_bound: None,
            examined_below: 0,
            vectors_from: plan.outset.counter,
            author: self.author,
            message: self.message,
            whole_table: self.selection.is_whole_table(),
            fence: self.fence,
            drop_id,
            policy_revision: None,
        };
        let written =
            write_drop(connection, &write).await.map_err(|error| match Failure::of(&error) {
                Failure::Content => self.refused(&with_row(&error)),
                _ => self.hold_problem(error),
            })?;
        if let Some(Written { kept, .. }) = written
            && kept > 0
        {
            return Err(self.refused(&DropError::Kept(kept).to_string()));
        }
        self.check_size(written.map_or(0, |written| written.counts.files))?;
        let schema_version = written.map_or(state.schema_version, |written| written.schema_version);
        if let Some(idempotency_key) = self.idempotency_key {
            let receipt = NewReceipt {
                catalog_id: self.identity.catalog_id,
                idempotency_key,
                fingerprint: &self.fingerprint,
                default_spec_id: self.default_spec_id,
                request: self.requested,
                head: state.head,
                schema_version,
                drop_id: written.map(|_| drop_id),
            };
            receipts::write(connection, &receipt)
                .await
                .map_err(|error| self.hold_problem(error))?;
        }
        Ok(UnderLock::Written { written, head: state.head, schema_version })
    }

    async fn count(&self, connection: &mut Session) -> Result<Vec<(TupleOfSpec, Counts)>, Problem> {
        let Selection::Tuples { tuples, lead } = self.selection else { return Ok(Vec::new()) };
        let TableIdentity { catalog_id, table_id, .. } = *self.identity;
        let search = Search { catalog_id, table_id, tuples, lead, from_id: 0 };
        let counts = count_files(connection, &search).await.map_err(internal)?;
        Ok(counts
            .into_iter()
            .filter_map(|(at, counts)| {
                Some((tuples.get(usize::try_from(at).ok()?)?.clone(), counts))
            })
            .collect())
    }

    async fn receipt(&self, connection: &mut Session) -> Result<ReceiptRow, Problem> {
        let key = self.idempotency_key.ok_or(Problem::Internal)?;
        receipts::find(connection, self.identity.catalog_id, key)
            .await
            .map_err(internal)?
            .ok_or(Problem::Internal)
    }

    fn hold_problem(&self, error: sqlx::Error) -> Problem {
        match Failure::of(&error) {
            Failure::LockNotAvailable => queue_timeout(
                "somebody else has locked rows of the named partitions (drop.row_lock_timeout)",
            ),
            Failure::StatementCancelled => {
                queue_timeout("the drop took longer than drop.max_hold and was rolled back whole")
            }
            _ => internal(error),
        }
    }

    /// The server refuses the drop for what it holds: the log has what it said, and of which row.
    fn refused(&self, words: &str) -> Problem {
        let TableIdentity { catalog, namespace, table, .. } = self.identity;
        let problem = Problem::Refused { table: self.table() };
        let tuples = self.selection.tuples().iter().take(TOLD);
        let partitions: Vec<_> = tuples.map(|tuple| &tuple.tuple.values).collect();
        tracing::error!(
            event = events::REQUEST_FAILED,
            code = problem.code(),
            catalog,
            namespace,
            table,
            tuples = self.selection.tuples().len(),
            whole_table = self.selection.is_whole_table(),
            partitions = serde_json::to_string(&partitions).unwrap_or_default(),
            error = words,
            "The database refuses to end the files of a request"
        );
        problem
    }

    fn table(&self) -> String {
        format!("{}.{}", self.identity.namespace, self.identity.table)
    }

    fn dropped(&self) -> Problem {
        Problem::TableDropped { table: self.table() }
    }

    fn tell(&self, written: Option<&Written>, head: i64, times: &Times) {
        let TableIdentity { catalog, namespace, table, .. } = self.identity;
        let counts = written.map(|written| written.counts).unwrap_or_default();
        tracing::info!(
            event = events::EXPLICIT_DROP,
            catalog,
            namespace,
            table,
            committed = written.is_some(),
            snapshot_id = written.map_or(head, |written| written.snapshot_id),
            tuples = self.selection.tuples().len(),
            whole_table = self.selection.is_whole_table(),
            author = self.author,
            files_ended = counts.files,
            delete_files_ended = counts.delete_files,
            records = counts.records,
            bytes = counts.bytes,
            lock_wait_ms = times.wait.as_secs_f64() * 1e3,
            lock_hold_ms = times.hold.as_secs_f64() * 1e3,
            "Partitions were dropped as somebody asked for it"
        );
    }
}

fn queue_timeout(reason: &str) -> Problem {
    Problem::CommitQueueTimeout { reason: reason.to_owned(), retry_after: RETRY_AFTER }
}
