//! Tests that the fixtures are lakes as a server leaves them.

use anyhow::Result;
use tailrace_kit::lake::Field;

use super::parts::filling::{Files, fill, more_catalogs, more_tables};
use crate::support::TestDatabase;

/// Numbers that must be the same in each catalog.
type Numbers = (i64, i64, i64, i64, i64, i64);

#[tokio::test]
async fn tables_and_catalogs_alike_have_files_of_their_own() -> Result<()> {
    let database = TestDatabase::new().await?;
    let pool = &database.pool;
    let lake = database.catalog("lake").await?;
    let table = database.table(&lake, "events_raw", &[Field::day("at")]).await?;
    more_tables(pool, lake.catalog_id, table.table_id, 3).await?;
    let files = Files {
        tuples: format!(
            "select m, d, array[d::text], 2
             from generate_series({0}::bigint, {0} + 2) m, generate_series(20000, 20009) d",
            table.table_id
        ),
        of_a_snapshot: 25,
        days: 10,
        disorder: 1,
    };
    fill(pool, lake.catalog_id, &files).await?;
    more_catalogs(pool, lake.catalog_id, 4).await?;
    let names: Vec<String> = sqlx::query_scalar("select name from hog_catalog order by catalog_id")
        .fetch_all(pool)
        .await?;
    assert_eq!(names, ["lake", "lake-2", "lake-3", "lake-4"]);
    let numbers: Vec<Numbers> = sqlx::query_as(
        "select count(distinct f.table_id), count(*), count(distinct f.begin_snapshot),
                count(distinct v.value), max(f.data_file_id) + 1 - min(c.next_file_id)
                  + (select count(*) from hog_delete_file d where d.catalog_id = c.catalog_id),
                (select max(snapshot_id) from hog_snapshot s where s.catalog_id = c.catalog_id)
                  - min(c.last_snapshot_id)
         from hog_catalog c
         join hog_data_file f using (catalog_id)
         join hog_file_partition_value v using (catalog_id, data_file_id)
         join hog_file_column_stats b using (catalog_id, data_file_id)
         group by c.catalog_id",
    )
    .fetch_all(pool)
    .await?;
    // 60 files, 25 a snapshot; the counters are behind the last ones.
    assert_eq!(numbers, [(3, 60, 3, 10, 0, 0); 4]);
    let (uuids, tables): (i64, i64) = sqlx::query_as(
        "select count(distinct table_uuid), count(*) from hog_table
         join hog_table_version using (catalog_id, table_id)
         join hog_partition_field using (catalog_id, table_id)
         where name in ('events_raw', 'events_raw_2', 'events_raw_3')",
    )
    .fetch_one(pool)
    .await?;
    assert_eq!((uuids, tables), (12, 12));
    // No row is newer than the first hour of its day.
    let bounds: Vec<Vec<u8>> = sqlx::query_scalar(
        "select upper_bound from hog_file_column_stats b
         join hog_file_partition_value v using (catalog_id, data_file_id)
         where v.value = '20007' and catalog_id = $1",
    )
    .bind(lake.catalog_id)
    .fetch_all(pool)
    .await?;
    let bound = 20_007 * 86_400_000_000_i64 + 3_599_999_999;
    assert_eq!(bounds, vec![bound.to_le_bytes().to_vec(); 6]);
    Ok(())
}

#[tokio::test]
async fn further_files_continue_where_those_before_ended() -> Result<()> {
    let database = TestDatabase::new().await?;
    let pool = &database.pool;
    let lake = database.catalog("lake").await?;
    let table = database.table(&lake, "events_raw", &[Field::day("at")]).await?;
    let files = |of_a_snapshot| Files {
        tuples: format!(
            "select {}::bigint, d, array[d::text], 3 from generate_series(20000, 20009) d",
            table.table_id
        ),
        of_a_snapshot,
        days: 0,
        disorder: 10,
    };
    fill(pool, lake.catalog_id, &files(10)).await?;
    fill(pool, lake.catalog_id, &files(30)).await?;
    let snapshots: Vec<(i64, i64)> = sqlx::query_as(
        "select count(*), max(s.snapshot_id) from hog_data_file f
         join hog_snapshot s on s.catalog_id = f.catalog_id and s.snapshot_id = f.begin_snapshot
         group by f.begin_snapshot order by f.begin_snapshot",
    )
    .fetch_all(pool)
    .await?;
    let sizes: Vec<i64> = snapshots.iter().map(|(files, _)| *files).collect();
    assert_eq!(sizes, [10, 10, 10, 30]);
    // Rows are numbered on, without a gap.
    let (gaps, rows_left): (i64, i64) = sqlx::query_as(
        "select count(*) filter (where row_id_start <> expected),
                (select next_row_id from hog_table_stats) - max(row_id_start + record_count)
         from (select row_id_start, record_count,
                      coalesce(sum(record_count) over (order by data_file_id
                        rows between unbounded preceding and 1 preceding), 0) as expected
               from hog_data_file) f",
    )
    .fetch_one(pool)
    .await?;
    assert_eq!((gaps, rows_left), (0, 0));
    Ok(())
}
