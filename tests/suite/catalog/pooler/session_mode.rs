//! Tests with a pooler in session mode: everything works as on a direct connection.

use anyhow::{Context, Result};
use sqlx::Row;
use tailrace::catalog::commit_lock::{lease_key, release_lease, try_lease};
use tailrace_kit::pooler::PoolMode;

use super::{behind, client, ran};
use crate::drop::races::{Scene, file};
use crate::support::process::start;
use crate::support::program::days_ago;
use crate::support::wait::until;

/// How many sessions have the lease of the catalog.
async fn leases(scene: &Scene) -> Result<i64> {
    let held = "SELECT count(*) FROM pg_locks
                 WHERE locktype = 'advisory' AND granted AND (classid::bigint << 32) | objid::bigint = $1
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let key = lease_key(scene.catalog.catalog_id);
    Ok(sqlx::query_scalar(held).bind(key).fetch_one(scene.catalog.pool()).await?)
}

#[tokio::test]
async fn passes_and_drops_go_through_and_leave_sessions_clean() -> Result<()> {
    let Some((scene, pooler)) = behind(PoolMode::Session).await? else { return Ok(()) };
    for age in [9, 10] {
        let swept = ran(&pooler, &["sweep"]).await?;
        assert_eq!((swept.code, swept.count("drop_committed")), (Some(0), 1), "{swept:?}");
        assert_eq!(scene.live().await?, [scene.files[0]]);
        scene.table.append(vec![file(age)]).await?;
    }
    let partition = format!("[\"{}\"]", days_ago(10));
    let args = ["drop", "lake", "events.raw", "--partition", &partition, "--yes"];
    let dropped = ran(&pooler, &args).await?;
    assert_eq!((dropped.code, dropped.count("explicit_drop")), (Some(0), 1), "{dropped:?}");
    assert_eq!(scene.live().await?, [scene.files[0]]);
    assert_eq!(leases(&scene).await?, 0);
    let mut client = client(&pooler).await?;
    let mark = "SELECT current_setting('tailrace.session', true)";
    let mark: Option<String> = sqlx::raw_sql(mark).fetch_one(&mut client).await?.try_get(0)?;
    assert_eq!(mark.as_deref(), Some(""), "a session that we had, as the pool left it");
    Ok(())
}

#[tokio::test]
async fn a_lease_is_taken_kept_from_others_and_given_back() -> Result<()> {
    let Some((scene, pooler)) = behind(PoolMode::Session).await? else { return Ok(()) };
    let catalog_id = scene.catalog.catalog_id;
    let mut direct = scene.database.tailrace().session().await?;
    assert!(try_lease(&mut direct, catalog_id).await?.is_some());
    let skipped = ran(&pooler, &["sweep"]).await?;
    assert_eq!((skipped.code, skipped.count("catalog_skipped")), (Some(3), 1), "{skipped:?}");
    assert_eq!(scene.live().await?, scene.files);
    assert!(release_lease(&mut direct, catalog_id).await?);

    // The other way round: while a pass of a daemon is in work, the lease is not to be had.
    let mut writer = scene.catalog.pool().begin().await?;
    sqlx::query("LOCK TABLE hog_data_file").execute(&mut *writer).await?;
    let mut run = start(&pooler.url(), &["run"], &[("TAILRACE__SCHEDULE__EVERY", "1d")])?;
    until("the daemon has the lease", async || Ok(leases(&scene).await? == 1)).await?;
    assert!(try_lease(&mut direct, catalog_id).await?.is_none());
    writer.rollback().await?;
    run.event("pass_finished", 1).await?;
    assert_eq!(scene.live().await?, [scene.files[0]]);
    assert!(try_lease(&mut direct, catalog_id).await?.is_some());
    run.signal("TERM").await?;
    assert_eq!(run.end().await?.code.context("ended by itself")?, 0);
    Ok(())
}
