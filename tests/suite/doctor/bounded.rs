//! What is read to tell the pace of a long queue.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::inventory::upkeep::drained_of_late;

use crate::support::TestDatabase;
use crate::support::wait::until;

/// One entry finds where the queue begins, and 20,000 rows below it are looked at, however many
/// were ever drained.
#[tokio::test]
async fn of_a_long_history_a_bounded_piece_is_read() -> Result<()> {
    let database = TestDatabase::new().await?;
    let lake = database.catalog("lake").await?;
    for (rows, drained) in
        [(25_000, "clock_timestamp() - interval '30 minutes', 'deleted'"), (3_000, "NULL, NULL")]
    {
        database
            .sql(&format!(
                "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, drained_at,
                   drained_outcome)
                 SELECT {}, 'x' || n, 'data', 'snapshot_expiry', {drained}
                   FROM generate_series(1, {rows}) n",
                lake.catalog_id
            ))
            .await?;
    }
    database.sql("VACUUM ANALYZE hog_file_removal").await?;
    let read = async || {
        let entries = "SELECT sum(idx_tup_read) FROM pg_stat_user_indexes
                        WHERE relname = 'hog_file_removal'";
        database.text(entries).await
    };
    assert_eq!(read().await?.as_deref(), Some("0"));
    let mut session = database.tailrace().read_only_session().await?;
    let drained = drained_of_late(&mut session, lake.catalog_id).await?;
    close(session).await;
    assert_eq!(drained.rows, 20_000);
    assert!((1_800.0..1_900.0).contains(&drained.seconds), "{drained:?}");
    // The counters of a session are there a moment after its end.
    until("the statistics are there", async || Ok(read().await?.as_deref() != Some("0"))).await?;
    assert_eq!(read().await?.as_deref(), Some("20001"));
    Ok(())
}
