//! Tests of the findings on policies without effect, passes that do not run, consumers of the feed
//! that lag, and tables without a policy.

use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use serde_json::json;
use tailrace::doctor::{Doctor, examine};
use tailrace::policy::Mode;
use tailrace_kit::lake::{CatalogOptions, Field, NewFile, Table};
use tailrace_kit::simulated_loops::Consumer;

use crate::doctor::debt::Tier;
use crate::doctor::text;
use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

/// A catalog with nothing to say of it, and a table that is partitioned by day.
async fn a_table(database: &TestDatabase) -> Result<Table> {
    let retention = Some(Duration::from_secs(3600));
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    let catalog = database.lake.catalog("lake", options).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of([days_ago(0)])]).await?;
    Ok(table)
}

#[tokio::test]
async fn a_policy_in_effect() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    let none = database.doctor().await?;
    assert_eq!(none.of("policies"), [("ok", "no table has a policy")]);
    database.govern(&table, "at", "7d").await?;
    let said = database.doctor().await?;
    assert_eq!(said.of("policies"), [("ok", "1 policy, which is in effect")]);
    assert_eq!(said.of("passes"), [("ok", "no full pass yet, and none is due")]);
    let every = "every table that is partitioned by time has a policy";
    assert_eq!(said.of("ungoverned"), [("ok", every)]);
    // The tests' role is a superuser, and that is all there is to tell.
    assert_eq!((said.code, said.told()), (0, vec![("rights", "warning")]));
    Ok(())
}

#[tokio::test]
async fn watched_or_paused_for_long() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    for mode in [Mode::Observe, Mode::Paused] {
        database.govern_as(&table, "at", "7d", mode).await?;
        let said = database.doctor().await?;
        let found = said.of("policies");
        assert_eq!((found.len(), found[0].0), (1, "note"));
        database.sql("UPDATE tailrace.policy SET updated_at = '2026-09-17T05:00:00Z'").await?;
        let what = format!("the policy's mode is {mode} since 2026-09-17T05:00:00Z");
        let said = database.doctor().await?;
        assert_eq!(said.of("policies"), [("warning", what.as_str())]);
        assert_eq!(text(&said.whole("policies")[0]["table"]), "events.raw");
        assert_eq!(said.of("passes"), [("ok", "no full pass yet, and none is due")]);
    }
    Ok(())
}

#[tokio::test]
async fn a_policy_that_dates_nothing() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    database.govern(&table, "at", "7d").await?;
    table.append(vec![NewFile::of(["x"])]).await?;
    assert_eq!(database.doctor().await?.of("policies")[0].0, "ok");
    database.sql("UPDATE hog_file_partition_value SET value = 'x'").await?;
    let said = database.doctor().await?;
    let what = "the policy's field at dates none of the newest live files";
    assert_eq!((said.code, said.of("policies")), (3, vec![("problem", what)]));
    Ok(())
}

#[tokio::test]
async fn a_policy_whose_column_is_no_longer_partitioned_by() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    database.govern(&table, "at", "7d").await?;
    table.evolve_spec(&[Field::bucket("kind", 4)]).await?;
    let said = database.doctor().await?;
    let what = "the live partition spec has no time field on at";
    assert_eq!((said.code, said.of("policies")), (3, vec![("problem", what)]));
    Ok(())
}

#[tokio::test]
async fn a_property_that_is_refused_and_a_packed_table() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.lake.add_packed_tables().await?;
    let table = a_table(&database).await?;
    table.set_property("partition_retention", Some("{")).await?;
    let said = database.doctor().await?;
    let found = said.of("policies");
    assert_eq!((said.code, found.len(), found[0].0), (3, 1, "problem"));
    assert!(found[0].1.starts_with("the policy is not followed: "), "{found:?}");
    table.set_property("partition_retention", None).await?;
    database.govern(&table, "at", "7d").await?;
    assert_eq!(database.doctor().await?.of("policies")[0].0, "ok");
    table.pack().await?;
    let said = database.doctor().await?;
    let what = "the table is not made of parquet files, and has no partitions to drop";
    assert_eq!((said.code, said.of("policies")), (3, vec![("problem", what)]));
    Ok(())
}

#[tokio::test]
async fn passes_that_do_not_come() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    database.govern(&table, "at", "7d").await?;
    let late = [("warning", "no full pass has finished lately over events.raw")];
    let set = |age: &str| {
        format!("UPDATE tailrace.policy SET updated_at = clock_timestamp() - interval '{age}'")
    };
    database.sql(&set("47 hours")).await?;
    let none = [("ok", "no full pass yet, and none is due")];
    assert_eq!(database.doctor().await?.of("passes"), none);
    let halved = [("TAILRACE__SWEEP__FULL_PASS_EVERY", "23h")];
    assert_eq!(database.doctor_with(&halved).await?.of("passes"), late);
    database.sql(&set("49 hours")).await?;
    assert_eq!(database.doctor().await?.of("passes"), late);
    database.sweep_one().await?;
    let said = database.doctor().await?;
    let what = said.of("passes");
    assert_eq!((what.len(), what[0].0), (1, "ok"));
    assert!(what[0].1.starts_with("every enforced table has its full passes, the newest of 2"));
    let since = |age: &str| {
        format!(
            "UPDATE tailrace.table_state SET full_pass_at = clock_timestamp() - interval '{age}'"
        )
    };
    database.sql(&since("47 hours")).await?;
    assert_eq!(database.doctor().await?.of("passes")[0].0, "ok");
    database.sql(&since("49 hours")).await?;
    assert_eq!(database.doctor().await?.of("passes"), late);
    // Paused, and enforced again: the next full pass is not late yet.
    database.govern_as(&table, "at", "7d", Mode::Paused).await?;
    database.govern(&table, "at", "7d").await?;
    assert_eq!(database.doctor().await?.of("passes")[0].0, "ok");
    Ok(())
}

/// A property waits for its first pass from the snapshot that brought it, whether or not it is mirrored.
#[tokio::test]
async fn passes_that_do_not_come_for_a_property() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    let property = r#"{"field": "at", "keep": "7d"}"#;
    let set = table.set_property("partition_retention", Some(property)).await?;
    let none = [("ok", "no full pass yet, and none is due")];
    let late = [("warning", "no full pass has finished lately over events.raw")];
    for _ in ["not mirrored", "mirrored"] {
        for (hours, expected) in [(47, none), (49, late)] {
            let then = Utc::now() - TimeDelta::hours(hours);
            table.catalog.backdate_snapshot(set, then).await?;
            assert_eq!(database.doctor().await?.of("passes"), expected, "{hours}");
        }
        database.sweep_one().await?;
        database.sql("DELETE FROM tailrace.table_state").await?;
    }
    Ok(())
}

#[tokio::test]
async fn consumers_of_the_servers_feed() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    database.govern(&table, "at", "7d").await?;
    let none = "no consumer of an enforced table depends on the server's feed without a fence";
    assert_eq!(database.doctor().await?.of("consumers"), [("ok", none)]);
    for name in ["b", "a", "c", "d", "e", "f"] {
        Consumer::register(&table, name).await?;
    }
    let told = [("warning", "consumers with an offset: a, b, c, d, e and 1 more")];
    assert_eq!(database.doctor().await?.of("consumers"), told);
    database.sql("UPDATE tailrace.policy SET fence = true").await?;
    assert_eq!(database.doctor().await?.of("consumers"), [("ok", none)]);
    database.govern_as(&table, "at", "7d", Mode::Observe).await?;
    assert_eq!(database.doctor().await?.of("consumers"), [("ok", none)]);
    Ok(())
}

#[tokio::test]
async fn what_a_policy_would_free() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    let files = [7, 8, 30, 31, 91].map(|age| NewFile::of([days_ago(age)]).bytes(100));
    table.append(files.into()).await?;
    database.table(&table.catalog, "by_kind", &[Field::identity("kind")]).await?;
    let said = database.doctor().await?;
    let found = said.whole("ungoverned");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        (text(&found[0]["level"]), text(&found[0]["table"]), text(&found[0]["what"])),
        (
            "note",
            "events.raw",
            "partitioned by day(at) without a policy; a keep would free: 7d 4 files, 400 bytes; \
             30d 2 files, 200 bytes; 90d 1 files, 100 bytes"
        )
    );
    let frees = json!([
        {"keep_days": 7, "files": 4, "bytes": 400},
        {"keep_days": 30, "files": 2, "bytes": 200},
        {"keep_days": 90, "files": 1, "bytes": 100},
    ]);
    assert_eq!(found[0]["frees"], frees);
    Ok(())
}

/// A table with more files than are read at once is reported from the server's sample.
#[tokio::test]
async fn what_it_would_free_of_a_large_table() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    table.append(vec![NewFile::of([days_ago(9)])]).await?;
    let mut settings = settings();
    settings.scan_limits.small_table = 1;
    let own = database.tailrace();
    let doctor = Doctor { database: &own, settings: &settings, catalog: Some("lake") };
    let what = async || -> Result<String> {
        let report = examine(&doctor).await?;
        let found: Vec<_> =
            report.findings.into_iter().filter(|found| found.check == "ungoverned").collect();
        anyhow::ensure!(found.len() == 1, "{found:?}");
        Ok(found[0].what.clone())
    };
    assert_eq!(
        what().await?,
        "partitioned by day(at) without a policy; the table is too large to be read here and the \
         server has no sample of it"
    );
    let days = [8, 40].map(days_ago);
    let values = days.each_ref().map(|day| [day.as_str()]);
    let tiers = values.each_ref().map(|values| Tier {
        generation: 1,
        table: &table,
        values: Some(values),
        counts: [3, 3, 3, 30, 30, 3],
    });
    database.sample(&tiers).await?;
    database.publish(&table, 1, 1).await?;
    assert_eq!(
        what().await?,
        "partitioned by day(at) without a policy; a keep would free, by the server's sample of \
         2026-09-17T00:00:00Z: 7d 6 files, 60 bytes; 30d 3 files, 30 bytes; 90d 0 files, 0 bytes"
    );
    Ok(())
}
