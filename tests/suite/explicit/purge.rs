//! Tests that old receipts are deleted in bounded batches.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::receipts::purge;

use super::{Scene, days, file};

const KEEP: Duration = Duration::from_secs(7 * 86_400);

#[tokio::test]
async fn receipts_go_by_age_in_bounded_batches() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let mut bodies = Vec::new();
    for _ in 0..7 {
        let body = days(["1"]);
        scene.done(&body).await?;
        bodies.push(body);
    }
    // All but the last two are past their time, the one by a second, the other not by a minute.
    for (at, body) in bodies.iter().enumerate() {
        sqlx::query(
            "UPDATE tailrace.drop_receipt
                SET created_at = clock_timestamp() - make_interval(secs => $2)
              WHERE idempotency_key = $1",
        )
        .bind(body.idempotency_key)
        .bind(7.0 * 86_400.0 + [1.0, 1.0, 86_400.0, 10.0, 1.0, -60.0, -86_400.0][at])
        .execute(&scene.database.pool)
        .await?;
    }
    let mut session = scene.session().await?;
    let mut batches = Vec::new();
    for _ in 0..4 {
        batches.push(purge(&mut session, KEEP, &[], 2).await?);
    }
    assert_eq!(batches, [2, 2, 1, 0]);
    assert_eq!(scene.receipts().await?, 2);
    for kept in &bodies[5..] {
        assert!(scene.done(kept).await?.replayed);
    }
    assert!(!scene.done(&bodies[0]).await?.replayed, "a purged key is a fresh one");
    Ok(())
}

/// A catalog that is being restored is gone for a moment, and a drop may be repeated after it.
#[tokio::test]
async fn receipts_of_a_catalog_that_is_gone_go_by_age_too() -> Result<()> {
    let scene = Scene::new().await?;
    let body = days(["1"]);
    scene.done(&body).await?;
    let of_nobody = "INSERT INTO tailrace.drop_receipt (catalog_id, idempotency_key, fingerprint,
             snapshot_id, schema_version, committed, files_ended, delete_files_ended, records,
             bytes, ended)
         SELECT 4711, gen_random_uuid(), '', 1, 1, false, 0, 0, 0, 0, '[]'
           FROM generate_series(1, 3)";
    scene.database.sql(of_nobody).await?;
    let mut session = scene.session().await?;
    assert_eq!(purge(&mut session, KEEP, &[], 10).await?, 0);
    let aged = "UPDATE tailrace.drop_receipt SET created_at = created_at - interval '7 days'
                 WHERE catalog_id = 4711";
    scene.database.sql(aged).await?;
    assert_eq!(purge(&mut session, KEEP, &[], 10).await?, 3);
    assert!(scene.done(&body).await?.replayed);
    Ok(())
}
