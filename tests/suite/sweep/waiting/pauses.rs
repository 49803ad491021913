//! Tests of when passes look at a waiting tuple again.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::HeldFiles;

use super::{NOW, Scene};
use crate::support::governed::live_ids;
use crate::support::program::settings;

/// What is remembered of the one tuple that waits: (tries, when it was met last, the next look).
async fn looks(scene: &Scene) -> Result<(Value, Value, Value)> {
    let [waiting] = &scene.waiting().await?[..] else { panic!("one waits") };
    Ok((waiting["tries"].clone(), waiting["seen_at"].clone(), waiting["next_look"].clone()))
}

fn told(tries: u32, seen_at: &str, next_look: &str) -> (Value, Value, Value) {
    (tries.into(), seen_at.into(), next_look.into())
}

/// By passes of every ten minutes. What is left alone is told all the same.
#[tokio::test]
async fn they_grow_and_full_passes_or_those_asked_for_heed_none() -> Result<()> {
    let scene = Scene::days(1).await?;
    scene.table.append(vec![NewFile::of(["18010"]); 5]).await?;
    let mut skipping = settings();
    (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (2, 4);
    skipping.batch.split_oversize = false;
    scene.sweep_with(&skipping, NOW).await?;
    assert_eq!(looks(&scene).await?, (json!(1), json!(NOW), Value::Null));
    let (second, third) = ("2026-11-30T12:10:00Z", "2026-11-30T12:20:00Z");
    for (at, tries, last, next) in [
        (second, 2, second, third),
        ("2026-11-30T12:19:59Z", 2, second, third),
        (third, 3, third, "2026-11-30T12:40:00Z"),
        ("2026-11-30T12:30:00Z", 3, third, "2026-11-30T12:40:00Z"),
    ] {
        let report = scene.sweep_with(&skipping, at).await?;
        assert_eq!(report.outcome, Outcome::Oversize, "{at}");
        assert!(report.error.is_some_and(|error| error.contains("partition 2019-04-24")), "{at}");
        assert_eq!(looks(&scene).await?, told(tries, last, next), "{at}");
    }
    let full = "update tailrace.table_state set owes_full_pass = true";
    scene.database.sql(full).await?;
    let at = "2026-11-30T12:31:00Z";
    scene.sweep_with(&skipping, at).await?;
    assert_eq!(looks(&scene).await?, told(4, at, "2026-11-30T13:11:00Z"));
    let at = "2026-11-30T12:32:00Z";
    scene.sweep_with(&Settings { heeds_pauses: false, ..skipping }, at).await?;
    assert_eq!(looks(&scene).await?, told(5, at, "2026-11-30T13:52:00Z"));
    Ok(())
}

/// What waits has ended long ago, and is read first: two rows at once, of which five wait.
#[tokio::test]
async fn what_falls_due_after_many_that_wait_goes_all_the_same() -> Result<()> {
    let scene = Scene::days(0).await?;
    let waits = |day| NewFile::of([day]).upper("at", &1_795_867_200_000_000_i64.to_le_bytes());
    scene.table.append(["18000", "18001", "18002", "18003", "18004"].map(waits).into()).await?;
    let file = scene.table.append(vec![NewFile::of(["20780"])]).await?.file_ids[0];
    let mut asked_for = Settings { heeds_pauses: false, ..settings() };
    asked_for.scan_limits.due_at_once = 2;
    let before = scene.sweep_with(&asked_for, "2026-11-30T23:59:59Z").await?;
    assert_eq!((before.outcome, scene.waiting().await?.len()), (Outcome::NothingToDo, 5));
    assert!(live_ids(&scene.table).await?.contains(&file));
    let report = scene.sweep_with(&asked_for, "2026-12-01T00:00:00Z").await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    assert!(!live_ids(&scene.table).await?.contains(&file));
    assert_eq!(scene.waiting().await?.len(), 5);
    Ok(())
}

#[tokio::test]
async fn what_is_busy_again_and_again_is_tried_after_pauses() -> Result<()> {
    let mut scene = Scene::days(1).await?;
    scene.files.extend(scene.table.append(vec![NewFile::of(["18001"]).pending()]).await?.file_ids);
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    scene.sweep_at(NOW).await?;
    scene.sweep_at("2026-11-30T12:10:00Z").await?;
    held.release().await?;
    let report = scene.sweep_at("2026-11-30T12:19:59Z").await?;
    assert_eq!((report.outcome, scene.live().await?), (Outcome::Busy, vec![1]));
    let report = scene.sweep_at("2026-11-30T12:20:00Z").await?;
    assert_eq!((report.outcome, scene.live().await?), (Outcome::Dropped, vec![]));
    Ok(())
}

/// A new file may show that a writer goes on with an earlier spec.
#[tokio::test]
async fn a_new_file_ends_the_pause_of_what_waits_for_evidence() -> Result<()> {
    let scene = Scene::days(1).await?;
    let newer = NewFile::of(["18001"]).upper("at", &1_795_867_200_000_000_i64.to_le_bytes());
    scene.table.append(vec![newer]).await?;
    scene.sweep_at(NOW).await?;
    scene.sweep_at("2026-11-30T12:10:00Z").await?;
    assert_eq!(looks(&scene).await?, told(2, "2026-11-30T12:10:00Z", "2026-11-30T12:20:00Z"));
    scene.table.append(vec![NewFile::of(["18001"])]).await?;
    let at = "2026-11-30T12:11:00Z";
    scene.sweep_at(at).await?;
    assert_eq!(looks(&scene).await?, told(3, at, "2026-11-30T12:31:00Z"));
    scene.sweep_at("2026-11-30T12:12:00Z").await?;
    assert_eq!(looks(&scene).await?, told(3, at, "2026-11-30T12:31:00Z"));
    Ok(())
}

/// A value of 2,600 bytes, which no index takes beside another column of its length.
#[tokio::test]
async fn a_long_value_waits_as_any_other() -> Result<()> {
    let scene = Scene::days(0).await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = scene.database.table(&scene.catalog, "tenants", &spec).await?;
    scene.database.govern(&table, "day(at)", "7d").await?;
    let tenant = super::long_value();
    table.append(vec![NewFile::of(["18000".to_owned(), tenant.clone()]); 2]).await?;
    let mut skipping = settings();
    (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (1, 1);
    skipping.batch.split_oversize = false;
    for (at, tries) in [(NOW, 1), ("2026-11-30T12:10:00Z", 2)] {
        scene.sweep_with(&skipping, at).await?;
        let [waiting] = &scene.waiting().await?[..] else { panic!("one waits") };
        assert_eq!(waiting["tuple"]["values"], json!(["18000", tenant]));
        assert_eq!((&waiting["tries"], &waiting["since"]), (&tries.into(), &NOW.into()));
    }
    skipping.batch.split_oversize = true;
    scene.sweep_with(&skipping, "2026-11-30T12:20:00Z").await?;
    assert_eq!((scene.waiting().await?.len(), live_ids(&table).await?.len()), (0, 0));
    Ok(())
}

/// A thousand that are refused are enough: one more has its table given up, and is not poisoned.
#[tokio::test]
async fn beyond_a_thousand_refused_ones_the_table_is_given_up() -> Result<()> {
    let scene = Scene::days(3).await?;
    let known = format!(
        "insert into tailrace.waiting (catalog_id, table_uuid, tuple_hash, spec_id, tuple, display, reason,
           since, attempts, last_look, files, range_end)
         select catalog_id, table_uuid, sha256(convert_to('1 ' || tuple::text, 'UTF8')), 1, tuple, 'day',
                'poisoned', '{NOW}', 1, '{NOW}', 1, '2019-01-01T00:00:00Z'
         from hog_table, generate_series(1, 1000) as n,
              jsonb_build_object('keys', '[0]'::jsonb, 'values', jsonb_build_array(n::text)) as tuple"
    );
    scene.database.sql(&known).await?;
    scene.refuse(&[1], "no").await?;
    let report = scene.sweep_at("2026-11-30T12:10:00Z").await?;
    assert_eq!((report.outcome, scene.live().await?), (Outcome::Failed, vec![1, 2]));
    let error = report.error.unwrap_or_default();
    assert!(error.starts_with("more than 1000 partitions of the table are refused; "), "{error}");
    let is_of_day = |one: &Value| one["display"] == "2019-04-15";
    assert!(!scene.waiting().await?.iter().any(is_of_day));
    // Those were not met and are forgotten: there is room again.
    let report = scene.sweep_at("2026-11-30T12:20:00Z").await?;
    assert_eq!((report.outcome, scene.live().await?), (Outcome::Poisoned, vec![1]));
    Ok(())
}
