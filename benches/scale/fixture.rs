//! Builds a fixture by bulk statements, in the shape that years of commits leave.
//!
//! The files of all tables get their ids from one counter, in the order in which they arrived: a
//! day's files on that day, except some that are up to three days late. A snapshot has 270 files.
//! Paths are random, so the index entries of a day's paths are spread over all pages of the index
//! of paths. One file in a hundred has a deletion vector. Each file has statistics of the column of
//! time, and no row that is newer than its partition values.

use anyhow::Result;
use sqlx::AssertSqlSafe;
use tailrace::installation::migrate;
use tailrace_kit::lake::{CatalogOptions, Column, Field, Lake};

use super::bench::Db;
pub use super::filling::DAY_COLUMN;
use super::filling::{Files, fill, more_catalogs, more_tables};

/// The name of the one catalog.
pub const CATALOG: &str = "lake";
/// The name of the one namespace.
pub const NAMESPACE: &str = "events";

/// The tables and catalogs of a lake.
pub struct Layout {
    /// The tables of a catalog.
    pub tables: Vec<TableOf>,
    /// How many such catalogs there are.
    pub catalogs: i64,
}

/// A table to make and fill.
pub struct TableOf {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// How it is partitioned.
    pub spec: Vec<Field>,
    /// A query for its tuples: when their files arrive (in days), their values, and the number
    /// of their files.
    pub tuples: String,
    /// How many such tables there are. The others have a number behind the name.
    pub times: i64,
}

/// Makes the tables and fills them, in a lake that is made first where `is_new`.
pub async fn build(db: &Db, layout: &Layout, is_new: bool) -> Result<()> {
    let lake = if is_new { Lake::install(&db.pool, "public").await? } else { db.lake() };
    let catalog = if is_new {
        migrate(&db.database()).await?;
        lake.catalog(CATALOG, CatalogOptions::default()).await?
    } else {
        lake.open_catalog(CATALOG).await?
    };
    let catalog_id = catalog.catalog_id;
    let namespace = catalog.namespace(NAMESPACE).await?;
    let mut tuples = Vec::new();
    for table in &layout.tables {
        let made =
            catalog.create_table(&namespace, table.name, &table.columns, &table.spec).await?;
        let (first, times) = (made.table_id, table.times);
        if times > 1 {
            more_tables(&db.pool, catalog_id, first, times).await?;
        }
        tuples.push(format!(
            "select m, t.* from generate_series({first}::bigint, {}) m, ({}) t",
            first + times - 1,
            table.tuples
        ));
    }
    let files =
        Files { tuples: tuples.join(" union all "), of_a_snapshot: 270, days: 400, disorder: 1 };
    fill(&db.pool, catalog_id, &files).await?;
    if layout.catalogs > 1 {
        more_catalogs(&db.pool, catalog_id, layout.catalogs).await?;
    }
    // One statement at a time: several at once are a transaction, in which VACUUM is not possible.
    for table in VACUUMED {
        sqlx::raw_sql(AssertSqlSafe(format!("vacuum (analyze) {table}"))).execute(&db.pool).await?;
    }
    lake.pool().close().await;
    db.pool.close().await;
    Ok(())
}

const VACUUMED: [&str; 15] = [
    "hog_data_file",
    "hog_file_partition_value",
    "hog_delete_file",
    "hog_file_column_stats",
    "hog_snapshot",
    "hog_snapshot_change",
    "hog_table_stats",
    "hog_catalog",
    "hog_namespace",
    "hog_table",
    "hog_table_version",
    "hog_column",
    "hog_partition_spec",
    "hog_partition_field",
    "tailrace.policy",
];
