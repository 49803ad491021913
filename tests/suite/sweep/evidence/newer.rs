//! Tests that a tuple expires by the latest time that is known of it.

use anyhow::Result;
use tailrace::config::CrossCheck;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use super::{NOW, Scene, date, file, micros, nanos};
use crate::support::governed::{expired, kept, values};
use crate::support::program::settings;

/// Day 20820 is 2027-01-02. One row of 2027-01-05 in one of its files delays the whole partition
/// until that row has expired, to the microsecond.
#[tokio::test]
async fn one_newer_row_delays_its_partition() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    let delayed = scene
        .append(vec![
            file(&["20820"], "2027-01-01T12:00:00Z"),
            NewFile::of(["20820"]),
            file(&["20820"], "2027-01-05T06:00:00.000001Z"),
        ])
        .await?;
    scene.append(vec![file(&["20819"], "2026-12-31T12:00:00Z")]).await?;
    let json = scene.database.plan_json(NOW).await?;
    assert_eq!(json["kept"], serde_json::json!({ "newer_rows_than_partition": 3 }));
    assert_eq!(
        json["newer_rows"],
        serde_json::json!([{
            "spec_id": 1, "partition_values": ["20820"], "display": "2027-01-02",
            "reason": "newer_rows_than_partition", "files": 3,
            "readings": ["day 2027-01-02"],
            "range_end": "2027-01-03T00:00:00Z", "newest_row": "2027-01-05T06:00:00.000001Z",
            "leaves_at": "2027-01-12T06:00:00.000001Z",
        }])
    );
    assert_eq!(json["undatable"], serde_json::json!([]));
    assert_eq!(json["next_expiry"], "2027-01-12T06:00:00.000001Z");
    let report = scene.sweep_at(NOW).await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    assert_eq!(scene.live().await?, delayed);
    // An incremental pass looks again, and takes all of them once the row has expired.
    assert_eq!(scene.sweep_at("2027-01-12T06:00:00Z").await?.snapshots, []);
    let report = scene.sweep_at("2027-01-12T06:00:00.000001Z").await?;
    assert_eq!((report.full, report.counts().files), (Some(false), 3));
    Ok(())
}

/// As above, by a pass that trusts its cursor.
#[tokio::test]
async fn an_incremental_pass_takes_what_was_delayed() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    scene.append(vec![file(&["20820"], "2027-01-03T00:30:00Z"), NewFile::of(["20820"])]).await?;
    assert_eq!(scene.sweep_at(NOW).await?.snapshots, []);
    let report = scene.sweep_at("2027-01-10T00:29:59Z").await?;
    assert_eq!((report.full, report.snapshots.len()), (Some(false), 0));
    let report = scene.sweep_at("2027-01-10T00:30:00Z").await?;
    assert_eq!((report.full, report.counts().files), (Some(false), 2));
    Ok(())
}

/// A file that lands in a delayed partition has no say of its own: the partition is checked whole.
#[tokio::test]
async fn a_late_file_of_a_delayed_partition_waits_with_it() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    let mut files = scene.append(vec![file(&["20820"], "2027-01-05T00:00:00Z")]).await?;
    assert_eq!(scene.sweep_at(NOW).await?.snapshots, []);
    files.extend(scene.append(vec![NewFile::of(["20820"])]).await?);
    let report = scene.sweep_at("2027-01-10T01:00:00Z").await?;
    assert_eq!((report.full, report.snapshots.len()), (Some(false), 0));
    assert_eq!(scene.live().await?, files);
    Ok(())
}

/// Transforms, types and bounds at the end of the value's own range.
#[tokio::test]
async fn a_bound_within_the_values_range_is_no_contradiction() -> Result<()> {
    for (column, field, value, bound) in [
        (
            "at",
            Field::identity("at"),
            "2027-01-03T00:00:00+00:00",
            &micros("2027-01-03T00:00:00Z")[..],
        ),
        (
            "created",
            Field::identity("created"),
            "2027-01-03T00:00:00",
            &micros("2027-01-03T00:00:00Z"),
        ),
        ("nanos", Field::identity("nanos"), "1798934400000000000", &nanos("2027-01-03T00:00:00Z")),
        ("nanos", Field::day("nanos"), "20820", &nanos("2027-01-02T23:59:59.999999999Z")),
        ("day", Field::identity("day"), "2027-01-02", &date("2027-01-02")),
        ("day", Field::day("day"), "20820", &date("2027-01-02")),
        ("day", Field::month("day"), "683", &date("2026-12-31")),
        // The last hour of the retention: a date's rows count at its midnight, as the writer put them.
        ("day", Field::hour("day"), "499680", &date("2027-01-02")),
    ] {
        let scene = Scene::of_column(column, &[std::slice::from_ref(&field)]).await?;
        scene.append(vec![NewFile::of([value]).upper(column, bound)]).await?;
        let plan = scene.database.plan("raw", NOW).await?;
        let gone = expired(&plan);
        assert_eq!(gone, [(1, values([value]), 1)], "{column} {value} {:?}", kept(&plan));
    }
    Ok(())
}

#[tokio::test]
async fn a_date_bound_keeps_until_its_day_has_passed() -> Result<()> {
    let scene = Scene::of_column("day", &[&[Field::day("day")]]).await?;
    scene.append(vec![NewFile::of(["20820"]).upper("day", &date("2027-01-03"))]).await?;
    assert_eq!(scene.sweep_at("2027-01-10T23:59:59Z").await?.snapshots, []);
    assert_eq!(scene.sweep_at("2027-01-11T00:00:00Z").await?.counts().files, 1);
    Ok(())
}

/// `warn` drops and says so, `off` asks for nothing.
#[tokio::test]
async fn the_setting_decides() -> Result<()> {
    for (cross_check, warnings) in [("warn", 1), ("off", 0)] {
        let scene = Scene::new(&[&[Field::day("at")]]).await?;
        scene.append(vec![file(&["100"], "2026-11-29T00:00:00Z")]).await?;
        let env = [("TAILRACE__GUARD__CROSS_CHECK", cross_check)];
        let ran = scene.database.ran_with(&["sweep"], &env).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(scene.live().await?, [0_i64; 0]);
        let events = ran.events("newer_rows_dropped");
        assert_eq!(events.len(), warnings, "{}", ran.err);
        for event in events {
            assert_eq!(event["partitions"], 1);
            assert_eq!(
                event["samples"],
                r#"["1970-04-11: ended 1970-04-12T00:00:00Z, newest row 2026-11-29T00:00:00Z"]"#
            );
        }
    }
    Ok(())
}

/// An ambiguous value needs its proof whatever the setting.
#[tokio::test]
async fn without_the_cross_check_an_ambiguous_file_is_kept() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    let stale =
        scene.append(vec![NewFile::of(["42"]), file(&["43"], "2027-01-09T00:00:00Z")]).await?;
    scene.append(vec![file(&["20820"], "2027-01-01T00:00:00Z")]).await?;
    let settings = Settings { cross_check: CrossCheck::Off, ..settings() };
    let report = scene.sweep_with(NOW, settings).await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    assert_eq!(scene.live().await?, stale);
    Ok(())
}

/// A column that was seen with nanoseconds and another type: a bound is read both ways, and the later
/// interpretation counts.
#[tokio::test]
async fn a_bound_of_unknown_units_is_read_both_ways() -> Result<()> {
    let scene = Scene::of_column("nanos", &[&[Field::day("nanos")]]).await?;
    let files = scene
        .append(vec![NewFile::of(["20820"]).upper("nanos", &micros("2027-01-05T00:00:00Z"))])
        .await?;
    // As nanoseconds alone it is of 1970.
    let plan = scene.database.plan("raw", NOW).await?;
    assert_eq!(expired(&plan).len(), 1);
    let field_id = scene.table.field_id("nanos")?;
    scene
        .database
        .sql(&format!(
            "INSERT INTO tailrace.source_column_type
               (catalog_id, table_id, table_uuid, field_id, col_type)
             VALUES ({}, {}, '{}', {field_id}, 'timestamp')",
            scene.catalog.catalog_id, scene.table.table_id, scene.table.table_uuid
        ))
        .await?;
    assert_eq!(scene.sweep_at(NOW).await?.snapshots, []);
    assert_eq!(scene.live().await?, files);
    assert_eq!(scene.sweep_at("2027-01-12T00:00:00Z").await?.counts().files, 1);
    Ok(())
}
