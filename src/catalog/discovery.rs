//! Which tuples a table's live files have, and which files are theirs.
//!
//! A file is matched by its spec and its whole tuple, keys and values, never by a text alone:
//! the lookup index is shared by all tables of the catalog, and key_index means something else
//! under each spec. In SQL a tuple is the JSON array `[[key_index, value], ...]` of all the rows
//! that the file has, so a file with a missing row is equal to no complete tuple.

use std::time::Duration;

use serde::Serialize;
use sqlx::types::Json;
use sqlx::{AssertSqlSafe, PgConnection};

use super::failure::Failure;
use crate::window::StoredTuple;

/// How many files, live vectors, rows and bytes a tuple or a drop has. `records` and `bytes`
/// are those of the data files as written: rows that a vector hides are counted too.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize, utoipa::ToSchema,
)]
pub struct Counts {
    /// Data files.
    pub files: i64,
    /// Live deletion vectors on them.
    pub delete_files: i64,
    /// Rows written.
    pub records: i64,
    /// Bytes of the data files.
    pub bytes: i64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        // A writer may claim any number of rows and bytes.
        self.files = self.files.saturating_add(other.files);
        self.delete_files = self.delete_files.saturating_add(other.delete_files);
        self.records = self.records.saturating_add(other.records);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

/// A tuple that live files of the table have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundTuple {
    /// The spec that the files were written under; `None` for unpartitioned files.
    pub spec_id: Option<i64>,
    /// The rows of partition values that they have.
    pub tuple: StoredTuple,
    /// False if any of the files is of another format: then the table is one to leave alone.
    pub is_parquet: bool,
    /// What they amount to.
    pub counts: Counts,
}

/// A complete tuple of a spec, to be found or dropped.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TupleOfSpec {
    /// The spec.
    pub spec_id: i64,
    /// The spec's keys and a value for each.
    pub tuple: StoredTuple,
}

#[derive(Serialize)]
struct WantedTuple<'a> {
    spec_id: i64,
    tuple: Vec<(i32, Option<&'a str>)>,
}

/// The tuples as the statements take them, in order.
pub(super) fn wanted(tuples: &[TupleOfSpec]) -> Json<Vec<impl Serialize + '_>> {
    let pairs = |tuple: &StoredTuple| tuple.keys.iter().copied().zip(0_usize..).collect::<Vec<_>>();
    Json(
        tuples
            .iter()
            .map(|wanted| WantedTuple {
                spec_id: wanted.spec_id,
                tuple: pairs(&wanted.tuple)
                    .into_iter()
                    .map(|(key, at)| (key, wanted.tuple.values.get(at).and_then(Option::as_deref)))
                    .collect(),
            })
            .collect(),
    )
}

type TuplePairs = Json<Vec<(i32, Option<String>)>>;

fn stored(pairs: Option<TuplePairs>) -> StoredTuple {
    let (keys, values) = pairs.map(|pairs| pairs.0).unwrap_or_default().into_iter().unzip();
    StoredTuple { keys, values }
}

/// Every tuple of the table's live files with its counts, handed on one by one; one statement,
/// so one consistent state. Reads the table's own live files and nobody else's.
///
/// Returns false if that took longer than `limit`: what was handed on is incomplete then.
pub async fn scan_live(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
    limit: Duration,
    mut found: impl FnMut(FoundTuple),
) -> sqlx::Result<bool> {
    use futures_util::TryStreamExt;
    set_statement_timeout(connection, limit).await?;
    // hog_data_file_live gives the table's live files, the primary key of the values theirs:
    // neither neighbours nor ended files are read. Grouping by file first, after a join, takes
    // half the time of a subquery per file.
    let mut rows = sqlx::query!(
        r#"select spec_id, keys as "keys: Vec<i32>", "values" as "values: Vec<Option<String>>",
                  count(*) as "files!", count(*) filter (where has_vector) as "delete_files!",
                  sum(record_count)::bigint as "records!",
                  sum(file_size_bytes)::bigint as "bytes!",
                  bool_and(file_format = 'parquet') as "is_parquet!"
           from (select f.spec_id, f.record_count, f.file_size_bytes, f.file_format,
                        array_agg(v.key_index order by v.key_index)
                          filter (where v.key_index is not null) as keys,
                        array_agg(v.value order by v.key_index)
                          filter (where v.key_index is not null) as "values",
                        exists (select from hog_delete_file d
                                where d.catalog_id = f.catalog_id
                                  and d.data_file_id = f.data_file_id
                                  and d.end_snapshot is null) as has_vector
                 from hog_data_file f
                 left join hog_file_partition_value v
                   on v.catalog_id = f.catalog_id and v.data_file_id = f.data_file_id
                 where f.catalog_id = $1 and f.table_id = $2 and f.end_snapshot is null
                 group by f.catalog_id, f.data_file_id) as live
           group by spec_id, keys, "values""#,
        catalog_id,
        table_id
    )
    .fetch(&mut *connection);
    let outcome = loop {
        match rows.try_next().await {
            Ok(Some(row)) => found(FoundTuple {
                spec_id: row.spec_id,
                tuple: StoredTuple {
                    keys: row.keys.unwrap_or_default(),
                    values: row.values.unwrap_or_default(),
                },
                is_parquet: row.is_parquet,
                counts: Counts {
                    files: row.files,
                    delete_files: row.delete_files,
                    records: row.records,
                    bytes: row.bytes,
                },
            }),
            Ok(None) => break Ok(true),
            Err(error) if Failure::of(&error) == Failure::StatementCancelled => break Ok(false),
            Err(error) => break Err(error),
        }
    };
    drop(rows);
    set_statement_timeout(connection, Duration::from_secs(60)).await.and(outcome)
}

/// The tuples of the table's newest live files, at most `limit` of them, each with its own counts.
pub async fn newest_live(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
    limit: i64,
) -> sqlx::Result<Vec<FoundTuple>> {
    // hog_data_file_live has the table's live files by begin_snapshot: read from its end.
    let rows = sqlx::query!(
        r#"select f.spec_id, f.record_count, f.file_size_bytes,
                  f.file_format = 'parquet' as "is_parquet!",
                  (select jsonb_agg(jsonb_build_array(a.key_index, a.value) order by a.key_index)
                   from hog_file_partition_value a
                   where a.catalog_id = f.catalog_id and a.data_file_id = f.data_file_id)
                  as "tuple: TuplePairs"
           from hog_data_file f
           where f.catalog_id = $1 and f.table_id = $2 and f.end_snapshot is null
           order by f.begin_snapshot desc
           limit $3"#,
        catalog_id,
        table_id,
        limit
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| FoundTuple {
            spec_id: row.spec_id,
            tuple: stored(row.tuple),
            is_parquet: row.is_parquet,
            counts: Counts {
                files: 1,
                delete_files: 0,
                records: row.record_count,
                bytes: row.file_size_bytes,
            },
        })
        .collect())
}

/// Whether this server has hog_file_partition_value_lookup, which came with V23; without it a
/// partition's files are found by reading the table's.
pub async fn has_lookup_index(connection: &mut PgConnection) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select to_regclass('hog_file_partition_value_lookup') is not null as "there!""#
    )
    .fetch_one(connection)
    .await
}

/// The distinct texts at a key index, over the whole catalog, in text order; at most `limit`.
///
/// A loose scan: one descent of hog_file_partition_value_lookup per distinct text, however many
/// files share it. Catalog-wide, because the values have no table id.
pub async fn distinct_texts(
    connection: &mut PgConnection,
    catalog_id: i64,
    key_index: i32,
    limit: i64,
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"with recursive texts (value) as (
             (select value from hog_file_partition_value
              where catalog_id = $1 and key_index = $2 and value is not null
              order by value limit 1)
             union all
             select (select v.value from hog_file_partition_value v
                     where v.catalog_id = $1 and v.key_index = $2 and v.value > t.value
                     order by v.value limit 1)
             from texts t where t.value is not null
           )
           select value as "value!" from texts where value is not null limit $3"#,
        catalog_id,
        key_index,
        limit
    )
    .fetch_all(connection)
    .await
}

/// The tuples of the table's live files that were written under a spec and have one of the
/// texts at one key, with their counts.
pub async fn tuples_with_text(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
    spec_id: i64,
    key_index: i32,
    texts: &[String],
) -> sqlx::Result<Vec<FoundTuple>> {
    let rows = sqlx::query!(
        r#"select tuple as "tuple: TuplePairs", count(*) as "files!",
                  count(*) filter (where has_vector) as "delete_files!",
                  sum(record_count)::bigint as "records!",
                  sum(file_size_bytes)::bigint as "bytes!",
                  bool_and(file_format = 'parquet') as "is_parquet!"
           from (select f.record_count, f.file_size_bytes, f.file_format,
                        (select jsonb_agg(jsonb_build_array(a.key_index, a.value)
                                          order by a.key_index)
                         from hog_file_partition_value a
                         where a.catalog_id = f.catalog_id
                           and a.data_file_id = f.data_file_id) as tuple,
                        exists (select from hog_delete_file d
                                where d.catalog_id = f.catalog_id
                                  and d.data_file_id = f.data_file_id
                                  and d.end_snapshot is null) as has_vector
                 from hog_file_partition_value v
                 join hog_data_file f
                   on f.catalog_id = v.catalog_id and f.data_file_id = v.data_file_id
                 where v.catalog_id = $1 and v.key_index = $4 and v.value = any($5)
                   and f.table_id = $2 and f.spec_id = $3 and f.end_snapshot is null) as live
           group by tuple"#,
        catalog_id,
        table_id,
        spec_id,
        key_index,
        texts
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| FoundTuple {
            spec_id: Some(spec_id),
            tuple: stored(row.tuple),
            is_parquet: row.is_parquet,
            counts: Counts {
                files: row.files,
                delete_files: row.delete_files,
                records: row.records,
                bytes: row.bytes,
            },
        })
        .collect())
}

async fn set_statement_timeout(connection: &mut PgConnection, limit: Duration) -> sqlx::Result<()> {
    let statement = format!("set statement_timeout = {}", limit.as_millis().max(1));
    // Only a number is put in.
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await?;
    Ok(())
}
