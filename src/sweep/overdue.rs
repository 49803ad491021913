//! How far each table of a catalog is behind its policy, as far as the last passes told.

use std::collections::HashMap;
use std::time::Duration;

use super::slices::Overdue;
use crate::catalog::session::Session;
use crate::instant::UtcInstant;

/// By table id: how much later the cutoff is by now than the one that all of the table's cursors
/// have come to. A table that is not in it, or whose cursors were made under another policy, was
/// never swept to the end.
///
/// It orders work and decides nothing, so it costs one statement for all tables, and nobody minds
/// if a policy changes the next moment.
pub async fn overdue(
    connection: &mut Session,
    catalog_id: i64,
    now: UtcInstant,
) -> sqlx::Result<HashMap<i64, Overdue>> {
    let rows = sqlx::query!(
        r#"select p.table_id, p.keep_seconds, c.through as "through?"
           from (select distinct on (table_id, table_uuid)
                        table_id, table_uuid, revision, keep_seconds
                 from tailrace.policy where catalog_id = $1
                 order by table_id, table_uuid, source desc) as p
           join tailrace.sweep_state s
             on s.catalog_id = $1 and s.table_id = p.table_id
            and s.table_uuid = p.table_uuid and s.policy_revision = p.revision
           cross join lateral (select case when pg_catalog.min(expired_through)
                                             between '0001-01-01' and '9999-12-31'
                                   then pg_catalog.min(expired_through) end as through
                               from tailrace.sweep_cursor
                               where catalog_id = $1 and table_id = p.table_id) as c"#,
        catalog_id
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .filter_map(|row| {
            let through = UtcInstant::from(row.through?);
            let cutoff = now.minus(Duration::from_secs(row.keep_seconds.unsigned_abs()));
            Some((row.table_id, Overdue::By(cutoff.nanos() - through.nanos())))
        })
        .collect())
}
