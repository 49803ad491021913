//! Reads a table as a reader sees it, at the head or at an older snapshot, and the changes as a
//! consumer receives them.

use sqlx::FromRow;

use super::commit::kind;
use super::error::{LakeError, Result};
use super::table::Table;

/// A data file, with the vector that applies to it.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct FileRow {
    /// Its number in the catalog.
    pub data_file_id: i64,
    /// The first snapshot that it is visible at.
    pub begin_snapshot: i64,
    /// The first snapshot that it is not visible at any more.
    pub end_snapshot: Option<i64>,
    /// Where its object is.
    pub path: String,
    /// How many rows it has, deleted ones included.
    pub record_count: i64,
    /// Its size.
    pub file_size_bytes: i64,
    /// The id of its first row.
    pub row_id_start: i64,
    /// Whether its rows carry their ids themselves.
    pub explicit_row_ids: bool,
    /// The spec that it was written under.
    pub spec_id: Option<i64>,
    /// `provided`, `pending` or `failed`.
    pub stats_state: String,
    /// Its partition values in the order of their key indexes; a missing row is left out.
    pub values: Vec<Option<String>>,
    /// The vector that applies to it.
    #[sqlx(skip)]
    pub vector: Option<VectorRow>,
}

/// A deletion vector.
#[derive(Clone, Debug, PartialEq, Eq, FromRow)]
pub struct VectorRow {
    /// Its number in the catalog; data files and vectors share the counter.
    pub delete_file_id: i64,
    /// The file whose rows it deletes.
    pub data_file_id: i64,
    /// The first snapshot that it is visible at.
    pub begin_snapshot: i64,
    /// The first snapshot that it is not visible at any more.
    pub end_snapshot: Option<i64>,
    /// Where its object is.
    pub path: String,
    /// How many rows of the file it deletes.
    pub delete_count: i64,
}

/// What the server's changefeed says of a window of snapshots, its first excluded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changes {
    /// The snapshot that the window begins after.
    pub from_snapshot: i64,
    /// The last snapshot of the window.
    pub to_snapshot: i64,
    /// Files appended in it, those that ended since included, compaction's outputs not.
    pub files: Vec<FileRow>,
    /// Vectors registered in it.
    pub delete_files: Vec<VectorRow>,
}

const FILES: &str = "
    SELECT f.data_file_id, f.begin_snapshot, f.end_snapshot, f.path, f.record_count,
           f.file_size_bytes, f.row_id_start, f.explicit_row_ids, f.spec_id, f.stats_state,
           ARRAY (SELECT v.value FROM hog_file_partition_value v
                   WHERE v.catalog_id = f.catalog_id AND v.data_file_id = f.data_file_id
                   ORDER BY v.key_index) AS values
      FROM hog_data_file f
     WHERE f.catalog_id = $1 AND f.table_id = $2 AND ";

const VECTORS: &str = "
    SELECT d.delete_file_id, d.data_file_id, d.begin_snapshot, d.end_snapshot, d.path,
           d.delete_count
      FROM hog_delete_file d
     WHERE d.catalog_id = $1 AND d.table_id = $2 AND ";

const VISIBLE: &str =
    "begin_snapshot <= $3 AND (end_snapshot IS NULL OR $3 < end_snapshot) AND $3 = $4";

impl Table {
    /// The files that a reader of this snapshot sees, by id, each with its vector.
    ///
    /// # Errors
    /// If the snapshot is below the floor or ahead of the head.
    pub async fn files_at(&self, snapshot_id: i64) -> Result<Vec<FileRow>> {
        self.check_window(snapshot_id, snapshot_id).await?;
        let mut files = self.files(VISIBLE, snapshot_id, snapshot_id).await?;
        for vector in self.vectors(VISIBLE, snapshot_id, snapshot_id).await? {
            if let Ok(at) = files.binary_search_by_key(&vector.data_file_id, |f| f.data_file_id) {
                files[at].vector = Some(vector);
            }
        }
        Ok(files)
    }

    /// The files that are visible at the head.
    pub async fn live_files(&self) -> Result<Vec<FileRow>> {
        self.files_at(self.catalog.head().await?).await
    }

    /// How many rows a reader of this snapshot sees.
    pub async fn rows_at(&self, snapshot_id: i64) -> Result<i64> {
        let rows = |file: &FileRow| {
            let deleted = file.vector.as_ref().map_or(0, |vector| vector.delete_count);
            file.record_count - deleted
        };
        Ok(self.files_at(snapshot_id).await?.iter().map(rows).sum())
    }

    /// Every file of the table that has a row, ended or not. Without vectors.
    pub async fn all_files(&self) -> Result<Vec<FileRow>> {
        self.files("begin_snapshot BETWEEN $3 AND $4", i64::MIN, i64::MAX).await
    }

    /// Every vector of the table that has a row, ended or not.
    pub async fn all_vectors(&self) -> Result<Vec<VectorRow>> {
        self.vectors("begin_snapshot BETWEEN $3 AND $4", i64::MIN, i64::MAX).await
    }

    /// What the server's changefeed answers for the snapshots after `from` up to `to`. Files
    /// that were ended are not in it.
    ///
    /// # Errors
    /// If the window begins below the floor, ends ahead of the head, or holds a snapshot that
    /// only a new reading of the table can follow.
    pub async fn changes(&self, from: i64, to: i64) -> Result<Changes> {
        self.check_window(from, to).await?;
        let odd: Option<i64> = sqlx::query_scalar(
            "SELECT min(d.snapshot_id)
               FROM hog_snapshot_change d
               JOIN hog_snapshot_change a USING (catalog_id, snapshot_id, object_id)
              WHERE catalog_id = $1 AND object_id = $2 AND d.kind = $3 AND a.kind = $4
                AND snapshot_id > $5 AND snapshot_id <= $6",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(kind::DELETED)
        .bind(kind::TABLE_ALTERED)
        .bind(from)
        .bind(to)
        .fetch_one(self.catalog.pool())
        .await?;
        if let Some(snapshot_id) = odd {
            return Err(LakeError::ReconciliationRequired { snapshot_id });
        }
        let appended = "f.begin_snapshot > $3 AND f.begin_snapshot <= $4
            AND NOT EXISTS (SELECT FROM hog_snapshot_change c
                             WHERE c.catalog_id = f.catalog_id AND c.object_id = f.table_id
                               AND c.kind = 'table_compacted' AND c.snapshot_id = f.begin_snapshot)";
        Ok(Changes {
            from_snapshot: from,
            to_snapshot: to,
            files: self.files(appended, from, to).await?,
            delete_files: self
                .vectors("begin_snapshot > $3 AND begin_snapshot <= $4", from, to)
                .await?,
        })
    }

    async fn check_window(&self, from: i64, to: i64) -> Result<()> {
        let (head, floor) = (self.catalog.head().await?, self.catalog.floor().await?);
        if from < floor {
            return Err(LakeError::Expired { snapshot_id: from, floor });
        }
        if to > head || from > to {
            return Err(LakeError::Validation(format!(
                "no window: ({from}, {to}] with the head at {head}"
            )));
        }
        Ok(())
    }

    async fn files(&self, which: &str, from: i64, to: i64) -> Result<Vec<FileRow>> {
        self.rows(format!("{FILES}{which} ORDER BY f.data_file_id"), from, to).await
    }

    async fn vectors(&self, which: &str, from: i64, to: i64) -> Result<Vec<VectorRow>> {
        self.rows(format!("{VECTORS}{which} ORDER BY d.delete_file_id"), from, to).await
    }

    async fn rows<T>(&self, statement: String, from: i64, to: i64) -> Result<Vec<T>>
    where
        T: for<'r> FromRow<'r, sqlx::postgres::PgRow> + Send + Unpin,
    {
        Ok(sqlx::query_as(sqlx::AssertSqlSafe(statement))
            .bind(self.catalog.catalog_id)
            .bind(self.table_id)
            .bind(from)
            .bind(to)
            .fetch_all(self.catalog.pool())
            .await?)
    }
}
