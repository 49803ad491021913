//! DDL on a table. Each change raises the schema version and is recorded as `table_altered` or
//! `table_dropped`.

use serde_json::{Map, Value, json};

use super::catalog::Namespace;
use super::commit::{Commit, kind};
use super::error::{LakeError, Result};
use super::shape::Field;
use super::table::Table;

impl Table {
    /// Partitions the table by other fields from now on, and returns the new spec's id. Files
    /// that are there keep the spec that they were written under.
    ///
    /// The id is one above any that a spec or a file of the table carries.
    pub async fn evolve_spec(&self, fields: &[Field]) -> Result<i64> {
        let mut commit = self.begin_ddl().await?;
        let highest: i64 = sqlx::query_scalar(
            "SELECT greatest(
               (SELECT max(spec_id) FROM hog_partition_spec WHERE catalog_id = $1 AND table_id = $2),
               (SELECT max(spec_id) FROM hog_data_file WHERE catalog_id = $1 AND table_id = $2),
               0)",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .fetch_one(&mut *commit.tx)
        .await?;
        self.change_spec(commit, Some(highest + 1), fields).await?;
        Ok(highest + 1)
    }

    /// As [`evolve_spec`](Self::evolve_spec), with a chosen id, for a server that numbers its
    /// specs in another way: after all specs of a table have vanished, one may come again.
    /// Returns the snapshot.
    pub async fn evolve_spec_as(&self, spec_id: i64, fields: &[Field]) -> Result<i64> {
        let commit = self.begin_ddl().await?;
        self.change_spec(commit, Some(spec_id), fields).await
    }

    /// Ends the partitioning of the table, and returns the snapshot.
    pub async fn drop_spec(&self) -> Result<i64> {
        let commit = self.begin_ddl().await?;
        self.change_spec(commit, None, &[]).await
    }

    async fn change_spec(
        &self,
        mut commit: Commit,
        spec_id: Option<i64>,
        fields: &[Field],
    ) -> Result<i64> {
        if spec_id.is_some() && fields.is_empty() {
            return Err(LakeError::Validation("a spec has at least one field".into()));
        }
        let snapshot_id = commit.ddl_snapshot("change partition spec").await?;
        sqlx::query(
            "UPDATE hog_partition_spec SET end_snapshot = $3
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(snapshot_id)
        .execute(&mut *commit.tx)
        .await?;
        if let Some(spec_id) = spec_id {
            self.begin_spec(&mut commit, snapshot_id, spec_id, fields).await?;
        }
        commit.change(snapshot_id, kind::TABLE_ALTERED, self.table_id).await?;
        commit.finish().await?;
        Ok(snapshot_id)
    }

    /// Sets a property, or removes it, and returns the snapshot.
    pub async fn set_property(&self, key: &str, value: Option<&str>) -> Result<i64> {
        let mut commit = self.begin_ddl().await?;
        let mut properties: sqlx::types::Json<Map<String, Value>> = sqlx::query_scalar(
            "SELECT properties FROM hog_table_version
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .fetch_one(&mut *commit.tx)
        .await?;
        match value {
            Some(value) => properties.insert(key.to_owned(), json!(value)),
            None => properties.remove(key),
        };
        let changed = json!({ "properties": properties.0 });
        self.next_version(commit, "set property", changed).await
    }

    /// Gives the table another name, and returns the snapshot.
    pub async fn rename(&self, name: &str) -> Result<i64> {
        let commit = self.begin_ddl().await?;
        self.next_version(commit, "rename table", json!({ "name": name })).await
    }

    /// Moves the table into another namespace of its catalog, and returns the snapshot.
    pub async fn move_to(&self, namespace: &Namespace) -> Result<i64> {
        let commit = self.begin_ddl().await?;
        let changed = json!({ "namespace_id": namespace.namespace_id });
        self.next_version(commit, "move table", changed).await
    }

    /// Drops the table, and returns the snapshot. Its files keep looking live, but on a server before
    /// V20, which ends them.
    pub async fn drop_table(&self) -> Result<i64> {
        let mut commit = self.begin_ddl().await?;
        let snapshot_id = commit.ddl_snapshot("drop table").await?;
        self.end_table(&mut commit, snapshot_id).await?;
        commit.finish().await?;
        Ok(snapshot_id)
    }

    /// A commit on a table that is live.
    pub(super) async fn begin_ddl(&self) -> Result<Commit> {
        let mut commit = Commit::begin(&self.catalog).await?;
        commit.check_table_live(self.table_id).await?;
        Ok(commit)
    }

    pub(super) async fn end_table(&self, commit: &mut Commit, snapshot_id: i64) -> Result<()> {
        let files_retire_later: bool = sqlx::query_scalar(
            "UPDATE hog_table SET dropped_snapshot = $3 WHERE catalog_id = $1 AND table_id = $2
             RETURNING to_jsonb(hog_table) ? 'retirement_eligible_at'",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(snapshot_id)
        .fetch_one(&mut *commit.tx)
        .await?;
        if !files_retire_later {
            self.end_all_files(commit, snapshot_id).await?;
        }
        self.end_version(commit, snapshot_id).await?;
        commit.change(snapshot_id, kind::TABLE_DROPPED, self.table_id).await
    }

    async fn end_version(&self, commit: &mut Commit, snapshot_id: i64) -> Result<()> {
        sqlx::query(
            "UPDATE hog_table_version SET end_snapshot = $3
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(snapshot_id)
        .execute(&mut *commit.tx)
        .await?;
        Ok(())
    }

    /// Ends the table's version and begins one that differs in `changed`, whatever further
    /// columns the version rows of this server have.
    async fn next_version(&self, mut commit: Commit, what: &str, changed: Value) -> Result<i64> {
        let snapshot_id = commit.ddl_snapshot(what).await?;
        self.end_version(&mut commit, snapshot_id).await?;
        sqlx::query(
            "INSERT INTO hog_table_version
             SELECT (jsonb_populate_record(v,
                       jsonb_build_object('begin_snapshot', $3::bigint, 'end_snapshot', NULL) || $4)).*
               FROM hog_table_version v
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot = $3",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(snapshot_id)
        .bind(changed)
        .execute(&mut *commit.tx)
        .await?;
        commit.change(snapshot_id, kind::TABLE_ALTERED, self.table_id).await?;
        commit.finish().await?;
        Ok(snapshot_id)
    }
}
