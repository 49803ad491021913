//! What keeps every drop of ours from a table or a partition, whatever its policy says: [`pause`] and [`hold`].
//! Passes, explicit drops, truncates, plans and compaction claims heed both.
//!
//! The proof under the commit lock is the catalog's guard [`revision`]. Whoever changes a pause or a hold raises
//! it in the same transaction. A drop reads it before it reads pauses and holds, and reads it again `FOR SHARE
//! NOWAIT` under the commit lock ([`crate::catalog::commit_guards`]). Where it is not the planned one, the drop
//! is planned anew. So a drop either commits before a change does, or heeds it: the change waits for a drop that
//! has read the row and not committed yet, and a drop that finds the row locked gives up.

pub mod approval;
pub mod held;
pub mod hold;
pub mod pause;
pub mod release;
pub mod resume;
pub mod revision;

use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::hold::Held;
use hold::Hold;
use pause::Pause;

/// What guards one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guards {
    /// The catalog's guard revision, read before the rest; 0 where the catalog has no row yet.
    pub revision: i64,
    /// The pause that covers the table, the widest one first.
    pub pause: Option<Pause>,
    /// The holds of the table that have not ended, by id.
    pub holds: Vec<Hold>,
}

/// Of a table whose guards were not read: no catalog has that revision, so no drop commits by it.
impl Default for Guards {
    fn default() -> Self {
        Guards { revision: -1, pause: None, holds: Vec::new() }
    }
}

impl Guards {
    /// Reads them, and writes nothing.
    pub async fn read(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<Self> {
        let revision = revision::find(connection, table.catalog_id).await?;
        Self::at(connection, table, revision).await
    }

    /// Reads them for a drop: the catalog gets its row if it has none.
    pub async fn for_drop(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<Self> {
        let revision = revision::ensure(connection, table.catalog_id).await?;
        Self::at(connection, table, revision).await
    }

    async fn at(
        connection: &mut Session,
        table: &TableIdentity,
        revision: i64,
    ) -> sqlx::Result<Self> {
        let pause = pause::covering(connection, table).await?;
        let holds = hold::of_table(connection, table).await?;
        Ok(Guards { revision, pause, holds })
    }

    /// What the holds say of tuples.
    pub fn held(&self) -> Held {
        Held::of(self.holds.iter().map(|hold| (hold.hold_id, hold.scope.clone())))
    }
}
