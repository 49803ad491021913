//! Reading the pages that ending rows will write to.
//!
//! An update of `end_snapshot` is never HOT, for hog_data_file_ended holds that column: each row
//! gets a new entry in every index whose predicate the ended row satisfies. These entries go next to
//! those that the live row has, so whoever looks those up has the pages at hand: the row's own, and
//! a leaf of each index. (hog_data_file_ended takes all entries of a commit at its end.)

use std::fmt::Write;

use serde_json::Value;
use sqlx::AssertSqlSafe;
use sqlx::types::Json;

use super::session::Session;

/// An index that the update writes to, and how its leaf for a row is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// Its name, the same on every server that has it.
    pub index: &'static str,
    /// Its columns behind `catalog_id`.
    columns: &'static str,
    /// The same columns of the rows, as they were read first.
    of_row: &'static str,
    /// Rows that share all of these columns have entries side by side by their places in the table,
    /// and an ended row gets a new place: the first and the last leaf are looked up, once for all
    /// rows that share them.
    is_shared: bool,
}

const fn leaf(
    index: &'static str,
    columns: &'static str,
    of_row: &'static str,
    is_shared: bool,
) -> Leaf {
    Leaf { index, columns, of_row, is_shared }
}

/// A table of rows that end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows {
    table: &'static str,
    id: &'static str,
    read: &'static str,
    leaves: &'static [Leaf],
}

/// Data files.
pub const FILES: Rows = Rows {
    table: "hog_data_file",
    id: "data_file_id",
    read: "table_id, data_file_id, begin_snapshot, row_id_start, file_size_bytes, path",
    leaves: &[
        leaf("hog_data_file_path", "path", "r.path", false),
        leaf(
            "hog_data_file_maintenance_size_scan",
            "table_id, file_size_bytes, data_file_id",
            "r.table_id, r.file_size_bytes, r.data_file_id",
            false,
        ),
        leaf(
            "hog_data_file_maintenance_scan",
            "table_id, row_id_start, data_file_id",
            "r.table_id, r.row_id_start, r.data_file_id",
            false,
        ),
        leaf(
            "hog_data_file_changefeed",
            "table_id, begin_snapshot",
            "r.table_id, r.begin_snapshot",
            true,
        ),
    ],
};

/// Deletion vectors.
pub const VECTORS: Rows = Rows {
    table: "hog_delete_file",
    id: "delete_file_id",
    read: "table_id, delete_file_id, data_file_id, begin_snapshot, path",
    leaves: &[
        leaf("hog_delete_file_path", "path", "r.path", false),
        leaf("hog_delete_file_data_lookup", "data_file_id", "r.data_file_id", false),
        leaf(
            "hog_delete_file_changefeed",
            "table_id, begin_snapshot",
            "r.table_id, r.begin_snapshot",
            true,
        ),
    ],
};

impl Rows {
    /// The statement that reads the pages of rows `$2` of catalog `$1`, through these of its
    /// indexes; it answers one row. Ids that are no rows cost nothing.
    ///
    /// Which index a look-up goes through is decided by its order: a row comparison that starts behind
    /// the catalog, ordered by the same columns and limited to one row, is one descent of the index
    /// with these columns, and a scan and sort of the whole table by any other way. Equality would read
    /// as many entries as rows share the value.
    fn statement(&self, indexes: &[String]) -> String {
        let Rows { table, id, read, leaves } = self;
        let mut looks = "select pg_catalog.count(*) from rows_read".to_owned();
        for leaf in leaves.iter().filter(|leaf| indexes.iter().any(|name| name == leaf.index)) {
            let Leaf { columns, of_row, is_shared, .. } = leaf;
            let ways: &[_] =
                if *is_shared { &[(">=", ""), ("<=", " desc")] } else { &[(">=", "")] };
            let rows = match is_shared {
                true => format!("(select distinct {columns} from rows_read)"),
                false => "rows_read".to_owned(),
            };
            for (compared, order) in ways {
                let ordered = columns.replace(',', &format!("{order},"));
                // Writing to a String does not fail.
                let _ = write!(
                    looks,
                    " union all select pg_catalog.count(*) from {rows} as r cross join lateral (\
                       select from {table} where catalog_id = $1 \
                       and ({columns}) {compared} ({of_row}) \
                       order by {ordered}{order} limit 1) as leaf"
                );
            }
        }
        format!(
            "with rows_read as materialized (\
               select f.* from pg_catalog.unnest($2::bigint[]) as w (id) cross join lateral (\
                 select {read} from {table} where catalog_id = $1 and {id} = w.id offset 0) as f) \
             select pg_catalog.sum(count)::bigint from ({looks}) as all_looks"
        )
    }
}

/// The indexes of [`FILES`] and [`VECTORS`] that this server has, and that can be read.
///
/// Older servers lack some, and a server builds them anew from time to time; without its index a
/// look-up would read the whole table for each row.
pub async fn leaf_indexes(connection: &mut Session) -> sqlx::Result<Vec<String>> {
    let names: Vec<String> = [FILES, VECTORS]
        .iter()
        .flat_map(|rows| rows.leaves)
        .map(|leaf| leaf.index.to_owned())
        .collect();
    sqlx::query_scalar!(
        r#"select n.name as "name!" from pg_catalog.unnest($1::text[]) as n (name)
           join pg_catalog.pg_index i on i.indexrelid = pg_catalog.to_regclass(n.name)::oid
                                     and i.indisvalid
           where i.indrelid in (pg_catalog.to_regclass('hog_data_file')::oid,
                                pg_catalog.to_regclass('hog_delete_file')::oid)"#,
        &names
    )
    .fetch_all(connection)
    .await
}

/// Reads the pages of these rows.
pub async fn read_pages(
    connection: &mut Session,
    catalog_id: i64,
    rows: &Rows,
    indexes: &[String],
    ids: &[i64],
) -> sqlx::Result<()> {
    // Only names of our own are put in.
    sqlx::query(AssertSqlSafe(rows.statement(indexes)))
        .bind(catalog_id)
        .bind(ids)
        .execute(connection)
        .await?;
    Ok(())
}

/// As [`read_pages`], and tells how it was carried out: what `EXPLAIN (ANALYZE, BUFFERS)` answers.
pub async fn explain_pages(
    connection: &mut Session,
    catalog_id: i64,
    rows: &Rows,
    indexes: &[String],
    ids: &[i64],
) -> sqlx::Result<Value> {
    let explained = format!(
        "explain (analyze, buffers, costs off, timing off, format json) {}",
        rows.statement(indexes)
    );
    // Only names of our own are put in.
    let Json(plan) = sqlx::query_scalar(AssertSqlSafe(explained))
        .bind(catalog_id)
        .bind(ids)
        .fetch_one(connection)
        .await?;
    Ok(plan)
}

/// How many blocks were not in the server's memory, of an explained statement.
pub fn blocks_read(plan: &Value) -> i64 {
    plan.pointer("/0/Plan/Shared Read Blocks").and_then(Value::as_i64).unwrap_or_default()
}
