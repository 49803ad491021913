//! Tests of tables whose spec changed: each file is judged by the spec that it was written under.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{expired, kept, live_ids, live_values, of_table, values};
use crate::support::program::proven_18000;

/// Two generations of a table: files under the first spec, the change, files under the second.
async fn evolve(
    database: &TestDatabase,
    (first, old): (Field, &[&str]),
    (second, new): (Field, &[&str]),
) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[first]).await?;
    table.append(old.iter().map(|text| NewFile::of([*text])).collect()).await?;
    table.evolve_spec(&[second]).await?;
    if !new.is_empty() {
        table.append(new.iter().map(|text| NewFile::of([*text])).collect()).await?;
    }
    database.govern(&table, "at", "7d").await?;
    Ok(table)
}

/// 679 is 2026-08, 680 is 2026-09; 20712 and 20713 are 2026-09-16 and -17; 497117 is
/// 2026-09-17T05. Each is read by its own spec alone: no text of one is an older text of another.
#[tokio::test]
async fn files_of_both_specs_leave_by_their_own_transform() -> Result<()> {
    let month = (Field::month("at"), ["679", "680"].as_slice());
    let day = (Field::day("at"), ["20712", "20713"].as_slice());
    let hour = (Field::hour("at"), ["497117", "497118"].as_slice());
    let (aug, sep) = ((1, values(["679"]), 1), (1, values(["680"]), 1));
    let (d16, d17) = ((2, values(["20712"]), 1), (2, values(["20713"]), 1));

    let database = TestDatabase::new().await?;
    evolve(&database, month.clone(), day.clone()).await?;
    for (at, expected) in [
        ("2026-09-07T23:59:59.999999Z", vec![]),
        ("2026-09-08T00:00:00Z", vec![aug.clone()]),
        ("2026-09-23T23:59:59.999999Z", vec![aug.clone()]),
        ("2026-09-24T00:00:00Z", vec![aug.clone(), d16.clone()]),
        ("2026-09-25T00:00:00Z", vec![aug.clone(), d16.clone(), d17.clone()]),
        ("2026-10-07T23:59:59.999999Z", vec![aug.clone(), d16.clone(), d17.clone()]),
        ("2026-10-08T00:00:00Z", vec![aug, d16, d17, sep]),
    ] {
        assert_eq!(expired(&database.plan_one(at).await?), expected, "month to day at {at}");
    }

    let database = TestDatabase::new().await?;
    evolve(&database, hour, day).await?;
    let hours = ((1, values(["497117"]), 1), (1, values(["497118"]), 1));
    let days = ((2, values(["20712"]), 1), (2, values(["20713"]), 1));
    for (at, expected) in [
        ("2026-09-23T23:59:59.999999Z", vec![]),
        ("2026-09-24T00:00:00Z", vec![days.0.clone()]),
        ("2026-09-24T05:59:59.999999Z", vec![days.0.clone()]),
        ("2026-09-24T06:00:00Z", vec![days.0.clone(), hours.0.clone()]),
        ("2026-09-24T07:00:00Z", vec![days.0.clone(), hours.0.clone(), hours.1.clone()]),
        ("2026-09-25T00:00:00Z", vec![days.0, hours.0, hours.1, days.1]),
    ] {
        assert_eq!(expired(&database.plan_one(at).await?), expected, "hour to day at {at}");
    }
    Ok(())
}

/// The other way round a day of our time is a month of the far future, and 680, were it a day,
/// would have been expired since 1971.
#[tokio::test]
async fn day_to_month_waits_for_the_months_and_keeps_to_the_days() -> Result<()> {
    let database = TestDatabase::new().await?;
    let day = (Field::day("at"), ["20712", "20713"].as_slice());
    let month = (Field::month("at"), ["679", "680"].as_slice());
    evolve(&database, day, month).await?;
    let days = [(1, values(["20712"]), 1), (1, values(["20713"]), 1)];
    let months = [(2, values(["679"]), 1), (2, values(["680"]), 1)];
    for (at, expected) in [
        ("2026-09-07T23:59:59.999999Z", vec![]),
        ("2026-09-08T00:00:00Z", vec![&months[0]]),
        ("2026-09-24T00:00:00Z", vec![&months[0], &days[0]]),
        ("2026-09-25T00:00:00Z", vec![&months[0], &days[0], &days[1]]),
        ("2026-10-07T23:59:59.999999Z", vec![&months[0], &days[0], &days[1]]),
        ("2026-10-08T00:00:00Z", vec![&months[0], &days[0], &days[1], &months[1]]),
    ] {
        let plan = database.plan_one(at).await?;
        assert_eq!(expired(&plan).iter().collect::<Vec<_>>(), expected, "at {at}");
    }
    Ok(())
}

#[tokio::test]
async fn specs_that_the_server_deleted_are_known_from_our_copies() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::month("at")]).await?;
    // 600 is 2020-01; 18500 is 2020-08-26.
    table.append(vec![NewFile::of(["600"]), NewFile::of(["601"])]).await?;
    database.govern(&table, "at", "7d").await?;
    let first = table.live_files().await?[1].data_file_id;
    // A pass that finds nothing to do copies them all the same, here because it only observes.
    database.sql("UPDATE tailrace.policy SET mode = 'observe'").await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Observed);
    database.sql("UPDATE tailrace.policy SET mode = 'enforce'").await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18500"])]).await?;
    assert_eq!(table.delete_vanished_specs().await?.0, 1);
    assert_eq!(database.text("SELECT count(*) FROM hog_partition_spec").await?, Some("1".into()));

    let plan = database.plan_one("2020-02-08T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(1, values(["600"]), 1)]);
    assert_eq!(kept(&plan), [("not_expired", 1), ("future", 1)]);
    let report = database.sweep_one().await?;
    assert_eq!(report.outcome, Outcome::Dropped, "{report:?}");
    assert_eq!(report.snapshots[0].partitions[0].display, "2020-01");
    assert_eq!(report.counts().files, 3);
    assert!(!live_ids(&table).await?.contains(&first));
    Ok(())
}

#[tokio::test]
async fn files_of_a_spec_that_nobody_knows_stay() -> Result<()> {
    let database = TestDatabase::new().await?;
    let month = (Field::month("at"), ["600", "600"].as_slice());
    let day = (Field::day("at"), [].as_slice());
    let table = evolve(&database, month, day).await?;
    // What came before the day spec was forgotten, so that its values need a proof.
    table.append(vec![proven_18000("at")]).await?;
    // The policy was set behind tailrace's back, so nothing has been copied yet.
    assert_eq!(table.delete_vanished_specs().await?.0, 1);

    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(2, values(["18000"]), 1)]);
    assert_eq!(kept(&plan), [("unknown_spec", 2)]);
    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    assert_eq!(live_values(&table).await?, [values(["600"]), values(["600"])]);
    // What is left cannot be dated by anybody, and that is said.
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Unhealthy);
    Ok(())
}

#[tokio::test]
async fn a_policy_that_is_set_copies_the_specs_at_once() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::month("at")]).await?;
    table.append(vec![NewFile::of(["600"])]).await?;
    database.policy("lake", "events.raw", "month(at)", "7d").await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    table.delete_vanished_specs().await?;
    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(1, values(["600"]), 1)]);
    Ok(())
}

/// The field is looked at when it is set; afterwards the column is what counts.
#[tokio::test]
async fn a_later_spec_without_the_time_field_leaves_retention_on() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::of(["18001"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    table.evolve_spec(&[Field::identity("kind")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;

    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(1, values(["18000"]), 1), (1, values(["18001"]), 1)]);
    assert_eq!(kept(&plan), [("uncovered", 1)]);
    table.drop_spec().await?;
    table.delete_vanished_specs().await?;
    // The copies were made when the policy was set: the identity spec came later and is unknown.
    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 2));
    assert_eq!(live_values(&table).await?, [values(["18000"])]);
    // To set such a policy now is refused.
    let args = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep", "7d"];
    assert_eq!(database.ran(&args).await?.code, 1);
    Ok(())
}

#[tokio::test]
async fn a_renamed_column_changes_nothing() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let before = database.plan_one("2026-09-25T00:00:00Z").await?;
    table.rename_column("at", "happened").await?;
    table.delete_vanished_specs().await?;
    // Another column of the old name is not the policy's.
    let added = tailrace_kit::lake::Column::new("at", "timestamptz");
    table.add_column(None, added).await?;
    let mut after = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(after.policy.field.column(), Some("happened"));
    after.policy.field = before.policy.field.clone();
    assert_eq!(after, before);
    table.evolve_spec(&[Field::day("happened")]).await?;
    table.append(vec![NewFile::of(["18001"])]).await?;
    let report = database.sweep().await?;
    assert_eq!(of_table(&report, "raw").counts().files, 2);
    assert_eq!(live_values(&table).await?, Vec::<Vec<Option<String>>>::new());
    Ok(())
}
