//! Which policy is in force for a table.

use crate::catalog::session::Session;
use crate::catalog::specs::{live_columns, table_shape};
use crate::catalog::tables::{LiveTable, TableIdentity};
use crate::events;
use crate::guards::Guards;
use crate::policy::grace::{Pending, PolicyLimits};
use crate::policy::history::Changer;
use crate::policy::row::{PolicyRow, PolicyRows};
use crate::policy::store;
use crate::policy::{Policy, Source, property};

/// The policy in force, or why there is none although somebody asked for one; `Ok(None)` where
/// nobody did.
pub type Effective = Result<Option<Policy>, String>;

/// Finds the policy in force, under what guards its table, without writing anything. A property that no pass has
/// mirrored yet is read as a first pass would read it.
pub async fn look(
    connection: &mut Session,
    table: &LiveTable,
    limits: PolicyLimits,
) -> sqlx::Result<Effective> {
    // Before the rest: what changes after this is seen under the commit lock by its revision.
    let guards = Guards::read(connection, &table.identity).await?;
    let rows = store::rows(connection, &table.identity).await?;
    let policy = match &rows.stored {
        Some(row) => stored(connection, table, row, limits).await?,
        None => from_property(connection, table, &rows, limits).await?.transpose(),
    };
    Ok(guarded(policy, guards))
}

fn guarded(policy: Effective, guards: Guards) -> Effective {
    policy.map(|policy| policy.map(|policy| policy.under(guards)))
}

/// Finds the policy in force, for a drop, and brings the mirror of the table's property up to date, whether
/// or not a stored policy wins over it: written where it says something new, noted as refused
/// where it is not followed, removed where the property is gone.
pub async fn look_and_mirror(
    connection: &mut Session,
    table: &LiveTable,
    limits: PolicyLimits,
) -> sqlx::Result<Effective> {
    let guards = Guards::for_drop(connection, &table.identity).await?;
    let rows = store::rows(connection, &table.identity).await?;
    let mirrored = mirror(connection, table, &rows, limits).await?;
    let policy = match &rows.stored {
        Some(row) => stored(connection, table, row, limits).await?,
        None => mirrored.transpose(),
    };
    Ok(guarded(policy, guards))
}

/// Brings the mirror of the table's property up to date where it is not, as [`look_and_mirror`] does, and
/// does nothing where it is: what is noted already is not told again.
pub async fn mirror_news(
    connection: &mut Session,
    table: &LiveTable,
    limits: PolicyLimits,
) -> sqlx::Result<()> {
    let rows = store::rows(connection, &table.identity).await?;
    let read = from_property(connection, table, &rows, limits).await?;
    let is_noted = match (&read, &rows.mirror) {
        (Some(Ok(policy)), _) => policy.revision != 0,
        (Some(Err(problem)), Some(row)) => row.problem.as_ref() == Some(problem),
        // There is no mirror in which it could be noted.
        (Some(Err(_)), None) => true,
        (None, mirror) => mirror.is_none(),
    };
    if !is_noted {
        mirror(connection, table, &rows, limits).await?;
    }
    Ok(())
}

async fn stored(
    connection: &mut Session,
    table: &LiveTable,
    row: &PolicyRow,
    limits: PolicyLimits,
) -> sqlx::Result<Effective> {
    let TableIdentity { catalog_id, table_id, .. } = table.identity;
    let shape = live_columns(connection, catalog_id, table_id).await?;
    Ok(row.policy(&shape).and_then(|policy| checked(policy, limits)).map(Some))
}

/// What the property alone says: the policy that would take over without a stored one.
pub async fn property_alone(
    connection: &mut Session,
    table: &LiveTable,
    limits: PolicyLimits,
) -> sqlx::Result<Option<Result<Policy, String>>> {
    let rows = store::rows(connection, &table.identity).await?;
    from_property(connection, table, &rows, limits).await
}

async fn from_property(
    connection: &mut Session,
    table: &LiveTable,
    rows: &PolicyRows,
    limits: PolicyLimits,
) -> sqlx::Result<Option<Result<Policy, String>>> {
    let Some(value) = &table.property else { return Ok(None) };
    let identity = &table.identity;
    let shape = table_shape(connection, identity.catalog_id, identity.table_id).await?;
    Ok(Some(property::read(value, rows.mirror.as_ref(), &shape, limits)))
}

/// Reads the property, brings its mirror up to date, and tells the log what changed.
async fn mirror(
    connection: &mut Session,
    table: &LiveTable,
    rows: &PolicyRows,
    limits: PolicyLimits,
) -> sqlx::Result<Option<Result<Policy, String>>> {
    let identity = &table.identity;
    let TableIdentity { catalog, namespace, table: name, .. } = identity;
    let Some(value) = &table.property else {
        if rows.mirror.is_some() {
            store::remove(connection, identity, Source::Property, Changer::PROPERTY).await?;
            tracing::info!(
                event = events::PROPERTY_REMOVED,
                catalog,
                namespace,
                table = name,
                "The table's property {} is gone, and so is its policy",
                property::PROPERTY
            );
        }
        return Ok(None);
    };
    let shape = table_shape(connection, identity.catalog_id, identity.table_id).await?;
    let read = |rows: &PolicyRows| property::read(value, rows.mirror.as_ref(), &shape, limits);
    match read(rows) {
        Err(problem) => {
            store::note_problem(connection, identity, &problem).await?;
            tracing::warn!(
                event = events::PROPERTY_REFUSED,
                catalog,
                namespace,
                table = name,
                error = problem,
                "A table property is not followed"
            );
            Ok(Some(Err(problem)))
        }
        Ok(policy) if policy.revision != 0 => Ok(Some(Ok(policy))),
        Ok(_) => {
            let put =
                store::put(connection, identity, Changer::PROPERTY, limits.grace, read).await?;
            if let Ok((_, policy)) = &put {
                tracing::info!(
                    event = events::PROPERTY_MIRRORED,
                    catalog, namespace, table = name, revision = policy.revision,
                    field = policy.field.text(), column = policy.field.column(),
                    keep = %policy.keep, mode = %policy.mode,
                    waits = policy.pending.as_ref().map(Pending::describe),
                    "A table property became the table's policy"
                );
            }
            Ok(Some(put.map(|(_, policy)| policy)))
        }
    }
}

/// A stored policy was checked when it was set; the guard may have been raised since.
fn checked(policy: Policy, limits: PolicyLimits) -> Result<Policy, String> {
    match policy.keep.clone().at_least(limits.min_keep) {
        Ok(_) => Ok(policy),
        Err(error) => Err(error.to_string()),
    }
}
