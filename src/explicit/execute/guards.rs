//! What an explicit drop asks of the catalog before it is carried out, without the commit lock and again
//! under it, and what is answered where that does not hold.

use super::Execution;
use crate::catalog::explicit_guard::{ExplicitQuestion, ExplicitState};
use crate::catalog::restore::Head;
use crate::explicit::problem::Problem;

impl Execution<'_> {
    pub(super) fn question(&self, head: Option<Head>) -> ExplicitQuestion<'_> {
        ExplicitQuestion {
            catalog_id: self.identity.catalog_id,
            table_id: self.identity.table_id,
            idempotency_key: self.idempotency_key,
            tuples: self.selection.tuples(),
            whole_table: self.selection.is_whole_table(),
            read_snapshot: self.read_snapshot,
            head,
        }
    }

    /// The guards, in the contract's words ("Wire conventions").
    pub(super) fn guard(&self, state: Option<ExplicitState>) -> Result<ExplicitState, Problem> {
        let state = state.ok_or_else(|| self.dropped())?;
        if state.is_restored {
            return Err(Problem::CommitConflict(
                "the catalog was restored to an earlier time meanwhile".to_owned(),
            ));
        }
        let table = self.table();
        if state.table_uuid != Some(self.identity.table_uuid) || state.live_as.is_none() {
            return Err(self.dropped());
        }
        if self.expected_table_uuid.is_some_and(|expected| expected != self.identity.table_uuid) {
            return Err(Problem::TableRecreated { table });
        }
        let named = (&self.identity.namespace, &self.identity.table);
        if state.live_as.as_ref().map(|(namespace, name)| (namespace, name)) != Some(named) {
            return Err(Problem::CommitConflict(format!("table {table} was renamed meanwhile")));
        }
        if !state.is_parquet {
            return Err(Problem::Validation(format!(
                "table {table} is not made of parquet files, and has no partitions to drop"
            )));
        }
        if let Some(read_snapshot) = self.read_snapshot {
            self.guard_read_snapshot(read_snapshot, &state)?;
        }
        Ok(state)
    }

    fn guard_read_snapshot(
        &self,
        read_snapshot: i64,
        state: &ExplicitState,
    ) -> Result<(), Problem> {
        let table = self.table();
        if read_snapshot > state.head {
            return Err(Problem::Validation(format!(
                "read_snapshot {read_snapshot} is ahead of the head, {}",
                state.head
            )));
        }
        if read_snapshot < state.floor {
            return Err(Problem::Expired(format!(
                "read_snapshot {read_snapshot} is below the floor, {}",
                state.floor
            )));
        }
        if state.ddl_since {
            return Err(Problem::DdlSinceReadSnapshot { table, read_snapshot });
        }
        if let Some(snapshot_id) = state.files_since {
            return Err(Problem::CommitConflict(format!(
                "files came to the named partitions of {table} in snapshot {snapshot_id}, after read_snapshot {read_snapshot}"
            )));
        }
        Ok(())
    }

    pub(super) fn check_size(&self, files: i64) -> Result<(), Problem> {
        let most = self.bounds.max_files;
        if files <= most {
            return Ok(());
        }
        Err(Problem::Validation(format!(
            "the request matches {files} files, and one commit ends at most {most} (drop.max_files): split it"
        )))
    }
}
