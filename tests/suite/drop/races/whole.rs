//! Checks that every drop is whole: its snapshot, its change, its files, its vectors and its row of
//! the history agree, or none of them exists.

use anyhow::Result;
use sqlx::FromRow;
use tailrace_kit::lake::Catalog;

/// Files, vectors, records, bytes.
type Sums = (i64, i64, i64, i64);

/// What the catalog and the drop history say of one of our snapshots.
#[derive(Debug, FromRow)]
struct Drop {
    snapshot_id: i64,
    changes: Vec<String>,
    written: Option<Sums>,
    told: Option<Sums>,
    told_by_partition: Option<Sums>,
}

/// The tests' reading of all of it is one statement, so a pass may go on meanwhile. Good for a
/// catalog whose floor has not moved.
const DROPS: &str = "
    SELECT snapshot_id,
           ARRAY (SELECT concat(kind, ' ', object_id) FROM hog_snapshot_change c
                   WHERE c.catalog_id = $1 AND c.snapshot_id = s.snapshot_id) AS changes,
           (SELECT (count(*), (SELECT count(*) FROM hog_delete_file d
                                WHERE d.catalog_id = $1 AND d.end_snapshot = s.snapshot_id),
                    coalesce(sum(record_count), 0)::bigint,
                    coalesce(sum(file_size_bytes), 0)::bigint)
              FROM hog_data_file f
             WHERE f.catalog_id = $1 AND f.end_snapshot = s.snapshot_id) AS written,
           (SELECT (h.files_ended, h.delete_files_ended, h.records, h.bytes)
              FROM tailrace.drop_history h
             WHERE h.catalog_id = $1 AND h.snapshot_id = s.snapshot_id) AS told,
           (SELECT (sum(p.files)::bigint, sum(p.delete_files)::bigint, sum(p.records)::bigint,
                    sum(p.bytes)::bigint)
              FROM tailrace.drop_history h
             CROSS JOIN jsonb_to_recordset(h.partitions)
                     AS p (files bigint, delete_files bigint, records bigint, bytes bigint)
             WHERE h.catalog_id = $1 AND h.snapshot_id = s.snapshot_id) AS told_by_partition
      FROM (SELECT snapshot_id FROM hog_snapshot WHERE catalog_id = $1 AND author = 'tailrace'
            UNION SELECT snapshot_id FROM tailrace.drop_history WHERE catalog_id = $1) s
     ORDER BY snapshot_id";

/// What is nowhere allowed, as sentences.
const DAMAGE: &str = "
    SELECT concat('vector ', delete_file_id, ' lives on an ended file')
      FROM hog_delete_file d JOIN hog_data_file f USING (catalog_id, data_file_id)
     WHERE catalog_id = $1 AND d.end_snapshot IS NULL AND f.end_snapshot IS NOT NULL
     UNION ALL
    SELECT concat('file ', data_file_id, ' has two live vectors')
      FROM hog_delete_file WHERE catalog_id = $1 AND end_snapshot IS NULL
     GROUP BY data_file_id HAVING count(*) > 1
     UNION ALL
    SELECT concat('snapshots ', min(snapshot_id), ' to ', max(snapshot_id), ' are ', count(*),
                  ', the head is ', (SELECT last_snapshot_id FROM hog_catalog WHERE catalog_id = $1))
      FROM hog_snapshot WHERE catalog_id = $1
    HAVING (min(snapshot_id), max(snapshot_id), count(*))
           <> (1, (SELECT last_snapshot_id FROM hog_catalog WHERE catalog_id = $1),
               (SELECT last_snapshot_id FROM hog_catalog WHERE catalog_id = $1))";

/// Asserts that all drops are whole and all else is in order, and returns the drops as (snapshot,
/// files).
pub async fn drops(catalog: &Catalog, table_id: i64) -> Result<Vec<(i64, i64)>> {
    let drops: Vec<Drop> =
        sqlx::query_as(DROPS).bind(catalog.catalog_id).fetch_all(catalog.pool()).await?;
    for drop in &drops {
        assert_eq!(drop.changes, [format!("table_deleted_from {table_id}")], "{drop:?}");
        assert_eq!(drop.written, drop.told, "{drop:?}");
        assert_eq!(drop.told_by_partition, drop.told, "{drop:?}");
        assert!(drop.told.is_some_and(|told| told.0 > 0), "{drop:?}");
    }
    let damage: Vec<String> =
        sqlx::query_scalar(DAMAGE).bind(catalog.catalog_id).fetch_all(catalog.pool()).await?;
    assert_eq!(damage, Vec::<String>::new());
    let files = |drop: &Drop| drop.told.map_or(0, |told| told.0);
    Ok(drops.iter().map(|drop| (drop.snapshot_id, files(drop))).collect())
}
