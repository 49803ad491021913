//! The values of files that came since a watermark, without the files.
//!
//! Whole snapshots at a time, by hog_data_file_live: neither neighbours nor ended files are read. A
//! snapshot that is larger than that is read by the primary key within its own block of ids, which one
//! commit allocates under the lock, in pieces; the place in it is part of the watermark.

use super::session::Session;
use super::tables::Marks;

/// So many ids are read on the way to a block without looking for its beginning first.
const NEAR: i64 = 10 * AT_ONCE;

/// How many files one statement reads.
pub const AT_ONCE: i64 = 10_000;

/// Where a spec's files have the value that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lead {
    /// The spec.
    pub spec_id: i64,
    /// The key index of its first time field.
    pub key_index: i32,
}

/// Files that have the same value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LateValue {
    /// Their spec.
    pub spec_id: Option<i64>,
    /// Their value; `None` where it is null, has no row, or the spec is none of those asked for.
    pub value: Option<String>,
    /// How many.
    pub files: i64,
    /// Whether all are of parquet.
    pub is_parquet: bool,
}

/// What one statement read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatePiece {
    /// The values.
    pub values: Vec<LateValue>,
    /// The watermark up to which that is all.
    pub watermark: Marks,
    /// The snapshot in whose block of ids the reading has stopped.
    pub block: Option<i64>,
}

/// Whose late files are read.
#[derive(Debug, Clone, Copy)]
pub struct LateFiles<'a> {
    /// The catalog.
    pub catalog_id: i64,
    /// The table.
    pub table_id: i64,
    /// Where each spec has the value that is read.
    pub leads: &'a [Lead],
    /// The head and the id counter: files that are committed later are no business of this.
    pub marks: Marks,
}

/// Reads on from a watermark, at most [`AT_ONCE`] files; in the block of a snapshot, where the piece before
/// stopped in one.
pub async fn late_values(
    connection: &mut Session,
    of: &LateFiles<'_>,
    watermark: Marks,
    block: Option<i64>,
) -> sqlx::Result<LatePiece> {
    let LateFiles { catalog_id, table_id, leads, marks } = *of;
    if watermark.through_snapshot >= marks.through_snapshot {
        return Ok(LatePiece { values: Vec::new(), watermark: marks, block: None });
    }
    if let Some(block) = block {
        return in_block(connection, of, watermark, block).await;
    }
    let (specs, keys) = columns(leads);
    // The files that are ahead, one more than are read: the snapshot of the last one may go on beyond
    // it, and is left to the next statement.
    let rows = sqlx::query!(
        r#"with ahead as materialized (
             select begin_snapshot, data_file_id, spec_id, file_format from hog_data_file
             where catalog_id = $1 and table_id = $2 and end_snapshot is null
               and begin_snapshot > $3 and begin_snapshot <= $4
             order by begin_snapshot
             limit $6::bigint + 1
           ),
           cut as materialized (
             select pg_catalog.min(begin_snapshot) as first,
                    pg_catalog.min(data_file_id) as least_id,
                    case when pg_catalog.count(*) > $6::bigint
                      then pg_catalog.max(begin_snapshot) - 1::bigint else $4::bigint end as through
             from ahead
           )
           select c.first, c.least_id, c.through as "through!", r.spec_id as "spec_id?", r.value as "value?",
                  coalesce(r.files, 0::bigint) as "files!",
                  coalesce(r.is_parquet, true) as "is_parquet!"
           from cut c
           left join (
             select a.spec_id, v.value, pg_catalog.count(*) as files,
                    pg_catalog.bool_and(a.file_format = 'parquet') as is_parquet
             from ahead a
             left join unnest($7::bigint[], $8::int[]) as l (spec_id, key_index)
               on l.spec_id = a.spec_id
             left join lateral (
               select value from hog_file_partition_value
               where catalog_id = $1 and data_file_id = a.data_file_id
                 and key_index = l.key_index offset 0) as v on true
             where a.begin_snapshot <= (select through from cut) and a.data_file_id >= $5
             group by a.spec_id, v.value) as r on true"#,
        catalog_id,
        table_id,
        watermark.through_snapshot,
        marks.through_snapshot,
        watermark.files_below,
        AT_ONCE,
        &specs,
        &keys
    )
    .fetch_all(&mut *connection)
    .await?;
    let (mut through, mut first, mut least_id) = (marks.through_snapshot, None, None);
    let mut values = Vec::with_capacity(rows.len());
    for row in rows {
        (through, first, least_id) = (row.through, row.first, row.least_id);
        if row.files > 0 {
            let (spec_id, value, files, is_parquet) =
                (row.spec_id, row.value, row.files, row.is_parquet);
            values.push(LateValue { spec_id, value, files, is_parquet });
        }
    }
    match first {
        Some(first) if through < first => {
            let known = watermark.files_below;
            let is_far = least_id.is_some_and(|id| id - known > NEAR);
            let begin = match is_far {
                true => block_begin(connection, of, first).await?,
                false => None,
            };
            let files_below = begin.map_or(known, |begin| begin.max(known));
            in_block(connection, of, Marks { files_below, ..watermark }, first).await
        }
        _ if through >= marks.through_snapshot => {
            Ok(LatePiece { values, watermark: marks, block: None })
        }
        _ => {
            let watermark = Marks { through_snapshot: through, ..watermark };
            Ok(LatePiece { values, watermark, block: None })
        }
    }
}

/// The lowest id of the table's live files of a snapshot, by hog_data_file_live.
async fn block_begin(
    connection: &mut Session,
    of: &LateFiles<'_>,
    snapshot_id: i64,
) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!(
        r#"select pg_catalog.min(f.data_file_id) from (
             select data_file_id from hog_data_file
             where catalog_id = $1 and table_id = $2 and end_snapshot is null
               and begin_snapshot = $3 offset 0) as f"#,
        of.catalog_id,
        of.table_id,
        snapshot_id
    )
    .fetch_one(connection)
    .await
}

fn columns(leads: &[Lead]) -> (Vec<i64>, Vec<i32>) {
    leads.iter().map(|lead| (lead.spec_id, lead.key_index)).unzip()
}

/// Reads on in the block of ids of one snapshot. Ids are given out in the order of the snapshots, so all
/// ids before the block are of earlier ones, and the block is over where a later one begins.
async fn in_block(
    connection: &mut Session,
    of: &LateFiles<'_>,
    watermark: Marks,
    snapshot_id: i64,
) -> sqlx::Result<LatePiece> {
    let LateFiles { catalog_id, table_id, leads, .. } = *of;
    let (specs, keys) = columns(leads);
    let rows = sqlx::query!(
        r#"with piece as materialized (
             select data_file_id, begin_snapshot, table_id, end_snapshot, spec_id, file_format
             from hog_data_file
             where catalog_id = $1 and data_file_id >= $3
             order by data_file_id limit $5
           ),
           cut as materialized (
             select pg_catalog.max(data_file_id) as last_id,
                    pg_catalog.count(*) < $5::bigint
                    or pg_catalog.max(begin_snapshot) > $4 as is_over
             from piece
           )
           select coalesce(c.last_id, $3) as "last_id!", c.is_over as "is_over!",
                  r.spec_id as "spec_id?", r.value as "value?",
                  coalesce(r.files, 0::bigint) as "files!",
                  coalesce(r.is_parquet, true) as "is_parquet!"
           from cut c
           left join (
             select p.spec_id, v.value, pg_catalog.count(*) as files,
                    pg_catalog.bool_and(p.file_format = 'parquet') as is_parquet
             from piece p
             left join unnest($6::bigint[], $7::int[]) as l (spec_id, key_index)
               on l.spec_id = p.spec_id
             left join lateral (
               select value from hog_file_partition_value
               where catalog_id = $1 and data_file_id = p.data_file_id
                 and key_index = l.key_index offset 0) as v on true
             where p.table_id = $2 and p.end_snapshot is null and p.begin_snapshot = $4
             group by p.spec_id, v.value) as r on true"#,
        catalog_id,
        table_id,
        watermark.files_below,
        snapshot_id,
        AT_ONCE,
        &specs,
        &keys
    )
    .fetch_all(connection)
    .await?;
    let mut piece = LatePiece { values: Vec::with_capacity(rows.len()), watermark, block: None };
    for row in rows {
        (piece.watermark, piece.block) = match row.is_over {
            true => (Marks { through_snapshot: snapshot_id, ..watermark }, None),
            false => {
                let files_below = row.last_id.saturating_add(1);
                (Marks { through_snapshot: snapshot_id - 1, files_below }, Some(snapshot_id))
            }
        };
        if row.files > 0 {
            let (spec_id, value, files, is_parquet) =
                (row.spec_id, row.value, row.files, row.is_parquet);
            piece.values.push(LateValue { spec_id, value, files, is_parquet });
        }
    }
    Ok(piece)
}
