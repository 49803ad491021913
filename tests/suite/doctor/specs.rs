//! Tests of the findings on specs that somebody trusted, and on specs without a mark yet.

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{CatalogOptions, Field, NewFile};

use crate::doctor::text;
use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

#[tokio::test]
async fn trusted_ones_are_noted_and_waiting_ones_counted() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::bucket("kind", 100)]).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    table.append(vec![NewFile::of([days_ago(0)])]).await?;
    // A table without a policy does not count.
    let other = database.table(&catalog, "other", &[Field::identity("kind")]).await?;
    other.evolve_spec(&[Field::day("at")]).await?;
    let all = "no spec waits for its proof by row order";
    assert_eq!(database.doctor().await?.of("specs"), [("ok", all)]);
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    database.sql("update tailrace.spec_copy set copied_at = '2026-09-17T05:00:00Z'").await?;
    let due = "2026-09-24T05:00:00Z";
    let waits = format!("1 spec waits for its proof by row order, due {due}");
    assert_eq!(database.doctor().await?.of("specs"), [("ok", waits.as_str())]);
    table.evolve_spec(&[Field::hour("at")]).await?;
    database.sql("update tailrace.policy set mode = 'paused'").await?;
    let as_of: UtcInstant = "2026-09-23T05:00:00Z".parse()?;
    database.sweep_with(&Settings { as_of: Some(as_of), ..settings() }).await?;
    let wait = format!("2 specs wait for their proof by row order, the first due {due}");
    assert_eq!(database.doctor().await?.of("specs"), [("ok", wait.as_str())]);
    let as_of: UtcInstant = "2026-10-23T05:00:00Z".parse()?;
    database.sweep_with(&Settings { as_of: Some(as_of), ..settings() }).await?;
    assert_eq!(database.doctor().await?.of("specs"), [("ok", all)]);

    let trust = ["spec", "trust", "lake", "events.raw", "2", "--reason", "checked", "--yes"];
    assert_eq!(database.ran(&trust).await?.code, 0);
    database
        .sql(
            "update tailrace.spec_copy set trusted_at = '2026-09-17T05:00:00Z'
              where trusted_at is not null",
        )
        .await?;
    let said = database.doctor().await?;
    let what = "spec 2 (day(at)) is trusted since 2026-09-17T05:00:00Z by tester: checked";
    assert_eq!(said.of("specs"), [("note", what), ("ok", all)]);
    assert_eq!(text(&said.whole("specs")[0]["table"]), "events.raw");
    // The statement that it comes with takes the trust back.
    let [take_back] = said.statements("specs")[..] else { panic!("{:?}", said.findings) };
    database.sql(take_back).await?;
    assert_eq!(database.doctor().await?.of("specs"), [("ok", all)]);
    Ok(())
}

/// Specs are looked at by passes and by renewals of claims, whichever come more often.
#[tokio::test]
async fn a_retention_shorter_than_the_time_between_looks_is_warned_of() -> Result<()> {
    let database = TestDatabase::new().await?;
    let retention = Some(std::time::Duration::from_secs(600));
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    database.lake.catalog("lake", options).await?;
    let (every, renew) = ("TAILRACE__SCHEDULE__EVERY", "TAILRACE__COMPACTION__RENEW_EVERY");
    for (every_is, renew_is, level, what) in [
        (
            "6h",
            "599s",
            "ok",
            "a daemon copies specs every 9 minutes, and each stays for 10 minutes after it began",
        ),
        (
            "9m",
            "15m",
            "ok",
            "a daemon copies specs every 9 minutes, and each stays for 10 minutes after it began",
        ),
        (
            "6h",
            "10m",
            "warning",
            "a partition spec stays for 10 minutes after it began, and a daemon copies specs every 10 minutes",
        ),
        (
            "10m",
            "15m",
            "warning",
            "a partition spec stays for 10 minutes after it began, and a daemon copies specs every 10 minutes",
        ),
    ] {
        let said = database.doctor_with(&[(every, every_is), (renew, renew_is)]).await?;
        assert_eq!(said.of("spec_copies"), [(level, what)], "{every_is} {renew_is}");
    }
    database.sql("UPDATE hog_catalog SET snapshot_retention_seconds = NULL").await?;
    assert_eq!(database.doctor().await?.of("spec_copies"), []);
    Ok(())
}
