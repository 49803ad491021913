//! In which snapshots the files of one partition ended, whoever ended them, as long as the server keeps their rows.

use chrono::{DateTime, Utc};

use super::session::Session;
use super::tuples::{TupleOfSpec, wanted};

/// A snapshot that ended files of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndingRow {
    pub snapshot_id: i64,
    /// How many of the partition's files.
    pub files: i64,
    /// Its time, author and message; none where expiry has deleted it.
    pub at: Option<DateTime<Utc>>,
    pub author: Option<String>,
    pub message: Option<String>,
    /// The kinds of its changes of the table.
    pub kinds: Vec<String>,
}

/// The newest `most` of them. Found by one value of the tuple, at `lookup_key`, through the lookup index, which is of
/// the whole catalog.
pub async fn endings(
    connection: &mut Session,
    (catalog_id, table_id): (i64, i64),
    tuple: &TupleOfSpec,
    lookup_key: usize,
    most: i64,
) -> sqlx::Result<Vec<EndingRow>> {
    let (key, value) = match (tuple.tuple.keys.get(lookup_key), tuple.tuple.values.get(lookup_key))
    {
        (Some(key), Some(value)) => (*key, value.as_deref()),
        _ => return Ok(Vec::new()),
    };
    let rows = sqlx::query!(
        r#"select e.end_snapshot as "snapshot_id!", e.files as "files!",
                  s.snapshot_time as "at?", s.author, s.commit_message,
                  array(select k.kind from hog_snapshot_change k
                        where k.catalog_id = $1 and k.snapshot_id = e.end_snapshot
                          and k.object_id = $2 order by k.kind) as "kinds!"
           from (
             select f.end_snapshot, pg_catalog.count(*) as files
             from hog_file_partition_value v
             join hog_data_file f on f.catalog_id = v.catalog_id and f.data_file_id = v.data_file_id
             where v.catalog_id = $1 and v.key_index = $3
               and (v.value = $4 or $4 is null and v.value is null)
               and f.table_id = $2 and f.spec_id = $5 and f.end_snapshot is not null
               and (select pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(a.key_index, a.value)
                                                order by a.key_index)
                    from hog_file_partition_value a
                    where a.catalog_id = f.catalog_id and a.data_file_id = f.data_file_id)
                   = $6::jsonb -> 0 -> 'tuple'::text
             group by f.end_snapshot
             order by f.end_snapshot desc limit $7) as e
           left join hog_snapshot s on s.catalog_id = $1 and s.snapshot_id = e.end_snapshot
           order by e.end_snapshot desc"#,
        catalog_id,
        table_id,
        key,
        value,
        tuple.spec_id,
        wanted(std::slice::from_ref(tuple)) as _,
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| EndingRow {
            snapshot_id: row.snapshot_id,
            files: row.files,
            at: row.at,
            author: row.author,
            message: row.commit_message,
            kinds: row.kinds,
        })
        .collect())
}

/// The snapshots of the newest `most` drops of ours that ended files of the tuple, by the drop history: newest first. A
/// truncate counts too.
pub async fn drops_of(
    connection: &mut Session,
    (catalog_id, table_id): (i64, i64),
    tuple: &TupleOfSpec,
    most: i64,
) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar!(
        r#"select snapshot_id from tailrace.drop_history
           where catalog_id = $1 and table_id = $2
             and (partitions @> $3::jsonb
                  or coalesce(pg_catalog.jsonb_typeof(partitions -> 0 -> 'tuple'::text),
                              'null'::text) = 'null'::text)
           order by snapshot_id desc limit $4"#,
        catalog_id,
        table_id,
        wanted(std::slice::from_ref(tuple)) as _,
        most
    )
    .fetch_all(connection)
    .await
}
