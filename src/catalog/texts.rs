//! Partition values by their text, through hog_file_partition_value_lookup.
//!
//! That index (catalog, key, value, file id) is catalog-wide: all tables that are partitioned by
//! day share the same day texts, and ended files keep their entries until expiry deletes them. So
//! an entry costs a look at its file, and every statement here reads a bounded number of entries.

use super::live_file::{LiveFile, LiveFileRow};
use super::session::Session;

/// How many entries one statement reads, over all of its texts.
pub const PAGE: i64 = 20_000;

/// The next distinct texts at a key over the whole catalog, in the order of the index, at most
/// `most`: those after one text (from the first where `None`) and before another.
///
/// A loose scan: one descent of the index per distinct text, however many files share it.
pub async fn distinct_texts(
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

/// Whether the texts have more than `most` entries together. Reads the index alone, and no more
/// than that of it.
pub async fn have_more_entries(
    connection: &mut Session,
    catalog_id: i64,
    key_index: i32,
    texts: &[String],
    most: i64,
) -> sqlx::Result<bool> {
    let entries = sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "entries!" from (
             select from pg_catalog.unnest($3::text[]) as t (value)
             cross join lateral (
               select from hog_file_partition_value v
               where v.catalog_id = $1 and v.key_index = $2 and v.value = t.value
               limit $4::bigint + 1) as e
             limit $4::bigint + 1) as counted"#,
        catalog_id,
        key_index,
        texts,
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

/// A text, and the id from which on its entries are to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromText {
    /// The text.
    pub text: String,
    /// Entries of files with lower ids are not read.
    pub from_id: i64,
}

/// What a statement found of some texts.
#[derive(Debug, Default)]
pub struct Found {
    /// Live files of the table that have one of the texts at the key.
    pub files: Vec<LiveFile>,
    /// Texts with more entries, and where to go on.
    pub more: Vec<FromText>,
}

/// The table's live files that have one of the texts at a key; of each text at most
/// [`PAGE`] / number of texts entries, the lowest ids first.
pub async fn files_with_texts(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    key_index: i32,
    texts: &[FromText],
) -> sqlx::Result<Found> {
    let each = (PAGE / i64::try_from(texts.len()).unwrap_or(PAGE).max(1)).max(1);
    let values: Vec<&str> = texts.iter().map(|from| from.text.as_str()).collect();
    let from_ids: Vec<i64> = texts.iter().map(|from| from.from_id).collect();
    // Each text's entries by the lookup index, each entry's file and its values by their primary
    // keys, its vector as in `super::walk`. A text whose entries are not all read gets a row of its own
    // even if none is the table's.
    let rows = sqlx::query!(
        r#"with wanted as materialized (
             select ordinal::int - 1 as text_no, value, from_id
             from unnest($4::text[], $5::bigint[]) with ordinality as w (value, from_id, ordinal)
           ),
           entries as materialized (
             select w.text_no, e.data_file_id
             from wanted w
             cross join lateral (
               select v.data_file_id from hog_file_partition_value v
               where v.catalog_id = $1 and v.key_index = $3 and v.value = w.value
                 and v.data_file_id >= w.from_id
               order by v.data_file_id limit $6) as e
           ),
           unfinished as (
             select text_no, pg_catalog.max(data_file_id) as last_id from entries
             group by text_no having pg_catalog.count(*) >= $6
           )
           select text_no, last_id, null::bigint as data_file_id, null::bigint as spec_id,
                  null::bigint as record_count, null::bigint as file_size_bytes,
                  null::boolean as is_parquet, null::int[] as keys,
                  null::text[] as "values: Vec<Option<String>>", null::boolean as has_vector
           from unfinished
           union all
           select null, null, f.data_file_id, f.spec_id, f.record_count, f.file_size_bytes,
                  f.file_format = 'parquet', t.keys, t."values",
                  exists (select from (
                            select end_snapshot from hog_delete_file
                            where catalog_id = $1 and data_file_id = f.data_file_id offset 0) as d
                          where d.end_snapshot is null)
           from entries e
           cross join lateral (
             select data_file_id, table_id, spec_id, end_snapshot, record_count, file_size_bytes,
                    file_format
             from hog_data_file
             where catalog_id = $1 and data_file_id = e.data_file_id offset 0) as f
           cross join lateral (
             select pg_catalog.array_agg(v.key_index order by v.key_index) as keys,
                    pg_catalog.array_agg(v.value order by v.key_index) as "values"
             from hog_file_partition_value v
             where v.catalog_id = $1 and v.data_file_id = f.data_file_id) as t
           where f.table_id = $2 and f.end_snapshot is null"#,
        catalog_id,
        table_id,
        key_index,
        &values as &[&str],
        &from_ids,
        each
    )
    .fetch_all(connection)
    .await?;
    let mut found = Found::default();
    for row in rows {
        if let (Some(text_no), Some(last_id)) = (row.text_no, row.last_id) {
            let text = usize::try_from(text_no).ok().and_then(|at| texts.get(at));
            found.more.extend(
                text.map(|from| FromText { text: from.text.clone(), from_id: last_id + 1 }),
            );
        }
        if let (
            Some(data_file_id),
            Some(is_parquet),
            Some(has_vector),
            Some(record_count),
            Some(file_size_bytes),
        ) = (
            row.data_file_id,
            row.is_parquet,
            row.has_vector,
            row.record_count,
            row.file_size_bytes,
        ) {
            let (spec_id, keys, values) = (row.spec_id, row.keys, row.values);
            let row = LiveFileRow {
                data_file_id,
                spec_id,
                keys,
                values,
                is_parquet,
                has_vector,
                record_count,
                file_size_bytes,
            };
            found.files.push(row.into());
        }
    }
    Ok(found)
}
