//! Stores a policy, for every caller that sets one.

use std::time::Duration;

use super::field::FieldExpression;
use super::history::Changer;
use super::present::PolicyField;
use super::store::PolicyRow;
use super::{Mode, Policy, Source, keep_last, property, store};
use crate::catalog::clock;
use crate::catalog::restore::note_head;
use crate::catalog::session::Session;
use crate::catalog::specs::{copy_specs, table_shape};
use crate::catalog::tables::{TableIdentity, find_table};
use crate::events;
use crate::guards::Guards;
use crate::rules::keep::Keep;

/// A policy as somebody asks for it.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    pub catalog: &'a str,
    pub namespace: &'a str,
    pub table: &'a str,
    /// A column or a partition field.
    pub field: &'a str,
    /// How long a partition stays after its last instant.
    pub keep: &'a str,
    /// So many of the newest distinct time values that have a live file stay whatever their age, 0 for none;
    /// `None` leaves it as it is, as the property has it where no policy is stored.
    pub keep_last: Option<i64>,
    /// What it does; `None` leaves the mode that is in force, the property's where no policy is stored, and
    /// enforces where none is.
    pub mode: Option<Mode>,
    /// Whether its drops are fenced; `None` leaves it as it is, and fences no new policy's.
    pub fence: Option<bool>,
    /// Who asks.
    pub by: &'a str,
    /// Why, for whoever reads it later.
    pub reason: Option<&'a str>,
}

/// A policy that was set.
#[derive(Debug, Clone)]
pub struct Set {
    pub table: TableIdentity,
    /// The stored policy that it took the place of.
    pub before: Option<Policy>,
    /// The policy, with its revision.
    pub policy: Policy,
}

/// Stores a policy in the place of the one that the table may have, and returns it with its
/// revision. The specs that it will judge by are copied before it is there.
///
/// Takes no commit lock.
///
/// # Errors
/// A text that is no `keep` or no field, a `keep` below `min_keep`, no such table, one that is
/// not made of parquet files, or a field that says nothing of time; in words for whoever asked.
pub async fn set_policy(
    connection: &mut Session,
    wanted: Wanted<'_>,
    min_keep: Duration,
) -> anyhow::Result<Set> {
    let keep = Keep::parse(wanted.keep)?.at_least(min_keep)?;
    let keep_last = keep_last::read(wanted.keep_last).map_err(anyhow::Error::msg)?;
    let expression = FieldExpression::parse(wanted.field)?;
    let table = find_table(connection, wanted.catalog, wanted.namespace, wanted.table).await?;
    let identity = table.identity;
    anyhow::ensure!(
        table.is_parquet,
        "table {}.{} is not made of parquet files, and has no partitions to drop",
        identity.namespace,
        identity.table
    );
    // Should the catalog be restored to a time before this, the ids that are learned here are told to be of
    // the time after.
    let now = clock::now(connection).await?;
    note_head(connection, identity.catalog_id, now).await?;
    let shape = table_shape(connection, identity.catalog_id, identity.table_id).await?;
    let source_field_id = expression.resolve(&shape)?;
    copy_specs(connection, identity.catalog_id, None).await?;
    let by = wanted.by;
    let of_row = |row: &PolicyRow| row.policy(&shape);
    let changer = Changer { name: by, reason: wanted.reason };
    let put = store::put(connection, &identity, changer, |rows| {
        let before = rows.stored.as_ref().map(of_row).transpose()?;
        // Of a property that is not followed, or gone and not yet seen to be, what its mirror says: it has that
        // mode again once it is followed.
        let of_property = table
            .property
            .as_ref()
            .and_then(|value| property::read(value, rows.mirror.as_ref(), &shape, min_keep).ok());
        let mode_of_property = || of_property.as_ref().map(|property| property.mode);
        let existing = match (
            before.as_ref().map(|before| before.mode).or_else(mode_of_property),
            &rows.mirror,
        ) {
            (Some(mode), _) => Some(mode),
            (None, Some(mirror)) => Some(mirror.mode.parse()?),
            // Nor does a text that was never followed arm what it wants watched or paused.
            (None, None) => table.property.as_ref().and_then(property::mode_of_text),
        };
        // A policy that takes the place of another keeps no fewer by saying nothing of them.
        let kept_last = || match (&before, &of_property, &rows.mirror) {
            (Some(before), ..) => before.keep_last,
            (None, Some(property), _) => property.keep_last,
            (None, None, Some(mirror)) => mirror.keep_last,
            (None, None, None) => None,
        };
        Ok(Policy {
            source: Source::Stored,
            field: PolicyField::of(wanted.field.trim(), source_field_id, &shape),
            source_field_id,
            keep,
            keep_last: wanted.keep_last.map_or_else(kept_last, |_| keep_last),
            mode: wanted.mode.or(existing).unwrap_or(Mode::Enforce),
            fence: wanted.fence.unwrap_or(before.is_some_and(|before| before.fence)),
            revision: 0,
            property_text: None,
            guards: Guards::default(),
        })
    });
    let (rows, policy) = put.await?.map_err(anyhow::Error::msg)?;
    let before = rows.stored.as_ref().map(of_row).transpose().map_err(anyhow::Error::msg)?;
    tracing::info!(
        event = events::POLICY_SET,
        catalog = identity.catalog, namespace = identity.namespace, table = identity.table,
        field = policy.field.text(), keep = %policy.keep, keep_last = policy.keep_last,
        mode = %policy.mode,
        revision = policy.revision, by, reason = wanted.reason,
        "A policy was set"
    );
    Ok(Set { table: identity, before, policy })
}
