//! The lake of an older server: the newest one without what the older versions lack.

use std::env;

use sqlx::PgConnection;

use super::Lake;
use super::error::{LakeError, Result};

/// The newest server that the kit knows: that of `hoglake-v27.sql`.
pub const NEWEST: u32 = 27;

/// The environment variable that says at which migration the server of every lake is that does not ask
/// for one of its own.
pub const ENV_VERSION: &str = "TAILRACE_LAKE_VERSION";

/// The version that [`ENV_VERSION`] names, else the newest.
pub(super) fn version() -> Result<u32> {
    let Some(named) = env::var_os(ENV_VERSION).filter(|named| !named.is_empty()) else {
        return Ok(NEWEST);
    };
    let version = named.to_str().and_then(|text| text.parse().ok());
    version.filter(|version| (9..=NEWEST).contains(version)).ok_or_else(|| {
        LakeError::Validation(format!(
            "{ENV_VERSION} is {named:?}, and not a number from 9 to {NEWEST}"
        ))
    })
}

/// What each migration brought, undone; the newest first, so that what is undone never
/// needs something that is gone. What is gone already is passed over.
const UNDO: [(u32, &str); 19] = [
    (
        27,
        "ALTER TABLE hog_maintenance_summary DROP COLUMN IF EXISTS live_files,
           DROP COLUMN IF EXISTS live_bytes, DROP COLUMN IF EXISTS live_rows,
           DROP COLUMN IF EXISTS published_snapshot, DROP COLUMN IF EXISTS live_generation,
           DROP COLUMN IF EXISTS live_as_of",
    ),
    (
        26,
        "DROP INDEX IF EXISTS hog_data_file_failed, hog_data_file_missing_field_ids,
           hog_data_file_pending;
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
        "ALTER TABLE IF EXISTS hog_commit_receipt DROP COLUMN IF EXISTS fingerprint,
           DROP COLUMN IF EXISTS created_at, ALTER COLUMN request SET NOT NULL",
    ),
    (23, "DROP INDEX IF EXISTS hog_file_partition_value_lookup"),
    (
        22,
        "ALTER TABLE hog_maintenance_summary_tier DROP COLUMN IF EXISTS record_count,
           DROP COLUMN IF EXISTS newest_begin_snapshot;
         ALTER TABLE hog_maintenance_summary DROP COLUMN IF EXISTS measures_generation;
         DROP INDEX IF EXISTS hog_maintenance_summary_tier_table",
    ),
    (
        21,
        "ALTER TABLE hog_file_removal DROP COLUMN IF EXISTS claimed_at,
           DROP COLUMN IF EXISTS claimed_by",
    ),
    // Before it, dropping a table ended its files too: `drop_table` goes by this column.
    (20, "ALTER TABLE hog_table DROP COLUMN IF EXISTS retirement_eligible_at"),
    (19, "DROP INDEX IF EXISTS hog_data_file_ended"),
    (18, "ALTER TABLE hog_data_file DROP COLUMN IF EXISTS split_offsets"),
    (17, "DROP INDEX IF EXISTS hog_data_file_path, hog_delete_file_path"),
    (16, "DROP INDEX IF EXISTS hog_file_removal_undrained_path"),
    (15, "DROP TABLE IF EXISTS hog_compaction_claim"),
    // Its index and its CHECK go with it.
    (14, "ALTER TABLE hog_table DROP COLUMN IF EXISTS replaced_table_id"),
    // `hog_upload`, which it brought too, is not among the tables here.
    (
        12,
        "ALTER TABLE hog_file_removal DROP CONSTRAINT hog_file_removal_reason_check;
         ALTER TABLE hog_file_removal ADD CONSTRAINT hog_file_removal_reason_check CHECK
           (reason IN ('snapshot_expiry', 'table_drop_gc', 'compaction_staging'))",
    ),
    (
        11,
        "ALTER TABLE hog_table_version DROP COLUMN IF EXISTS comment,
           DROP COLUMN IF EXISTS properties",
    ),
    (
        10,
        "ALTER TABLE hog_maintenance_summary_tier DROP COLUMN IF EXISTS pending_max_bytes;
         DROP INDEX IF EXISTS hog_data_file_maintenance_size_scan",
    ),
    // The index over it and the CHECK go with the column; columns of a table have an order all the same.
    (
        9,
        "ALTER TABLE hog_column DROP COLUMN IF EXISTS parent_field_id;
         CREATE UNIQUE INDEX IF NOT EXISTS hog_column_live_ordinal
           ON hog_column (catalog_id, table_id, ordinal) WHERE end_snapshot IS NULL;
         ALTER TABLE hog_column DROP CONSTRAINT hog_column_col_type_check;
         ALTER TABLE hog_column ADD CONSTRAINT hog_column_col_type_check CHECK
           (col_type IN ('boolean', 'int8', 'int16', 'int', 'long', 'uint8', 'uint16', 'uint32',
             'uint64', 'float', 'double', 'decimal', 'date', 'time', 'timestamp_s', 'timestamp_ms',
             'timestamp', 'timestamp_ns', 'timestamptz', 'string', 'json', 'uuid', 'binary',
             'variant'))",
    ),
    (7, "DROP TABLE IF EXISTS hog_commit_receipt"),
];

impl Lake {
    /// Takes away from a lake what a server at migration `version` does not have.
    ///
    /// Down to V9 tables can still be made, altered and written to; below it they have to be there
    /// already, without a struct. Properties need V11, claims V15 and `replace_table` V14.
    ///
    /// # Errors
    /// If the lake is older already: [`ENV_VERSION`] says so.
    pub async fn downgrade(&self, version: u32) -> Result<()> {
        let newest = self::version()?;
        if version > newest {
            return Err(LakeError::Validation(format!(
                "{ENV_VERSION} has made this a lake of V{newest}, and V{version} was asked for"
            )));
        }
        let mut tx = self.pool.begin().await?;
        take_away(&mut tx, version).await?;
        tx.commit().await?;
        Ok(())
    }
}

/// What a server at this migration does not have goes.
pub(super) async fn take_away(connection: &mut PgConnection, version: u32) -> Result<()> {
    for (brought_by, undo) in UNDO {
        if version < brought_by {
            sqlx::raw_sql(undo).execute(&mut *connection).await?;
        }
    }
    Ok(())
}
