//! Deletion vectors: each marks rows of a file as deleted. A file has at most one live vector.

use std::path::PathBuf;

use super::append::write_all;
use super::commit::{Commit, kind};
use super::error::{LakeError, Result};
use super::table::Table;

/// The size that every vector is given.
const VECTOR_BYTES: i64 = 256;

impl Table {
    /// Registers a vector that deletes `delete_count` rows of a file in all, in the place of
    /// the one that it has. Returns its id. `None` for `read_snapshot` is the head.
    ///
    /// # Errors
    /// A conflict if the file ended, or got another vector, after `read_snapshot`, or if the
    /// table was altered or dropped since; not valid if the file was no file of the table by
    /// then, or if the vector would bring rows back.
    pub async fn register_vector(
        &self,
        data_file_id: i64,
        delete_count: i64,
        read_snapshot: Option<i64>,
    ) -> Result<i64> {
        let catalog_id = self.catalog.catalog_id;
        let path = self.new_path("puffin");
        if self.catalog.objects().is_some() {
            write_all(vec![(PathBuf::from(&path), VECTOR_BYTES)]).await?;
        }
        let mut commit = Commit::begin(&self.catalog).await?;
        let (head, _) = commit.head_and_floor().await?;
        let read_snapshot = read_snapshot.unwrap_or(head);
        commit.check_readable(read_snapshot).await?;
        commit.check_no_ddl(self.table_id, read_snapshot).await?;
        commit.check_table_live(self.table_id).await?;
        self.check_target(&mut commit, data_file_id, delete_count, read_snapshot).await?;

        let delete_file_id = commit.take_file_ids(1).await?;
        let snapshot_id = commit.snapshot("delete rows").await?;
        sqlx::query(
            "UPDATE hog_delete_file SET end_snapshot = $3
              WHERE catalog_id = $1 AND data_file_id = $2 AND end_snapshot IS NULL",
        )
        .bind(catalog_id)
        .bind(data_file_id)
        .bind(snapshot_id)
        .execute(&mut *commit.tx)
        .await?;
        sqlx::query(
            "INSERT INTO hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id,
                                          begin_snapshot, path, delete_count, file_size_bytes)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(catalog_id)
        .bind(delete_file_id)
        .bind(self.table_id)
        .bind(data_file_id)
        .bind(snapshot_id)
        .bind(path)
        .bind(delete_count)
        .bind(VECTOR_BYTES)
        .execute(&mut *commit.tx)
        .await?;
        commit.change(snapshot_id, kind::DELETED, self.table_id).await?;
        commit.finish().await?;
        Ok(delete_file_id)
    }

    async fn check_target(
        &self,
        commit: &mut Commit,
        data_file_id: i64,
        delete_count: i64,
        read_snapshot: i64,
    ) -> Result<()> {
        type Target = (i64, Option<i64>, i64, Option<i64>, Option<i64>);
        let target: Option<Target> = sqlx::query_as(
            "SELECT f.begin_snapshot, f.end_snapshot, f.record_count, d.begin_snapshot, d.delete_count
               FROM hog_data_file f
               LEFT JOIN hog_delete_file d ON d.catalog_id = f.catalog_id
                    AND d.data_file_id = f.data_file_id AND d.end_snapshot IS NULL
              WHERE f.catalog_id = $1 AND f.data_file_id = $2 AND f.table_id = $3",
        )
        .bind(self.catalog.catalog_id)
        .bind(data_file_id)
        .bind(self.table_id)
        .fetch_optional(&mut *commit.tx)
        .await?;
        let Some((begin, end, records, vector_begin, deleted)) = target else {
            return Err(LakeError::Validation(format!(
                "the file {data_file_id} is none of the table"
            )));
        };
        match end {
            Some(end) if end > read_snapshot => {
                return Err(LakeError::Conflict(format!(
                    "the file {data_file_id} ended in the snapshot {end}"
                )));
            }
            Some(end) => {
                return Err(LakeError::Validation(format!(
                    "the file {data_file_id} had ended in the snapshot {end} already"
                )));
            }
            None => {}
        }
        if begin > read_snapshot {
            return Err(LakeError::Validation(format!(
                "the file {data_file_id} begins after what was read"
            )));
        }
        if vector_begin.is_some_and(|begin| begin > read_snapshot) {
            return Err(LakeError::Conflict(format!(
                "rows of the file {data_file_id} were deleted since"
            )));
        }
        if delete_count > records || delete_count < deleted.unwrap_or(1) {
            return Err(LakeError::Validation(format!(
                "{delete_count} deleted rows of {records}, {} before",
                deleted.unwrap_or_default()
            )));
        }
        Ok(())
    }
}
