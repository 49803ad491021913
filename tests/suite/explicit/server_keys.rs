//! Tests of keys that the server's own commits have used.

use anyhow::Result;
use tailrace::explicit::call::{DropBody, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{Catalog, Field};
use uuid::Uuid;

use crate::support::TestDatabase;

use super::{Scene, days, file};

/// A receipt of the server's.
async fn use_key(catalog: &Catalog, key: Uuid) -> Result<()> {
    sqlx::query(
        "INSERT INTO hog_commit_receipt (catalog_id, idempotency_key, snapshot_id, schema_version)
         SELECT $1, $2, last_snapshot_id, schema_version FROM hog_catalog WHERE catalog_id = $1",
    )
    .bind(catalog.catalog_id)
    .bind(key)
    .execute(catalog.pool())
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_key_of_a_server_commit_is_taken_in_its_catalog() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let pond = scene.database.catalog("pond").await?;
    let body = days(["1"]);
    use_key(&scene.catalog, body.idempotency_key).await?;
    let taken = Problem::Validation(
        "idempotency_key was used by a commit of the server: make a fresh one".to_owned(),
    );
    assert_eq!(scene.refused(&body).await?, taken);
    let key = Some(body.idempotency_key);
    let truncate = TruncateBody { idempotency_key: key, ..TruncateBody::default() };
    assert_eq!(scene.truncate(&truncate).await?, Err(taken));
    // A dry run uses none, and another catalog's key says nothing of this one.
    assert_eq!(scene.done(&DropBody { dry_run: true, ..body }).await?.files_ended, 1);
    let other = days(["1"]);
    use_key(&pond, other.idempotency_key).await?;
    assert_eq!(scene.done(&other).await?.files_ended, 1);
    // What we have answered stays answered, should the server meet the same key later.
    use_key(&scene.catalog, other.idempotency_key).await?;
    assert!(scene.done(&other).await?.replayed);
    Ok(())
}

#[tokio::test]
async fn a_server_without_receipts_has_used_no_key() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.sql("DROP TABLE hog_commit_receipt").await?;
    let scene = Scene::within(database, &[Field::day("at")]).await?;
    scene.table.append(vec![file("1")]).await?;
    let body = days(["1"]);
    assert_eq!(scene.done(&body).await?.files_ended, 1);
    assert!(scene.done(&body).await?.replayed);
    Ok(())
}
