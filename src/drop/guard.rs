//! The guards of a drop: the authority under which a drop is made (a policy's or an operator's),
//! and the conditions that are checked for it under the commit lock. Pure.

use serde_json::Value;
use uuid::Uuid;

use crate::catalog::commit_guards::UnderLock;
use crate::catalog::receipts::NewReceipt;
use crate::catalog::tables::TableIdentity;
use crate::policy::{Policy, Source};

/// As of no snapshot.
const NEVER: i64 = i64::MIN;

/// The policy that a drop acts for, as it was at planning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyGuard {
    /// Stored, or a property.
    pub source: Source,
    pub revision: i64,
    /// The property's text, which must still be the same.
    pub property_text: Option<String>,
    /// The catalog's guard revision by which it was planned.
    pub guard_revision: i64,
    /// Whether the drop ends approved partitions, whose approvals it uses up.
    pub uses_approval: bool,
    /// Where the policy keeps the newest values: the snapshot after which no other hand may have ended files of the
    /// table, or altered it. `None` where their age alone decides.
    pub newest_as_of: Option<i64>,
}

impl PolicyGuard {
    /// The guard for a policy that has a row of ours. Where it keeps the newest values it lets nothing pass before it is
    /// told when these were looked for.
    pub fn of(policy: &Policy) -> Self {
        PolicyGuard {
            source: policy.source,
            revision: policy.revision,
            property_text: policy.property_text.clone(),
            guard_revision: policy.guards.revision,
            uses_approval: false,
            newest_as_of: policy.keep_last.map(|_| NEVER),
        }
    }

    /// The same by newest values that are true as of a snapshot, where the policy keeps these.
    #[must_use]
    pub fn newest_as_of(self, snapshot_id: Option<i64>) -> Self {
        let newest_as_of = self.newest_as_of.map(|never| snapshot_id.unwrap_or(never));
        PolicyGuard { newest_as_of, ..self }
    }

    /// Whether others than the newest values as they were looked for may be the newest by now.
    ///
    /// Appends and compactions take none away, and so lower none of them. What takes files from a table and is no
    /// compaction publishes `table_deleted_from`; what changes the specs by which values are read, `table_altered`.
    /// Of snapshots below the floor nobody knows any more. Under the commit lock nobody else commits: what was published up to now is all that there was before our own
    /// commit, and nothing lies between that and what the next commit asks for from our snapshot on. Our own drops
    /// end values alone that are older than all of the newest.
    fn has_other_newest(&self, now: &UnderLock) -> bool {
        let is_unknown = |as_of: i64| as_of == NEVER || now.floor > as_of.saturating_add(1);
        self.newest_as_of.is_some_and(|as_of| is_unknown(as_of) || now.newest_changed)
    }

    /// Whether the policy that is in force under the lock is the planned one.
    pub fn holds(&self, now: &UnderLock) -> bool {
        match self.source {
            Source::Stored => now.stored_revision == Some(self.revision),
            Source::Property => {
                now.stored_revision.is_none()
                    && now.property_revision == Some(self.revision)
                    && now.property == self.property_text.clone().map(Value::String)
            }
        }
    }
}

/// The conditions of an operator's drop, which ends all files that it names, or none.
#[derive(Debug, Clone, Copy)]
pub struct OperatorGuard<'a> {
    /// The UUID that the table must have.
    pub expected_table_uuid: Option<Uuid>,
    /// The snapshot that the caller has read. No file may have come to the named partitions since.
    pub read_snapshot: Option<i64>,
    /// More files than this are not ended in one commit.
    pub max_files: i64,
    /// The receipt of the request, where it has a key.
    pub receipt: Option<NewReceipt<'a>>,
    /// The catalog's guard revision by which it was planned; `None` for a dry run, which commits nothing.
    pub guard_revision: Option<i64>,
}

/// The authority under which a drop is made: a policy's, in a pass, or an operator's, in an explicit drop or
/// a truncate. Everything that is not in this table is the same for all three:
///
/// | | pass | explicit drop | truncate |
/// |---|---|---|---|
/// | before any other guard | nothing | the key's receipt | the key's receipt, if it has a key |
/// | pauses and holds | a paused table is left out, a held tuple stays | refused whole | refused whole |
/// | guard of its own | the policy, whose rows stay locked | UUID, `read_snapshot` | as an explicit drop |
/// | a row that somebody has locked | its tuple is left out, the others are dropped | refuses all | refuses all |
/// | files that came after planning | those that the late rule allows; none in a piece | all | all |
/// | size after the write | any | `drop.max_files` | `drop.max_files` |
/// | which files | those of its tuples | those of its tuples | all of the table |
/// | fence | as the policy says | as the request says | always |
/// | last statement before COMMIT | the write | the receipt | the receipt, if it has a key |
#[derive(Debug, Clone, Copy)]
pub enum Authority<'a> {
    /// A policy's. The policy must be in force as it was planned; without one nothing is checked. What cannot
    /// be dropped now is left to the next pass.
    Policy(Option<&'a PolicyGuard>),
    /// An operator's.
    Operator(&'a OperatorGuard<'a>),
}

/// Why a drop gave up. Nothing was written, and none of these is an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The commit lock could not be acquired within `lock_timeout`.
    LockNotAcquired,
    /// Under the commit lock this table of the catalog, or of ours, was locked by somebody else for longer
    /// than `row_lock_timeout`.
    TableLocked(String),
    /// Under the commit lock the catalog's row of `hog_catalog`, which each commit writes, was locked by
    /// somebody else for longer than `row_lock_timeout`.
    CatalogLocked,
    /// Rows of the named partitions were locked by somebody else for longer than `row_lock_timeout`, or a
    /// table that is free again.
    RowsLocked,
    /// A request with the same key was carried out before.
    HasReceipt,
    /// The catalog was restored to an earlier time since the plan began.
    Restored,
    /// The table was dropped or replaced, or its catalog is gone.
    Gone,
    /// The table has another UUID than the request expects.
    Recreated,
    /// The table was renamed.
    Renamed,
    /// The table is not made of parquet files, and is left alone.
    NotParquet,
    /// The policy was changed, paused or unset since planning, or is being written right now.
    PolicyChanged,
    /// A pause or a hold of the catalog was added or taken away since planning, or is at this moment.
    GuardsChanged,
    /// The policy keeps the newest values of the table, and files of it were ended by another hand, or the table was
    /// altered, since these were looked for.
    NewestChanged,
    /// The request's `read_snapshot` is above the head.
    AheadOfHead { head: i64 },
    /// The request's `read_snapshot` is below the floor.
    BelowFloor { floor: i64 },
    /// The table was altered or dropped after the request's `read_snapshot`.
    DdlSince,
    /// Files came to the named partitions after the request's `read_snapshot`.
    FilesSince {
        /// The first snapshot that brought some.
        snapshot_id: i64,
    },
    /// The request matches more files than one commit ends.
    TooManyFiles {
        /// How many it matches.
        files: i64,
    },
}

impl Authority<'_> {
    /// Why a drop of this table is refused, if it is, by the state that was read under the commit lock
    /// (`None` where the catalog is gone). The receipt comes first: a retry gets the first answer, whatever
    /// happened to the table since.
    pub fn refuses(&self, table: &TableIdentity, state: Option<&UnderLock>) -> Option<Refusal> {
        let Some(state) = state else { return Some(Refusal::Gone) };
        if state.has_receipt {
            return Some(Refusal::HasReceipt);
        }
        if state.is_restored {
            return Some(Refusal::Restored);
        }
        let Some((namespace, name)) = &state.live_as else { return Some(Refusal::Gone) };
        if state.table_uuid != Some(table.table_uuid) {
            return Some(Refusal::Gone);
        }
        if let Self::Operator(OperatorGuard { expected_table_uuid: Some(expected), .. }) = self
            && *expected != table.table_uuid
        {
            return Some(Refusal::Recreated);
        }
        if (namespace, name) != (&table.namespace, &table.table) {
            return Some(Refusal::Renamed);
        }
        if !state.is_parquet {
            return Some(Refusal::NotParquet);
        }
        // A rename raises no revision: a table that has come to bear a paused name since it was planned.
        let may_be_paused = !matches!(self, Self::Policy(None)) && state.is_paused;
        if may_be_paused || self.is_guarded_otherwise(state) {
            return Some(Refusal::GuardsChanged);
        }
        match self {
            Self::Policy(None) => None,
            Self::Policy(Some(guard)) if !guard.holds(state) => Some(Refusal::PolicyChanged),
            Self::Policy(Some(guard)) => {
                guard.has_other_newest(state).then_some(Refusal::NewestChanged)
            }
            Self::Operator(guard) => changed_since(guard.read_snapshot?, state),
        }
    }

    /// Whether the catalog's guard revision is not the planned one. A catalog without one proves nothing.
    fn is_guarded_otherwise(&self, state: &UnderLock) -> bool {
        match self {
            Self::Policy(None) => false,
            Self::Policy(Some(guard)) => Some(guard.guard_revision) != state.guard_revision,
            Self::Operator(guard) => guard.guard_revision != state.guard_revision,
        }
    }

    /// What is remembered of the request, where it has a key.
    pub fn receipt(&self) -> Option<&NewReceipt<'_>> {
        match self {
            Self::Policy(_) => None,
            Self::Operator(guard) => guard.receipt.as_ref(),
        }
    }

    /// Whether approvals of what it ended are used up.
    pub fn uses_approval(&self) -> bool {
        matches!(self, Self::Policy(Some(guard)) if guard.uses_approval)
    }

    /// Whether so many files are more than may be ended in one commit.
    pub fn refuses_size(&self, files: i64) -> Option<Refusal> {
        match self {
            Self::Operator(guard) if files > guard.max_files => {
                Some(Refusal::TooManyFiles { files })
            }
            _ => None,
        }
    }
}

/// What happened to the table and its partitions since the request's `read_snapshot`.
fn changed_since(read_snapshot: i64, state: &UnderLock) -> Option<Refusal> {
    let UnderLock { head, floor, ddl_since, files_since, .. } = *state;
    if read_snapshot > head {
        Some(Refusal::AheadOfHead { head })
    } else if read_snapshot < floor {
        Some(Refusal::BelowFloor { floor })
    } else if ddl_since {
        Some(Refusal::DdlSince)
    } else {
        files_since.map(|snapshot_id| Refusal::FilesSince { snapshot_id })
    }
}

#[cfg(test)]
mod tests;
