//! How pauses end: somebody resumes what they cover, and they end at once or after `guard.policy_grace`.

use std::time::Duration;

use uuid::Uuid;

use super::pause::{Pause, PauseError, PauseRow, PauseScope, resolved};
use super::revision::{Change, raise, raise_all};
use crate::catalog::session::Session;
use crate::events;
use crate::rules::instant::UtcInstant;

/// Resumes what was paused under this name, or what bears the name now; gives those pauses back, none where
/// it was not paused. Wider and narrower pauses stay. They end in `grace`, or at once where that is zero.
pub async fn resume(
    connection: &mut Session,
    scope: PauseScope<'_>,
    by: &str,
    grace: Duration,
) -> sqlx::Result<Vec<Pause>> {
    let (catalog, names) = match scope {
        PauseScope::All => (None, None),
        PauseScope::Catalog(catalog) => (Some(catalog), None),
        PauseScope::Table(catalog, namespace, table) => (Some(catalog), Some((namespace, table))),
    };
    // A table that was renamed since is found by its UUID; one that is gone by its name.
    let table = match resolved(connection, scope).await {
        Ok((_, table)) => table,
        Err(PauseError::NotFound(_)) => None,
        Err(PauseError::Database(error)) => return Err(error),
    };
    let (namespace, name) = names.unzip();
    let table_uuid = table.map(|table| table.table_uuid);
    if !grace.is_zero() {
        let of = (catalog, namespace, name, table_uuid);
        let resumed = end_in(connection, of, grace).await?;
        resumed.iter().for_each(|pause| log_waits(pause, by));
        return Ok(resumed);
    }
    let mut transaction = connection.begin().await?;
    // Before the rows, as `pause` does: two that work on one scope then wait for each other in one order.
    let raised = match catalog {
        None => {
            raise_all(&mut transaction, Change::Loosens).await?;
            Vec::new()
        }
        Some(catalog) => raise_of(&mut transaction, catalog).await?,
    };
    let rows = sqlx::query_as!(
        PauseRow,
        r#"delete from tailrace.pause
           where catalog_name is not distinct from $1
             and (table_name is null) = ($3::text is null)
             and ($3::text is null or table_uuid = $4 or (namespace_name, table_name) = ($2, $3))
           returning catalog_id, catalog_name, namespace_name, table_name, reason, paused_by,
                     paused_at, until"#,
        catalog,
        namespace,
        name,
        table_uuid
    )
    .fetch_all(&mut *transaction)
    .await?;
    let mut resumed = Vec::new();
    for row in rows {
        if let Some(catalog_id) = row.catalog_id.filter(|id| !raised.contains(id)) {
            raise(&mut transaction, catalog_id, Change::Loosens).await?;
        }
        resumed.push(Pause::from(row));
    }
    // Where nothing was paused, nothing changes.
    match resumed.is_empty() {
        true => transaction.rollback().await?,
        false => transaction.commit().await?,
    }
    resumed.iter().for_each(|pause| log_resumed(pause, by));
    Ok(resumed)
}

/// Raises the revisions of the catalogs of which something is paused under this name; their ids.
async fn raise_of(transaction: &mut Session, catalog: &str) -> sqlx::Result<Vec<i64>> {
    let ids = sqlx::query_scalar!(
        r#"select distinct catalog_id as "catalog_id!" from tailrace.pause
           where catalog_name = $1 order by 1"#,
        catalog
    )
    .fetch_all(&mut *transaction)
    .await?;
    for catalog_id in &ids {
        raise(transaction, *catalog_id, Change::Loosens).await?;
    }
    Ok(ids)
}

/// Has the pauses of this name end in `grace`, or when they were to end before, if that is earlier; gives them back. What
/// they cover is paused until then, so that no revision is raised: a drop that was planned meanwhile was planned with the pause.
async fn end_in(
    connection: &mut Session,
    (catalog, namespace, table, uuid): (Option<&str>, Option<&str>, Option<&str>, Option<Uuid>),
    grace: Duration,
) -> sqlx::Result<Vec<Pause>> {
    let rows = sqlx::query_as!(
        PauseRow,
        r#"update tailrace.pause
           set until = least(until, pg_catalog.clock_timestamp()
                                    + pg_catalog.make_interval(secs => $5::double precision))
           where catalog_name is not distinct from $1
             and (table_name is null) = ($3::text is null)
             and ($3::text is null or table_uuid = $4 or (namespace_name, table_name) = ($2, $3))
           returning catalog_id, catalog_name, namespace_name, table_name, reason, paused_by,
                     paused_at, until"#,
        catalog,
        namespace,
        table,
        uuid,
        grace.as_secs_f64()
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Pause::from).collect())
}

/// Takes pauses away whose time was over by `now`, in the name of `by`, but of these catalogs, which are in doubt; one of
/// every catalog only where none is. Nothing is paused by them any more; by the revision passes see that they are gone.
pub async fn take_ended(
    connection: &mut Session,
    now: UtcInstant,
    but: &[i64],
    by: &str,
) -> sqlx::Result<()> {
    let now = now.to_chrono();
    let ended = sqlx::query_scalar!(
        r#"select distinct catalog_id from tailrace.pause
           where until <= $1 and coalesce(catalog_id <> all ($2), pg_catalog.cardinality($2) = 0)
           order by 1"#,
        now,
        but
    )
    .fetch_all(&mut *connection)
    .await?;
    if ended.is_empty() {
        return Ok(());
    }
    let mut transaction = connection.begin().await?;
    if ended.contains(&None) {
        raise_all(&mut transaction, Change::Loosens).await?;
    } else {
        for catalog_id in ended.into_iter().flatten() {
            raise(&mut transaction, catalog_id, Change::Loosens).await?;
        }
    }
    let rows = sqlx::query_as!(
        PauseRow,
        r#"delete from tailrace.pause
           where until <= $1 and coalesce(catalog_id <> all ($2), pg_catalog.cardinality($2) = 0)
           returning catalog_id, catalog_name, namespace_name, table_name, reason, paused_by,
                     paused_at, until"#,
        now,
        but
    )
    .fetch_all(&mut *transaction)
    .await?;
    transaction.commit().await?;
    rows.into_iter().map(Pause::from).for_each(|pause| log_resumed(&pause, by));
    Ok(())
}

fn log_waits(pause: &Pause, by: &str) {
    let Pause { catalog, namespace, table, paused_by, paused_at, reason, until } = pause;
    tracing::warn!(
        event = events::RESUME_WAITS,
        catalog,
        namespace,
        table,
        by,
        paused_by,
        %paused_at,
        until = until.map(tracing::field::display),
        reason,
        "Drops go on when this pause ends"
    );
}

fn log_resumed(pause: &Pause, by: &str) {
    let Pause { catalog, namespace, table, paused_by, paused_at, reason, .. } = pause;
    tracing::warn!(
        event = events::RESUMED,
        catalog,
        namespace,
        table,
        by,
        paused_by,
        %paused_at,
        reason,
        "Drops go on: a pause was taken away"
    );
}
