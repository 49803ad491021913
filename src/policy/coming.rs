//! Changes of policies that have waited ([`super::grace`]) come into force here.

use crate::catalog::session::Session;
use crate::events;
use crate::rules::instant::UtcInstant;

/// Brings changes into force that have waited until `now`, each under a new revision, but in these catalogs: they are in
/// doubt. A row that a drop has locked waits for the next pass.
///
/// Writers of policies lock the table against this (see [`super::store`]), and the lock of a row is decided by what the
/// row says when it is had: nothing comes into force that somebody has changed meanwhile. A pass that planned by the
/// terms before finds another revision under the commit lock.
pub async fn bring_into_force(
    connection: &mut Session,
    now: UtcInstant,
    but: &[i64],
) -> sqlx::Result<()> {
    let rows = sqlx::query!(
        r#"with due as (
             select catalog_id, table_id, table_uuid, source from tailrace.policy
             where pending_until <= $1 and pending_revision = revision and problem is null
               and catalog_id <> all ($2)
             for update skip locked
           )
           update tailrace.policy p
           set keep = p.pending ->> 'keep'::text,
               keep_seconds = (p.pending ->> 'keep_seconds'::text)::bigint,
               keep_last = (p.pending ->> 'keep_last'::text)::integer,
               mode = p.pending ->> 'mode'::text,
               revision = pg_catalog.nextval('tailrace.policy_revision'),
               updated_at = pg_catalog.clock_timestamp(),
               took_over_at = case when p.source = 'property' then pg_catalog.clock_timestamp() end,
               pending = null, pending_until = null, pending_revision = null
           from due
           where p.catalog_id = due.catalog_id and p.table_id = due.table_id
             and p.table_uuid = due.table_uuid and p.source = due.source
           returning p.catalog_name, p.namespace_name, p.table_name, p.keep, p.keep_last, p.mode,
                     p.revision"#,
        now.to_chrono(),
        but
    )
    .fetch_all(connection)
    .await?;
    for row in rows {
        tracing::info!(
            event = events::POLICY_IN_FORCE,
            catalog = row.catalog_name,
            namespace = row.namespace_name,
            table = row.table_name,
            keep = row.keep,
            keep_last = row.keep_last,
            mode = row.mode,
            revision = row.revision,
            "A change of a policy that waited is in force"
        );
    }
    Ok(())
}
