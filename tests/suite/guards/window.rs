//! Tests of the drop window and of claims: neither has what a pause or a hold keeps.

use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use tailrace::catalog::wakes::first_due;
use tailrace::guards::Guards;
use tailrace::guards::hold::{self, NewHold};
use tailrace::guards::pause::{self, PauseScope};
use tailrace::guards::release::release;
use tailrace::guards::resume::resume;
use tailrace::rules::hold::HoldScope;
use tailrace::rules::instant::UtcInstant;

use super::{TABLE, partitions};
use crate::explicit::{Scene, file};
use crate::support::program::days_ago;

async fn governed() -> Result<Scene> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file(&days_ago(9)), file(&days_ago(8))]).await?;
    scene.database.policy("lake", "events.raw", "day(at)", "7d").await?;
    Ok(scene)
}

/// Whether each of the two days is in the window, and how many rows the view has.
async fn window(scene: &Scene) -> Result<(bool, bool, i64)> {
    let of = async |day: String| -> Result<bool> {
        let is_in = sqlx::query_scalar("select tailrace.in_drop_window($1, $2, 1, array[$3])")
            .bind(scene.catalog.catalog_id)
            .bind(scene.table.table_id)
            .bind(day)
            .fetch_one(&scene.database.pool)
            .await?;
        Ok(is_in)
    };
    let view = sqlx::query_scalar("select count(*) from tailrace.drop_window");
    let rows = view.fetch_one(&scene.database.pool).await?;
    Ok((of(days_ago(9)).await?, of(days_ago(8)).await?, rows))
}

#[tokio::test]
async fn what_is_paused_or_held_is_in_no_window() -> Result<()> {
    let scene = governed().await?;
    assert_eq!(window(&scene).await?, (true, true, 1));
    for scope in [PauseScope::All, PauseScope::Catalog("lake"), TABLE] {
        scene.pause(scope).await?;
        assert_eq!(window(&scene).await?, (false, false, 0), "{scope:?}");
        scene.resume(scope).await?;
        assert_eq!(window(&scene).await?, (true, true, 1));
    }
    for (scope, expected) in [
        (partitions([&days_ago(9)]), (false, true, 1)),
        (HoldScope::Table, (false, false, 0)),
        // A value is judged by the specs, which SQL does not know well enough.
        (HoldScope::Value { source_field_id: 2, value: "x".to_owned() }, (false, false, 0)),
    ] {
        let id = scene.hold(scope).await?;
        assert_eq!(window(&scene).await?, expected);
        scene.database.sql("update tailrace.hold set until = now()").await?;
        assert_eq!(window(&scene).await?, (true, true, 1), "a hold past its end keeps nothing");
        release(&mut scene.session().await?, id, "ben", Duration::ZERO).await?;
    }
    Ok(())
}

/// Held files are left to compaction; a claim that was there goes with the next renewal.
#[tokio::test]
async fn held_files_are_not_claimed() -> Result<()> {
    let scene = crate::claims::Scene::new().await?;
    let ids = scene.files(&[9, 8]).await?;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids);
    let live = scene.database.live(&scene.table).await?.identity;
    let mut session = scene.database.tailrace().session().await?;
    let new = NewHold {
        scope: partitions([&days_ago(9)]),
        column: None,
        reason: "case 7",
        by: "anna",
        until: None,
    };
    let id = hold::add(&mut session, &live, new).await?.hold_id;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids[1..]);
    pause::pause(&mut session, PauseScope::All, "anna", "audit").await?;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, Vec::<i64>::new());
    resume(&mut session, PauseScope::All, "anna", Duration::ZERO).await?;
    release(&mut session, id, "anna", Duration::ZERO).await?;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids);
    Ok(())
}

/// A daemon does not wake for what is paused.
#[tokio::test]
async fn what_is_paused_wakes_nobody() -> Result<()> {
    let scene = governed().await?;
    scene.hold(partitions([&days_ago(9), &days_ago(8)])).await?;
    scene.database.sweep().await?;
    let due = async || -> Result<usize> {
        let (since, until) =
            (UtcInstant::from(Utc::now()), UtcInstant::from(Utc::now() + TimeDelta::days(30)));
        let mut session = scene.session().await?;
        Ok(first_due(&mut session, since, until, Duration::ZERO).await?.len())
    };
    assert_eq!(due().await?, 1);
    for scope in [PauseScope::All, PauseScope::Catalog("lake"), TABLE] {
        scene.pause(scope).await?;
        assert_eq!(due().await?, 0, "{scope:?}");
        scene.resume(scope).await?;
        assert_eq!(due().await?, 1);
    }
    Ok(())
}

/// A renewal that was planned before the catalog had a guard revision claims by the same policy after it has one.
#[tokio::test]
async fn the_first_row_of_a_revision_is_no_change() -> Result<()> {
    let scene = governed().await?;
    let live = scene.database.live(&scene.table).await?.identity;
    let mut session = scene.session().await?;
    let before = Guards::read(&mut session, &live).await?;
    assert_eq!(scene.revision().await?, None);
    let after = Guards::for_drop(&mut session, &live).await?;
    assert_eq!(scene.revision().await?.as_deref(), Some("0"));
    assert_eq!(before, after);
    Ok(())
}
