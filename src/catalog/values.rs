//! Partition values, through hog_file_partition_value_lookup.
//!
//! That index (catalog, key, value, file id) is catalog-wide: all tables that are partitioned by
//! day share the same values of days, and ended files keep their entries until expiry deletes them. So
//! an entry costs a look at its file, and every statement here reads a bounded number of entries.

use super::inventory::owners::server_has_index;
use super::live_file::{LiveFile, live_file, live_files};
use super::session::Session;

/// How many entries one statement reads, over all of its values.
const PAGE: i64 = 20_000;

/// Builds the index that a server from V23 on has, without holding up its writers.
pub const LOOKUP_INDEX: &str = "create index concurrently hog_file_partition_value_lookup \
    on hog_file_partition_value (catalog_id, key_index, value, data_file_id)";

/// Whether this server has hog_file_partition_value_lookup, which came with V23; without it a
/// partition's files are found by reading the table's. One that is still being built, or whose
/// building failed, is none.
pub async fn has_lookup_index(connection: &mut Session) -> sqlx::Result<bool> {
    let (table, name) = ("hog_file_partition_value", "hog_file_partition_value_lookup");
    server_has_index(connection, table, name).await
}

/// The next distinct partition values at a key over the whole catalog, in the order of the index, at most
/// `most`: those after one text (from the first where `None`) and before another.
///
/// A loose scan: one descent of the index per distinct partition value, however many files share it.
pub async fn distinct_values(
    connection: &mut Session,
    catalog_id: i64,
    key_index: i32,
    after: Option<&str>,
    before: Option<&str>,
    most: i64,
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"with recursive texts (value) as (
             (select value from hog_file_partition_value
              where catalog_id = $1 and key_index = $2 and value > coalesce($3, '')
                and ($4::text is null or value < $4)
              order by value limit 1)
             union all
             select (select v.value from hog_file_partition_value v
                     where v.catalog_id = $1 and v.key_index = $2 and v.value > t.value
                       and ($4 is null or v.value < $4)
                     order by v.value limit 1)
             from texts t where t.value is not null
           )
           select value as "value!" from texts where value is not null limit $5"#,
        catalog_id,
        key_index,
        after,
        before,
        most
    )
    .fetch_all(connection)
    .await
}

/// A value, null or not, at a key: the files that have it are found together.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value {
    /// `hog_file_partition_value.key_index`.
    pub key_index: i32,
    /// `hog_file_partition_value.value`.
    pub value: Option<String>,
}

/// Whether the values have more than `most` entries together; those of nulls are not counted. Reads the index
/// alone, and no more than that of it for each value.
pub async fn have_more_entries(
    connection: &mut Session,
    catalog_id: i64,
    values: &[Value],
    most: i64,
) -> sqlx::Result<bool> {
    let (keys, texts) = columns(values.iter());
    let entries = sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "entries!" from (
             select from unnest($2::int[], $3::text[]) as w (key_index, value)
             cross join lateral (
               select from hog_file_partition_value v
               where v.catalog_id = $1 and v.key_index = w.key_index and v.value = w.value
               limit $4::bigint + 1) as e
             limit $4::bigint + 1) as counted"#,
        catalog_id,
        &keys,
        &texts as &[Option<&str>],
        most
    )
    .fetch_one(connection)
    .await?;
    Ok(entries > most)
}

/// Whether the table has a live file with a text at a key; `None` where that is not told by the `most` first
/// entries.
pub async fn has_live_file(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    (key_index, text): (i32, &str),
    most: i64,
) -> sqlx::Result<Option<bool>> {
    // The newest entries first: files of a range that has not ended are among them.
    let row = sqlx::query!(
        r#"with entries as materialized (
             select data_file_id from hog_file_partition_value
             where catalog_id = $1 and key_index = $3 and value = $4
             order by data_file_id desc limit $5
           )
           select exists (
                    select from entries e
                    cross join lateral (
                      select table_id, end_snapshot from hog_data_file
                      where catalog_id = $1 and data_file_id = e.data_file_id offset 0) as f
                    where f.table_id = $2 and f.end_snapshot is null) as "has_one!",
                  (select pg_catalog.count(*) from entries) >= $5 as "is_bounded!"
           limit 1"#,
        catalog_id,
        table_id,
        key_index,
        text,
        most
    )
    .fetch_one(connection)
    .await?;
    Ok(match (row.has_one, row.is_bounded) {
        (false, true) => None,
        (has_one, _) => Some(has_one),
    })
}

/// A value, and the file id from which on its entries are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromValue {
    /// The value.
    pub value: Value,
    /// Entries of files with lower ids are not read.
    pub from_id: i64,
}

/// What a statement found of some values.
#[derive(Debug, Default)]
pub struct Found {
    /// Live files of the table, each with the place of the value by which it was found.
    pub files: Vec<(usize, LiveFile)>,
    /// Values with more entries, and where to go on.
    pub more: Vec<FromValue>,
}

/// The table's live files that have one of the values; of each value at most `PAGE` / number of values
/// entries, the lowest ids first. A file is found once for each of its values that is asked for.
///
/// The entries of a value are those of the whole catalog and of ended files too: where it has more, that is reported
/// even if none of those that were read is of a live file of the table.
pub async fn files_with_values(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    values: &[FromValue],
) -> sqlx::Result<Found> {
    let each = (PAGE / i64::try_from(values.len()).unwrap_or(PAGE).max(1)).max(1);
    let (keys, texts) = columns(values.iter().map(|from| &from.value));
    let from_ids: Vec<i64> = values.iter().map(|from| from.from_id).collect();
    // Each value's entries by the lookup index: by a range and not an equality, and so in the order of the value,
    // too. With an equality the order is that of the file ids alone, and the planner may then read them by the
    // primary key, in the hope that the first ones fit; that of nulls is ordered by the value all the same, which
    // the index then need not sort. Each entry's file by its primary key: what else is asked of it stands outside,
    // or the planner, without statistics, would read all live files of the catalog for each value.
    let rows = live_files!(
        r#"f.value_no as "value_no!", f.last_id,"#,
        r#"(
             with wanted as materialized (
               select ordinal::int - 1 as value_no, key_index, value, from_id
               from unnest($3::int[], $4::text[], $5::bigint[]) with ordinality
                      as w (key_index, value, from_id, ordinal)
             ),
             entries as materialized (
               select w.value_no, e.data_file_id
               from wanted w
               cross join lateral (
                 (select v.data_file_id from hog_file_partition_value v
                  where v.catalog_id = $1 and v.key_index = w.key_index
                    and (v.value, v.data_file_id) >= (w.value, w.from_id) and v.value <= w.value
                  order by v.value, v.data_file_id limit $6)
                 union all
                 (select v.data_file_id from hog_file_partition_value v
                  where w.value is null and v.catalog_id = $1 and v.key_index = w.key_index
                    and v.value is null and v.data_file_id >= w.from_id
                  order by v.value, v.data_file_id limit $6)) as e
             )
             select e.value_no, null::bigint as last_id, d.data_file_id, d.spec_id, d.record_count,
                    d.file_size_bytes, d.file_format
             from entries e
             cross join lateral (
               select table_id, end_snapshot, data_file_id, spec_id, record_count, file_size_bytes,
                      file_format
               from hog_data_file
               where catalog_id = $1 and data_file_id = e.data_file_id offset 0) as d
             where d.table_id = $2 and d.end_snapshot is null
             union all
             select value_no, pg_catalog.max(data_file_id), null, null, null, null, null from entries
             group by value_no having pg_catalog.count(*) >= $6) as f"#,
        catalog_id,
        table_id,
        &keys,
        &texts as &[Option<&str>],
        &from_ids,
        each
    )
    .fetch_all(connection)
    .await?;
    let mut found = Found::default();
    for row in rows {
        let Ok(value_no) = usize::try_from(row.value_no) else { continue };
        if let (Some(from), Some(last_id)) = (values.get(value_no), row.last_id) {
            found.more.push(FromValue { value: from.value.clone(), from_id: last_id + 1 });
        }
        found.files.extend(live_file!(row).map(|file| (value_no, file)));
    }
    Ok(found)
}

/// A value, and the file id below which its entries are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BelowId {
    /// The value.
    pub value: Value,
    /// Entries of files with this id or a higher one are not read.
    pub before_id: i64,
}

/// For each of some values, none of which is null, the table's newest live file of each spec among the first entries, the
/// highest ids first; and the values of which none was found, but which have further entries, with where to go on.
///
/// As [`files_with_values`], of each value at most `PAGE` / number of values entries. A value that the table has is mostly
/// told by them, however many files share it.
pub async fn newest_with_values(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    values: &[BelowId],
) -> sqlx::Result<(Vec<LiveFile>, Vec<BelowId>)> {
    let each = (PAGE / i64::try_from(values.len()).unwrap_or(PAGE).max(1)).max(1);
    let (keys, texts) = columns(values.iter().map(|below| &below.value));
    let before_ids: Vec<i64> = values.iter().map(|below| below.before_id).collect();
    // By ranges, and each file by its primary key: see `files_with_values`.
    let rows = live_files!(
        r#"f.value_no as "value_no!", f.last_id,"#,
        r#"(
             with wanted as materialized (
               select ordinal::int - 1 as value_no, key_index, value, before_id
               from unnest($3::int[], $4::text[], $5::bigint[]) with ordinality
                      as w (key_index, value, before_id, ordinal)
             ),
             entries as materialized (
               select w.value_no, e.data_file_id
               from wanted w
               cross join lateral (
                 select v.data_file_id from hog_file_partition_value v
                 where v.catalog_id = $1 and v.key_index = w.key_index
                   and (v.value, v.data_file_id) < (w.value, w.before_id) and v.value >= w.value
                 order by v.value desc, v.data_file_id desc limit $6) as e
             ),
             newest as materialized (
               select distinct on (e.value_no, d.spec_id)
                      e.value_no, d.data_file_id, d.spec_id, d.record_count, d.file_size_bytes,
                      d.file_format
               from entries e
               cross join lateral (
                 select table_id, end_snapshot, data_file_id, spec_id, record_count, file_size_bytes,
                        file_format
                 from hog_data_file
                 where catalog_id = $1 and data_file_id = e.data_file_id offset 0) as d
               where d.table_id = $2 and d.end_snapshot is null
               order by e.value_no, d.spec_id, d.data_file_id desc
             )
             select value_no, null::bigint as last_id, data_file_id, spec_id, record_count,
                    file_size_bytes, file_format
             from newest
             union all
             select value_no, pg_catalog.min(data_file_id), null, null, null, null, null
             from entries e
             where not exists (select from newest n where n.value_no = e.value_no)
             group by value_no having pg_catalog.count(*) >= $6) as f"#,
        catalog_id,
        table_id,
        &keys,
        &texts as &[Option<&str>],
        &before_ids,
        each
    )
    .fetch_all(connection)
    .await?;
    let (mut files, mut more) = (Vec::new(), Vec::new());
    for row in rows {
        let below = usize::try_from(row.value_no).ok().and_then(|at| values.get(at));
        if let (Some(below), Some(before_id)) = (below, row.last_id) {
            more.push(BelowId { before_id, ..below.clone() });
        }
        files.extend(live_file!(row));
    }
    Ok((files, more))
}

/// The values as the statements take them.
fn columns<'a>(values: impl Iterator<Item = &'a Value>) -> (Vec<i32>, Vec<Option<&'a str>>) {
    values.map(|value| (value.key_index, value.value.as_deref())).unzip()
}
