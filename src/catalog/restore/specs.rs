//! What settling a restore does to the copies of specs, and to their marks.

use std::time::Duration;

use super::Since;
use crate::catalog::session::Session;
use crate::rules::instant::UtcInstant;

/// Has copies of specs that the catalog does not have any more, and that began after what is agreed, no
/// longer stand for their id: it is given out again, and would stay disputed for ever. Returns the tables
/// of such copies.
///
/// They are not deleted. A writer may have one of these specs in its cache, and stores values by it
/// under the id of the spec that is live now; so what it says stays one of the meanings that a value of
/// the table can have. It is kept under its id with a minus, which no file has, before all specs.
///
/// Where nothing is agreed a copy may as well be of a spec that expiry deleted long ago; then its files
/// are of an unknown spec, and stay. A table that is not in the catalog keeps its copies as they are: no
/// other one reads them, and a later restore may bring it back.
pub(super) async fn forget_specs(connection: &mut Session, since: Since) -> sqlx::Result<Vec<i64>> {
    let lost = sqlx::query!(
        r#"select k.table_id as "table_id!", k.table_uuid as "table_uuid!", k.spec_id as "spec_id!",
                  k.fields as "fields!"
           from tailrace.spec_copy k
           join hog_table t on t.catalog_id = k.catalog_id and t.table_id = k.table_id
                           and t.table_uuid = k.table_uuid
           where k.catalog_id = $1 and k.spec_id > 0
             and (k.begin_snapshot > $2 or $3)
             and not exists (
               select from hog_partition_spec s
               where s.catalog_id = $1 and s.table_id = k.table_id and s.spec_id = k.spec_id
                 and s.begin_snapshot = k.begin_snapshot
                 and k.fields = (
                   select coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                              'key_index', f.key_index, 'source_field_id', f.source_field_id,
                              'transform', f.transform, 'transform_param', f.transform_param)
                            order by f.key_index), '[]')
                   from hog_partition_field f
                   where f.catalog_id = $1 and f.table_id = s.table_id
                     and f.spec_id = s.spec_id))"#,
        since.catalog_id,
        since.snapshot_id,
        since.snapshot_id == i64::MIN
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut tables = Vec::new();
    for copy in lost {
        // An earlier restore may have taken back the same.
        sqlx::query!(
            r#"delete from tailrace.spec_copy
               where catalog_id = $1 and table_id = $2 and spec_id = -$3::bigint and fields = $4
                 and table_uuid = $5"#,
            since.catalog_id,
            copy.table_id,
            copy.spec_id,
            copy.fields,
            copy.table_uuid
        )
        .execute(&mut *connection)
        .await?;
        sqlx::query!(
            r#"update tailrace.spec_copy set spec_id = -$3::bigint
               where catalog_id = $1 and table_id = $2 and spec_id = $3 and fields = $4
                 and table_uuid = $5"#,
            since.catalog_id,
            copy.table_id,
            copy.spec_id,
            copy.fields,
            copy.table_uuid
        )
        .execute(&mut *connection)
        .await?;
        tables.push(copy.table_id);
    }
    tables.sort_unstable();
    tables.dedup();
    Ok(tables)
}

/// Has marks that were noted since, and all of `tables`, noted anew, `window` after `now`: row ids are
/// given out again, and writers that know a spec which is no more go on with it for some time.
pub(super) async fn revoke_marks_since(
    connection: &mut Session,
    since: Since,
    tables: &[i64],
    now: UtcInstant,
    window: Duration,
) -> sqlx::Result<()> {
    let Some((now, due)) = now.to_chrono().zip(now.plus(window).to_chrono()) else {
        return Ok(());
    };
    sqlx::query!(
        r#"update tailrace.spec_copy
           set mark_row_id = null, mark_snapshot = null, watched_from = null, mark_due = $4,
               marked_at = $5
           where catalog_id = $1
             and (table_id = any ($6) or mark_snapshot > $2
                  or marked_at >= coalesce($3, '-infinity'::timestamptz)
                  or copied_at >= coalesce($3, '-infinity'::timestamptz))"#,
        since.catalog_id,
        since.snapshot_id,
        since.noted_at,
        due,
        now,
        tables
    )
    .execute(connection)
    .await?;
    Ok(())
}
