//! A handle on a table.

use std::collections::BTreeMap;

use uuid::Uuid;

use super::catalog::Catalog;
use super::columns::live_columns;
use super::commit::Commit;
use super::error::{LakeError, Result};

/// A table of a catalog. The handle stays good through renames and moves, and after the
/// table is dropped, when its writers are refused.
#[derive(Clone, Debug)]
pub struct Table {
    /// The catalog that it is in.
    pub catalog: Catalog,
    /// Its number in the catalog.
    pub table_id: i64,
    /// Its UUID.
    pub table_uuid: Uuid,
    /// The columns that it had when this handle was made, by path: `event.at`.
    pub fields: BTreeMap<String, i64>,
}

impl Catalog {
    /// A live table that is there already, by the names of its namespace and itself.
    pub async fn open_table(&self, namespace: &str, name: &str) -> Result<Table> {
        let mut tx =
            self.pool().begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let found: Option<(i64, Uuid)> = sqlx::query_as(
            "SELECT t.table_id, t.table_uuid
               FROM hog_table_version v
               JOIN hog_namespace n USING (catalog_id, namespace_id)
               JOIN hog_table t USING (catalog_id, table_id)
              WHERE v.catalog_id = $1 AND n.name = $2 AND NOT n.dropped AND v.name = $3
                AND v.end_snapshot IS NULL AND t.dropped_snapshot IS NULL",
        )
        .bind(self.catalog_id)
        .bind(namespace)
        .bind(name)
        .fetch_optional(&mut *tx)
        .await?;
        let (table_id, table_uuid) =
            found.ok_or_else(|| LakeError::NotFound(format!("the table {namespace}.{name}")))?;
        let fields = live_columns(&mut tx, self.catalog_id, table_id).await?;
        tx.commit().await?;
        Ok(Table { catalog: self.clone(), table_id, table_uuid, fields })
    }
}

impl Table {
    /// The id of a column that the table had when this handle was made.
    pub fn field_id(&self, path: &str) -> Result<i64> {
        self.fields
            .get(path)
            .copied()
            .ok_or_else(|| LakeError::NotFound(format!("the column {path}")))
    }

    /// The live spec, none if the table is not partitioned now.
    pub async fn live_spec(&self) -> Result<Option<i64>> {
        Ok(sqlx::query_scalar(LIVE_SPEC)
            .bind(self.catalog.catalog_id)
            .bind(self.table_id)
            .fetch_optional(self.catalog.pool())
            .await?)
    }

    /// As [`live_spec`](Self::live_spec), under the commit lock, with its number of fields.
    pub(super) async fn live_spec_and_arity(
        &self,
        commit: &mut Commit,
    ) -> Result<(Option<i64>, usize)> {
        let spec: Option<i64> = sqlx::query_scalar(LIVE_SPEC)
            .bind(self.catalog.catalog_id)
            .bind(self.table_id)
            .fetch_optional(&mut *commit.tx)
            .await?;
        let arity: i64 = sqlx::query_scalar(
            "SELECT count(*) FROM hog_partition_field
              WHERE catalog_id = $1 AND table_id = $2 AND spec_id = $3",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(spec)
        .fetch_one(&mut *commit.tx)
        .await?;
        Ok((spec, usize::try_from(arity).unwrap_or_default()))
    }
}

const LIVE_SPEC: &str = "SELECT spec_id FROM hog_partition_spec
     WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL";
