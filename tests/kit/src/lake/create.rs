//! Creates tables, alone or in the place of another.

use super::catalog::{Catalog, Namespace};
use super::columns::{Place, insert_columns, live_columns};
use super::commit::{Commit, kind};
use super::error::{LakeError, Result};
use super::shape::{Column, Field};
use super::table::Table;

impl Catalog {
    /// Makes a table in a commit of its own, partitioned if `spec` has fields.
    pub async fn create_table(
        &self,
        namespace: &Namespace,
        name: &str,
        columns: &[Column],
        spec: &[Field],
    ) -> Result<Table> {
        let mut commit = Commit::begin(self).await?;
        let snapshot_id = commit.ddl_snapshot("create table").await?;
        let home = (namespace.namespace_id, name);
        let table = self.make_table(&mut commit, snapshot_id, home, columns, spec).await?;
        commit.finish().await?;
        Ok(table)
    }

    async fn make_table(
        &self,
        commit: &mut Commit,
        snapshot_id: i64,
        (namespace_id, name): (i64, &str),
        columns: &[Column],
        spec: &[Field],
    ) -> Result<Table> {
        let catalog_id = self.catalog_id;
        let table_id: i64 = sqlx::query_scalar(
            "UPDATE hog_catalog SET next_table_id = next_table_id + 1
              WHERE catalog_id = $1 RETURNING next_table_id - 1",
        )
        .bind(catalog_id)
        .fetch_one(&mut *commit.tx)
        .await?;
        let table_uuid = sqlx::query_scalar(
            "INSERT INTO hog_table (catalog_id, table_id, created_snapshot)
             VALUES ($1, $2, $3) RETURNING table_uuid",
        )
        .bind(catalog_id)
        .bind(table_id)
        .bind(snapshot_id)
        .fetch_one(&mut *commit.tx)
        .await?;
        sqlx::query(
            "INSERT INTO hog_table_version (catalog_id, table_id, begin_snapshot, namespace_id, name)
             VALUES ($1, $2, $3, $4, $5)",
        )
        .bind(catalog_id)
        .bind(table_id)
        .bind(snapshot_id)
        .bind(namespace_id)
        .bind(name)
        .execute(&mut *commit.tx)
        .await?;
        sqlx::query("INSERT INTO hog_table_stats (catalog_id, table_id) VALUES ($1, $2)")
            .bind(catalog_id)
            .bind(table_id)
            .execute(&mut *commit.tx)
            .await?;
        let place = Place { catalog_id, table_id, snapshot_id, parent: None, first_ordinal: 0 };
        let fields = insert_columns(commit, place, columns).await?;
        let table = Table { catalog: self.clone(), table_id, table_uuid, fields };
        if !spec.is_empty() {
            table.begin_spec(commit, snapshot_id, 1, spec).await?;
        }
        commit.change(snapshot_id, kind::TABLE_CREATED, table_id).await?;
        Ok(table)
    }
}

impl Table {
    /// Drops the table and makes another of its name in the same commit, which remembers
    /// whose place it took.
    pub async fn replace_table(&self, columns: &[Column], spec: &[Field]) -> Result<Table> {
        let mut commit = self.begin_ddl().await?;
        let (namespace_id, name): (i64, String) = sqlx::query_as(
            "SELECT namespace_id, name FROM hog_table_version
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .fetch_one(&mut *commit.tx)
        .await?;
        let snapshot_id = commit.ddl_snapshot("replace table").await?;
        self.end_table(&mut commit, snapshot_id).await?;
        let home = (namespace_id, name.as_str());
        let table = self.catalog.make_table(&mut commit, snapshot_id, home, columns, spec).await?;
        sqlx::query(
            "UPDATE hog_table SET replaced_table_id = $3 WHERE catalog_id = $1 AND table_id = $2",
        )
        .bind(self.catalog.catalog_id)
        .bind(table.table_id)
        .bind(self.table_id)
        .execute(&mut *commit.tx)
        .await?;
        commit.finish().await?;
        Ok(table)
    }

    /// Writes a spec and its fields; the sources must be live columns.
    pub(super) async fn begin_spec(
        &self,
        commit: &mut Commit,
        snapshot_id: i64,
        spec_id: i64,
        fields: &[Field],
    ) -> Result<()> {
        let (catalog_id, table_id) = (self.catalog.catalog_id, self.table_id);
        sqlx::query(
            "INSERT INTO hog_partition_spec (catalog_id, table_id, spec_id, begin_snapshot)
             VALUES ($1, $2, $3, $4)",
        )
        .bind(catalog_id)
        .bind(table_id)
        .bind(spec_id)
        .bind(snapshot_id)
        .execute(&mut *commit.tx)
        .await?;
        let columns = live_columns(&mut commit.tx, catalog_id, table_id).await?;
        for (key_index, field) in (0_i32..).zip(fields) {
            let source = columns
                .get(&field.column)
                .ok_or_else(|| LakeError::NotFound(format!("the column {}", field.column)))?;
            sqlx::query(
                "INSERT INTO hog_partition_field (catalog_id, table_id, spec_id, key_index,
                                                  source_field_id, transform, transform_param)
                 VALUES ($1, $2, $3, $4, $5, $6, $7)",
            )
            .bind(catalog_id)
            .bind(table_id)
            .bind(spec_id)
            .bind(key_index)
            .bind(source)
            .bind(&field.transform)
            .bind(field.param)
            .execute(&mut *commit.tx)
            .await?;
        }
        Ok(())
    }
}
