//! Commits that end files.

use super::append::{Committed, NewFile};
use super::commit::{Commit, kind};
use super::error::{LakeError, Result};
use super::table::Table;

impl Table {
    /// Replaces files by others in one commit, as a rewrite of rows does, provided that
    /// nothing was written to the table after `read_snapshot`.
    ///
    /// # Errors
    /// A conflict if the table was written to, altered or dropped since; not valid if one of
    /// the files to end is no live file of the table.
    pub async fn overwrite(
        &self,
        read_snapshot: i64,
        ended: &[i64],
        added: Vec<NewFile>,
    ) -> Result<Committed> {
        let added = self.write_objects(added).await?;
        let mut commit = Commit::begin(&self.catalog).await?;
        commit.check_readable(read_snapshot).await?;
        commit.check_no_ddl(self.table_id, read_snapshot).await?;
        commit.check_table_live(self.table_id).await?;
        let writes = [kind::TABLE_CREATED, kind::INSERTED, kind::DELETED];
        if commit.changed_since(self.table_id, &writes, read_snapshot).await? {
            return Err(LakeError::Conflict(format!(
                "the table was written to after the snapshot {read_snapshot}"
            )));
        }
        let snapshot_id = commit.snapshot("overwrite").await?;
        let count = self.end_files(&mut commit, ended, snapshot_id).await?;
        if usize::try_from(count).ok() != Some(ended.len()) {
            return Err(LakeError::Validation(
                "a file to replace is no live file of the table".into(),
            ));
        }
        commit.change(snapshot_id, kind::DELETED, self.table_id).await?;
        let mut file_ids = Vec::new();
        if !added.is_empty() {
            file_ids = self.insert_files(&mut commit, snapshot_id, &added).await?;
            commit.change(snapshot_id, kind::INSERTED, self.table_id).await?;
        }
        commit.finish().await?;
        Ok(Committed { snapshot_id, file_ids })
    }

    /// Ends all live files of the table and their vectors.
    pub(crate) async fn end_all_files(&self, commit: &mut Commit, snapshot_id: i64) -> Result<()> {
        for statement in [
            "UPDATE hog_delete_file SET end_snapshot = $3
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL",
            "UPDATE hog_data_file SET end_snapshot = $3
              WHERE catalog_id = $1 AND table_id = $2 AND end_snapshot IS NULL",
        ] {
            sqlx::query(statement)
                .bind(self.catalog.catalog_id)
                .bind(self.table_id)
                .bind(snapshot_id)
                .execute(&mut *commit.tx)
                .await?;
        }
        Ok(())
    }

    /// Ends the live ones of these files, their vectors first, and says how many it ended.
    pub(crate) async fn end_files(
        &self,
        commit: &mut Commit,
        files: &[i64],
        snapshot_id: i64,
    ) -> Result<u64> {
        sqlx::query(
            "UPDATE hog_delete_file SET end_snapshot = $4
              WHERE catalog_id = $1 AND table_id = $2 AND data_file_id = ANY ($3)
                AND end_snapshot IS NULL",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(files)
        .bind(snapshot_id)
        .execute(&mut *commit.tx)
        .await?;
        let ended = sqlx::query(
            "UPDATE hog_data_file SET end_snapshot = $4
              WHERE catalog_id = $1 AND table_id = $2 AND data_file_id = ANY ($3)
                AND end_snapshot IS NULL",
        )
        .bind(self.catalog.catalog_id)
        .bind(self.table_id)
        .bind(files)
        .bind(snapshot_id)
        .execute(&mut *commit.tx)
        .await?;
        Ok(ended.rows_affected())
    }
}
