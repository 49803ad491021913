//! Tests of the guards, as the contract words them ("Wire conventions").

use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use serde_json::json;
use tailrace::explicit::call::DropBody;
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{CatalogOptions, Column, Field};
use tailrace_kit::simulated_loops::{Compacted, Compaction, Expiry, truncate};
use uuid::Uuid;

use crate::support::TestDatabase;

use super::{Scene, days, drop_of, file, item, of_spec};

fn since(read_snapshot: i64, body: DropBody) -> DropBody {
    DropBody { read_snapshot: Some(read_snapshot), ..body }
}

fn came(snapshot_id: i64, read_snapshot: i64) -> Problem {
    Problem::CommitConflict(format!(
        "files came to the named partitions of events.raw in snapshot {snapshot_id}, after read_snapshot {read_snapshot}"
    ))
}

#[tokio::test]
async fn the_table_uuid_must_be_the_expected_one() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let expecting = |uuid| DropBody { expected_table_uuid: Some(uuid), ..days(["1"]) };
    let recreated = Problem::TableRecreated { table: "events.raw".to_owned() };
    assert_eq!(scene.refused(&expecting(Uuid::nil())).await?, recreated);
    let columns = [Column::new("at", "timestamptz")];
    let old = expecting(scene.table.table_uuid);
    assert_eq!(scene.done(&old).await?.files_ended, 1);
    // The next one has no partitions at all: what the tuples would mean there is not even asked.
    let next = scene.table.replace_table(&columns, &[]).await?;
    let old = expecting(scene.table.table_uuid);
    let refused = scene.refused(&old).await?;
    assert_eq!(refused, recreated);
    assert_eq!(
        refused.body(),
        json!({
            "error": "table_recreated", "tables": ["events.raw"], "retry": "re-prepare",
            "detail": "table events.raw has another UUID than the expected one",
        })
    );
    let dry = DropBody { dry_run: true, ..old };
    assert_eq!(scene.refused(&dry).await?, recreated);
    next.evolve_spec(&[Field::day("at")]).await?;
    next.append(vec![file("1")]).await?;
    assert_eq!(scene.done(&expecting(next.table_uuid)).await?.files_ended, 1);
    Ok(())
}

#[tokio::test]
async fn read_snapshot_lies_between_the_floor_and_the_head() -> Result<()> {
    let database = TestDatabase::new().await?;
    let retention = Some(Duration::from_secs(3600));
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    let catalog = database.lake.catalog("lake", options).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let scene = Scene { database, catalog, table };
    scene.table.append(vec![file("1")]).await?;
    let floor = scene.catalog.head().await?;
    let later = Utc::now() + TimeDelta::hours(2);
    assert_eq!(Expiry::new(&scene.catalog).advance_floor(Some(later)).await?.to, floor);
    scene.table.append(vec![file("2")]).await?;
    let head = floor + 1;
    for dry_run in [true, false] {
        let body = DropBody { dry_run, ..days(["1"]) };
        for (read, expected) in [
            (
                head + 1,
                Problem::Validation(format!(
                    "read_snapshot {} is ahead of the head, {head}",
                    head + 1
                )),
            ),
            (
                i64::MAX,
                Problem::Validation(format!(
                    "read_snapshot {} is ahead of the head, {head}",
                    i64::MAX
                )),
            ),
            (
                floor - 1,
                Problem::Expired(format!(
                    "read_snapshot {} is below the floor, {floor}",
                    floor - 1
                )),
            ),
            (-1, Problem::Expired(format!("read_snapshot -1 is below the floor, {floor}"))),
        ] {
            assert_eq!(scene.refused(&since(read, body.clone())).await?, expected);
            assert_eq!(expected.status(), if read > head { 422 } else { 410 });
        }
    }
    assert_eq!(scene.done(&since(floor, days(["1"]))).await?.files_ended, 1);
    let head = scene.catalog.head().await?;
    assert_eq!(scene.done(&since(head, days(["2"]))).await?.files_ended, 1);
    Ok(())
}

#[tokio::test]
async fn ddl_since_is_told_with_its_fields_and_that_of_others_is_not() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.table.append(vec![file("1")]).await?;
    let read = scene.catalog.head().await?;
    other.rename("another").await?;
    assert_eq!(
        scene.done(&DropBody { dry_run: true, ..since(read, days(["1"])) }).await?.files_ended,
        1
    );
    scene.table.set_property("a", Some("b")).await?;
    let refused = scene.refused(&since(read, days(["1"]))).await?;
    let table = "events.raw".to_owned();
    assert_eq!(refused, Problem::DdlSinceReadSnapshot { table, read_snapshot: read });
    assert_eq!(
        refused.body(),
        json!({
            "error": "ddl_since_read_snapshot", "tables": ["events.raw"], "read_snapshot": read,
            "retry": "re-prepare",
            "detail": format!("table events.raw was altered or dropped after snapshot {read}"),
        })
    );
    assert_eq!(scene.done(&since(read + 2, days(["1"]))).await?.files_ended, 1);
    Ok(())
}

#[tokio::test]
async fn an_append_since_conflicts_with_its_own_tuple_and_spec_only() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    scene.table.evolve_spec(&[Field::identity("kind")]).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let read = scene.catalog.head().await?;
    other.append(vec![file("1")]).await?;
    let stale = scene.table.append(vec![file("1").spec(1)]).await?;
    scene.table.append(vec![file("2")]).await?;
    let named = |spec, text| since(read, drop_of(vec![of_spec(spec, [Some(text)])]));
    assert_eq!(scene.refused(&named(1, "1")).await?, came(stale.snapshot_id, read));
    let both = since(read, drop_of(vec![item([Some("1")]), item([Some("2")])]));
    assert_eq!(scene.refused(&both).await?, came(stale.snapshot_id + 1, read));
    assert_eq!(scene.done(&named(1, "2")).await?.files_ended, 1);
    assert_eq!(scene.done(&named(2, "1")).await?.files_ended, 0, "nothing matches");
    assert_eq!(scene.done(&since(stale.snapshot_id, named(1, "1"))).await?.files_ended, 2);
    Ok(())
}

/// What came since is a conflict even where nothing of it is left.
#[tokio::test]
async fn a_file_that_began_and_ended_since_is_a_conflict() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let read = scene.catalog.head().await?;
    let appended = scene.table.append(vec![file("1")]).await?;
    let ended = scene.table.overwrite(appended.snapshot_id, &appended.file_ids, vec![]).await?;
    assert_eq!(scene.refused(&since(read, days(["1"]))).await?, came(appended.snapshot_id, read));
    let later = scene.done(&since(appended.snapshot_id, days(["1"]))).await?;
    assert_eq!((later.files_ended, later.snapshot_id), (1, ended.snapshot_id + 1));
    // One that a drop has ended.
    let read = scene.catalog.head().await?;
    let appended = scene.table.append(vec![file("1")]).await?;
    scene.done(&days(["1"])).await?;
    assert_eq!(scene.refused(&since(read, days(["1"]))).await?, came(appended.snapshot_id, read));
    // One that a truncate has ended: that is DDL too, and is told as such.
    let read = scene.catalog.head().await?;
    scene.table.append(vec![file("1")]).await?;
    truncate(&scene.table).await?;
    let refused = scene.refused(&since(read, days(["1"]))).await?;
    assert_eq!(refused.code(), "ddl_since_read_snapshot");
    Ok(())
}

/// An overwrite's new files are appended ones.
#[tokio::test]
async fn a_rewrite_since_is_a_conflict() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.table.append(vec![file("1"), file("2")]).await?.file_ids;
    let read = scene.catalog.head().await?;
    let rewritten = scene.table.overwrite(read, &ids[..1], vec![file("1")]).await?;
    let refused = scene.refused(&since(read, days(["1"]))).await?;
    assert_eq!(refused, came(rewritten.snapshot_id, read));
    assert_eq!(scene.done(&since(read, days(["2"]))).await?.files_ended, 1);
    Ok(())
}

#[tokio::test]
async fn a_compaction_since_is_no_conflict_but_what_it_merged_may_be() -> Result<()> {
    let scene = Scene::new().await?;
    let old = scene.table.append(vec![file("1"), file("1"), file("2"), file("2")]).await?;
    let read = scene.catalog.head().await?;
    let new = scene.table.append(vec![file("2")]).await?;
    let compaction = Compaction::new(&scene.catalog, 1000);
    for group in compaction.plan(&scene.table).await? {
        assert!(matches!(compaction.commit(group).await?, Compacted::Done { .. }));
    }
    assert!(!scene.live().await?.contains(&new.file_ids[0]), "it is merged");
    assert_eq!(scene.refused(&since(read, days(["2"]))).await?, came(new.snapshot_id, read));
    // The rows of day 1 are old ones in a new file.
    let answer = scene.done(&since(read, days(["1"]))).await?;
    assert_eq!((answer.files_ended, answer.records), (1, 20));
    assert_eq!(scene.live().await?.len(), 1);
    assert_eq!(old.file_ids.len(), 4);
    let fresh = since(new.snapshot_id, days(["2"]));
    assert_eq!(scene.done(&fresh).await?.records, 30);
    Ok(())
}

/// The mark of one table's compaction excuses no file of another that began in its snapshot.
#[tokio::test]
async fn only_a_compaction_of_the_table_itself_is_passed_over() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let read = scene.catalog.head().await?;
    let appended = scene.table.append(vec![file("1")]).await?;
    sqlx::query(
        "INSERT INTO hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
         VALUES ($1, $2, 'table_compacted', $3)",
    )
    .bind(scene.catalog.catalog_id)
    .bind(appended.snapshot_id)
    .bind(other.table_id)
    .execute(scene.catalog.pool())
    .await?;
    assert_eq!(scene.refused(&since(read, days(["1"]))).await?, came(appended.snapshot_id, read));
    Ok(())
}

#[tokio::test]
async fn a_vector_since_is_no_conflict_and_goes_too() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.table.append(vec![file("1")]).await?.file_ids;
    let read = scene.catalog.head().await?;
    scene.table.register_vector(ids[0], 1, None).await?;
    let answer = scene.done(&since(read, days(["1"]))).await?;
    assert_eq!((answer.files_ended, answer.delete_files_ended), (1, 1));
    Ok(())
}
