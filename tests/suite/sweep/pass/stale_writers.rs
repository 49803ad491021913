//! Tests of writers with a cached older spec: they store values of the old transform under the id
//! of the new spec, so a spec id does not prove how a value is encoded.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::governed::{expired, kept, live_values, values};

/// Month 680 is 2026-09; read as a day it is 1971-11-12.
#[tokio::test]
async fn a_months_text_under_a_day_spec_waits_for_both_interpretations() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::month("at")]).await?;
    table.append(vec![NewFile::of(["680"])]).await?;
    let day = table.evolve_spec(&[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["680"]), NewFile::of(["20713"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;

    let plan = database.plan_one("2026-10-07T23:59:59.999999Z").await?;
    assert_eq!(expired(&plan), [(day, values(["20713"]), 1)]);
    assert_eq!(kept(&plan), [("not_expired", 1), ("ambiguous_spec", 1)]);
    let json = database.plan_json("2026-10-07T23:59:59.999999Z").await?;
    assert_eq!(
        json["undatable"],
        serde_json::json!([{
            "spec_id": day, "partition_values": ["680"], "display": "1971-11-12",
            "reason": "ambiguous_spec", "files": 1,
            "readings": ["day 1971-11-12", "month 2026-09"],
        }])
    );
    assert_eq!(json["next_expiry"], "2026-10-08T00:00:00Z");
    let plan = database.plan_one("2026-10-08T00:00:00Z").await?;
    let expected =
        [(day, values(["680"]), 1), (day, values(["20713"]), 1), (1, values(["680"]), 1)];
    assert_eq!(expired(&plan), expected);
    // Still so after the server forgot that there ever was a month spec.
    database.sql("UPDATE tailrace.policy SET mode = 'paused'").await?;
    database.sweep().await?;
    assert_eq!(table.delete_vanished_specs().await?.0, 1);
    let plan = database.plan_one("2026-10-07T23:59:59.999999Z").await?;
    assert_eq!(kept(&plan), [("not_expired", 1), ("ambiguous_spec", 1)]);
    Ok(())
}

/// A day's text under a month spec reads as a month of the year 3696: it stays, as `future`.
#[tokio::test]
async fn a_days_text_under_a_month_spec_is_future() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let month = table.evolve_spec(&[Field::month("at")]).await?;
    table.append(vec![NewFile::of(["20713"]), NewFile::of(["600"])]).await?;
    database.policy("lake", "events.raw", "month(at)", "7d").await?;
    let plan = database.plan_one("2026-10-08T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(month, values(["600"]), 1)]);
    assert_eq!(kept(&plan), [("future", 1)]);
    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    assert_eq!(live_values(&table).await?, [values(["20713"])]);
    Ok(())
}

/// Hour 20713 is 1972-05-12T01, the day 20713 is 2026-09-17.
#[tokio::test]
async fn a_days_text_under_an_hour_spec_waits_for_the_day() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let hour = table.evolve_spec(&[Field::hour("at")]).await?;
    table.append(vec![NewFile::of(["20713"]), NewFile::of(["497117"])]).await?;
    database.policy("lake", "events.raw", "hour(at)", "7d").await?;
    let plan = database.plan_one("2026-09-24T23:59:59.999999Z").await?;
    assert_eq!(expired(&plan), [(hour, values(["497117"]), 1)]);
    assert_eq!(kept(&plan), [("ambiguous_spec", 1)]);
    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    let both = [(hour, values(["20713"]), 1), (hour, values(["497117"]), 1)];
    assert_eq!(expired(&plan), both);
    Ok(())
}

/// Two specs of different arity cannot be taken for each other: the server refuses a stale writer's
/// tuple of another length. A number that is no bucket of the earlier spec is none of its values.
#[tokio::test]
async fn another_arity_makes_nothing_ambiguous() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let at = "2026-09-25T00:00:00Z";
    for (name, first, second, tuple) in [
        (
            "arity",
            vec![Field::month("at"), Field::identity("kind")],
            vec![Field::day("at")],
            vec!["680"],
        ),
        ("bucket", vec![Field::bucket("at", 16)], vec![Field::day("at")], vec!["680"]),
    ] {
        let table = database.table(&catalog, name, &first).await?;
        let spec = table.evolve_spec(&second).await?;
        table.append(vec![NewFile::of(tuple.clone())]).await?;
        database.govern(&table, "at", "7d").await?;
        let plan = database.plan(name, at).await?;
        let tuple = tuple.into_iter().map(|text| Some(text.to_owned())).collect();
        assert_eq!(expired(&plan), [(spec, tuple, 1)], "{name}");
    }
    Ok(())
}

/// A server that numbers its specs anew after all of them vanished: it is unknown which of
/// the two definitions a file of that id was written under.
#[tokio::test]
async fn files_of_a_spec_id_with_two_meanings_stay() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::month("at")]).await?;
    table.append(vec![NewFile::of(["600"])]).await?;
    database.policy("lake", "events.raw", "month(at)", "7d").await?;
    table.drop_spec().await?;
    table.delete_vanished_specs().await?;
    table.evolve_spec_as(1, &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    table.evolve_spec_as(2, &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::of(["680"])]).await?;

    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(2, values(["18000"]), 1)]);
    // The month is remembered: 680 under spec 2 may be a stale writer's.
    assert_eq!(kept(&plan), [("ambiguous_spec", 1), ("unknown_spec", 2)]);
    // By the clock of this test 2026-09 may be over and done with; 600 and 18000 of spec 1 stay.
    database.sweep_one().await?;
    let live = live_values(&table).await?;
    assert_eq!(live[..2], [values(["600"]), values(["18000"])]);
    assert!(!live[2..].contains(&values(["18000"])));
    Ok(())
}
