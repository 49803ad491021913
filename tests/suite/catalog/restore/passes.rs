//! Tests that the first pass after a restore works on the catalog as it is.

use std::sync::Mutex;

use anyhow::Result;
use serde_json::json;
use sqlx::postgres::PgPoolOptions;
use tailrace::rules::clock_guard::Reading;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Progress, Scope, Settings, run_pass};
use tailrace_kit::lake::{Field, Lake, NewFile};
use tokio_util::sync::CancellationToken;

use super::Scene;
use crate::explicit::days;
use crate::support::gate::while_it_waits;
use crate::support::program::{days_ago, settings};

/// The cursor says that all of it was dealt with.
#[tokio::test]
async fn what_is_live_again_goes_in_the_very_pass_that_tells_it() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.append([8, 9, 0]).await?;
    let backup = scene.database.back_up("before").await?;
    let dropped = scene.dropping(2).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    scene.database.restore(&backup).await?;
    assert_eq!(scene.live().await?, ids);
    // The ids that were given out once are given out again.
    let fresh = scene.append([0]).await?;
    assert_eq!(scene.catalog.head().await?, dropped);

    let ran = scene.database.ran(&["sweep", "--output", "json"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(scene.live().await?, [ids[2], fresh[0]]);
    let fields = |event: &str| {
        let told = ran.events(event);
        assert_eq!(told.len(), 1, "{event}: {}", ran.err);
        told[0].clone()
    };
    let restored = fields("catalog_restored");
    assert_eq!(restored["level"], "ERROR");
    for (name, value) in [
        ("catalog", json!("lake")),
        ("head", json!(dropped)),
        ("agreed", json!(dropped - 1)),
        ("drops_undone", json!(1)),
    ] {
        assert_eq!(restored[name], value, "{name}: {restored}");
    }
    assert_eq!(fields("drops_undone")["drops"], 1);
    // It is logged once.
    let again = scene.database.ran(&["sweep"]).await?;
    assert_eq!(again.events("catalog_restored").len(), 0);
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    Ok(())
}

/// Nothing was dropped, and the watermarks are of files and snapshots that other ones are now.
#[tokio::test]
async fn files_with_ids_that_were_looked_at_before_are_looked_at() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    let backup = scene.database.back_up("before").await?;
    let mut first = Vec::new();
    for _ in 0..3 {
        first.extend(scene.append([0]).await?);
    }
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    scene.database.restore(&backup).await?;
    let mut second = Vec::new();
    for _ in 0..3 {
        second.extend(scene.append([9]).await?);
    }
    assert_eq!(first, second);
    scene.dropping(3).await?;
    Ok(())
}

/// What a pass remembers is of the head at which it turned to the table, later than the one at which
/// it began: the restore is to a time between the two.
#[tokio::test]
async fn what_a_pass_remembers_is_told_by_the_head_that_it_looked_at() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    let backup = scene.database.back_up("before").await?;
    let pool = scene.database.pool.connect_options();
    // Before the pass looks at the table, and after it began.
    let append = || {
        let options = pool.clone();
        let appending = std::thread::spawn(move || -> Result<()> {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async move {
                let pool = PgPoolOptions::new().connect_lazy_with((*options).clone());
                let lake = Lake::attach(&pool, "public");
                let table = lake.open_catalog("lake").await?.open_table("events", "raw").await?;
                for _ in 0..3 {
                    table.append(vec![NewFile::of([days_ago(0)])]).await?;
                }
                Ok(())
            })
        });
        appending.join().expect("it ends").expect("it appends");
    };
    let (through, stop) = (scene.database.tailrace(), CancellationToken::new());
    let report = run_pass(&through, &settings(), &Scope::default(), &stop, &|_| append()).await?;
    assert_eq!(report.tables[0].outcome, Outcome::NothingToDo);
    let known = scene.database.text("SELECT max(through_snapshot) FROM tailrace.table_state");
    assert_eq!(known.await?, Some(scene.catalog.head().await?.to_string()));

    scene.database.restore(&backup).await?;
    for _ in 0..3 {
        scene.append([9]).await?;
    }
    scene.dropping(3).await?;
    Ok(())
}

/// Files were found, and the pass waits for the commit lock: their ids are those of other files then.
#[tokio::test]
async fn what_was_found_before_a_restore_is_not_dropped_after_it() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    let backup = scene.database.back_up("before").await?;
    let found = scene.append([9, 8]).await?;
    let meanwhile = async {
        scene.database.restore(&backup).await?;
        // As a commit of somebody else who was let in: the gate has the lock.
        scene
            .database
            .sql(&format!(
                "INSERT INTO hog_data_file (catalog_id, table_id, data_file_id, path, file_format,
                     record_count, file_size_bytes, row_id_start, begin_snapshot, spec_id)
                 SELECT catalog_id, table_id, {}, 'reused', file_format, record_count,
                     file_size_bytes, row_id_start, begin_snapshot, spec_id FROM hog_data_file;
                 INSERT INTO hog_file_partition_value (catalog_id, data_file_id, key_index, value)
                 SELECT catalog_id, {0}, key_index, value FROM hog_file_partition_value;
                 UPDATE hog_catalog SET next_file_id = {0} + 1",
                found[0]
            ))
            .await
    };
    let pass = scene.database.sweep_one();
    let (report, ()) = while_it_waits(&scene.catalog, pass, meanwhile).await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Failed, 0), "{report:?}");
    assert_eq!(
        report.error.as_deref(),
        Some(
            "the catalog was restored to an earlier time since this pass began: what it found is \
             not acted by, and the next pass looks anew"
        )
    );
    assert_eq!(scene.live().await?.len(), 2);
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    assert_eq!(scene.live().await?.len(), 2);
    Ok(())
}

/// Restored twice, before any pass looked and again after one did.
#[tokio::test]
async fn a_second_restore_is_told_as_the_first() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9]).await?;
    let first = scene.database.back_up("first").await?;
    let dropped = scene.dropping(1).await?;
    scene.append([8]).await?;
    let second = scene.database.back_up("second").await?;
    let later = scene.dropping(1).await?;
    scene.database.restore(&second).await?;
    scene.database.restore(&first).await?;
    assert_eq!(scene.stages().await?, [(later, "undone", false), (dropped, "undone", false)]);
    assert_eq!(scene.dropping(1).await?, dropped);
    scene.database.restore(&first).await?;
    assert_eq!(scene.dropping(1).await?, dropped);
    assert_eq!(
        scene.stages().await?,
        [
            (later, "undone", true),
            (dropped, "retained", false),
            (dropped, "undone", true),
            (dropped, "undone", true)
        ]
    );
    Ok(())
}

/// Nothing that passes noted is as old.
#[tokio::test]
async fn a_restore_to_before_the_first_pass_is_reported() -> Result<()> {
    let scene = Scene::new().await?;
    let backup = scene.database.back_up("before").await?;
    scene.append([9]).await?;
    let dropped = scene.dropping(1).await?;
    scene.database.restore(&backup).await?;
    assert_eq!(scene.stages().await?, [(dropped, "undone", false)]);
    scene.append([9, 8]).await?;
    assert_eq!(scene.dropping(2).await?, dropped);
    assert_eq!(scene.stages().await?[1], (dropped, "undone", true));
    Ok(())
}

/// A pass that the clock stops notes nothing; the next one that is accepted does.
#[tokio::test]
async fn it_waits_for_a_clock_that_is_acted_by() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9]).await?;
    let backup = scene.database.back_up("before").await?;
    let dropped = scene.dropping(1).await?;
    scene.database.restore(&backup).await?;
    let apart = Reading {
        database: "2026-01-01T00:00:00Z".parse()?,
        host: "2027-01-01T00:00:00Z".parse()?,
        boot: None,
    };
    let settings = Settings { clock: Some(apart), ..settings() };
    let report = scene.database.sweep_with(&settings).await?;
    assert_eq!(report.tables[0].outcome, Outcome::ClockSkew);
    assert_eq!(scene.stages().await?, [(dropped, "undone", false)]);
    assert_eq!(scene.dropping(1).await?, dropped);
    assert_eq!(scene.stages().await?, [(dropped, "retained", false), (dropped, "undone", true)]);
    Ok(())
}

/// A catalog that is being loaded has its counter before its snapshots: nothing is known of it, and
/// nothing is done in it.
#[tokio::test]
async fn a_catalog_that_is_loaded_in_part_is_left_alone() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9, 0]).await?;
    scene.dropping(1).await?;
    let (body, _) = scene.request(8).await?;
    let stages = scene.stages().await?;
    let remembered = "SELECT (SELECT count(*) FROM tailrace.noted_head) || ' '
                          || (SELECT count(*) FROM tailrace.table_state) || ' '
                          || (SELECT count(undone_seen_at) FROM tailrace.drop_history)";
    let before = scene.database.text(remembered).await?;
    scene.append([10]).await?;
    scene
        .database
        .while_empty("hog_snapshot", async || {
            let ran = scene.database.ran(&["sweep"]).await?;
            assert_eq!(ran.code, 1, "{ran:?}");
            let failed = ran.events("catalog_failed");
            assert_eq!(failed.len(), 1, "{ran:?}");
            let error = failed[0]["error"].as_str().unwrap_or_default();
            assert!(error.contains("hog_snapshot has no row"), "{error}");
            assert!(!scene.ask(&body).await?.undone);
            let other = days([&days_ago(10)]);
            assert!(scene.ask(&other).await.is_err(), "no commit goes into it");
            Ok(())
        })
        .await?;
    assert_eq!(scene.database.text(remembered).await?, before);
    assert_eq!(scene.stages().await?, stages);
    scene.dropping(1).await?;
    Ok(())
}

/// A table with a drop that came undone comes before those that only have to be read anew.
#[tokio::test]
async fn tables_with_undone_drops_come_first() -> Result<()> {
    let scene = Scene::new().await?;
    let another = scene.database.table(&scene.catalog, "another", &[Field::day("at")]).await?;
    another.append(vec![NewFile::of([days_ago(0)])]).await?;
    scene.database.govern(&another, "at", "7d").await?;
    scene.append([9, 3]).await?;
    let backup = scene.database.back_up("before").await?;
    assert_eq!(scene.database.sweep().await?.counts().files, 1);
    scene.database.restore(&backup).await?;
    let order = Mutex::new(Vec::new());
    let note = |progress: Progress<'_>| {
        if let Progress::Table(table) = progress {
            order.lock().expect("no panic").push(table.table.clone());
        }
    };
    let (place, settings, stop) = (scene.database.tailrace(), settings(), CancellationToken::new());
    let report = run_pass(&place, &settings, &Scope::default(), &stop, &note).await?;
    assert_eq!(
        (order.into_inner()?, report.counts().files),
        (vec!["raw".to_owned(), "another".to_owned()], 1)
    );
    Ok(())
}
