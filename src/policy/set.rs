//! Stores a policy, for every caller that sets one.

use super::field::FieldExpression;
use super::grace::{Pending, PolicyLimits};
use super::history::Changer;
use super::present::PolicyField;
use super::row::PolicyRows;
use super::{Mode, Policy, Source, keep_last, property, store};
use crate::catalog::clock;
use crate::catalog::restore::note_head;
use crate::catalog::session::Session;
use crate::catalog::specs::{TableShape, copy_specs, table_shape};
use crate::catalog::tables::{LiveTable, TableIdentity, find_table};
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
    /// Whether whoever asks was shown what the policy drops, and confirmed that. It counts for a policy that enforces.
    pub is_confirmed: bool,
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

/// What a policy that somebody asks for is made of, beside the table's stored rows.
struct Prepared {
    table: LiveTable,
    shape: TableShape,
    source_field_id: i64,
    keep: Keep,
    /// The number that is asked for; `None` for none, or where nothing is said.
    keep_last: Option<i32>,
}

impl Prepared {
    /// Reads it. A column of that name is found, whatever has it now.
    async fn read(
        connection: &mut Session,
        wanted: &Wanted<'_>,
        limits: PolicyLimits,
    ) -> anyhow::Result<Self> {
        let keep = Keep::parse(wanted.keep)?.at_least(limits.min_keep)?;
        let keep_last = keep_last::read(wanted.keep_last).map_err(anyhow::Error::msg)?;
        let expression = FieldExpression::parse(wanted.field)?;
        let table = find_table(connection, wanted.catalog, wanted.namespace, wanted.table).await?;
        let TableIdentity { catalog_id, table_id, namespace, table: name, .. } = &table.identity;
        anyhow::ensure!(
            table.is_parquet,
            "table {namespace}.{name} is not made of parquet files, and has no partitions to drop"
        );
        // Should the catalog be restored to a time before this, the ids that are learned here are told to be of
        // the time after.
        let now = clock::now(connection).await?;
        note_head(connection, *catalog_id, now).await?;
        let shape = table_shape(connection, *catalog_id, *table_id).await?;
        let source_field_id = expression.resolve(&shape)?;
        Ok(Prepared { table, shape, source_field_id, keep, keep_last })
    }

    /// The policy, by the table's rows.
    fn policy(
        &self,
        wanted: &Wanted<'_>,
        rows: &PolicyRows,
        limits: PolicyLimits,
    ) -> Result<Policy, String> {
        let Prepared { table, shape, source_field_id, keep, keep_last } = self;
        let in_force = rows.stored.as_ref().map(|row| row.policy(shape)).transpose()?;
        let before = in_force.clone().map(Policy::asked);
        // Of a property that is not followed, or gone and not yet seen to be, what its mirror says: it has that
        // mode again once it is followed.
        let of_property = table
            .property
            .as_ref()
            .and_then(|value| property::read(value, rows.mirror.as_ref(), shape, limits).ok());
        let mirror = rows.mirror.as_ref().map(|row| row.policy(shape)).transpose()?;
        // As the table has it, whatever a pass has mirrored: of a text that is gone nothing is dropped.
        let in_force = in_force.or_else(|| of_property.clone());
        let of_property = of_property.map(Policy::asked);
        let mirror = mirror.map(Policy::asked);
        let mode_of_property = || of_property.as_ref().map(|property| property.mode);
        let existing =
            match (before.as_ref().map(|before| before.mode).or_else(mode_of_property), &mirror) {
                (Some(mode), _) => Some(mode),
                (None, Some(mirror)) => Some(mirror.mode),
                // Nor does a text that was never followed arm what it wants watched or paused.
                (None, None) => table.property.as_ref().and_then(property::mode_of_text),
            };
        // A policy that takes the place of another keeps no fewer by saying nothing of them.
        let kept_last = || match (&before, &of_property, &mirror) {
            (Some(before), ..) => before.keep_last,
            (None, Some(property), _) => property.keep_last,
            (None, None, Some(mirror)) => mirror.keep_last,
            (None, None, None) => None,
        };
        let mode = wanted.mode.or(existing).unwrap_or(Mode::Enforce);
        let asked = Policy {
            source: Source::Stored,
            field: PolicyField::of(wanted.field.trim(), *source_field_id, shape),
            source_field_id: *source_field_id,
            keep: keep.clone(),
            keep_last: wanted.keep_last.map_or_else(kept_last, |_| *keep_last),
            mode,
            fence: wanted.fence.unwrap_or(before.is_some_and(|before| before.fence)),
            is_confirmed: wanted.is_confirmed && mode == Mode::Enforce,
            revision: 0,
            property_text: None,
            pending: None,
            guards: Guards::default(),
        };
        Ok(asked.after(in_force.as_ref(), limits))
    }
}

/// The policy that [`set_policy`] would store, and its table; the errors are the same. Stores nothing of it.
pub async fn would_set(
    connection: &mut Session,
    wanted: &Wanted<'_>,
    limits: PolicyLimits,
) -> anyhow::Result<(TableIdentity, Policy)> {
    let prepared = Prepared::read(connection, wanted, limits).await?;
    let rows = store::rows(connection, &prepared.table.identity).await?;
    let policy = prepared.policy(wanted, &rows, limits).map_err(anyhow::Error::msg)?;
    Ok((prepared.table.identity, policy))
}

/// Stores a policy in the place of the one that the table may have, and returns it with its
/// revision. The specs that it will judge by are copied before it is there.
///
/// Takes no commit lock.
///
/// # Errors
/// A text that is no `keep` or no field, a `keep` below `limits.min_keep`, no such table, one that is
/// not made of parquet files, or a field that says nothing of time; in words for whoever asked.
pub async fn set_policy(
    connection: &mut Session,
    wanted: Wanted<'_>,
    limits: PolicyLimits,
) -> anyhow::Result<Set> {
    let prepared = Prepared::read(connection, &wanted, limits).await?;
    let identity = &prepared.table.identity;
    copy_specs(connection, identity.catalog_id, None).await?;
    let changer = Changer { name: wanted.by, reason: wanted.reason };
    let made_of = |rows: &PolicyRows| prepared.policy(&wanted, rows, limits);
    let put = store::put(connection, identity, changer, limits.grace, made_of);
    let (rows, policy) = put.await?.map_err(anyhow::Error::msg)?;
    let before = rows.stored.as_ref().map(|row| row.policy(&prepared.shape));
    let before = before.transpose().map_err(anyhow::Error::msg)?;
    tracing::info!(
        event = events::POLICY_SET,
        catalog = identity.catalog, namespace = identity.namespace, table = identity.table,
        field = policy.field.text(), keep = %policy.keep, keep_last = policy.keep_last,
        mode = %policy.mode,
        revision = policy.revision, by = wanted.by, reason = wanted.reason,
        confirmed = policy.is_confirmed,
        waits = policy.pending.as_ref().map(Pending::describe),
        "A policy was set"
    );
    Ok(Set { table: prepared.table.identity, before, policy })
}
