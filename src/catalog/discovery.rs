//! Tuples of a table's files, and how they are told apart.
//!
//! A file is matched by its spec and its whole tuple, keys and values, never by a text alone:
//! the lookup index is shared by all tables of the catalog, and key_index means something else
//! under each spec. In SQL a tuple is the JSON array `[[key_index, value], ...]` of all the rows
//! that the file has, so a file with a missing row is equal to no complete tuple.

use serde::Serialize;
use sqlx::types::Json;

use super::inventory::owners::server_has_index;
use super::live_file::{LiveFile, LiveFileRow};
use super::session::Session;
use crate::rules::expiry::StoredTuple;

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

/// The table's newest live files, at most `most` of them.
pub async fn newest_live(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    most: i64,
) -> sqlx::Result<Vec<LiveFile>> {
    // hog_data_file_live has the table's live files by begin_snapshot: read from its end.
    let rows = sqlx::query_as!(
        LiveFileRow,
        r#"select f.data_file_id, f.spec_id, f.record_count, f.file_size_bytes,
                  f.file_format = 'parquet' as "is_parquet!",
                  t.keys as "keys: Vec<i32>", t."values" as "values: Vec<Option<String>>",
                  false as "has_vector!"
           from (select data_file_id, spec_id, record_count, file_size_bytes, file_format
                 from hog_data_file
                 where catalog_id = $1 and table_id = $2 and end_snapshot is null
                 order by begin_snapshot desc
                 limit $3) as f
           cross join lateral (
             select pg_catalog.array_agg(v.key_index order by v.key_index) as keys,
                    pg_catalog.array_agg(v.value order by v.key_index) as "values"
             from hog_file_partition_value v
             where v.catalog_id = $1 and v.data_file_id = f.data_file_id) as t"#,
        catalog_id,
        table_id,
        most
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(LiveFile::from).collect())
}

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
