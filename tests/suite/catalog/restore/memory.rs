//! Tests of what passes noted of specs, and what a person accepted, across a restore.

use anyhow::Result;
use tailrace::catalog::clock_memory::accept;
use tailrace::catalog::connect::close;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile};

use super::Scene;
use crate::support::governed::kept;
use crate::support::program::{days_ago, proven_18000};

const SPECS: &str = "SELECT string_agg(spec_id || ' ' || (fields -> 0 ->> 'transform'), ', '
                                       ORDER BY spec_id, fields -> 0 ->> 'transform')
                       FROM tailrace.spec_copy";

/// A spec's id is given out again, to another spec: it is not disputed, nor by what another restore takes
/// back.
#[tokio::test]
async fn a_spec_that_a_restore_took_back_disputes_no_other_one() -> Result<()> {
    let scene = Scene::new().await?;
    let backup = scene.database.back_up("before").await?;
    scene.table.evolve_spec(&[Field::month("at")]).await?;
    scene.sweep().await?;
    assert_eq!(scene.database.text(SPECS).await?.as_deref(), Some("1 day, 2 month"));
    let known = ["-2 month, 1 day, 2 hour", "-2 hour, -2 month, 1 day, 2 hour"];
    for (appended, known) in known.into_iter().enumerate() {
        scene.database.restore(&backup).await?;
        // Each time it begins in another snapshot.
        for _ in 0..appended {
            scene.append([0]).await?;
        }
        scene.table.evolve_spec(&[Field::hour("at")]).await?;
        let before = scene.database.text(SPECS).await?;
        // A command copies no spec of a catalog that was restored and not settled.
        scene.database.policy("lake", "events.raw", "at", "7d").await?;
        assert_eq!(scene.database.text(SPECS).await?, before);
        let hour = days_ago(9).parse::<i64>()? * 24;
        scene.table.append(vec![NewFile::of([hour.to_string()])]).await?;
        scene.dropping(1).await?;
        assert_eq!(scene.database.text(SPECS).await?.as_deref(), Some(known));
        // The window in SQL reads the table's specs alike.
        let (catalog_id, table_id) = (scene.catalog.catalog_id, scene.table.table_id);
        let window =
            format!("SELECT tailrace.in_drop_window({catalog_id}, {table_id}, 2, '{{{hour}}}')");
        assert_eq!(scene.database.text(&window).await?.as_deref(), Some("true"));
    }
    Ok(())
}

/// A writer goes on with the spec that a restore took back: what it stores under the spec that is live
/// is read by both.
#[tokio::test]
async fn values_of_a_spec_that_a_restore_took_back_are_kept() -> Result<()> {
    let scene = Scene::new().await?;
    let backup = scene.database.back_up("before").await?;
    scene.table.evolve_spec(&[Field::month("at")]).await?;
    scene.sweep().await?;
    scene.database.restore(&backup).await?;
    // The month of now, stored under the spec by day: the day of that number is long ago.
    let month = (days_ago(0).parse::<f64>()? / 30.436_875).floor();
    scene.table.append(vec![NewFile::of([format!("{month}")])]).await?;
    scene.append([9]).await?;
    scene.dropping(1).await?;
    let plan = scene.database.plan("raw", &chrono::Utc::now().to_rfc3339()).await?;
    assert_eq!(kept(&plan), [("ambiguous_spec", 1)]);
    Ok(())
}

/// Marks are row ids: those that were noted since are noted anew, a window from now; older ones stay.
#[tokio::test]
async fn marks_that_were_noted_since_are_noted_anew() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.database.sweep().await?;
    scene
        .database
        .sql(
            "UPDATE tailrace.spec_copy
                SET mark_row_id = 5, watched_from = 3, marked_at = clock_timestamp() - interval '1 day',
                    copied_at = clock_timestamp() - interval '9 days'",
        )
        .await?;
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    let marks = "SELECT spec_id || ' ' || coalesce(mark_row_id::text, 'none') || ' '
                        || coalesce(watched_from::text, 'none') FROM tailrace.spec_copy
                  WHERE table_id = ";
    let raw = format!("{marks}{}", scene.table.table_id);
    assert_eq!(scene.database.text(&raw).await?.as_deref(), Some("1 5 3"), "it is of before");
    let lost = format!("{marks}{}", other.table_id);
    let kept = scene.database.text(&lost).await?;
    assert_eq!(kept.as_deref(), Some("1 5 3"), "its table is gone, and may come back");

    // The same again, with a mark that was noted after the restored time.
    scene.append([0]).await?;
    scene.sweep().await?;
    scene.database.sql("UPDATE tailrace.spec_copy SET marked_at = clock_timestamp()").await?;
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    assert_eq!(scene.database.text(&raw).await?.as_deref(), Some("1 none none"));
    let due = format!(
        "SELECT extract(day FROM mark_due - marked_at) FROM tailrace.spec_copy WHERE table_id = {}",
        scene.table.table_id
    );
    let days = crate::support::program::settings().stale_writer_window.as_secs() / 86_400;
    assert_eq!(scene.database.text(&due).await?, Some(days.to_string()));
    Ok(())
}

/// Snapshots up to a head were accepted whatever their time; the ids are those of other ones now. What
/// is accepted after the restore stays.
#[tokio::test]
async fn an_acceptance_is_of_the_snapshots_that_it_was_given_for() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    let agreed = scene.catalog.head().await?;
    let backup = scene.database.back_up("before").await?;
    let accept = async || -> Result<Option<i64>> {
        let mut session = scene.database.tailrace().session().await?;
        let head = accept(&mut session, scene.catalog.catalog_id, "me", "a test").await?;
        close(session).await;
        Ok(head)
    };
    let trusted = "SELECT trusted_head FROM tailrace.clock_memory";
    scene.append([0]).await?;
    scene.append([0]).await?;
    assert_eq!(accept().await?, Some(agreed + 2));
    scene.sweep().await?;
    assert_eq!(scene.database.text(trusted).await?, Some((agreed + 2).to_string()));
    scene.database.restore(&backup).await?;
    scene.append([0]).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::NothingToDo);
    assert_eq!(scene.database.text(trusted).await?, Some(agreed.to_string()));

    scene.database.restore(&backup).await?;
    for _ in 0..3 {
        scene.append([0]).await?;
    }
    assert_eq!(accept().await?, Some(agreed + 3));
    scene.sweep().await?;
    assert_eq!(scene.database.text(trusted).await?, Some((agreed + 3).to_string()));
    Ok(())
}

/// A policy knows its column by its id, which another column gets.
#[tokio::test]
async fn a_policy_on_a_column_that_is_no_more_is_paused() -> Result<()> {
    let scene = Scene::new().await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    let late = scene.table.add_column(None, Column::new("late", "timestamptz")).await?;
    scene.table.evolve_spec(&[Field::day("late")]).await?;
    scene.database.govern(&scene.table, "late", "7d").await?;
    scene.sweep().await?;
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    let birth = scene.table.add_column(None, Column::new("birth", "timestamptz")).await?;
    assert_eq!(late.get("late"), birth.get("birth"));
    scene.table.evolve_spec(&[Field::day("birth")]).await?;
    scene.append([9]).await?;
    assert_eq!(scene.sweep().await?.outcome, Outcome::Paused);
    // One on a column that was there goes on, though it was set since.
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    scene.database.govern(&scene.table, "at", "7d").await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    scene.database.restore(&backup).await?;
    // The lost spec was of another column, so that only statistics prove a value.
    scene.table.append(vec![proven_18000("at")]).await?;
    scene.dropping(1).await?;
    Ok(())
}

/// The id goes to another column before any pass comes.
#[tokio::test]
async fn a_policy_does_not_go_over_to_the_column_that_got_its_id() -> Result<()> {
    let scene = Scene::new().await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    let late = scene.table.add_column(None, Column::new("late", "timestamptz")).await?;
    scene.table.evolve_spec(&[Field::day("late")]).await?;
    scene.database.govern(&scene.table, "late", "7d").await?;
    scene.sweep().await?;
    scene.database.restore(&backup).await?;
    let birth = scene.table.add_column(None, Column::new("birth", "timestamptz")).await?;
    assert_eq!(late.get("late"), birth.get("birth"));
    scene.table.evolve_spec(&[Field::day("birth")]).await?;
    let files = scene.append([9]).await?;

    let ran = scene.database.ran(&["sweep"]).await?;

    let paused = &ran.events("policy_paused")[0];
    let told = ["catalog", "namespace", "table", "field", "keep"].map(|of| paused[of].clone());
    assert_eq!(told, ["lake", "events", "raw", "late", "7d"]);
    assert_eq!(scene.live().await?, files);
    assert_eq!(scene.sweep().await?.outcome, Outcome::Paused);
    Ok(())
}
