//! Live deletion vectors on files that a drop of tailrace ended.

use crate::catalog::restore::{Restored, compared_after};
use crate::catalog::session::Session;

/// A live vector on such a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeftVector {
    pub delete_file_id: i64,
    /// The file whose rows it hides.
    pub data_file_id: i64,
    pub table_id: i64,
    /// The drop that ended the file.
    pub snapshot_id: i64,
}

/// Looks at the next `most` live vectors of the catalog, in the order of their files' ids, after
/// one file, but for drops that are undone (`restored` as [`restored`](crate::catalog::restore::restored())
/// said); gives those that were left, and the file of the last one looked at, `None` once there
/// was none.
///
/// By hog_delete_file_one_live_per_data_file, which holds live vectors only and is the one index on
/// them with a unique order; every server has it. The other way round, from the files that our
/// drops ended, needs an index that came with V19, and a catalog without retention keeps all of
/// those files for ever, while live vectors are what each reader pays for.
pub async fn left_vectors(
    connection: &mut Session,
    catalog_id: i64,
    restored: Option<&Restored>,
    after_file: i64,
    most: i64,
) -> sqlx::Result<(Vec<LeftVector>, Option<i64>)> {
    let rows = sqlx::query!(
        r#"with piece as materialized (
             select data_file_id, delete_file_id, table_id from hog_delete_file
             where catalog_id = $1 and end_snapshot is null and data_file_id > $2
             order by data_file_id limit $3
           ),
           marked as (
             select *, pg_catalog.lead(data_file_id) over (order by data_file_id) is null as is_last
             from piece
           )
           select p.data_file_id as "data_file_id!", p.delete_file_id as "delete_file_id!",
                  p.table_id as "table_id!", p.is_last as "is_last!",
                  h.snapshot_id as "snapshot_id?"
           from marked p
           left join lateral (
             select end_snapshot from hog_data_file
             where catalog_id = $1 and data_file_id = p.data_file_id offset 0) as f on true
           left join lateral (
             select snapshot_id from tailrace.drop_history d
             where d.catalog_id = $1 and d.snapshot_id = f.end_snapshot and d.undone_seen_at is null
               and case when d.snapshot_id <= $4 then true else exists (
                 select from hog_snapshot s
                 where s.catalog_id = $1 and s.snapshot_id = d.snapshot_id
                   and s.snapshot_time = d.dropped_at
                   and s.snapshot_id <= (select last_snapshot_id from hog_catalog
                                         where catalog_id = $1)) end
             limit 1) as h on true
           where p.is_last or h.snapshot_id is not null"#,
        catalog_id,
        after_file,
        most,
        compared_after(restored)
    )
    .fetch_all(connection)
    .await?;
    let last = rows.iter().find(|row| row.is_last).map(|row| row.data_file_id);
    let left = rows.into_iter().filter_map(|row| {
        Some(LeftVector {
            delete_file_id: row.delete_file_id,
            data_file_id: row.data_file_id,
            table_id: row.table_id,
            snapshot_id: row.snapshot_id?,
        })
    });
    Ok((left.collect(), last))
}
