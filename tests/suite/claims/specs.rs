//! Tests that renewals copy partition specs: the time between two passes may be longer than the
//! server keeps a spec that ended.

use anyhow::Result;
use tailrace::claims::{Settings as ClaimSettings, renew};
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::report::TableReport;
use tailrace_kit::lake::{Field, NewFile, Table};

use super::settings;
use crate::support::TestDatabase;
use crate::support::governed::{live_ids, of_table};

fn at(text: &str) -> UtcInstant {
    text.parse().expect("an instant")
}

async fn sweep_at(database: &TestDatabase, now: &str) -> Result<TableReport> {
    let settings = Settings { as_of: Some(at(now)), ..crate::support::program::settings() };
    Ok(of_table(&database.sweep_with(&settings).await?, "raw").clone())
}

/// A table by day, whose specs by month and by day again began after the pass at its beginning; that by
/// month has ended, and the server has deleted it. A renewal looked while it was there, if `settings` is
/// given.
async fn with_a_vanished_month(settings: Option<ClaimSettings>) -> Result<(TestDatabase, Table)> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    sweep_at(&database, "2027-01-01T00:00:00Z").await?;
    table.evolve_spec(&[Field::month("at")]).await?;
    if let Some(settings) = settings {
        let now = Some(at("2027-01-01T00:05:00Z"));
        let renewed = renew(&database.tailrace(), &settings, now).await?;
        assert_eq!(renewed.failed, []);
        // Only a pass dates what it sees.
        let copies =
            "SELECT spec_id, copied_at IS NULL AS undated FROM tailrace.spec_copy ORDER BY 1";
        assert_eq!(
            database.rows(copies).await?,
            [r#"{"spec_id": 1, "undated": false}"#, r#"{"spec_id": 2, "undated": true}"#]
        );
    }
    table.evolve_spec(&[Field::day("at")]).await?;
    table.delete_vanished_specs().await?;
    Ok((database, table))
}

/// Long after the change of specs a stale writer stores a month, which is not over, under the spec by day,
/// where it reads as a day of 1971. Known to be a month it stays, whatever the order of rows says.
#[tokio::test]
async fn a_spec_that_vanishes_before_the_next_pass_is_known() -> Result<()> {
    let on = settings();
    for settings in [on, ClaimSettings { claims: false, ..on }] {
        let (database, table) = with_a_vanished_month(Some(settings)).await?;
        sweep_at(&database, "2027-01-01T06:00:00Z").await?;
        sweep_at(&database, "2027-01-09T00:00:00Z").await?;
        // Month 684 is 2027-01.
        let stale = table.append(vec![NewFile::of(["684"])]).await?.file_ids;
        assert_eq!(sweep_at(&database, "2027-01-10T00:00:00Z").await?.snapshots, []);
        assert_eq!(live_ids(&table).await?, stale);
        // When the month is old, it goes.
        assert_eq!(sweep_at(&database, "2027-02-08T00:00:00Z").await?.counts().files, 1);
    }
    Ok(())
}

/// What the server deleted before anybody looked stays unknown: this is what the renewal is for.
#[tokio::test]
async fn without_a_look_in_between_it_is_not() -> Result<()> {
    let (database, table) = with_a_vanished_month(None).await?;
    sweep_at(&database, "2027-01-01T06:00:00Z").await?;
    sweep_at(&database, "2027-01-09T00:00:00Z").await?;
    table.append(vec![NewFile::of(["684"])]).await?;
    assert_eq!(sweep_at(&database, "2027-01-10T00:00:00Z").await?.counts().files, 1);
    Ok(())
}

/// Servers before V15 know no claims; their specs vanish all the same.
#[tokio::test]
async fn a_server_without_claims_has_its_specs_copied() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.sql("DROP TABLE hog_compaction_claim").await?;
    renew(&database.tailrace(), &settings(), None).await?;
    let copies = "SELECT count(*) FROM tailrace.spec_copy";
    assert_eq!(database.text(copies).await?.as_deref(), Some("1"));
    Ok(())
}

/// Whoever copies beside a pass takes nothing from what the pass noted, whichever of them is first.
#[tokio::test]
async fn a_copy_that_is_there_keeps_all_that_is_noted() -> Result<()> {
    let (database, _) = with_a_vanished_month(None).await?;
    sweep_at(&database, "2027-01-01T06:00:00Z").await?;
    sweep_at(&database, "2027-01-09T00:00:00Z").await?;
    let rows = "SELECT * FROM tailrace.spec_copy ORDER BY spec_id";
    let before = database.rows(rows).await?;
    assert!(before.iter().all(|row| !row.contains(r#""mark_row_id": null"#)), "{before:?}");
    let renewals = (0..4).map(|_| async {
        renew(&database.tailrace(), &settings(), Some(at("2027-01-09T00:05:00Z"))).await
    });
    for renewed in futures_util::future::join_all(renewals).await {
        assert_eq!(renewed?.failed, []);
    }
    assert_eq!(database.rows(rows).await?, before);
    Ok(())
}
