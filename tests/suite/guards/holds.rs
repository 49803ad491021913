//! Tests of what a hold keeps.

use std::time::Duration;

use anyhow::Result;
use tailrace::explicit::call::{DropBody, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace::guards::release::release;
use tailrace::rules::hold::{HeldPartition, HoldScope};
use tailrace_kit::lake::{Column, Field, NewFile};

use super::partitions;
use crate::explicit::{Scene, days, file};
use crate::support::TestDatabase;
use crate::support::program::days_ago;

async fn governed() -> Result<Scene> {
    let scene = Scene::new().await?;
    let files = [10, 9, 8, 1].map(|days| file(&days_ago(days)));
    scene.table.append(files.to_vec()).await?;
    scene.database.policy("lake", "events.raw", "day(at)", "7d").await?;
    Ok(scene)
}

/// The days of the live files, the oldest first.
async fn live_days(scene: &Scene) -> Result<Vec<String>> {
    let values = crate::support::governed::live_values(&scene.table).await?;
    let mut days: Vec<_> = values.into_iter().flatten().flatten().collect();
    days.sort();
    Ok(days)
}

#[tokio::test]
async fn a_pass_leaves_held_partitions_and_drops_the_others() -> Result<()> {
    let scene = governed().await?;
    let held = days_ago(9);
    let id = scene.hold(partitions([&held])).await?;
    for _ in 0..3 {
        scene.database.sweep().await?;
        assert_eq!(live_days(&scene).await?, [held.clone(), days_ago(1)]);
    }
    let plan = scene.plan().await?;
    assert_eq!(plan["kept"]["held"], 1);
    assert_eq!(plan["waiting"][0]["reason"], "held");
    assert_eq!(plan["held"][0]["partition_values"], serde_json::json!([held]));
    assert_eq!(plan["holds"][0]["hold_id"], id);
    assert_eq!(plan["expired"], serde_json::json!([]));
    // Released, it goes with the next pass, whatever pause its waiting had come to.
    release(&mut scene.session().await?, id, "ben", Duration::ZERO).await?.expect("it was there");
    let report = scene.database.sweep_one().await?;
    assert_eq!(report.counts().files, 1, "{report:?}");
    assert_eq!(live_days(&scene).await?, [days_ago(1)]);
    Ok(())
}

/// A file that is added to a held partition is held with it.
#[tokio::test]
async fn what_is_added_to_a_held_partition_is_held() -> Result<()> {
    let scene = governed().await?;
    scene.hold(partitions([&days_ago(9)])).await?;
    scene.database.sweep().await?;
    scene.table.append(vec![file(&days_ago(9)), file(&days_ago(8))]).await?;
    scene.database.sweep().await?;
    assert_eq!(live_days(&scene).await?, [days_ago(9), days_ago(9), days_ago(1)]);
    Ok(())
}

#[tokio::test]
async fn a_hold_of_a_table_keeps_all_of_it() -> Result<()> {
    let scene = governed().await?;
    scene.hold(HoldScope::Table).await?;
    scene.database.sweep().await?;
    assert_eq!(scene.live().await?.len(), 4);
    let refused = scene.refused(&days(["1"])).await?;
    assert_eq!((refused.status(), refused.code()), (409, "partition_held"));
    Ok(())
}

/// A partition whose spec does not have the column as it is, is held too.
#[tokio::test]
async fn a_value_is_held_wherever_it_may_be() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team_id", "long"), Column::new("at", "timestamptz")];
    let spec = [Field::identity("team_id"), Field::day("at")];
    let table = database.table_of(&catalog, "raw", &columns, &spec).await?;
    let day = days_ago(9);
    let of = |team: &str| NewFile::of([team.to_owned(), day.clone()]);
    table.append(vec![of("42"), of("43"), of("042")]).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    table.append(vec![NewFile::of([day.clone()])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let scene = Scene { database, catalog, table };
    let args = ["hold", "add", "lake", "events.raw", "--where", "team_id=42", "--reason", "case 7"];
    let added = scene.database.done(&[&args[..], &["--output", "json"]].concat()).await?;
    assert_eq!((&added["keeps"]["partitions"], &added["keeps"]["files"]), (&3.into(), &3.into()));
    scene.database.sweep().await?;
    let mut live = crate::support::governed::live_values(&scene.table).await?;
    live.sort();
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(
        live,
        [vec![text("042"), text(&day)], vec![text(&day)], vec![text("42"), text(&day)]]
    );
    Ok(())
}

#[tokio::test]
async fn an_explicit_drop_that_names_a_held_partition_is_refused_whole() -> Result<()> {
    let scene = Scene::new().await?;
    let all: Vec<String> = (1..=30).map(|day| day.to_string()).collect();
    scene.table.append(all.iter().map(|day| file(day)).collect()).await?;
    let held: Vec<HeldPartition> = all[..25]
        .iter()
        .map(|day| HeldPartition { spec_id: 1, values: vec![Some(day.clone())] })
        .collect();
    let id = scene.hold(HoldScope::Partitions(held.clone())).await?;
    let named: Vec<&str> = all.iter().map(String::as_str).collect();
    let named: [&str; 30] = named.try_into().expect("thirty");
    let refused = scene.refused(&days(named)).await?;
    let Problem::PartitionHeld { asked, held: first, more, .. } = &refused else {
        panic!("{refused:?}")
    };
    assert_eq!((*asked, first.as_slice(), *more), (30, &held[..20], 5));
    let detail = refused.to_string();
    let begins = "25 of the 30 named partitions are held, and nothing was dropped: hold ";
    assert!(detail.starts_with(&format!("{begins}{id} by anna since 2")), "{detail}");
    assert!(detail.ends_with(" keeps 25 partitions: case 7"), "{detail}");
    let body = refused.body();
    assert_eq!((&body["error"], &body["more"]), (&"partition_held".into(), &5.into()));
    let dry = DropBody { dry_run: true, ..days(["1"]) };
    assert_eq!(scene.refused(&dry).await?.code(), "partition_held");
    let truncated = scene.truncate(&TruncateBody::default()).await?.unwrap_err();
    assert_eq!((truncated.status(), truncated.code()), (409, "partition_held"));
    assert_eq!(scene.done(&days(["26", "30"])).await?.files_ended, 2);
    Ok(())
}

#[tokio::test]
async fn a_retry_of_a_committed_drop_is_replayed_under_a_hold() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let body = days(["1"]);
    scene.done(&body).await?;
    scene.hold(partitions(["1"])).await?;
    assert!(scene.done(&body).await?.replayed);
    Ok(())
}

/// One past its end keeps nothing, and a pass releases it and logs that.
#[tokio::test]
async fn a_hold_ends_at_its_time() -> Result<()> {
    let scene = governed().await?;
    scene.hold(HoldScope::Table).await?;
    scene.database.sweep().await?;
    assert_eq!(scene.live().await?.len(), 4);
    scene.database.sql("update tailrace.hold set until = now() - interval '1 second'").await?;
    let swept = scene
        .database
        .ran_with(
            &["sweep"],
            &[("TAILRACE__LOG__COMMAND_FILTER", "info"), ("TAILRACE__LOG__FORMAT", "json")],
        )
        .await?;
    assert_eq!(scene.live().await?.len(), 1);
    let released = swept.events("hold_released");
    assert_eq!(released.len(), 1, "{swept:?}");
    assert_eq!((&released[0]["by"], &released[0]["held_by"]), (&"tailrace".into(), &"anna".into()));
    assert_eq!(scene.database.text("select 1::text from tailrace.hold").await?, None);
    Ok(())
}

/// What `hold add` answers: which partitions it keeps, and which were dropped just before.
#[tokio::test]
async fn a_hold_answers_what_it_keeps_and_what_was_dropped_before() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2"), file("2"), file("3")]).await?;
    let dropped = scene.done(&days(["1"])).await?;
    let args =
        ["hold", "add", "lake", "events.raw", "--partition", "[\"1\"]", "--partition", "[\"2\"]"];
    let reason = ["--reason", "case 7", "--by", "anna", "--output", "json"];
    let added = scene.database.done(&[&args[..], &reason[..]].concat()).await?;
    assert_eq!((&added["keeps"]["partitions"], &added["keeps"]["files"]), (&1.into(), &2.into()));
    assert_eq!(added["keeps"]["complete"], true);
    assert_eq!(added["kept"][0]["partition"]["values"], serde_json::json!(["2"]));
    let before = &added["dropped_before"];
    assert_eq!(before.as_array().map(Vec::len), Some(1));
    assert_eq!(before[0]["values"], serde_json::json!(["1"]));
    assert_eq!(before[0]["snapshot_id"], dropped.snapshot_id);
    let text = scene.database.ran(&["hold", "list"]).await?.out;
    assert!(text.contains("keeps 2 partitions: case 7\n  keeps 1 partition, 2 files, "), "{text}");
    Ok(())
}

#[tokio::test]
async fn verify_counts_nothing_held_as_overdue() -> Result<()> {
    let scene = governed().await?;
    scene.database.sweep().await?;
    scene.table.append(vec![file(&days_ago(20))]).await?;
    scene
        .database
        .sql(
            "update hog_snapshot set snapshot_time = snapshot_time - interval '3 days';
             update tailrace.policy set updated_at = updated_at - interval '3 days'",
        )
        .await?;
    let verify = ["verify", "--catalog", "lake", "--output", "json"];
    assert_eq!(scene.database.json(&verify).await?.1, 3);
    scene.hold(partitions([&days_ago(20)])).await?;
    assert_eq!(scene.database.json(&verify).await?.1, 0);
    Ok(())
}
