//! Tests that a fence is noticed by the server's own consumers and by every append that was
//! prepared before.

use anyhow::Result;
use tailrace::explicit::call::DropBody;
use tailrace_kit::lake::LakeError;

use super::{Scene, days, file, ledger};

async fn kinds(scene: &Scene, snapshot_id: i64) -> Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "SELECT kind, object_id FROM hog_snapshot_change
          WHERE catalog_id = $1 AND snapshot_id = $2 ORDER BY kind",
    )
    .bind(scene.catalog.catalog_id)
    .bind(snapshot_id)
    .fetch_all(scene.catalog.pool())
    .await?)
}

#[tokio::test]
async fn a_fenced_drop_is_told_as_the_servers_truncate_is() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let (read, version) = (scene.catalog.head().await?, scene.catalog.schema_version().await?);
    let fenced = |days| DropBody { fence: true, ..days };

    let dry = scene.done(&DropBody { dry_run: true, ..fenced(days(["1"])) }).await?;
    assert_eq!((dry.schema_version, scene.catalog.schema_version().await?), (version, version));
    let answer = scene.done(&fenced(days(["1"]))).await?;
    assert_eq!((answer.snapshot_id, answer.schema_version), (read + 1, version + 1));
    assert_eq!(scene.catalog.schema_version().await?, version + 1);
    let of_snapshot: i64 =
        sqlx::query_scalar("SELECT schema_version FROM hog_snapshot WHERE snapshot_id = $1")
            .bind(answer.snapshot_id)
            .fetch_one(scene.catalog.pool())
            .await?;
    assert_eq!(of_snapshot, version + 1);
    let id = scene.table.table_id;
    let pair = [("table_altered".to_owned(), id), ("table_deleted_from".to_owned(), id)];
    assert_eq!(kinds(&scene, answer.snapshot_id).await?, pair);

    // An append that was prepared before conflicts, once: prepared anew, it lands.
    let prepared = scene.table.append_at(read, vec![file("1")]).await;
    assert!(
        matches!(prepared, Err(LakeError::DdlSinceReadSnapshot { read_snapshot }) if read_snapshot == read)
    );
    scene.table.append_at(answer.snapshot_id, vec![file("1")]).await?;
    // Consumers who have not passed it are told to reconcile, those who have are not.
    let head = scene.catalog.head().await?;
    let told = scene.table.changes(read, head).await.expect_err("not as changes");
    let LakeError::ReconciliationRequired { snapshot_id } = told else { panic!("{told}") };
    assert_eq!(snapshot_id, answer.snapshot_id);
    assert_eq!(scene.table.changes(answer.snapshot_id, head).await?.files.len(), 1);
    ledger::agrees(&scene.catalog).await
}

#[tokio::test]
async fn without_a_fence_nobody_is_disturbed() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let (read, version) = (scene.catalog.head().await?, scene.catalog.schema_version().await?);
    let answer = scene.done(&days(["1"])).await?;
    assert_eq!(answer.schema_version, version);
    let change = [("table_deleted_from".to_owned(), scene.table.table_id)];
    assert_eq!(kinds(&scene, answer.snapshot_id).await?, change);
    scene.table.append_at(read, vec![file("1")]).await?;
    let changes = scene.table.changes(read, read + 2).await?;
    assert_eq!(changes.files.len(), 1, "the server's feed has no word for what ended");
    Ok(())
}

/// A fence around nothing is none.
#[tokio::test]
async fn a_fenced_drop_of_nothing_writes_nothing() -> Result<()> {
    let scene = Scene::new().await?;
    let before = scene.database.lake.dump().await?;
    let answer = scene.done(&DropBody { fence: true, ..days(["1"]) }).await?;
    assert_eq!((answer.committed, answer.snapshot_id), (false, scene.catalog.head().await?));
    assert_eq!(answer.schema_version, scene.catalog.schema_version().await?);
    assert_eq!(scene.database.lake.dump().await?, before);
    Ok(())
}
