//! Tests of what else depends on the clock: compaction claims, receipts, history.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::receipts::purge;
use tailrace::claims::{Settings, renew};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::{HOUR, Scene, THIS, YEAR};
use crate::support::program::days_ago;

#[tokio::test]
async fn nothing_is_claimed_or_released_by_such_a_clock() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    scene.table.append([8, 2].map(|age| NewFile::of([days_ago(age)])).to_vec()).await?;
    let at = |clock| Settings { clock: Some(clock), ..crate::claims::settings() };
    let database = scene.database.tailrace();
    let before = scene.everything().await?;
    for clock in [
        scene.clock(YEAR, HOUR, Some((HOUR, THIS))),
        scene.clock(YEAR, YEAR, Some((HOUR, THIS))),
        scene.clock(-HOUR, 0, None),
    ] {
        let renewed = renew(&database, &at(clock), None).await?;
        assert_eq!((renewed.files, renewed.rows, renewed.failed.len()), (0, 0, 1), "{clock:?}");
        assert_eq!((renewed.failed[0].catalog.as_str(), &renewed.failed[0].table), ("lake", &None));
        let error = &renewed.failed[0].error;
        assert!(error.starts_with("nothing is claimed or released: "), "{error}");
        assert_eq!(scene.everything().await?, before);
    }
    let renewed = renew(&database, &at(scene.agreed(HOUR)), None).await?;
    assert_eq!((renewed.files, renewed.failed), (1, vec![]));
    // What was claimed stays as it is.
    let claimed = scene.everything().await?;
    let jumped = scene.clock(-YEAR, 0, Some((HOUR, THIS)));
    renew(&database, &at(jumped), None).await?;
    assert_eq!(scene.everything().await?, claimed);
    Ok(())
}

/// A receipt that a clock dated which was behind looks old when the clock is right: its key must still
/// be answered, or the drop would be repeated.
#[tokio::test]
async fn what_a_refused_clock_dated_ages_from_the_acceptance() -> Result<()> {
    let scene = Scene::new().await?;
    let receipt = "INSERT INTO tailrace.drop_receipt (catalog_id, idempotency_key, fingerprint,
                          snapshot_id, schema_version, committed, files_ended,
                          delete_files_ended, records, bytes, ended, created_at)
                   SELECT catalog_id, gen_random_uuid(), '', 1, 1, false, 0, 0, 0, 0, '[]',
                          now() - interval '8 days' FROM hog_catalog";
    let history = "INSERT INTO tailrace.drop_history (catalog_id, snapshot_id, drop_id, table_id,
                          table_uuid, dropped_at, files_ended, delete_files_ended, records, bytes,
                          partitions, purged_seen_at, last_removal_id, gone_seen_at)
                   SELECT catalog_id, 1, gen_random_uuid(), 1, gen_random_uuid(), snapshot_time, 1, 0,
                          1, 1, '[]', now(), 0, now() - interval '91 days'
                     FROM hog_snapshot WHERE snapshot_id = 1";
    let left = "SELECT (SELECT count(*) FROM tailrace.drop_receipt) || ' '
                    || (SELECT count(*) FROM tailrace.drop_history)";
    let began = |ago: &str| {
        format!("UPDATE tailrace.clock_memory SET epoch_began = now() - interval '{ago}'")
    };
    scene.database.sql(&format!("{receipt}; {history}")).await?;
    // A day behind: refused, then accepted again.
    assert_eq!(scene.outcome(scene.clock(0, 25 * HOUR, None)).await?, Outcome::ClockSkew);
    for (ago, expected) in [
        ("0 s", "1 1"),
        ("7 days -1 min", "1 1"),
        ("7 days 1 s", "0 1"),
        ("90 days -1 min", "0 1"),
        ("90 days 1 s", "0 0"),
    ] {
        scene.pass(scene.agreed(0)).await?;
        assert_eq!(scene.epoch().await?.0, 1);
        scene.database.sql(&began(ago)).await?;
        scene.pass(scene.agreed(0)).await?;
        assert_eq!(scene.database.text(left).await?.as_deref(), Some(expected), "{ago}");
    }
    // Where no clock was ever refused, age alone counts.
    scene.database.sql(&format!("{receipt}; {}", began("0 s"))).await?;
    scene.database.sql("UPDATE tailrace.clock_memory SET epoch = 0").await?;
    let mut session = scene.database.tailrace().session().await?;
    assert_eq!(purge(&mut session, Duration::from_secs(7 * 86_400), &[], 10).await?, 1);
    Ok(())
}
