//! Tests of the lake builder against the catalog's contract.

mod installs;
mod older;
mod tables;
mod writes;

use anyhow::Result;
use tailrace_kit::lake::Catalog;

/// The kinds that a snapshot carries, with their objects.
pub async fn kinds(catalog: &Catalog, snapshot_id: i64) -> Result<Vec<(String, i64)>> {
    Ok(sqlx::query_as(
        "SELECT kind, object_id FROM hog_snapshot_change
          WHERE catalog_id = $1 AND snapshot_id = $2 ORDER BY kind, object_id",
    )
    .bind(catalog.catalog_id)
    .bind(snapshot_id)
    .fetch_all(catalog.pool())
    .await?)
}

pub async fn one_change(
    catalog: &Catalog,
    snapshot_id: i64,
    kind: &str,
    object: i64,
) -> Result<()> {
    let expected = [(kind.to_owned(), object)];
    assert_eq!(kinds(catalog, snapshot_id).await?, expected);
    Ok(())
}
