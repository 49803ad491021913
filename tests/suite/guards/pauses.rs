//! Tests of what a pause keeps.

use anyhow::Result;
use serde_json::json;
use tailrace::explicit::call::{DropBody, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace::guards::pause::PauseScope;
use tailrace_kit::lake::{Column, Field};

use super::TABLE;
use crate::explicit::{Scene, days, file};
use crate::support::governed::outcomes;
use crate::support::program::days_ago;

const PROPERTY: &str = r#"{"field":"at","keep":"7d"}"#;

async fn governed() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file(&days_ago(9)), file(&days_ago(1))]).await?;
    scene.database.policy("lake", "events.raw", "day(at)", "7d").await?;
    Ok(scene)
}

#[tokio::test]
async fn a_pass_leaves_what_is_paused_and_goes_on_once_it_is_resumed() -> Result<()> {
    for scope in [PauseScope::All, PauseScope::Catalog("lake"), TABLE] {
        let scene = governed().await?;
        scene.pause(scope).await?;
        for _ in 0..2 {
            let report = scene.database.sweep().await?;
            let found: Vec<_> =
                outcomes(&report).iter().map(|(table, outcome)| (*table, outcome.name())).collect();
            assert_eq!(found, [("raw", "paused")], "{scope:?}");
            assert_eq!(report.pauses.len(), 1);
        }
        assert_eq!(scene.live().await?.len(), 2, "{scope:?}");
        assert_eq!(scene.resume(scope).await?, 1);
        let report = scene.database.sweep().await?;
        assert_eq!((report.counts().files, report.pauses.len()), (1, 0), "{scope:?}");
        assert_eq!(scene.live().await?.len(), 1);
    }
    Ok(())
}

/// A property that enforces is kept as a stored policy is, and a policy that is set during the pause too.
#[tokio::test]
async fn a_pause_is_above_policies_and_properties() -> Result<()> {
    let scene = governed().await?;
    scene.pause(TABLE).await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "1d"];
    let said = scene.database.ran(&set).await?;
    assert!(said.out.contains("not dropped in mode paused: 1 partition, 1 file"), "{said:?}");
    assert_eq!(scene.database.sweep_one().await?.outcome.name(), "paused");
    scene.database.ran(&["policy", "unset", "lake", "events.raw"]).await?;
    scene.table.set_property("partition_retention", Some(PROPERTY)).await?;
    assert_eq!(scene.database.sweep_one().await?.outcome.name(), "paused");
    assert_eq!(scene.live().await?.len(), 2);
    Ok(())
}

#[tokio::test]
async fn explicit_drops_and_truncates_are_refused_whole() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    scene.pause(PauseScope::Catalog("lake")).await?;
    let refused = scene.refused(&days(["1"])).await?;
    assert_eq!((refused.status(), refused.code()), (409, "paused"));
    let detail = refused.to_string();
    assert!(detail.starts_with("catalog lake is paused by anna since 2"), "{detail}");
    assert!(detail.ends_with(": audit; nothing was dropped"), "{detail}");
    let dry = scene.refused(&DropBody { dry_run: true, ..days(["1"]) }).await?;
    assert_eq!(dry, refused);
    assert_eq!(scene.truncate(&TruncateBody::default()).await?.unwrap_err().code(), "paused");
    scene.resume(PauseScope::Catalog("lake")).await?;
    assert_eq!(scene.done(&days(["1"])).await?.files_ended, 1);
    Ok(())
}

/// The receipt comes first: what was committed before the pause is told again.
#[tokio::test]
async fn a_retry_of_a_committed_drop_is_replayed_during_a_pause() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let body = days(["1"]);
    let first = scene.done(&body).await?;
    scene.pause(PauseScope::All).await?;
    let again = scene.done(&body).await?;
    assert_eq!((again.replayed, again.snapshot_id), (true, first.snapshot_id));
    Ok(())
}

/// A table that took the name of a paused one is what the operator meant; and so is the paused one under a new
/// name.
#[tokio::test]
async fn a_pause_covers_the_name_and_the_table() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    scene.pause(TABLE).await?;
    let columns = [Column::new("at", "timestamptz")];
    let next = scene.table.replace_table(&columns, &[Field::day("at")]).await?;
    next.append(vec![file("1")]).await?;
    assert_eq!(scene.call(&days(["1"])).await?.unwrap_err().code(), "paused");
    assert_eq!(scene.resume(TABLE).await?, 1);
    scene.pause(TABLE).await?;
    next.rename("other").await?;
    let mut session = scene.session().await?;
    let table = tailrace::explicit::call::TableRef {
        catalog: "lake".to_owned(),
        namespace: "events".to_owned(),
        table: "other".to_owned(),
    };
    let bounds = crate::explicit::patient();
    let refused =
        tailrace::explicit::drop_partitions(&mut session, &table, &days(["1"]), "me", &bounds)
            .await;
    assert!(matches!(refused, Err(Problem::Paused(_))), "{refused:?}");
    assert_eq!(scene.resume(PauseScope::Table("lake", "events", "other")).await?, 1);
    Ok(())
}

/// What a catalog or a table is paused for is not what another is.
#[tokio::test]
async fn others_are_not_paused() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let namespace = scene.catalog.namespace("events").await?;
    let columns = [Column::new("at", "timestamptz")];
    scene.catalog.create_table(&namespace, "calm", &columns, &[Field::day("at")]).await?;
    scene.database.catalog("pond").await?;
    scene.pause(PauseScope::Table("lake", "events", "calm")).await?;
    scene.pause(PauseScope::Catalog("pond")).await?;
    assert_eq!(scene.done(&days(["1"])).await?.files_ended, 1);
    Ok(())
}

#[tokio::test]
async fn a_pause_that_is_there_stays_and_scopes_are_resumed_one_by_one() -> Result<()> {
    let scene = Scene::new().await?;
    for _ in 0..2 {
        for scope in [PauseScope::All, PauseScope::Catalog("lake"), TABLE] {
            scene.pause(scope).await?;
        }
    }
    let paused = "select count(*)::text from tailrace.pause";
    assert_eq!(scene.database.text(paused).await?.as_deref(), Some("3"));
    for (scope, left) in [(PauseScope::Catalog("lake"), "2"), (PauseScope::All, "1"), (TABLE, "0")]
    {
        assert_eq!(scene.resume(scope).await?, 1, "{scope:?}");
        assert_eq!(scene.resume(scope).await?, 0, "{scope:?}");
        assert_eq!(scene.database.text(paused).await?.as_deref(), Some(left));
    }
    Ok(())
}

#[tokio::test]
async fn a_plan_shows_who_paused_and_why() -> Result<()> {
    let scene = governed().await?;
    scene.pause(TABLE).await?;
    let plan = scene.plan().await?;
    assert_eq!(plan["mode"], "paused");
    for (key, value) in [
        ("catalog", "lake"),
        ("namespace", "events"),
        ("table", "raw"),
        ("reason", "audit"),
        ("paused_by", "anna"),
    ] {
        assert_eq!(plan["pause"][key], json!(value), "{key}");
    }
    assert_eq!(plan["expired"].as_array().map(Vec::len), Some(1));
    let text = scene.database.ran(&["plan"]).await?.out;
    assert!(
        text.contains("  paused       table events.raw of catalog lake is paused by anna"),
        "{text}"
    );
    assert!(text.contains("  but nothing will be dropped while the table is paused\n"), "{text}");
    let list = scene.database.ran(&["policy", "list"]).await?.out;
    assert!(list.contains("7d    enforce, a pause covers it  stored"), "{list}");
    let get = scene.database.ran(&["policy", "get", "lake", "events.raw"]).await?.out;
    assert!(
        get.contains("  paused    table events.raw of catalog lake is paused by anna"),
        "{get}"
    );
    let swept = scene.database.ran(&["sweep"]).await?.out;
    assert!(swept.contains("table events.raw of catalog lake is paused by anna since"), "{swept}");
    let doctor = scene.database.ran(&["doctor"]).await?.out;
    assert!(doctor.contains("tailrace resume lake events.raw"), "{doctor}");
    scene.resume(TABLE).await?;
    assert_eq!(scene.plan().await?.get("pause"), None);
    Ok(())
}

/// Nothing is overdue because of a pause: not while it lasts, and not before a pass has had its time after it.
#[tokio::test]
async fn verify_finds_nothing_overdue_in_a_pause_and_right_after_it() -> Result<()> {
    let scene = governed().await?;
    scene.database.sweep().await?;
    let verify = ["verify", "--catalog", "lake", "--output", "json"];
    scene.table.append(vec![file(&days_ago(20))]).await?;
    scene
        .database
        .sql(
            "update hog_snapshot set snapshot_time = snapshot_time - interval '3 days';
         update tailrace.policy set updated_at = updated_at - interval '3 days'",
        )
        .await?;
    let (_, code) = scene.database.json(&verify).await?;
    assert_eq!(code, 3, "it is overdue");
    scene.pause(PauseScope::All).await?;
    assert_eq!(scene.database.json(&verify).await?.1, 0);
    scene.resume(PauseScope::All).await?;
    assert_eq!(scene.database.json(&verify).await?.1, 0);
    scene
        .database
        .sql("update tailrace.guard_state set loosened_at = loosened_at - interval '3 days'")
        .await?;
    assert_eq!(scene.database.json(&verify).await?.1, 3);
    Ok(())
}
