//! Tests of what tailrace remembers of a catalog that is restored, and of ids that are given out a
//! second time.

mod carried_over;
mod empty_moments;
mod first_thing_after;
mod in_flight;
mod orphans;
mod rights;
mod unnoticed;
mod upgrade;

use anyhow::Result;

use crate::catalog::restore::Scene;

impl Scene {
    /// Has all that passes and people noted so far be of a day earlier. Drops and snapshots keep their
    /// times, by which they are known.
    async fn a_day_passes(&self) -> Result<()> {
        self.database
            .sql(
                "UPDATE tailrace.noted_head SET noted_at = noted_at - interval '1 day';
                 UPDATE tailrace.policy SET updated_at = updated_at - interval '1 day';
                 UPDATE tailrace.spec_copy SET copied_at = copied_at - interval '1 day',
                                               marked_at = marked_at - interval '1 day';
                 UPDATE tailrace.drop_history
                    SET purged_seen_at = purged_seen_at - interval '1 day',
                        gone_seen_at = gone_seen_at - interval '1 day'",
            )
            .await
    }

    /// Commits a file with this value and the next id, as a writer of the server's does that was let
    /// in while somebody waits for the commit lock; its id.
    async fn slip_in(&self, value: &str) -> Result<i64> {
        let id = self.catalog.next_file_id().await?;
        let (catalog, table) = (self.catalog.catalog_id, self.table.table_id);
        self.database
            .sql(&format!(
                "BEGIN;
                 UPDATE hog_catalog SET last_snapshot_id = last_snapshot_id + 1,
                                        next_file_id = next_file_id + 1
                  WHERE catalog_id = {catalog};
                 INSERT INTO hog_snapshot (catalog_id, snapshot_id, snapshot_time, schema_version,
                                           author, commit_message)
                 SELECT catalog_id, last_snapshot_id, clock_timestamp(), schema_version, 'w', 'append'
                   FROM hog_catalog WHERE catalog_id = {catalog};
                 INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
                 SELECT catalog_id, last_snapshot_id, 'table_inserted_into', {table}
                   FROM hog_catalog WHERE catalog_id = {catalog};
                 INSERT INTO hog_data_file (catalog_id, table_id, data_file_id, path, file_format,
                     record_count, file_size_bytes, row_id_start, begin_snapshot, spec_id)
                 SELECT {catalog}, {table}, {id}, 'slipped-in-' || gen_random_uuid(), 'parquet', 10, 100,
                        100000, last_snapshot_id, 1 FROM hog_catalog WHERE catalog_id = {catalog};
                 INSERT INTO hog_file_partition_value (catalog_id, data_file_id, key_index, value)
                 VALUES ({catalog}, {id}, 0, '{value}');
                 COMMIT"
            ))
            .await?;
        Ok(id)
    }
}
