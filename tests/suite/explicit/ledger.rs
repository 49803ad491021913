//! Checks that the catalog, the history and the receipts agree.

use anyhow::Result;
use tailrace_kit::lake::Catalog;

/// What is nowhere allowed, as sentences. For a catalog whose floor has not moved, in which every
/// drop had a key.
const DISCORD: &str = "
    SELECT concat('vector ', delete_file_id, ' lives on an ended file')
      FROM hog_delete_file d JOIN hog_data_file f USING (catalog_id, data_file_id)
     WHERE catalog_id = $1 AND d.end_snapshot IS NULL AND f.end_snapshot IS NOT NULL
     UNION ALL
    SELECT concat('the snapshots are ', count(*), ', from ', min(snapshot_id), ' to ',
                  max(snapshot_id))
      FROM hog_snapshot WHERE catalog_id = $1
    HAVING (min(snapshot_id), max(snapshot_id), count(*))
           <> (1, (SELECT last_snapshot_id FROM hog_catalog WHERE catalog_id = $1),
               (SELECT last_snapshot_id FROM hog_catalog WHERE catalog_id = $1))
     UNION ALL
    SELECT concat('snapshot ', snapshot_id, ' did other than its history says')
      FROM tailrace.drop_history h
     WHERE catalog_id = $1
       AND (files_ended, delete_files_ended, records, bytes) IS DISTINCT FROM (
             SELECT (count(*), (SELECT count(*) FROM hog_delete_file d
                                 WHERE d.catalog_id = $1 AND d.end_snapshot = h.snapshot_id),
                     coalesce(sum(record_count), 0)::bigint,
                     coalesce(sum(file_size_bytes), 0)::bigint)
               FROM hog_data_file f WHERE f.catalog_id = $1 AND f.end_snapshot = h.snapshot_id)
     UNION ALL
    SELECT concat('receipt ', idempotency_key, ' tells other than the history of ', r.snapshot_id)
      FROM tailrace.drop_receipt r
     WHERE catalog_id = $1 AND committed
       AND NOT EXISTS (
             SELECT FROM tailrace.drop_history h
              WHERE h.catalog_id = $1 AND h.snapshot_id = r.snapshot_id
                AND (h.files_ended, h.delete_files_ended, h.records, h.bytes, h.partitions)
                  = (r.files_ended, r.delete_files_ended, r.records, r.bytes, r.ended))
     UNION ALL
    SELECT concat('empty receipt ', idempotency_key, ' lists files')
      FROM tailrace.drop_receipt
     WHERE catalog_id = $1 AND NOT committed
       AND (files_ended, delete_files_ended, records, bytes, ended) <> (0, 0, 0, 0, '[]'::jsonb)
     UNION ALL
    SELECT concat(count(*), ' drops and ',
                  (SELECT count(*) FROM tailrace.drop_receipt WHERE catalog_id = $1 AND committed),
                  ' receipts of them')
      FROM tailrace.drop_history WHERE catalog_id = $1
    HAVING count(*) <> (SELECT count(*) FROM tailrace.drop_receipt
                         WHERE catalog_id = $1 AND committed)
     UNION ALL
    SELECT concat('the change of ', h.snapshot_id, ' is missing')
      FROM tailrace.drop_history h
     WHERE catalog_id = $1
       AND NOT EXISTS (SELECT FROM hog_snapshot_change c
                        WHERE c.catalog_id = $1 AND c.snapshot_id = h.snapshot_id
                          AND c.object_id = h.table_id AND c.kind = 'table_deleted_from')";

/// Asserts that all of it agrees.
pub async fn agrees(catalog: &Catalog) -> Result<()> {
    let discord: Vec<String> =
        sqlx::query_scalar(DISCORD).bind(catalog.catalog_id).fetch_all(catalog.pool()).await?;
    assert_eq!(discord, Vec::<String>::new());
    Ok(())
}
