//! Runs an explicit drop: it turns a request into a drop in an operator's name, and the result into an answer
//! in the contract's words.

mod heed;
mod refusals;

use std::borrow::Cow;
use std::ops::ControlFlow;

use uuid::Uuid;

use super::problem::Problem;
use super::{Bounds, internal};
use crate::catalog::commit_guards::{GUARDS, Question, look};
use crate::catalog::commit_tail::prepare_write;
use crate::catalog::drop_write::DropWrite;
use crate::catalog::errors::is_locked_row_of;
use crate::catalog::finder::tuples::{Search, count_files, visit};
use crate::catalog::live_file::Counts;
use crate::catalog::receipts::{self, NewReceipt, ReceiptRow};
use crate::catalog::restore::{Outset, outset};
use crate::catalog::session::Session;
use crate::catalog::table_files::count_live;
use crate::catalog::tables::TableIdentity;
use crate::catalog::tuples::TupleOfSpec;
use crate::drop::commit::{Done, Tried, commit_once, question};
use crate::drop::guard::{Authority, OperatorGuard, Refusal};
use crate::drop::hold::Times;
use crate::drop::plan::complete;
use crate::guards::Guards;
use crate::rules::expiry::SpecBook;

/// A drop is planned so often in all where pauses or holds change meanwhile.
const PLANS: usize = 2;

/// Which files are dropped.
#[derive(Debug, Clone, Copy)]
pub enum Selection<'a> {
    /// Those of these tuples.
    Tuples {
        tuples: &'a [TupleOfSpec],
        /// For each the position of the value by which its files are found.
        lookup_keys: &'a [usize],
        /// Every spec that the table ever had.
        book: &'a SpecBook,
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
    pub guard: OperatorGuard<'a>,
    pub fence: bool,
    pub author: &'a str,
    pub message: &'a str,
    pub bounds: &'a Bounds,
}

/// How an execution ended.
pub enum Ended {
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

impl<'a> Execution<'a> {
    fn authority(&self) -> Authority<'_> {
        Authority::Operator(&self.guard)
    }

    fn key(&self) -> Option<Uuid> {
        self.guard.receipt.map(|receipt: NewReceipt<'_>| receipt.idempotency_key)
    }

    /// Counts what would be dropped, with the guards as they are at this moment. No lock is taken.
    pub async fn dry_run(&self, session: &mut Session) -> Result<Found, Problem> {
        let TableIdentity { catalog_id, table_id, .. } = *self.identity;
        let about = Question {
            catalog_id,
            table_id,
            read_snapshot: self.guard.read_snapshot,
            tuples: self.selection.tuples(),
            ..Question::NOTHING
        };
        let guards = Guards::read(session, self.identity).await.map_err(internal)?;
        self.heed(&guards)?;
        let state = look(session, &about).await.map_err(internal)?;
        if let Some(refusal) = self.authority().refuses(self.identity, state.as_ref()) {
            return Err(self.refused(refusal));
        }
        let state = state.ok_or_else(|| self.refused(Refusal::Gone))?;
        let ended = self.count(session).await?;
        let mut counts = Counts::default();
        ended.iter().for_each(|(_, of_tuple)| counts += *of_tuple);
        self.check_size(counts.files)?;
        Ok(Found { head: state.head, schema_version: state.schema_version, counts, ended })
    }

    /// Carries the request out.
    pub async fn run(&self, session: &mut Session) -> Result<Ended, Problem> {
        let catalog_id = self.identity.catalog_id;
        if let Some(key) = self.key()
            && receipts::used_by_server(session, catalog_id, key).await.map_err(internal)?
        {
            return Err(Problem::Validation(
                "idempotency_key was used by a commit of the server: make a fresh one".to_owned(),
            ));
        }
        for _ in 0..PLANS {
            if let Some(ended) = self.attempt(session).await? {
                return Ok(ended);
            }
        }
        // A row that is locked fails the guard statement before it has read the receipt.
        match self.find_receipt(session).await? {
            Some(receipt) => Ok(Ended::Earlier(receipt)),
            None => Err(Problem::GuardsChanged),
        }
    }

    /// Plans and commits; `None` where a pause or a hold changed in between.
    async fn attempt(&self, session: &mut Session) -> Result<Option<Ended>, Problem> {
        // Before anything else is read: what changes after this is seen under the lock by its revision.
        let guards = Guards::for_drop(session, self.identity).await.map_err(internal)?;
        if let Err(problem) = self.heed(&guards) {
            // Another request with the key may have been carried out before the pause or the hold.
            return match self.find_receipt(session).await? {
                Some(receipt) => Ok(Some(Ended::Earlier(receipt))),
                None => Err(problem),
            };
        }
        let guard_revision = Some(guards.revision);
        let guard = OperatorGuard { guard_revision, ..self.guard };
        let authority = Authority::Operator(&guard);
        let drop = self.plan(session).await?;
        // What cannot be is refused before any writer has to wait for us; and what is asked under
        // the lock has been parsed by then, so that it takes no round trips of its own.
        let limits = &self.bounds.limits;
        let question = question(&drop, &authority, limits);
        let state = match look(session, &question).await {
            Err(error) if is_locked_row_of(&error, GUARDS) => return Ok(None),
            other => other.map_err(internal)?,
        };
        match authority.refuses(self.identity, state.as_ref()) {
            Some(Refusal::HasReceipt) => {
                return Ok(Some(Ended::Earlier(self.receipt(session).await?)));
            }
            Some(Refusal::GuardsChanged) => return Ok(None),
            Some(refusal) => return Err(self.refused(refusal)),
            None => {}
        }
        prepare_write(session).await.map_err(internal)?;
        if self.key().is_some() {
            receipts::prepare_write(session).await.map_err(internal)?;
        }
        let mut times = Times::default();
        let tried =
            commit_once(session, self.identity, drop, authority, limits, false, &mut times).await;
        let done = match tried.map_err(|error| self.failed(error))? {
            Tried::Done(done) => done,
            Tried::Refused(Refusal::HasReceipt) => {
                return Ok(Some(Ended::Earlier(self.receipt(session).await?)));
            }
            Tried::Refused(Refusal::GuardsChanged) => return Ok(None),
            Tried::Refused(refusal) => return Err(self.refused(refusal)),
        };
        let Done { written, head, schema_version, .. } = done;
        self.log_drop(written.as_ref(), head, &times);
        Ok(Some(match self.key() {
            Some(_) => Ended::Receipt(self.receipt(session).await?),
            None => Ended::NoReceipt {
                snapshot_id: written.map_or(head, |written| written.snapshot_id),
                schema_version,
            },
        }))
    }

    /// Finds the files without any lock. Too many of them are counted and refused here, before any
    /// writer has to wait for us.
    async fn plan(&self, session: &mut Session) -> Result<DropWrite<'a>, Problem> {
        let TableIdentity { catalog_id, table_id, table_uuid, .. } = *self.identity;
        // Read first: see `DropWrite::outset`.
        let outset: Outset = outset(session, catalog_id)
            .await
            .map_err(internal)?
            .ok_or_else(|| self.refused(Refusal::Gone))?;
        let mut drop = DropWrite {
            tuples: Cow::Borrowed(self.selection.tuples()),
            whole_table: self.selection.is_whole_table(),
            fence: self.fence,
            author: self.author,
            message: self.message,
            ..DropWrite::of_nothing((catalog_id, table_id, table_uuid), outset)
        };
        let Selection::Tuples { tuples, lookup_keys, .. } = self.selection else {
            let files = count_live(session, catalog_id, table_id, i64::MAX).await;
            self.check_size(files.map_err(internal)?)?;
            return Ok(drop);
        };
        let (mut found, mut files, mut with_vector) = (0_i64, Vec::new(), Vec::new());
        let search = Search { catalog_id, table_id, tuples, lookup_keys, from_id: 0 };
        visit(session, &search, |tuple_no, file| {
            found += 1;
            if found <= self.guard.max_files {
                files.push((file.data_file_id, tuple_no));
            }
            if found <= self.guard.max_files && file.has_vector {
                with_vector.push((file.data_file_id, tuple_no));
            }
            ControlFlow::Continue(())
        })
        .await
        .map_err(internal)?;
        self.check_size(found)?;
        complete(session, &mut drop, files, &with_vector, true).await.map_err(internal)?;
        Ok(drop)
    }

    fn check_size(&self, files: i64) -> Result<(), Problem> {
        match self.authority().refuses_size(files) {
            Some(refusal) => Err(self.refused(refusal)),
            None => Ok(()),
        }
    }

    async fn count(&self, session: &mut Session) -> Result<Vec<(TupleOfSpec, Counts)>, Problem> {
        let Selection::Tuples { tuples, lookup_keys, .. } = self.selection else {
            return Ok(Vec::new());
        };
        let TableIdentity { catalog_id, table_id, .. } = *self.identity;
        let search = Search { catalog_id, table_id, tuples, lookup_keys, from_id: 0 };
        let counts = count_files(session, &search).await.map_err(internal)?;
        Ok(counts
            .into_iter()
            .filter_map(|(at, counts)| {
                Some((tuples.get(usize::try_from(at).ok()?)?.clone(), counts))
            })
            .collect())
    }

    async fn receipt(&self, session: &mut Session) -> Result<ReceiptRow, Problem> {
        self.find_receipt(session).await?.ok_or(Problem::Internal)
    }

    async fn find_receipt(&self, session: &mut Session) -> Result<Option<ReceiptRow>, Problem> {
        let Some(key) = self.key() else { return Ok(None) };
        receipts::find(session, self.identity.catalog_id, key).await.map_err(internal)
    }
}
