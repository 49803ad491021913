//! Tests of which tables wake the daemon.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace_kit::lake::{Field, Table};

use super::Scene;

const DAY: u64 = 86_400;
const DUE: &str = "2026-11-30T12:04:00Z";

/// As a pass mirrors the property of a table: the column of its stored policy, and seven days.
async fn mirror(scene: &Scene, table: &Table, mode: &str, problem: &str) -> Result<()> {
    let (catalog_id, table_id) = (table.catalog.catalog_id, table.table_id);
    scene
        .database
        .sql(&format!(
            "INSERT INTO tailrace.policy (catalog_id, table_id, source, table_uuid, field,
               source_field_id, keep, keep_seconds, mode, property_text, problem, revision, updated_by)
             SELECT catalog_id, table_id, 'property', table_uuid, field, source_field_id, '7d', 604800,
                    '{mode}', 'x', {problem}, 1, 'x'
               FROM tailrace.policy WHERE catalog_id = {catalog_id} AND table_id = {table_id}"
        ))
        .await
}

async fn unset(scene: &Scene, table: &Table) -> Result<()> {
    let table_id = table.table_id;
    let delete = "DELETE FROM tailrace.policy WHERE source = 'stored' AND table_id";
    scene.database.sql(&format!("{delete} = {table_id}")).await
}

#[tokio::test]
async fn live_tables_whose_policy_in_force_enforces() -> Result<()> {
    let scene = Scene::new().await?;
    let mut tables = Vec::new();
    for name in [
        "enforces",
        "observes",
        "is_paused",
        "has_none",
        "was_dropped",
        "has_another_column",
        "was_never_looked_at",
        "mirrors",
        "mirrors_in_vain",
        "mirrors_and_observes",
        "mirrors_under_a_stored_one",
        "mirrors_over_one_of_before",
    ] {
        let table = scene.table(name).await?;
        scene.row(&table, DUE, None, DAY).await?;
        tables.push(table);
    }
    let [
        _,
        observes,
        is_paused,
        has_none,
        was_dropped,
        another,
        never,
        mirrors,
        in_vain,
        mirrors_observing,
        under,
        over,
    ] = &tables[..]
    else {
        anyhow::bail!("twelve tables");
    };
    scene.database.govern_as(observes, "at", "7d", Mode::Observe).await?;
    scene.database.govern_as(is_paused, "at", "7d", Mode::Paused).await?;
    unset(&scene, has_none).await?;
    was_dropped.drop_table().await?;
    let other = "UPDATE tailrace.table_state SET source_field_id = 99 WHERE table_id";
    scene.database.sql(&format!("{other} = {}", another.table_id)).await?;
    let forget = "DELETE FROM tailrace.table_state WHERE table_id";
    scene.database.sql(&format!("{forget} = {}", never.table_id)).await?;
    for (table, mode, problem) in [
        (mirrors, "enforce", "NULL"),
        (in_vain, "enforce", "'no such column'"),
        (mirrors_observing, "observe", "NULL"),
        (under, "enforce", "NULL"),
        (over, "enforce", "NULL"),
    ] {
        mirror(&scene, table, mode, problem).await?;
    }
    for table in [mirrors, in_vain, mirrors_observing] {
        unset(&scene, table).await?;
    }
    scene.database.govern_as(under, "at", "7d", Mode::Observe).await?;
    let before = "UPDATE tailrace.policy SET table_uuid = gen_random_uuid()
                   WHERE source = 'stored' AND table_id";
    scene.database.sql(&format!("{before} = {}", over.table_id)).await?;

    let at = |name: &str| format!("lake.{name} at {DUE}");
    let expected = [at("enforces"), at("mirrors"), at("mirrors_over_one_of_before")];
    assert_eq!(scene.due().await?, expected);
    Ok(())
}

#[tokio::test]
async fn tables_of_all_catalogs_each_by_its_own_rows() -> Result<()> {
    let scene = Scene::new().await?;
    let raw = scene.table("raw").await?;
    scene.row(&raw, DUE, None, DAY).await?;
    let quiet = scene.table("quiet").await?;
    scene.row(&quiet, "2026-12-01T00:00:00Z", None, DAY).await?;
    let pond = scene.database.catalog("pond").await?;
    let other = scene.database.table(&pond, "raw", &[Field::day("at")]).await?;
    scene.database.govern(&other, "at", "7d").await?;
    scene.noted(&other).await?;
    scene.row(&other, "2026-11-30T12:07:00Z", None, DAY).await?;
    let expected = ["lake.raw at 2026-11-30T12:04:00Z", "pond.raw at 2026-11-30T12:07:00Z"];
    assert_eq!(scene.due().await?, expected);
    Ok(())
}
