//! Tests of what is remembered of waiting tuples: what it survives, and what is logged of it.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use tailrace::catalog::connect::close;
use tailrace::explicit::drop_partitions;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Progress, Settings};
use tailrace_kit::lake::NewFile;

use super::{NOW, Scene};
use crate::explicit::{drop_of, item, patient, raw};
use crate::support::governed::{Ran, of_table};
use crate::support::program::settings;
use crate::support::timer::{TestTimer, pacing};

/// Under another policy what waits is not forgotten, nor since when; a first pass by it heeds no pause.
#[tokio::test]
async fn it_outlives_another_basis() -> Result<()> {
    let scene = Scene::days(4).await?;
    scene.refuse(&[1, 2], "no").await?;
    scene.sweep_at(NOW).await?;
    scene.refusals().await?;
    scene.database.govern(&scene.table, "day(at)", "8d").await?;
    let report = scene.sweep_at("2026-11-30T12:10:00Z").await?;
    assert_eq!((report.outcome, report.full), (Outcome::Poisoned, Some(false)));
    assert_eq!(scene.refusals().await?, 2, "another policy heeds no pause");
    for waiting in scene.waiting().await? {
        assert_eq!(
            (&waiting["since"], &waiting["seen_at"]),
            (&NOW.into(), &"2026-11-30T12:10:00Z".into())
        );
    }
    // Under a policy by which nothing has expired nothing waits.
    scene.database.govern(&scene.table, "day(at)", "7300d").await?;
    let report = scene.sweep_at("2026-11-30T12:20:00Z").await?;
    assert_eq!((report.outcome, scene.waiting().await?.len()), (Outcome::NothingToDo, 0));
    Ok(())
}

/// A pass whose time is over before it has looked keeps what it did not look at.
#[tokio::test]
async fn a_pass_that_looks_at_nothing_keeps_it() -> Result<()> {
    let scene = Scene::days(4).await?;
    scene.refuse(&[1, 2], "no").await?;
    let mut settings = settings();
    settings.scan_limits.small_table = 0;
    settings.scan_limits.values_at_once = 1;
    scene.sweep_with(&settings, NOW).await?;
    let before = scene.waits().await?;
    assert_eq!(before.len(), 2);
    settings.max_duration = Duration::ZERO;
    let report = scene.sweep_with(&settings, "2026-11-30T13:00:00Z").await?;
    assert_eq!(report.outcome, Outcome::Partial);
    assert_eq!(scene.waits().await?, before);
    Ok(())
}

/// A pass that stops between two texts keeps what it did not look up, and since when it waits.
#[tokio::test]
async fn a_pass_that_stops_early_keeps_the_rest() -> Result<()> {
    let scene = Scene::days(4).await?;
    scene.refuse(&[1, 2], "no").await?;
    let mut settings = Settings { lock_duty: 1.0, ..settings() };
    settings.scan_limits.small_table = 0;
    scene.sweep_with(&settings, NOW).await?;
    let before = scene.waits().await?;
    assert_eq!(before.len(), 2);

    // An older day is due before them.
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    let due = "insert into tailrace.calendar select catalog_id, table_uuid, 1, false, '18000',
                 '2019-04-15 00:00Z', '2019-04-15 00:00Z', 86400 from tailrace.table_state";
    scene.database.sql(due).await?;
    settings.as_of = Some("2026-11-30T12:16:00Z".parse()?);
    (settings.scan_limits.values_at_once, settings.scan_limits.tuples_at_hand) = (1, 1);
    let timer = TestTimer::new();
    let progress = |progress: Progress<'_>| {
        if let Progress::Dropped { .. } = progress {
            timer.advance(Duration::from_secs(700));
        }
    };
    let report = scene.database.sweep_paced(&settings, &pacing(&timer), &progress).await?;
    let raw = of_table(&report, "raw");
    assert_eq!((raw.outcome, raw.full, raw.snapshots.len()), (Outcome::Partial, Some(false), 1));
    assert_eq!(scene.waits().await?, before);
    let seen: Vec<_> = scene.waiting().await?.iter().map(|one| one["seen_at"].clone()).collect();
    assert_eq!(seen, [NOW, NOW]);
    let report = scene.sweep_at("2026-11-30T12:17:00Z").await?;
    assert_eq!(report.outcome, Outcome::Poisoned);
    for waiting in scene.waiting().await? {
        assert_eq!(waiting["since"], NOW);
    }
    Ok(())
}

/// A full scan that goes on over pieces remembers the list on its way.
#[tokio::test]
async fn saves_in_the_middle_of_a_full_scan_lose_nothing() -> Result<()> {
    let scene = Scene::days(6).await?;
    scene.refuse(&[0, 3], "no").await?;
    let mut settings = settings();
    (
        settings.scan_limits.small_table,
        settings.scan_limits.piece,
        settings.scan_limits.pieces_remembered,
    ) = (0, 1, 1);
    for max_values in [settings.max_values, 0] {
        settings.max_values = max_values;
        scene.database.govern(&scene.table, "day(at)", "9d").await?;
        scene.sweep_with(&settings, NOW).await?;
        let days = ["2019-04-14", "2019-04-17"].map(|day| (day.to_owned(), "poisoned".to_owned()));
        assert_eq!(scene.waits().await?, days);
    }
    Ok(())
}

/// A row that somebody else wrote, or that is of another time, is as good as none.
#[tokio::test]
async fn what_cannot_be_read_is_forgotten() -> Result<()> {
    let scene = Scene::days(4).await?;
    scene.refuse(&[1], "no").await?;
    for damage in [
        "tuple = '7'",
        "tuple = '{\"keys\": [0.5], \"values\": []}'",
        "reason = 'x'",
        "since = 'infinity'",
        "last_look = '-infinity'",
        "range_end = 'infinity'",
    ] {
        scene.sweep_at(NOW).await?;
        let due = "update tailrace.calendar set next_look = null";
        scene.database.sql(&format!("update tailrace.waiting set {damage}; {due}")).await?;
        let plan = scene.database.plan_json(NOW).await?;
        assert_eq!(plan["waiting"], serde_json::json!([]), "{damage}");
        assert_eq!(plan["expired"].as_array().map(Vec::len), Some(1), "{damage}");
        let file = NewFile::of(["18003"]);
        scene.table.append(vec![file]).await?;
        let report = scene.sweep_at(NOW).await?;
        assert_eq!(report.outcome, Outcome::Poisoned, "{damage}");
    }
    Ok(())
}

/// The log tells it when it is found, when the database says something else, and when it is over.
#[tokio::test]
async fn it_is_logged_once_per_change() -> Result<()> {
    let scene = Scene::days(4).await?;
    scene.refuse(&[1, 2], "no").await?;
    let args = ["sweep", "--output", "json"];
    let first = scene.database.ran(&args).await?;
    assert_eq!(first.code, 3, "{first:?}");
    let told = |ran: &Ran, event: &str| -> Vec<String> {
        let of = |line: &Value| line["partition"].as_str().unwrap_or_default().to_owned();
        ran.events(event).iter().map(of).collect()
    };
    assert_eq!(told(&first, "tuple_poisoned"), ["2019-04-15", "2019-04-16"]);
    let event = &first.events("tuple_poisoned")[0];
    assert_eq!((&event["files"], &event["level"]), (&1.into(), &"WARN".into()), "{event}");
    assert_eq!((&event["partition_values"], &event["spec_id"]), (&"[\"18001\"]".into(), &1.into()));
    assert!(event["error"].as_str().is_some_and(|error| error.contains("P0001")), "{event}");

    // Somebody asked for the pass, so it heeds no pause; what it is told again is no news.
    scene.refusals().await?;
    let again = scene.database.ran(&args).await?;
    assert_eq!((again.code, told(&again, "tuple_poisoned").len()), (3, 0));
    assert_eq!(again.events("table_failed").len(), 0);
    assert_eq!(again.events("table_finished")[0]["outcome"], "poisoned");
    assert_eq!(scene.refusals().await?, 2);
    scene.refuse(&[1, 2], "something else").await?;
    let changed = scene.database.ran(&args).await?;
    assert_eq!(told(&changed, "tuple_poisoned"), ["2019-04-15", "2019-04-16"]);

    // One goes by other hands, one once nothing refuses it.
    let mut session = scene.database.tailrace().session().await?;
    scene.refuse(&[2], "something else").await?;
    let body = drop_of(vec![item([Some("18001")])]);
    drop_partitions(&mut session, &raw(), &body, "me", &patient()).await?;
    close(session).await;
    let gone = scene.database.ran(&args).await?;
    assert_eq!(told(&gone, "tuple_released"), ["2019-04-15"]);
    assert_eq!(gone.code, 3);
    scene.let_go().await?;
    let last = scene.database.ran(&args).await?;
    assert_eq!((told(&last, "tuple_released"), last.code), (vec!["2019-04-16".to_owned()], 0));
    assert_eq!(scene.waiting().await?.len(), 0);
    Ok(())
}

/// An explicit drop that is refused says so; the log has the row, the table and the partitions.
#[tokio::test]
async fn an_explicit_drop_that_is_refused_says_what_the_database_said() -> Result<()> {
    let scene = Scene::days(2).await?;
    scene.refuse(&[1], "not this one").await?;
    let args = ["drop", "lake", "events.raw", "--partition", "[\"18001\"]", "--yes"];
    let ran = scene.database.ran(&args).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    let [failed] = &ran.events("request_failed")[..] else { panic!("{}", ran.err) };
    assert_eq!((&failed["catalog"], &failed["table"]), (&"lake".into(), &"raw".into()), "{failed}");
    assert_eq!(failed["partitions"], "[[\"18001\"]]");
    let error = "the database says: not this one (SQLSTATE P0001); \
                 in PL/pgSQL function refuse_files() line 4 at RAISE";
    assert_eq!(failed["error"], error);
    assert!(
        ran.err.contains("the database refuses to end these files of table events.raw"),
        "{ran:?}"
    );
    assert_eq!(scene.live().await?, [0, 1]);
    Ok(())
}

/// What the server says of the row holds the snapshot that was tried: it is no change.
#[tokio::test]
async fn a_row_that_is_told_with_another_snapshot_is_no_change() -> Result<()> {
    let scene = Scene::days(3).await?;
    let check = format!(
        "alter table hog_data_file add constraint kept
           check (data_file_id <> {} or end_snapshot is null) not valid",
        scene.files[1]
    );
    scene.database.sql(&check).await?;
    let mut told = Vec::new();
    let mut errors = Vec::new();
    for day in ["18100", "18101", "18102"] {
        let ran = scene.database.ran(&["sweep"]).await?;
        told.push(ran.events("tuple_poisoned").len());
        let error = "select error from tailrace.waiting";
        errors.push(scene.database.text(error).await?.context("an error")?);
        scene.table.append(vec![NewFile::of([day])]).await?;
    }
    assert_eq!(told, [1, 0, 0]);
    assert!(errors[0].contains("Failing row contains") && errors[0] != errors[1], "{errors:?}");
    Ok(())
}
