//! The values of files that came since a watermark, without the files.
//!
//! Whole snapshots at a time, by hog_data_file_live: neither neighbours nor ended files are read. A
//! snapshot that is larger than that is read by the primary key within its own block of ids, which one
//! commit allocates under the lock, in pieces; the place in it is part of the watermark.

use std::collections::{BTreeMap, HashMap};

use super::session::Session;
use super::tables::FileWatermark;

/// So many ids are read on the way to a block without looking for its beginning first.
const NEAR: i64 = 10 * AT_ONCE;

/// How many files one statement reads.
pub const AT_ONCE: i64 = 10_000;

/// At most so many ids of other files stand between two files of one range: reading their entries takes less time
/// than another descent of the index.
const GAP: i64 = 4;

/// Where a spec's files have the value that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupKey {
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
}

/// What was read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatePiece {
    /// The values.
    pub values: Vec<LateValue>,
    /// Whether all files of these are of parquet.
    pub is_parquet: bool,
    /// The watermark up to which that is all.
    pub watermark: FileWatermark,
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
    pub lookup_keys: &'a [LookupKey],
    /// The head and the id counter: files that are committed later are no business of this.
    pub current_watermark: FileWatermark,
}

/// Files of the table by their ids, without their values.
#[derive(Debug)]
struct Files {
    ids: Vec<i64>,
    specs: Vec<Option<i64>>,
    is_parquet: bool,
}

impl Files {
    fn new(
        ids: Option<Vec<i64>>,
        specs: Option<Vec<Option<i64>>>,
        is_parquet: Option<bool>,
    ) -> Self {
        Files {
            ids: ids.unwrap_or_default(),
            specs: specs.unwrap_or_default(),
            is_parquet: is_parquet.unwrap_or(true),
        }
    }
}

/// Reads on from a watermark, at most [`AT_ONCE`] files; in the block of a snapshot, where the piece before
/// stopped in one.
///
/// Two statements: the files, then their values. A file and its values are of one transaction and values do not
/// change, so whoever sees the file sees its values in any later statement. A file that ends and is expired in
/// between has no values any more, and needs no row. A restore in between may give the ids to other files: the
/// next pass finds the catalog restored, sets the watermark back and owes a full pass. A connection that is lost
/// in between moves no watermark.
pub async fn late_values(
    connection: &mut Session,
    of: &LateFiles<'_>,
    watermark: FileWatermark,
    block: Option<i64>,
) -> sqlx::Result<LatePiece> {
    let (files, watermark, block) = late_files(connection, of, watermark, block).await?;
    let is_parquet = files.is_parquet;
    let values = values_of(connection, of, files).await?;
    Ok(LatePiece { values, is_parquet, watermark, block })
}

/// The next files, the watermark up to which these are all, and the block in which the reading stopped.
async fn late_files(
    connection: &mut Session,
    of: &LateFiles<'_>,
    watermark: FileWatermark,
    block: Option<i64>,
) -> sqlx::Result<(Files, FileWatermark, Option<i64>)> {
    let LateFiles { catalog_id, table_id, current_watermark, .. } = *of;
    if watermark.through_snapshot >= current_watermark.through_snapshot {
        return Ok((Files::new(None, None, None), current_watermark, None));
    }
    if let Some(block) = block {
        return in_block(connection, of, watermark, block).await;
    }
    // The files that are ahead, one more than are read: the snapshot of the last one may go on beyond
    // it, and is left to the next statement.
    let row = sqlx::query!(
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
           select c.first, c.least_id, c.through as "through!", r.ids,
                  r.specs as "specs: Vec<Option<i64>>", r.is_parquet
           from cut c
           cross join lateral (
             select pg_catalog.array_agg(data_file_id) as ids, pg_catalog.array_agg(spec_id) as specs,
                    pg_catalog.bool_and(file_format = 'parquet') as is_parquet
             from ahead
             where begin_snapshot <= c.through and data_file_id >= $5) as r"#,
        catalog_id,
        table_id,
        watermark.through_snapshot,
        current_watermark.through_snapshot,
        watermark.files_below,
        AT_ONCE
    )
    .fetch_one(&mut *connection)
    .await?;
    if let Some(first) = row.first.filter(|first| row.through < *first) {
        let known = watermark.files_below;
        let is_far = row.least_id.is_some_and(|id| id - known > NEAR);
        let begin = match is_far {
            true => block_begin(connection, of, first).await?,
            false => None,
        };
        let files_below = begin.map_or(known, |begin| begin.max(known));
        return in_block(connection, of, FileWatermark { files_below, ..watermark }, first).await;
    }
    let watermark = match row.through >= current_watermark.through_snapshot {
        true => current_watermark,
        false => FileWatermark { through_snapshot: row.through, ..watermark },
    };
    Ok((Files::new(row.ids, row.specs, row.is_parquet), watermark, None))
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

/// Reads on in the block of ids of one snapshot. Ids are given out in the order of the snapshots, so all
/// ids before the block are of earlier ones, and the block is over where a later one begins.
async fn in_block(
    connection: &mut Session,
    of: &LateFiles<'_>,
    watermark: FileWatermark,
    snapshot_id: i64,
) -> sqlx::Result<(Files, FileWatermark, Option<i64>)> {
    let row = sqlx::query!(
        r#"select pg_catalog.max(data_file_id) as last_id,
                  pg_catalog.count(*) < $5::bigint
                    or pg_catalog.max(begin_snapshot) > $4 as "is_over!",
                  pg_catalog.array_agg(data_file_id) filter (where is_late) as ids,
                  pg_catalog.array_agg(spec_id) filter (where is_late)
                    as "specs: Vec<Option<i64>>",
                  pg_catalog.bool_and(file_format = 'parquet') filter (where is_late)
                    as is_parquet
           from (
             select data_file_id, begin_snapshot, spec_id, file_format,
                    table_id = $2 and end_snapshot is null and begin_snapshot = $4 as is_late
             from hog_data_file
             where catalog_id = $1 and data_file_id >= $3
             order by data_file_id limit $5) as piece"#,
        of.catalog_id,
        of.table_id,
        watermark.files_below,
        snapshot_id,
        AT_ONCE
    )
    .fetch_one(connection)
    .await?;
    let files = Files::new(row.ids, row.specs, row.is_parquet);
    if row.is_over {
        return Ok((files, FileWatermark { through_snapshot: snapshot_id, ..watermark }, None));
    }
    let last_id = row.last_id.unwrap_or(watermark.files_below);
    let files_below = last_id.saturating_add(1);
    let watermark = FileWatermark { through_snapshot: snapshot_id - 1, files_below };
    Ok((files, watermark, Some(snapshot_id)))
}

/// How many files have which value, by ranges of ids: one commit gives out consecutive ids, and reading a range of
/// entries takes a third of the time of finding each by its key. A range may be of neighbours' files, too; what
/// these have is left out. By the primary key: the sum keeps the planner from the lookup index, of which it would
/// read all entries of a key.
async fn values_of(
    connection: &mut Session,
    of: &LateFiles<'_>,
    files: Files,
) -> sqlx::Result<Vec<LateValue>> {
    let key_of: HashMap<i64, i32> =
        of.lookup_keys.iter().map(|key| (key.spec_id, key.key_index)).collect();
    let key_index =
        |spec_id: Option<i64>| spec_id.and_then(|spec_id| key_of.get(&spec_id).copied());
    let Files { ids, specs, .. } = files;
    let with_key = ids.iter().zip(&specs).filter(|(_, spec_id)| key_index(**spec_id).is_some());
    let mut asked: Vec<i64> = with_key.map(|(id, _)| *id).collect();
    let mut texts: HashMap<(i64, i32), Option<String>> = HashMap::with_capacity(asked.len());
    if !asked.is_empty() {
        asked.sort_unstable();
        let (firsts, lasts) = runs(&asked);
        let mut keys: Vec<i32> = key_of.values().copied().collect();
        keys.sort_unstable();
        keys.dedup();
        let rows = sqlx::query!(
            r#"select v.data_file_id, v.key_index, v.value
               from unnest($2::bigint[], $3::bigint[]) as r (first, last)
               cross join lateral (
                 select data_file_id, key_index, value from hog_file_partition_value
                 where catalog_id = $1 and data_file_id between r.first and r.last
                   and key_index + 0 = any ($4::int[]) offset 0) as v"#,
            of.catalog_id,
            &firsts,
            &lasts,
            &keys
        )
        .fetch_all(connection)
        .await?;
        texts.extend(rows.into_iter().map(|row| ((row.data_file_id, row.key_index), row.value)));
    }
    let mut files: BTreeMap<(Option<i64>, Option<String>), i64> = BTreeMap::new();
    for (id, spec_id) in ids.into_iter().zip(specs) {
        let value = key_index(spec_id).and_then(|key_index| texts.remove(&(id, key_index)));
        *files.entry((spec_id, value.flatten())).or_default() += 1;
    }
    let value = |((spec_id, value), files)| LateValue { spec_id, value, files };
    Ok(files.into_iter().map(value).collect())
}

/// The ranges, by their first and last id, in which ascending ids stand, with at most [`GAP`] others between two
/// of them.
fn runs(ids: &[i64]) -> (Vec<i64>, Vec<i64>) {
    let is_near = |a: &i64, b: &i64| b.saturating_sub(*a) <= GAP + 1;
    ids.chunk_by(is_near).filter_map(|run| Some((run.first()?, run.last()?))).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_stand_close_are_read_as_one_range() {
        assert_eq!(runs(&[]), (vec![], vec![]));
        assert_eq!(runs(&[7]), (vec![7], vec![7]));
        assert_eq!(runs(&[1, 2, 3, 8, 9]), (vec![1], vec![9]));
        assert_eq!(runs(&[1, 2, 3, 9, 10, 20]), (vec![1, 9, 20], vec![3, 10, 20]));
        assert_eq!(
            runs(&[i64::MIN, i64::MAX]),
            (vec![i64::MIN, i64::MAX], vec![i64::MIN, i64::MAX])
        );
    }
}
