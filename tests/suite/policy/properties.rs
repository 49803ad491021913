//! Tests of the table property `partition_retention`, which each pass mirrors.

use anyhow::Result;
use serde_json::json;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{expired, live_ids, outcomes, values};

pub const PROPERTY: &str = "partition_retention";

/// A table with an old day, a young one, and this property.
pub async fn with_property(database: &TestDatabase, text: &str) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"]), NewFile::of(["99999"])]).await?;
    table.set_property(PROPERTY, Some(text)).await?;
    Ok(table)
}

/// The mirror: (field, field id, keep, mode, text, problem, revision).
async fn mirror(database: &TestDatabase) -> Result<Vec<serde_json::Value>> {
    let rows = database
        .rows(
            "SELECT field, source_field_id, keep, keep_seconds, mode, property_text, problem, revision,
                    updated_by
               FROM tailrace.policy WHERE source = 'property'",
        )
        .await?;
    rows.iter().map(|row| Ok(serde_json::from_str(row)?)).collect()
}

#[tokio::test]
async fn a_property_is_mirrored_and_followed() -> Result<()> {
    let database = TestDatabase::new().await?;
    let text = r#"{"field": "day(at)", "keep": "7d"}"#;
    let table = with_property(&database, text).await?;
    // A plan reads it as the first pass will, and writes nothing.
    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(1, values(["18000"]), 1)]);
    assert_eq!(mirror(&database).await?, [] as [serde_json::Value; 0]);

    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    let first = mirror(&database).await?;
    let revision = first[0]["revision"].clone();
    assert_eq!(
        first,
        [json!({
            "field": "day(at)", "source_field_id": table.field_id("at")?, "keep": "7d",
            "keep_seconds": 604_800, "mode": "enforce", "property_text": text, "problem": null,
            "revision": revision, "updated_by": "table property",
        })]
    );
    // Nothing new: the same revision.
    assert_eq!(database.sweep_one().await?.outcome, Outcome::NothingToDo);
    assert_eq!(mirror(&database).await?, first);
    // A plan now goes by the mirror.
    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(json!(plan.policy.revision), revision);
    Ok(())
}

#[tokio::test]
async fn each_change_of_the_property_is_a_new_revision() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, r#"{"field": "at", "keep": "7d"}"#).await?;
    let mut revisions = Vec::new();
    for (text, keep, mode) in [
        (r#"{"field": "at", "keep": "7d"}"#, "7d", "enforce"),
        (r#"{"field": "at", "keep": "8d"}"#, "8d", "enforce"),
        (r#"{"field": "at", "keep": "8d", "mode": "observe"}"#, "8d", "observe"),
        (r#"{"field": "at", "keep": "8d", "mode": "paused"}"#, "8d", "paused"),
        // A mode that is left out stays as it is.
        (r#"{"keep": "8d",  "field": "at"}"#, "8d", "paused"),
        (r#"{"field": "day(at)", "keep": "1w 1d"}"#, "1w 1d", "paused"),
        (r#"{"field": "day(at)", "keep": "1w 1d", "mode": "enforce"}"#, "1w 1d", "enforce"),
    ] {
        table.set_property(PROPERTY, Some(text)).await?;
        database.sweep().await?;
        let rows = mirror(&database).await?;
        assert_eq!((&rows[0]["keep"], &rows[0]["mode"]), (&json!(keep), &json!(mode)));
        assert_eq!(rows[0]["property_text"], text);
        revisions.push(rows[0]["revision"].as_i64());
    }
    assert!(revisions.windows(2).all(|pair| pair[0] < pair[1]), "{revisions:?}");
    // Gone with the property, and with it the policy.
    table.set_property(PROPERTY, None).await?;
    let ran = database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("property_removed").len(), 1, "{ran:?}");
    assert_eq!(mirror(&database).await?, [] as [serde_json::Value; 0]);
    assert_eq!(outcomes(&database.sweep().await?), []);
    Ok(())
}

#[tokio::test]
async fn a_property_that_cannot_be_followed_fails_with_the_words() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, "{").await?;
    for (text, words) in [
        ("{", "EOF while parsing"),
        ("", "EOF while parsing"),
        ("7d", "expected"),
        ("[]", "invalid type: sequence, expected an object"),
        (r#"["at", "7d"]"#, "invalid type: sequence, expected an object"),
        (r#"["at", "7d", "enforce", false]"#, "invalid type: sequence, expected an object"),
        (r#"[{"field": "at", "keep": "7d"}]"#, "invalid type: sequence, expected an object"),
        ("null", "invalid type: null, expected an object"),
        (r#"{"field": "at"}"#, "missing field `keep`"),
        (r#"{"keep": "7d"}"#, "missing field `field`"),
        (r#"{"field": "at", "keep": "7d", "hold": 1}"#, "unknown field `hold`"),
        (r#"{"field": "at", "keep": 7}"#, "invalid type: integer `7`, expected a string"),
        (r#"{"field": "at", "keep": "7d", "mode": "soft"}"#, "unknown variant `soft`"),
        (
            r#"{"field": "at", "keep": "7d", "mode": {"enforce": null}}"#,
            "invalid type: map, expected a text",
        ),
        (r#"{"field": "at", "keep": "1 month"}"#, "1 month is 28 to 31 days): say 31d"),
        (r#"{"field": "at", "keep": "7d7d"}"#, "keep \"7d7d\" names days twice"),
        (r#"{"field": "at", "keep": "0d"}"#, "is zero"),
        (r#"{"field": "at", "keep": "59m"}"#, "is less than guard.min_keep (1h)"),
        (r#"{"field": "month(at)", "keep": "7d"}"#, "the table is partitioned by day(at)"),
        (r#"{"field": "kind", "keep": "7d"}"#, "is not what the table is partitioned by"),
        (r#"{"field": "nope", "keep": "7d"}"#, "names no column \"nope\""),
        (r#"{"field": "day(", "keep": "7d"}"#, "is neither a column"),
        (r#"{"field": "at", "keep": "7d"} x"#, "trailing characters"),
        (r#"{"field": "at", "field": "kind", "keep": "7d"}"#, "duplicate field `field`"),
    ] {
        table.set_property(PROPERTY, Some(text)).await?;
        let report = database.sweep_one().await?;
        assert_eq!(report.outcome, Outcome::Failed, "{text}");
        let error = report.error.unwrap_or_default();
        assert!(
            error.starts_with("table property partition_retention is not followed: ")
                && error.contains(words),
            "{text}: {error}"
        );
        assert_eq!(mirror(&database).await?, [] as [serde_json::Value; 0], "{text}");
    }
    let ran = database.ran(&["sweep"]).await?;
    assert_eq!((ran.code, ran.events("property_refused").len()), (3, 1), "{ran:?}");
    let ran = database.ran(&["plan"]).await?;
    assert_eq!(ran.code, 3);
    assert!(ran.out.contains("error: table property partition_retention is not followed"));
    assert_eq!(live_ids(&table).await?.len(), 2);
    Ok(())
}

/// The server stores texts; another client may have written anything.
#[tokio::test]
async fn a_property_that_is_no_text_is_refused() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = with_property(&database, "{").await?;
    for value in [r#"{"field": "at", "keep": "7d"}"#, "7", "true", "[]"] {
        database
            .sql(&format!(
                "UPDATE hog_table_version SET properties =
                   jsonb_build_object('partition_retention', '{value}'::jsonb)
                  WHERE end_snapshot IS NULL"
            ))
            .await?;
        let report = database.sweep_one().await?;
        assert_eq!(report.outcome, Outcome::Failed);
        assert_eq!(
            report.error.as_deref(),
            Some("table property partition_retention is not followed: its value is not JSON text")
        );
    }
    // A null is no property at all.
    database
        .sql("UPDATE hog_table_version SET properties = '{\"partition_retention\": null}'")
        .await?;
    assert_eq!(outcomes(&database.sweep().await?), []);
    assert_eq!(live_ids(&table).await?.len(), 2);
    Ok(())
}

/// A mirror that was good, then the text went bad: it is not followed, and not forgotten.
#[tokio::test]
async fn a_mirror_whose_text_went_bad_is_kept_and_not_followed() -> Result<()> {
    let database = TestDatabase::new().await?;
    let good = r#"{"field": "at", "keep": "7d", "mode": "paused"}"#;
    let table = with_property(&database, good).await?;
    database.sweep().await?;
    let before = mirror(&database).await?;
    table.set_property(PROPERTY, Some(r#"{"field": "at", "keep": "7"}"#)).await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Failed);
    let noted = mirror(&database).await?;
    assert!(noted[0]["problem"].as_str().is_some_and(|words| words.contains("has no unit")));
    assert!(noted[0]["revision"].as_i64() > before[0]["revision"].as_i64());
    let listed = database.policies(&["policy", "list", "--output", "json"]).await?;
    assert_eq!(listed[0]["in_force"], false);
    assert_eq!(listed[0]["problem"], noted[0]["problem"]);
    // Said once in the row: a second pass changes nothing.
    database.sweep().await?;
    assert_eq!(mirror(&database).await?, noted);
    // And it comes back with the good text.
    table.set_property(PROPERTY, Some(r#"{"field": "at", "keep": "7d"}"#)).await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Paused, "the mode of before");
    assert_eq!(mirror(&database).await?[0]["problem"], json!(null));
    let armed = r#"{"field": "at", "keep": "7d", "mode": "enforce"}"#;
    table.set_property(PROPERTY, Some(armed)).await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    Ok(())
}

/// The mirror of another text than the table has now is listed, and not as the one in force.
#[tokio::test]
async fn only_the_mirror_of_the_present_text_is_in_force() -> Result<()> {
    let database = TestDatabase::new().await?;
    let text = r#"{"field": "at", "keep": "7d"}"#;
    let table = with_property(&database, text).await?;
    database.sweep().await?;
    for (now, in_force) in [
        (Some(r#"{"field": "at", "keep": "30000d"}"#), false),
        (Some("{"), false),
        (None, false),
        (Some(text), true),
    ] {
        table.set_property(PROPERTY, now).await?;
        let get = ["policy", "get", "lake", "events.raw", "--output", "json"];
        for args in [&get[..], &["policy", "list", "--output", "json"]] {
            let listed = database.policies(args).await?;
            assert_eq!(listed[0]["in_force"], in_force, "{args:?} {now:?}: {listed}");
            assert_eq!(listed[0]["keep"], "7d");
        }
    }
    Ok(())
}
