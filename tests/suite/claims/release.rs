//! Tests that a change of a policy releases at once what the policy no longer drops.

use anyhow::Result;
use serde_json::json;

use super::Scene;
use crate::http::{Scene as Served, TABLE};

const SET: [&str; 6] = ["policy", "set", "lake", "events.raw", "--field", "at"];

#[tokio::test]
async fn each_change_of_a_policy_and_what_stays_claimed() -> Result<()> {
    for (arguments, staying, released) in [
        (vec!["--keep", "7d"], 4, 0),
        (vec!["--keep", "1d"], 4, 0),
        (vec!["--keep", "9d"], 2, 2),
        (vec!["--keep", "300d"], 0, 4),
        (vec!["--keep", "7d", "--mode", "observe"], 0, 4),
        (vec!["--keep", "7d", "--mode", "paused"], 0, 4),
    ] {
        let scene = Scene::new().await?;
        let ids = scene.files(&[10, 9, 8, 7, 5]).await?;
        scene.renew().await?;
        let ran = scene.database.ran(&[&SET[..], &arguments].concat()).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(scene.claimed().await?, ids[..staying], "{arguments:?}");
        let told: Vec<_> =
            ran.events("shield_released").iter().map(|told| told["files"].clone()).collect();
        let expected = if released == 0 { vec![] } else { vec![json!(released)] };
        assert_eq!(told, expected, "{arguments:?}");
    }
    Ok(())
}

#[tokio::test]
async fn unset_releases_all_or_what_the_property_does_not_drop() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[10, 7]).await?;
    scene.renew().await?;
    let property = r#"{"field": "at", "keep": "9d"}"#;
    scene.table.set_property("partition_retention", Some(property)).await?;
    let unset = ["policy", "unset", "lake", "events.raw", "--yes"];
    assert_eq!(scene.database.ran(&unset).await?.code, 0);
    assert_eq!(scene.claimed().await?, ids[..1]);

    scene.table.set_property("partition_retention", None).await?;
    scene.database.govern(&scene.table, "at", "7d").await?;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids);
    assert_eq!(scene.database.ran(&unset).await?.code, 0);
    assert_eq!(scene.all_rows().await?, Vec::<String>::new());
    Ok(())
}

/// A table that was dropped, and one whose property is gone, at the next renewal.
#[tokio::test]
async fn what_no_policy_governs_any_more_goes_with_the_next_renewal() -> Result<()> {
    let scene = Scene::new().await?;
    scene.files(&[8]).await?;
    scene.renew().await?;
    scene.table.drop_table().await?;
    scene.renew().await?;
    assert_eq!(scene.all_rows().await?, Vec::<String>::new());
    // Then the server drops the catalog, and we forget it.
    scene.database.sql("DELETE FROM hog_catalog").await?;
    scene.renew().await?;
    for ours in ["claimant", "window_rule"] {
        let rows = scene.database.text(&format!("SELECT count(*) FROM tailrace.{ours}")).await?;
        assert_eq!(rows.as_deref(), Some("0"), "{ours}");
    }
    Ok(())
}

#[tokio::test]
async fn over_http_too() -> Result<()> {
    let scene = Served::with(&[("TAILRACE__COMPACTION__RENEW_EVERY", "10m")]).await?;
    let path = format!("{TABLE}/partition-retention");
    let renewed = || async {
        tailrace::claims::renew(&scene.database.tailrace(), &super::settings(), None).await?;
        super::rows_of(&scene.database, &scene.table).await
    };
    let policy = |mode: &str| format!(r#"{{"field": "at", "keep": "7d", "mode": "{mode}"}}"#);
    assert_eq!(scene.client.json("PUT", &path, &policy("enforce")).await?.status, 200);
    assert_eq!(renewed().await?.len(), 1);
    assert_eq!(scene.client.json("PUT", &path, &policy("paused")).await?.status, 200);
    assert_eq!(super::rows_of(&scene.database, &scene.table).await?, []);
    assert_eq!(scene.client.json("PUT", &path, &policy("enforce")).await?.status, 200);
    assert_eq!(renewed().await?.len(), 1);
    assert_eq!(scene.client.send("DELETE", &path, b"").await?.status, 204);
    assert_eq!(super::rows_of(&scene.database, &scene.table).await?, []);
    Ok(())
}

#[tokio::test]
async fn a_release_that_fails_is_told_and_fails_no_change() -> Result<()> {
    let scene = Scene::new().await?;
    scene.files(&[8]).await?;
    scene.renew().await?;
    scene.database.sql("DROP TABLE tailrace.claimant").await?;
    let ran = scene.database.ran(&[&SET[..], &["--keep", "8d"]].concat()).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.events("shield_not_released").len(), 1, "{ran:?}");
    let keep = scene.database.text("SELECT keep FROM tailrace.policy").await?;
    assert_eq!(keep.as_deref(), Some("8d"));
    Ok(())
}
