//! Tests that a partition value alone drops nothing where it may be a value of an earlier spec.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use super::{NOW, Scene, date, file, micros};
use crate::support::governed::{expired, kept, values};

/// What a stale writer stored, by the specs of its table: each file holds rows of today, has no
/// statistics, and would be dropped as of 1970 by its value alone.
#[tokio::test]
async fn a_stale_writers_value_of_another_column_is_kept() -> Result<()> {
    for (column, specs, stale) in [
        ("at", [&[Field::identity("tenant")][..], &[Field::day("at")]], &["42"][..]),
        ("at", [&[Field::month("created")], &[Field::day("at")]], &["682"]),
        (
            "at",
            [
                &[Field::day("at"), Field::identity("tenant")],
                &[Field::identity("tenant"), Field::day("at")],
            ],
            &["20833", "42"],
        ),
        ("day", [&[Field::identity("birth")], &[Field::identity("day")]], &["1971-11-14"]),
        ("at", [&[Field::bucket("name", 16)], &[Field::day("at")]], &["5"]),
        ("at", [&[Field::bucket("at", 16)], &[Field::day("at")]], &["5"]),
        ("at", [&[Field::identity("name")], &[Field::day("at")]], &["42"]),
        ("nanos", [&[Field::identity("tenant")], &[Field::identity("nanos")]], &["42"]),
    ] {
        let scene = Scene::of_column(column, &specs).await?;
        let files = scene.append(vec![NewFile::of(stale.to_vec())]).await?;
        let plan = scene.database.plan("raw", NOW).await?;
        assert_eq!(expired(&plan), [], "{column} {stale:?}");
        assert_eq!(kept(&plan), [("ambiguous_spec", 1)], "{column} {stale:?}");
        let report = scene.sweep_at(NOW).await?;
        assert_eq!(report.outcome, Outcome::NothingToDo, "{column} {stale:?}");
        assert_eq!(scene.live().await?, files, "{column} {stale:?}");
        // Nor does a later pass that trusts its cursor.
        assert_eq!(scene.sweep_at("2027-01-11T00:00:00Z").await?.snapshots, []);
        assert_eq!(scene.live().await?, files);
    }
    Ok(())
}

/// Column statistics prove an ambiguous value where each file of the tuple has them.
#[tokio::test]
async fn statistics_prove_an_ambiguous_value() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    // Day 20820 is 2027-01-02.
    let proven = scene
        .append(vec![
            file(&["20820"], "2027-01-01T23:59:59.999999Z"),
            file(&["20820"], "2027-01-02T00:00:00Z"),
        ])
        .await?;
    let kept_files = scene
        .append(vec![
            // One of two files has none.
            file(&["20814"], "2027-01-02T12:00:00Z"),
            NewFile::of(["20814"]),
            // Nulls may hide any row.
            NewFile::of(["20819"]).stats("at", 1, Some(&micros("2026-12-31T00:00:00Z"))),
            // A bound of another length is none.
            NewFile::of(["20818"]).upper("at", &[1, 2, 3]),
            // Statistics of another column say nothing.
            NewFile::of(["20817"]).upper("created", &micros("2026-12-29T00:00:00Z")),
            NewFile::of(["20816"]).stats("at", 0, None),
            // The footer is yet to be read.
            file(&["20815"], "2026-12-27T00:00:00Z").pending(),
        ])
        .await?;
    let report = scene.sweep_at(NOW).await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 2));
    assert_eq!(scene.live().await?, kept_files);
    assert!(!proven.is_empty());
    let plan = scene.database.plan("raw", NOW).await?;
    assert_eq!(kept(&plan), [("ambiguous_spec", 7)]);
    Ok(())
}

/// A stale writer's file with statistics says itself when it goes.
#[tokio::test]
async fn statistics_say_when_an_ambiguous_tuple_is_dropped() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    let files = scene.append(vec![file(&["42"], "2027-01-09T10:00:00Z")]).await?;
    let json = scene.database.plan_json(NOW).await?;
    assert_eq!(
        json["undatable"],
        serde_json::json!([{
            "spec_id": 2, "partition_values": ["42"], "display": "1970-02-12",
            "reason": "ambiguous_spec", "files": 1,
            "readings": ["day 1970-02-12", "a value of identity(tenant)"],
            "range_end": "1970-02-13T00:00:00Z", "newest_row": "2027-01-09T10:00:00Z",
            "leaves_at": "2027-01-16T10:00:00Z",
        }])
    );
    assert_eq!(json["next_expiry"], "2027-01-16T10:00:00Z");
    assert_eq!(scene.sweep_at("2027-01-16T09:59:59.999999Z").await?.snapshots, []);
    assert_eq!(scene.live().await?, files);
    assert_eq!(scene.sweep_at("2027-01-16T10:00:00Z").await?.counts().files, 1);
    Ok(())
}

/// `identity` on dates: the day of the bound must have passed.
#[tokio::test]
async fn an_ambiguous_date_is_proven_once_its_day_has_passed() -> Result<()> {
    let specs = [&[Field::identity("birth")][..], &[Field::identity("day")]];
    let scene = Scene::of_column("day", &specs).await?;
    let of = |value: &str, bound: &str| NewFile::of([value]).upper("day", &date(bound));
    scene.append(vec![of("2027-01-02", "2027-01-02")]).await?;
    let left = scene.append(vec![of("2027-01-01", "2027-01-03")]).await?;
    let plan = scene.database.plan("raw", NOW).await?;
    assert_eq!(expired(&plan), [(2, values(["2027-01-02"]), 1)]);
    scene.sweep_at(NOW).await?;
    assert_eq!(scene.live().await?, left);
    Ok(())
}

/// Month 683 is 2026-12: under a day spec it reads as 1971-11-15, and may be next month's rows.
#[tokio::test]
async fn an_interpretation_some_months_ahead_counts() -> Result<()> {
    let scene = Scene::new(&[&[Field::month("at")], &[Field::day("at")]]).await?;
    scene.append(vec![NewFile::of(["683"])]).await?;
    let now = "2026-11-30T00:00:00Z";
    let plan = scene.database.plan("raw", now).await?;
    assert_eq!((expired(&plan), kept(&plan)), (vec![], vec![("ambiguous_spec", 1)]));
    assert_eq!(scene.sweep_at(now).await?.snapshots, []);
    assert_eq!(scene.sweep_at("2027-01-07T23:59:59Z").await?.snapshots, []);
    assert_eq!(scene.sweep_at("2027-01-08T00:00:00Z").await?.counts().files, 1);
    Ok(())
}

/// What is kept for its evidence is counted and shown with all interpretations in the log.
#[tokio::test]
async fn the_log_shows_every_interpretation() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.append(vec![NewFile::of(["42"])]).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let [line] = &ran.events("kept_undatable")[..] else { panic!("{}", ran.err) };
    assert_eq!(
        (line["reason"].as_str(), line["files"].as_i64()),
        (Some("ambiguous_spec"), Some(1))
    );
    assert_eq!(
        line["samples"],
        r#"["1970-02-12 (may be: day 1970-02-12; a value of identity(tenant)), ended 1970-02-13T00:00:00Z"]"#
    );
    let [finished] = &ran.events("table_finished")[..] else { panic!("{}", ran.err) };
    assert_eq!(finished["undatable_files"], 1);
    Ok(())
}
