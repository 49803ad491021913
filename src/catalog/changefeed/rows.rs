//! The rows themselves, as a consumer receives them.

use serde::Serialize;
use utoipa::ToSchema;

use crate::catalog::session::Session;

/// A data file as a consumer receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DataFile {
    /// Its number in the catalog.
    pub data_file_id: i64,
    /// Where its object is.
    pub path: String,
    /// `parquet`.
    pub file_format: String,
    /// Its rows, those included that a vector hides.
    pub record_count: i64,
    /// Its size in bytes.
    pub file_size_bytes: i64,
    /// The length of the footer in bytes, where it is known.
    pub footer_size: Option<i64>,
    /// The id of its first row.
    pub row_id_start: i64,
    /// `provided`, `pending` or `failed`.
    pub stats_state: String,
    /// The first snapshot that it is visible at.
    pub begin_snapshot: i64,
    /// The spec that it was written under; null if it is not partitioned.
    pub spec_id: Option<i64>,
    /// The partition values by key index. Null if the file is not partitioned, and where the row of
    /// a key is missing: a null in its place would be read as the null partition.
    pub partition_values: Option<Vec<Option<String>>>,
    /// The first snapshot that it is not visible at any more; only where ended files are listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_snapshot: Option<i64>,
}

/// A deletion vector as a consumer receives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DeleteFile {
    /// Its number in the catalog; data files and vectors share the counter.
    pub delete_file_id: i64,
    /// The file whose rows it deletes.
    pub data_file_id: i64,
    /// Where its object is.
    pub path: String,
    /// `puffin-dv`.
    pub file_format: String,
    /// How many rows of the file it deletes, those of earlier vectors included.
    pub delete_count: i64,
    /// Its size in bytes.
    pub file_size_bytes: i64,
    /// The first snapshot that it is visible at.
    pub begin_snapshot: i64,
}

/// The data files of these ids, in the order of the ids; one that is not there is left out.
pub async fn data_files(
    connection: &mut Session,
    catalog_id: i64,
    ids: &[i64],
) -> sqlx::Result<Vec<DataFile>> {
    sqlx::query_as!(
        DataFile,
        r#"select f.data_file_id, f.path, f.file_format, f.record_count, f.file_size_bytes,
                  f.footer_size, f.row_id_start, f.stats_state, f.begin_snapshot, f.end_snapshot,
                  f.spec_id,
                  case when v.is_whole then v.texts end
                    as "partition_values: Vec<Option<String>>"
           from pg_catalog.unnest($2::bigint[]) with ordinality as wanted (id, place)
           join hog_data_file f on f.catalog_id = $1 and f.data_file_id = wanted.id
           cross join lateral (
             select pg_catalog.array_agg(value order by key_index) as texts,
                    pg_catalog.min(key_index) = 0
                      and pg_catalog.max(key_index) = pg_catalog.count(*) - 1 as is_whole
             from hog_file_partition_value
             where catalog_id = f.catalog_id and data_file_id = f.data_file_id) as v
           order by wanted.place"#,
        catalog_id,
        ids
    )
    .fetch_all(connection)
    .await
}

/// The vectors of these ids, in the order of the ids; one that is not there is left out.
pub async fn delete_files(
    connection: &mut Session,
    catalog_id: i64,
    ids: &[i64],
) -> sqlx::Result<Vec<DeleteFile>> {
    sqlx::query_as!(
        DeleteFile,
        r#"select d.delete_file_id, d.data_file_id, d.path, d.file_format, d.delete_count,
                  d.file_size_bytes, d.begin_snapshot
           from pg_catalog.unnest($2::bigint[]) with ordinality as wanted (id, place)
           join hog_delete_file d on d.catalog_id = $1 and d.delete_file_id = wanted.id
           order by wanted.place"#,
        catalog_id,
        ids
    )
    .fetch_all(connection)
    .await
}
