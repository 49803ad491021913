//! Tests of two passes on one catalog.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::commit_lock::lease_key;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::Field;
use tailrace_kit::simulated_loops::HeldFiles;

use crate::support::gate::{Gate, caught_at_a_row, leases, queue, while_it_waits};
use crate::support::wait::until;

use super::{Scene, file, only, patient, whole};

#[tokio::test]
async fn one_works_and_the_other_skips_the_catalog() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let pond = scene.database.catalog("pond").await?;
    let other = scene.database.table(&pond, "raw", &[Field::day("at")]).await?;
    other.append(vec![file(8)]).await?;
    scene.database.policy("pond", "events.raw", "at", "7d").await?;
    let mut settings = patient();
    // The second one shall find the other catalog untouched.
    settings.parallel_catalogs = 1;
    let (first, second) = while_it_waits(
        &scene.catalog,
        scene.database.sweep_with(&settings),
        scene.database.json(&["sweep", "--output", "json"]),
    )
    .await?;
    // The second one had the other catalog for itself.
    let (second, code) = second;
    assert_eq!(code, 0);
    assert_eq!(second["skipped_catalogs"], serde_json::json!(["lake"]));
    assert_eq!(second["tables"].as_array().map(Vec::len), Some(1));
    assert_eq!(second["tables"][0]["catalog"], "pond");
    assert_eq!(second["tables"][0]["outcome"], "dropped");
    let outcomes: Vec<_> = first.tables.iter().map(|t| (t.catalog.as_str(), t.outcome)).collect();
    assert_eq!(outcomes, [("lake", Outcome::Dropped), ("pond", Outcome::NothingToDo)]);
    assert_eq!(first.skipped_catalogs, Vec::<String>::new());
    assert_eq!(leases(&scene.catalog).await?, 0, "it ended with the pass");
    assert_eq!(scene.database.sweep().await?.skipped_catalogs, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_killed_process_leaves_no_lease_behind() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let gate = Gate::shut(&scene.catalog).await?;
    let mut run = scene.database.start(&["sweep"], &[("TAILRACE__SWEEP__LOCK_TIMEOUT", "1m")])?;
    queue(&scene.catalog, 1).await?;
    assert_eq!(leases(&scene.catalog).await?, 1);
    assert_eq!(scene.database.sweep().await?.skipped_catalogs, ["lake"]);
    run.kill().await?;
    // Its session gets the lock that it still waits for, finds nobody to tell, and ends.
    gate.open().await?;
    until("the lease is free", async || Ok(leases(&scene.catalog).await? == 0)).await?;
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    assert_eq!(scene.sweep().await?.outcome, Outcome::Dropped);
    Ok(())
}

/// Whoever loses the session has lost the lease, and does not go on beside the one who took it.
#[tokio::test]
async fn a_pass_that_lost_its_lease_to_another_one_stops() -> Result<()> {
    let scene = Scene::of(vec![file(0), file(8), file(9).pending()]).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    let mut settings = patient();
    settings.limits.row_lock_timeout = Duration::from_secs(60);
    let mut successor = scene.database.pool.acquire().await?;
    let take_over = async {
        let first = caught_at_a_row(&scene.catalog).await?;
        // The other one stands in the queue for the lease when the first one's session ends.
        let lease = sqlx::query("SELECT pg_advisory_lock($1)")
            .bind(lease_key(scene.catalog.catalog_id))
            .execute(&mut *successor);
        let end = async {
            until("another one waits for the lease", async || {
                let waiting: i64 = sqlx::query_scalar(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                        AND wait_event = 'advisory'",
                )
                .fetch_one(scene.catalog.pool())
                .await?;
                Ok(waiting == 1)
            })
            .await?;
            sqlx::query("SELECT pg_terminate_backend($1)")
                .bind(first)
                .execute(scene.catalog.pool())
                .await?;
            anyhow::Ok(())
        };
        tokio::try_join!(async { anyhow::Ok(lease.await?) }, end)?;
        Ok(held.release().await?)
    };
    let (report, ()) = tokio::try_join!(scene.sweep_with(&settings), take_over)?;
    assert_eq!(report.outcome, Outcome::Failed);
    let error = report.error.clone().unwrap_or_default();
    assert!(error.contains("another daemon has taken over the catalog"), "{error}");
    assert_eq!(report.snapshots.len(), 0);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    successor.close().await?;
    until("the lease is free", async || Ok(leases(&scene.catalog).await? == 0)).await?;
    assert_eq!(only(&scene.sweep().await?).files_ended, 2);
    Ok(())
}
