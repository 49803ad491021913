//! Tests of servers that lack the index of ended files, and other columns.

use anyhow::{Context, Result};
use tailrace_kit::lake::Field;
use tailrace_kit::simulated_loops::{Compaction, truncate};

use super::{Scene, all_ids, window, with_ends};
use crate::support::TestDatabase;

#[tokio::test]
async fn an_older_server_is_told_as_a_newer_one() -> Result<()> {
    for version in [9, 10, 11, 14, 18, 19, 22, 27] {
        let database = TestDatabase::in_schema("public").await?;
        database.lake.downgrade(version).await?;
        let ran = database.ran(&["migrate"]).await?;
        assert_eq!(ran.code, 0, "V{version}: {ran:?}");
        let scene = Scene::within(database).await?;
        let start = scene.catalog.head().await?;
        scene.append(&["1", "2", "2", "3"]).await?;
        scene.table.register_vector(1, 1, None).await?;
        let mut compaction = Compaction::new(&scene.catalog, 1 << 40);
        compaction.claims = false;
        assert_eq!(compaction.run(&scene.table).await?, 1, "V{version}");
        let before = scene.catalog.head().await?;
        let told = all_ids(&scene.told(&window(start, before)).await?);
        assert_eq!(told, [vec![1, 2, 3, 4], vec![5], vec![]], "V{version}");
        let end = scene.drop_day("1").await?.context("a drop")?;
        let refused = scene.refused(&window(start, end)).await?;
        assert_eq!(refused, (409, "reconciliation_required"), "V{version}");
        let last = truncate(&scene.table).await?;
        let whole = scene.told(&with_ends(start, last)).await?;
        assert_eq!(all_ids(&whole), [vec![1, 2, 3, 4], vec![5], vec![1, 4, 6]], "V{version}");
        assert_eq!(scene.paged(&with_ends(start, last), 2).await?, whole, "V{version}");
    }
    Ok(())
}

#[tokio::test]
async fn another_schema() -> Result<()> {
    let database = TestDatabase::in_schema("Hog$lake").await?;
    let ran = database.ran(&["migrate"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let scene = Scene { database, catalog, table };
    let start = scene.append(&["1"]).await?;
    let end = scene.drop_day("1").await?.context("a drop")?;
    assert_eq!(all_ids(&scene.told(&with_ends(start, end)).await?), [vec![], vec![], vec![1]]);
    Ok(())
}
