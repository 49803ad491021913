//! The same lake on an older server.

use super::Lake;
use super::error::Result;

/// What each migration brought, undone; the newest first, so that what is undone never
/// needs something that is gone.
const UNDO: [(u32, &str); 17] = [
    (
        27,
        "ALTER TABLE hog_maintenance_summary DROP COLUMN live_files, DROP COLUMN live_bytes,
           DROP COLUMN live_rows, DROP COLUMN published_snapshot, DROP COLUMN live_generation,
           DROP COLUMN live_as_of",
    ),
    (
        26,
        "DROP INDEX hog_data_file_failed, hog_data_file_missing_field_ids, hog_data_file_pending;
         CREATE INDEX hog_data_file_pending ON hog_data_file (catalog_id, data_file_id)
           INCLUDE (table_id) WHERE stats_state = 'pending'",
    ),
    (
        25,
        "ALTER TABLE hog_maintenance_run DROP CONSTRAINT hog_maintenance_run_task_check;
         ALTER TABLE hog_maintenance_run ADD CONSTRAINT hog_maintenance_run_task_check CHECK
           (task IN ('hydrator', 'expiry', 'cleanup', 'compaction', 'verify', 'retirement'))",
    ),
    (
        24,
        "ALTER TABLE hog_commit_receipt DROP COLUMN fingerprint, DROP COLUMN created_at;
         ALTER TABLE hog_commit_receipt ALTER COLUMN request SET NOT NULL",
    ),
    (23, "DROP INDEX hog_file_partition_value_lookup"),
    (
        22,
        "ALTER TABLE hog_maintenance_summary_tier DROP COLUMN record_count,
           DROP COLUMN newest_begin_snapshot;
         ALTER TABLE hog_maintenance_summary DROP COLUMN measures_generation",
    ),
    (21, "ALTER TABLE hog_file_removal DROP COLUMN claimed_at, DROP COLUMN claimed_by"),
    (20, "ALTER TABLE hog_table DROP COLUMN retirement_eligible_at"),
    (19, "DROP INDEX hog_data_file_ended"),
    (18, "ALTER TABLE hog_data_file DROP COLUMN split_offsets"),
    (17, "DROP INDEX hog_data_file_path, hog_delete_file_path"),
    (16, "DROP INDEX hog_file_removal_undrained_path"),
    (15, "DROP TABLE hog_compaction_claim"),
    (14, "ALTER TABLE hog_table DROP COLUMN replaced_table_id"),
    (11, "ALTER TABLE hog_table_version DROP COLUMN comment, DROP COLUMN properties"),
    (
        10,
        "ALTER TABLE hog_maintenance_summary_tier DROP COLUMN pending_max_bytes;
         DROP INDEX hog_data_file_maintenance_size_scan",
    ),
    (7, "DROP TABLE hog_commit_receipt"),
];

/// V12 stands apart: `hog_upload`, which it brought, is not among the tables here.
const UNDO_UPLOADS: &str = "
    ALTER TABLE hog_file_removal DROP CONSTRAINT hog_file_removal_reason_check;
    ALTER TABLE hog_file_removal ADD CONSTRAINT hog_file_removal_reason_check CHECK
      (reason IN ('snapshot_expiry', 'table_drop_gc', 'compaction_staging'))";

impl Lake {
    /// Takes away from a fresh lake what a server at migration `version` does not have.
    ///
    /// Tables can still be made, altered and written to. Not for every version: properties
    /// need V11 and `replace_table` V14. The stand-ins of the loops need V27.
    pub async fn downgrade(&self, version: u32) -> Result<()> {
        let mut tx = self.pool.begin().await?;
        for (brought_by, undo) in UNDO {
            if version < brought_by {
                sqlx::raw_sql(undo).execute(&mut *tx).await?;
            }
        }
        if version < 12 {
            sqlx::raw_sql(UNDO_UPLOADS).execute(&mut *tx).await?;
        }
        tx.commit().await?;
        Ok(())
    }
}
