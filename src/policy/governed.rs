//! What a policy means for its table: the one loader of what passes, plans, claims and reports judge by.

use super::grace::PolicyLimits;
use super::{Mode, Policy, Source, effective, store};
use crate::catalog::checks::property::{PropertySince, property_since};
use crate::catalog::session::Session;
use crate::catalog::specs::{TableShape, spec_book, table_shape};
use crate::catalog::tables::{LiveTable, TableIdentity};
use crate::rules::expiry::{Judge, Retention, SpecBook};
use crate::rules::instant::UtcInstant;

/// A table that asks for retention.
#[derive(Debug, Clone)]
pub struct Governed {
    /// The table.
    pub live: LiveTable,
    /// The policy in force, or why the one that somebody asked for is not.
    pub policy: Result<Policy, String>,
    /// The table's columns and its live spec.
    pub shape: TableShape,
    /// Since when the policy is in force as it is; `None` where none is, or it is unknown.
    pub since: Option<UtcInstant>,
}

impl Governed {
    /// Reads it as it is at a time; `None` where nobody asked for retention. Writes nothing.
    pub async fn read(
        connection: &mut Session,
        live: LiveTable,
        limits: PolicyLimits,
        now: UtcInstant,
    ) -> sqlx::Result<Option<Self>> {
        let policy = match effective::look(connection, &live, limits).await? {
            Ok(None) => return Ok(None),
            Ok(Some(policy)) => Ok(policy),
            Err(problem) => Err(problem),
        };
        let TableIdentity { catalog_id, table_id, .. } = live.identity;
        let shape = table_shape(connection, catalog_id, table_id).await?;
        let since = match &policy {
            Ok(policy) => in_force_since(connection, &live.identity, policy, now).await?,
            Err(_) => None,
        };
        let policy = policy.map(|policy| policy.at(now));
        Ok(Some(Governed { live, policy, shape, since }))
    }

    /// The policy that is followed, whatever its mode; none is on a table that has no partitions.
    pub fn followed(&self) -> Option<&Policy> {
        self.policy.as_ref().ok().filter(|_| self.live.is_parquet)
    }

    /// The policy, where it ends files.
    pub fn enforced(&self) -> Option<&Policy> {
        self.followed().filter(|policy| policy.mode == Mode::Enforce)
    }
}

impl Policy {
    /// What it asks for at a time.
    pub fn retention(&self, now: UtcInstant) -> Retention {
        Retention { source_field_id: self.source_field_id, keep: self.keep.length(), now }
    }

    /// The judge of its table's files at a time, with the specs that it knows.
    ///
    /// The specs are read before the files: a file of a spec that came in between is not judged by a book that
    /// lacks it, but kept as of an unknown spec.
    pub async fn judge(
        &self,
        connection: &mut Session,
        table: &TableIdentity,
        now: UtcInstant,
    ) -> sqlx::Result<(SpecBook, Judge)> {
        let book = spec_book(connection, table.catalog_id, table.table_id).await?;
        let judge = Judge::new(&book, self.retention(now));
        Ok((book, judge))
    }
}

/// Since when the policy is in force as it is; `None` where it is unknown.
///
/// What waited since that was over; else a stored one since it was set. A property since the snapshot in which the table got its text, whenever a
/// pass mirrored it, or since a stored policy that won over it was taken away, if that was later.
async fn in_force_since(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
) -> sqlx::Result<Option<UtcInstant>> {
    let since = match policy.source {
        Source::Stored => store::rows(connection, table).await?.stored.map(|row| row.updated_at),
        Source::Property => {
            let PropertySince { written, took_over } = property_since(connection, table).await?;
            written.map(|written| took_over.map_or(written, |took_over| took_over.max(written)))
        }
    };
    let waited = policy.pending.as_ref().and_then(|pending| pending.until.filter(|at| *at <= now));
    Ok(since.map(UtcInstant::from).map(|since| waited.map_or(since, |until| until.max(since))))
}
