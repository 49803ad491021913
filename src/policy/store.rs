//! Where policies are kept: `tailrace.policy`.
//!
//! A writer first locks the table's rows, the property's mirror among them, then writes. A drop
//! in its commit holds them `FOR SHARE`, so a policy that has been changed, paused or unset when
//! its writer returns is not acted upon by any commit after that; and a drop that meets a
//! writer at work gives up at once (`policy_changed`). Writers never take the commit lock.
//!
//! A row is of one table, by its UUID. Where that is gone the row stays for a while as a tombstone
//! (see [`super::tombstones`]).

use std::time::Duration;

use sqlx::types::Json;

use super::grace::{Pending, PendingTerms};
use super::history::{self, Changer, PolicyTerms};
use super::row::{PolicyRow, PolicyRows};
use super::{Policy, Source};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::instant::UtcInstant;

/// Reads the rows of a table, by its UUID.
pub async fn rows(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<PolicyRows> {
    let rows = sqlx::query_as!(
        PolicyRow,
        r#"select source, table_uuid, field, source_field_id, keep, keep_seconds, keep_last, mode,
                  fence, is_confirmed, property_text, problem, revision, updated_at, updated_by,
                  case when pending_revision = revision then pending end
                    as "pending: Json<PendingTerms>",
                  pending_until
           from tailrace.policy where catalog_id = $1 and table_id = $2 and table_uuid = $3"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_all(connection)
    .await?;
    let mut found = PolicyRows::default();
    for row in rows {
        match row.source.as_str() {
            "stored" => found.stored = Some(row),
            _ => found.mirror = Some(row),
        }
    }
    Ok(found)
}

/// Writes the policy that is made of the table's rows (stored or mirrored, by its source), and returns
/// those, and it with its new revision; or why none can be made of them, which changes nothing.
///
/// What is kept of a policy is so kept of the one that is there when the new one is written: nobody
/// pauses it in between and finds it armed.
///
/// What is pending and not stored yet waits for `grace`.
///
/// Waits for a drop that is in its commit, as long as the session's `lock_timeout` allows.
pub async fn put(
    connection: &mut Session,
    table: &TableIdentity,
    changer: Changer<'_>,
    grace: Duration,
    made_of: impl FnOnce(&PolicyRows) -> Result<Policy, String>,
) -> sqlx::Result<Result<(PolicyRows, Policy), String>> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let before = rows(&mut transaction, table).await?;
    let mut policy = match made_of(&before) {
        Ok(policy) => policy,
        Err(why) => {
            transaction.rollback().await?;
            return Ok(Err(why));
        }
    };
    // One that has its revision is one of the rows.
    if policy.revision == 0 {
        let (revision, until) =
            write(&mut transaction, table, &policy, changer.name, grace).await?;
        policy.revision = revision;
        policy.pending = policy.pending.map(|pending| Pending { until, ..pending });
        let replaced = before.of(policy.source).map(PolicyTerms::from);
        let terms = (replaced, Some(PolicyTerms::from(&policy)));
        history::note(&mut transaction, table, policy.source, terms, changer).await?;
    }
    transaction.commit().await?;
    Ok(Ok((before, policy)))
}

async fn write(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    by: &str,
    grace: Duration,
) -> sqlx::Result<(i64, Option<UtcInstant>)> {
    let pending = policy.pending.as_ref();
    let row = sqlx::query!(
        r#"insert into tailrace.policy as before (catalog_id, table_id, source, table_uuid, field,
               source_field_id, keep, keep_seconds, mode, fence, property_text, revision, updated_by,
               catalog_name, namespace_name, table_name, is_confirmed, keep_last,
               pending, pending_until, pending_revision)
           select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, next.revision,
                  $12, $13, $14, $15, $16, $17, $18,
                  case when $18::jsonb is not null then coalesce($19,
                    pg_catalog.clock_timestamp()
                    + pg_catalog.make_interval(secs => $20::double precision)) end,
                  case when $18::jsonb is not null then next.revision end
           from pg_catalog.nextval('tailrace.policy_revision') as next (revision)
           on conflict (catalog_id, table_id, table_uuid, source) do update set
               field = excluded.field,
               source_field_id = excluded.source_field_id, keep = excluded.keep,
               keep_seconds = excluded.keep_seconds, mode = excluded.mode,
               keep_last = excluded.keep_last, fence = excluded.fence,
               is_confirmed = excluded.is_confirmed,
               property_text = excluded.property_text, problem = null,
               revision = excluded.revision, pending = excluded.pending,
               pending_until = excluded.pending_until,
               pending_revision = excluded.pending_revision,
               updated_at = case
                 when before.source_field_id = excluded.source_field_id
                  and before.keep_seconds = excluded.keep_seconds and before.mode = excluded.mode
                  and before.keep_last is not distinct from excluded.keep_last
                  and before.fence = excluded.fence and before.problem is null
                  and before.gone_seen_at is null
                 then before.updated_at else pg_catalog.clock_timestamp() end,
               updated_by = excluded.updated_by, gone_seen_at = null, gone_told = null,
               catalog_name = excluded.catalog_name, namespace_name = excluded.namespace_name,
               table_name = excluded.table_name
           returning revision, pending_until"#,
        table.catalog_id,
        table.table_id,
        policy.source.to_string(),
        table.table_uuid,
        policy.field.text(),
        policy.source_field_id,
        policy.keep.text(),
        policy.keep.seconds(),
        policy.mode.to_string(),
        policy.fence,
        policy.property_text,
        by,
        table.catalog,
        table.namespace,
        table.table,
        policy.is_confirmed,
        policy.keep_last,
        pending.map(|pending| Json(&pending.terms)) as _,
        pending.and_then(|pending| pending.until?.to_chrono()),
        grace.as_secs_f64()
    )
    .fetch_one(connection)
    .await?;
    Ok((row.revision, row.pending_until.map(UtcInstant::from)))
}

/// Notes why a mirrored property is no longer followed; its binding to a column stays. What was pending is its terms then:
/// none of them is in force, and the next one that is followed waits. Nothing
/// happens where that is noted already, or there is no mirror.
pub async fn note_problem(
    connection: &mut Session,
    table: &TableIdentity,
    problem: &str,
) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let before = rows(&mut transaction, table).await?.mirror;
    let noted = sqlx::query!(
        r#"update tailrace.policy set problem = $4,
               keep = coalesce(case when pending_revision = revision
                 then pending ->> 'keep'::text end, keep),
               keep_seconds = coalesce(case when pending_revision = revision
                 then (pending ->> 'keep_seconds'::text)::bigint end, keep_seconds),
               keep_last = case when pending_revision = revision
                 then (pending ->> 'keep_last'::text)::integer else keep_last end,
               mode = coalesce(case when pending_revision = revision
                 then pending ->> 'mode'::text end, mode),
               pending = null, pending_until = null, pending_revision = null,
               revision = pg_catalog.nextval('tailrace.policy_revision'),
               updated_at = pg_catalog.clock_timestamp()
           where catalog_id = $1 and table_id = $2 and table_uuid = $3
             and source = 'property' and problem is distinct from $4"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid,
        problem
    )
    .execute(&mut *transaction)
    .await?;
    if let (1.., Some(before)) = (noted.rows_affected(), before.as_ref().map(PolicyTerms::from)) {
        let after = PolicyTerms { problem: Some(problem.to_owned()), ..before.clone() };
        let terms = (Some(before), Some(after));
        history::note(&mut transaction, table, Source::Property, terms, Changer::PROPERTY).await?;
    }
    transaction.commit().await
}

/// Removes the stored policy or the mirror; returns whether there was one. Beside the mirror it is noted that
/// no stored policy wins over it from now on.
pub async fn remove(
    connection: &mut Session,
    table: &TableIdentity,
    source: Source,
    changer: Changer<'_>,
) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let before = rows(&mut transaction, table).await?;
    let removed = sqlx::query!(
        r#"delete from tailrace.policy
           where catalog_id = $1 and table_id = $2 and table_uuid = $3 and source = $4"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid,
        source.to_string()
    )
    .execute(&mut *transaction)
    .await?;
    if source == Source::Stored && removed.rows_affected() > 0 {
        sqlx::query!(
            r#"update tailrace.policy set took_over_at = pg_catalog.clock_timestamp()
               where catalog_id = $1 and table_id = $2 and table_uuid = $3 and source = 'property'"#,
            table.catalog_id,
            table.table_id,
            table.table_uuid
        )
        .execute(&mut *transaction)
        .await?;
    }
    if let Some(row) = before.of(source) {
        let terms = (Some(PolicyTerms::from(row)), None);
        history::note(&mut transaction, table, source, terms, changer).await?;
    }
    transaction.commit().await?;
    Ok(removed.rows_affected() > 0)
}

async fn lock_rows(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<()> {
    // One writer of policies at a time, in a statement of its own: a mirror that another writer has
    // just made is then among the rows that the next statement sees and locks, and a drop for that
    // mirror cannot pass by a stored policy that is being written. Readers and drops go on.
    sqlx::raw_sql("lock table tailrace.policy in share row exclusive mode")
        .execute(&mut *connection)
        .await?;
    sqlx::query!(
        r#"select source from tailrace.policy
           where catalog_id = $1 and table_id = $2 and table_uuid = $3
           order by source for update"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}
