//! Tests that `tailrace run` renews claims independently of its passes.

use anyhow::Result;
use serde_json::json;

use super::Scene;

#[tokio::test]
async fn the_daemon_claims_at_its_start_and_again_and_again() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[0, 7]).await?;
    let folder = tempfile::tempdir()?;
    let health = folder.path().join("health.json").to_string_lossy().into_owned();
    let mut daemon = scene.database.start(
        &["run"],
        &[
            ("TAILRACE__SCHEDULE__EVERY", "1d"),
            ("TAILRACE__COMPACTION__RENEW_EVERY", "1s"),
            ("TAILRACE__COMPACTION__LEAD", "36h"),
            ("TAILRACE__HEALTH__FILE", &health),
        ],
    )?;
    let told = daemon.told("shield_renewed").await?;
    assert_eq!((&told["files"], &told["rows"], &told["failed"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(scene.claimed().await?, ids[1..]);
    let lead = scene.database.text("SELECT lead_ms FROM tailrace.window_setting").await?;
    assert_eq!(lead.as_deref(), Some("129600000"));
    scene.database.sql("DELETE FROM hog_compaction_claim").await?;
    let so_far = daemon.so_far("shield_renewed").len();
    daemon.event("shield_renewed", so_far + 2).await?;
    assert_eq!(scene.claimed().await?, ids[1..]);
    daemon.signal("TERM").await?;
    let ended = daemon.end().await?;
    assert_eq!((ended.code, ended.count("shield_failed")), (Some(0), 0));
    // The lease outlives the daemon.
    assert_eq!(scene.claimed().await?, ids[1..]);
    Ok(())
}
