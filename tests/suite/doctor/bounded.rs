//! Tests that a bounded number of rows of a long queue is read to determine its depth and its pace.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::inventory::maintenance_state::drained_of_late;
use tailrace::catalog::removal_queue::undrained;

use crate::support::TestDatabase;
use crate::support::wait::until;

/// One entry finds where the queue begins, and 20,000 rows below it are looked at, however many
/// were ever drained.
#[tokio::test]
async fn of_a_long_history_a_bounded_piece_is_read() -> Result<()> {
    let database = TestDatabase::new().await?;
    let lake = database.catalog("lake").await?;
    let other = database.catalog("other").await?;
    // Two catalogs in turn, and statistics: the primary key looks cheap to the planner, for it
    // thinks that rows which are not drained lie everywhere.
    database
        .sql(&format!(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, drained_at,
               drained_outcome)
             SELECT CASE n % 2 WHEN 0 THEN {} ELSE {} END, 'x' || n, 'data', 'snapshot_expiry',
                    CASE WHEN n <= 50000 THEN clock_timestamp() - interval '30 minutes' END,
                    CASE WHEN n <= 50000 THEN 'deleted' END
               FROM generate_series(1, 60000) n;
             ANALYZE hog_file_removal",
            lake.catalog_id, other.catalog_id
        ))
        .await?;
    let read = async || {
        let entries = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes
                        WHERE relname = 'hog_file_removal'";
        database.text(entries).await
    };
    assert_eq!(read().await?.as_deref(), Some("0"));
    let mut session = database.tailrace().read_only_session().await?;
    let drained = drained_of_late(&mut session, lake.catalog_id).await?;
    // What passes ask with a ceiling.
    assert_eq!(undrained(&mut session, lake.catalog_id, 1_001).await?, 1_001);
    close(session).await;
    assert_eq!(drained.rows, 10_000);
    assert!((1_800.0..1_900.0).contains(&drained.seconds), "{drained:?}");
    // The counters of a session are there a moment after its end.
    until("the statistics are there", async || Ok(read().await?.as_deref() != Some("0"))).await?;
    assert_eq!(read().await?.as_deref(), Some("21002"));
    Ok(())
}
