//! Columns: a field id is given once and never changes; names and places may change.

use std::collections::BTreeMap;

use sqlx::PgConnection;

use super::commit::{Commit, kind};
use super::error::{LakeError, Result};
use super::shape::Column;
use super::table::Table;

/// A column as a row, with its path.
struct Flat<'a> {
    path: String,
    field_id: i64,
    parent: Option<i64>,
    ordinal: i32,
    column: &'a Column,
}

fn flatten<'a>(
    columns: &'a [Column],
    above: &str,
    parent: Option<i64>,
    first_ordinal: i32,
    next_id: &mut i64,
    flat: &mut Vec<Flat<'a>>,
) {
    for (ordinal, column) in (first_ordinal..).zip(columns) {
        let path =
            if above.is_empty() { column.name.clone() } else { format!("{above}.{}", column.name) };
        let field_id = *next_id;
        *next_id += 1;
        flat.push(Flat { path: path.clone(), field_id, parent, ordinal, column });
        flatten(&column.children, &path, Some(field_id), 0, next_id, flat);
    }
}

/// Where columns are put.
pub(super) struct Place<'a> {
    pub catalog_id: i64,
    pub table_id: i64,
    pub snapshot_id: i64,
    /// The path and the id of the struct around them.
    pub parent: Option<(&'a str, i64)>,
    pub first_ordinal: i32,
}

/// Adds columns, and returns the field ids of all of them by path.
pub(super) async fn insert_columns(
    commit: &mut Commit,
    place: Place<'_>,
    columns: &[Column],
) -> Result<BTreeMap<String, i64>> {
    let first: i64 = sqlx::query_scalar(
        "SELECT next_field_id FROM hog_table WHERE catalog_id = $1 AND table_id = $2",
    )
    .bind(place.catalog_id)
    .bind(place.table_id)
    .fetch_one(&mut *commit.tx)
    .await?;
    let (mut next_id, mut flat) = (first, Vec::new());
    let (above, parent) = place.parent.map_or(("", None), |(path, id)| (path, Some(id)));
    flatten(columns, above, parent, place.first_ordinal, &mut next_id, &mut flat);
    sqlx::query("UPDATE hog_table SET next_field_id = $3 WHERE catalog_id = $1 AND table_id = $2")
        .bind(place.catalog_id)
        .bind(place.table_id)
        .bind(next_id)
        .execute(&mut *commit.tx)
        .await?;
    for row in &flat {
        sqlx::query(
            "INSERT INTO hog_column (catalog_id, table_id, field_id, begin_snapshot, name,
                                     col_type, nullable, ordinal, parent_field_id)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
        )
        .bind(place.catalog_id)
        .bind(place.table_id)
        .bind(row.field_id)
        .bind(place.snapshot_id)
        .bind(&row.column.name)
        .bind(&row.column.col_type)
        .bind(row.column.nullable)
        .bind(row.ordinal)
        .bind(row.parent)
        .execute(&mut *commit.tx)
        .await?;
    }
    Ok(flat.into_iter().map(|row| (row.path, row.field_id)).collect())
}

/// The live columns of a table by path.
pub(super) async fn live_columns(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
) -> Result<BTreeMap<String, i64>> {
    let rows: Vec<(String, i64)> = sqlx::query_as(
        "WITH RECURSIVE tree AS (
           SELECT field_id, name AS path FROM hog_column
            WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL
              AND parent_field_id IS NULL
           UNION ALL
           SELECT c.field_id, tree.path || '.' || c.name
             FROM tree JOIN hog_column c ON c.parent_field_id = tree.field_id
            WHERE c.catalog_id = $1 AND c.table_id = $2 AND c.end_snapshot IS NULL)
         SELECT path, field_id FROM tree",
    )
    .bind(catalog_id)
    .bind(table_id)
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().collect())
}

impl Table {
    /// Adds a column, to the struct at the path `parent` if one is named, and returns the
    /// field ids of it and of the columns in it by path.
    pub async fn add_column(
        &self,
        parent: Option<&str>,
        column: Column,
    ) -> Result<BTreeMap<String, i64>> {
        let (catalog_id, table_id) = (self.catalog.catalog_id, self.table_id);
        let mut commit = self.begin_ddl().await?;
        let parent = match parent {
            Some(path) => Some((path, self.live_field(&mut commit, path).await?)),
            None => None,
        };
        let first_ordinal: i32 = sqlx::query_scalar(
            "SELECT coalesce(max(ordinal) + 1, 0) FROM hog_column
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL
                AND parent_field_id IS NOT DISTINCT FROM $3",
        )
        .bind(catalog_id)
        .bind(table_id)
        .bind(parent.map(|(_, id)| id))
        .fetch_one(&mut *commit.tx)
        .await?;
        let snapshot_id = commit.ddl_snapshot("add column").await?;
        let place = Place { catalog_id, table_id, snapshot_id, parent, first_ordinal };
        let added = insert_columns(&mut commit, place, &[column]).await?;
        commit.change(snapshot_id, kind::TABLE_ALTERED, table_id).await?;
        commit.finish().await?;
        Ok(added)
    }

    /// Gives the column at a path another name; its field id stays. Returns the snapshot.
    pub async fn rename_column(&self, path: &str, name: &str) -> Result<i64> {
        let mut commit = self.begin_ddl().await?;
        let field_id = self.live_field(&mut commit, path).await?;
        let snapshot_id = commit.ddl_snapshot("rename column").await?;
        self.end_columns(&mut commit, &[field_id], snapshot_id).await?;
        sqlx::query(
            "INSERT INTO hog_column
             SELECT (jsonb_populate_record(c, jsonb_build_object(
                       'begin_snapshot', $4::bigint, 'end_snapshot', NULL, 'name', $5::text))).*
               FROM hog_column c
              WHERE catalog_id = $1 AND table_id = $2 AND field_id = $3 AND end_snapshot = $4",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(field_id)
        .bind(snapshot_id)
        .bind(name)
        .execute(&mut *commit.tx)
        .await?;
        commit.change(snapshot_id, kind::TABLE_ALTERED, self.table_id).await?;
        commit.finish().await?;
        Ok(snapshot_id)
    }

    /// Drops the column at a path and those in it, and returns the snapshot. Nothing asks
    /// whether a spec reads the column, so that what follows from it can be tested.
    pub async fn drop_column(&self, path: &str) -> Result<i64> {
        let mut commit = self.begin_ddl().await?;
        self.live_field(&mut commit, path).await?;
        let inside = format!("{path}.");
        let ended: Vec<i64> = live_columns(&mut commit.tx, self.catalog.catalog_id, self.table_id)
            .await?
            .into_iter()
            .filter(|(name, _)| name == path || name.starts_with(&inside))
            .map(|(_, field_id)| field_id)
            .collect();
        let snapshot_id = commit.ddl_snapshot("drop column").await?;
        self.end_columns(&mut commit, &ended, snapshot_id).await?;
        commit.change(snapshot_id, kind::TABLE_ALTERED, self.table_id).await?;
        commit.finish().await?;
        Ok(snapshot_id)
    }

    async fn live_field(&self, commit: &mut Commit, path: &str) -> Result<i64> {
        live_columns(&mut commit.tx, self.catalog.catalog_id, self.table_id)
            .await?
            .remove(path)
            .ok_or_else(|| LakeError::NotFound(format!("the column {path}")))
    }

    async fn end_columns(&self, commit: &mut Commit, fields: &[i64], at: i64) -> Result<()> {
        sqlx::query(
            "UPDATE hog_column SET end_snapshot = $4
              WHERE catalog_id = $1 AND table_id = $2 AND field_id = ANY ($3)
                AND end_snapshot IS NULL",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(fields)
        .bind(at)
        .execute(&mut *commit.tx)
        .await?;
        Ok(())
    }
}
