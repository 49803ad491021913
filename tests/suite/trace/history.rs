//! Tests of how long drops are remembered.

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use tailrace_kit::simulated_loops::Cleanup;

use super::Scene;

/// `history.keep` counts from the day on which a drop was gone; before that nothing is forgotten.
#[tokio::test]
async fn a_drop_is_remembered_until_gone_and_then_for_history_keep() -> Result<()> {
    let mut scene = Scene::new().await?;
    let dropped = scene.drop(8, 1).await?;
    let retained = scene.drop(9, 1).await?;
    let remembered = async |database: &crate::support::TestDatabase| {
        let ids = "SELECT string_agg(snapshot_id::text, ' ' ORDER BY snapshot_id) FROM tailrace.drop_history";
        database.text(ids).await
    };
    scene.floor_to(dropped).await?;
    scene.expiry.purge().await?;
    let year_ago = Utc::now() - TimeDelta::days(365);
    scene.catalog.backdate_through(scene.catalog.head().await?, year_ago).await?;
    let both = Some(format!("{dropped} {retained}"));
    // Retained, and queued.
    scene.database.sweep().await?;
    scene.database.sweep().await?;
    assert_eq!(remembered(&scene.database).await?, both);
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.database.sweep().await?;
    for (age, left) in [("89 days", both), ("90 days 1 s", Some(retained.to_string()))] {
        scene
            .database
            .sql(&format!(
                "UPDATE tailrace.drop_history SET gone_seen_at = clock_timestamp() - interval '{age}'
                  WHERE snapshot_id = {dropped}"
            ))
            .await?;
        scene.database.sweep().await?;
        assert_eq!(remembered(&scene.database).await?, left, "{age}");
    }
    Ok(())
}
