//! Tests of what is kept of dropped tables, and of tables that are missing only while a catalog is
//! restored.

use anyhow::Result;
use serde_json::json;
use tailrace::claims::{Settings as ClaimSettings, renew};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{live_values, outcomes, values};
use crate::support::program::days_ago;

/// All that is remembered of tables, by key; of what is in force nothing may differ.
async fn remembered(database: &TestDatabase) -> Result<Vec<String>> {
    let mut rows = Vec::new();
    for (table, key) in [
        ("policy", "catalog_id, table_id, source"),
        ("spec_copy", "catalog_id, table_id, spec_id"),
        ("source_column_type", "catalog_id, table_id, field_id, col_type"),
    ] {
        rows.extend(
            database.rows(&format!("SELECT * FROM tailrace.{table} ORDER BY {key}")).await?,
        );
    }
    Ok(rows)
}

/// The table `events.raw` with an expired file under a spec that the server has deleted and we have
/// trusted and marked, and one of today under its successor; a stored policy and a property.
async fn scene() -> Result<(TestDatabase, Table)> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let property = r#"{"field": "day(at)", "keep": "30d"}"#;
    table.set_property("partition_retention", Some(property)).await?;
    table.evolve_spec(&[Field::identity("kind"), Field::day("at")]).await?;
    let today = days_ago(0);
    table.append(vec![NewFile::of(["a", today.as_str()])]).await?;
    table.delete_vanished_specs().await?;
    database
        .sql(
            "UPDATE tailrace.spec_copy SET trusted_at = now(), trusted_by = 'me', trust_reason = 'so',
                    mark_row_id = 7, marked_at = now(), watched_from = 7
              WHERE spec_id = 1",
        )
        .await?;
    Ok((database, table))
}

#[tokio::test]
async fn a_pass_while_the_catalog_is_empty_forgets_nothing() -> Result<()> {
    for emptied in ["hog_table", "hog_table_version", "hog_namespace", "hog_catalog"] {
        let (database, table) = scene().await?;
        database.sql("UPDATE tailrace.policy SET mode = 'paused'").await?;
        database.sweep().await?;
        let before = remembered(&database).await?;
        assert_eq!(before.len(), 2 + 2 + 2, "{before:#?}");

        database
            .while_empty(emptied, async || {
                assert_eq!(outcomes(&database.sweep().await?), []);
                let settings: ClaimSettings = crate::claims::settings();
                renew(&database.tailrace(), &settings, None).await?;
                // Nothing is in force meanwhile, and nobody is told otherwise.
                let listed = database.policies(&["policy", "list", "--output", "json"]).await?;
                assert_eq!(listed, json!([]), "{emptied}");
                Ok(())
            })
            .await?;
        // In force at once, before any pass has seen that it is back.
        let listed = database.policies(&["policy", "list", "--all", "--output", "json"]).await?;
        assert_eq!((&listed[0]["in_force"], &listed[1]["in_force"]), (&json!(true), &json!(false)));
        assert_eq!(listed[0]["gone"], json!(null));
        database.sweep().await?;
        assert_eq!(remembered(&database).await?, before, "{emptied}");

        database.sql("UPDATE tailrace.policy SET mode = 'enforce'").await?;
        // The server has no such spec any more: it is judged by our copy.
        let report = database.sweep_one().await?;
        assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1), "{emptied}");
        let today = days_ago(0);
        assert_eq!(live_values(&table).await?, [values(["a", today.as_str()])]);
    }
    Ok(())
}

/// Logged once when it is seen, once when it is back, and in between by `list --all` alone.
#[tokio::test]
async fn it_is_told_and_shown() -> Result<()> {
    let (database, table) = scene().await?;
    let revision = database.text("SELECT revision FROM tailrace.policy WHERE source = 'stored'");
    let revision = revision.await?;
    let events = async |name: &str| -> Result<usize> {
        Ok(database.ran(&["sweep"]).await?.events(name).len())
    };
    database
        .while_empty("hog_catalog", async || {
            let ran = database.ran(&["sweep"]).await?;
            let [stored] = &ran.events("policy_tombstoned")[..] else { panic!("{}", ran.err) };
            for (field, told) in [
                ("level", "INFO"),
                ("catalog", "lake"),
                ("namespace", "events"),
                ("table", "raw"),
                ("source", "stored"),
                ("field", "day(at)"),
                ("keep", "7d"),
            ] {
                assert_eq!(stored[field], told, "{field}");
            }
            assert_eq!(events("policy_tombstoned").await?, 0);
            let listed =
                database.policies(&["policy", "list", "--all", "--output", "json"]).await?;
            let [listed] = &listed.as_array().cloned().unwrap_or_default()[..] else {
                panic!("{listed}")
            };
            assert_eq!(
                (&listed["catalog"], &listed["namespace"], &listed["table"], &listed["table_uuid"]),
                (&json!("lake"), &json!("events"), &json!("raw"), &json!(table.table_uuid))
            );
            assert_eq!((&listed["in_force"], &listed["gone"]), (&json!(false), &json!(true)));
            assert!(listed["gone_since"].as_str().is_some_and(|at| at.starts_with("20")));
            let text = database.ran(&["policy", "list", "--all", "--catalog", "lake"]).await?;
            assert!(text.out.contains("gone since 20"), "{}", text.out);
            let none = database.ran(&["policy", "list"]).await?;
            assert_eq!(none.out, "No table has a policy: see `tailrace policy set --help`\n");
            Ok(())
        })
        .await?;
    assert_eq!(events("policy_back").await?, 1);
    assert_eq!(events("policy_back").await?, 0);
    let listed =
        database.policies(&["policy", "get", "lake", "events.raw", "--output", "json"]).await?;
    assert_eq!(listed[0]["revision"].as_i64().map(|known| known.to_string()), revision);
    let gone = database.text("SELECT count(gone_seen_at) FROM tailrace.spec_copy").await?;
    assert_eq!(gone.as_deref(), Some("0"));

    // Once it is gone for good, the end of it is told too.
    table.drop_table().await?;
    assert_eq!(events("policy_tombstoned").await?, 2);
    database
        .sql("UPDATE tailrace.policy SET gone_seen_at = gone_seen_at - interval '90 days 1 s'")
        .await?;
    assert_eq!(events("policy_purged").await?, 2);
    let left = "SELECT (SELECT count(*) FROM tailrace.policy) || ' '
                    || (SELECT count(*) FROM tailrace.spec_copy)";
    assert_eq!(database.text(left).await?.as_deref(), Some("0 2"));
    Ok(())
}

/// A clock that was wrong dates nothing: the age counts from when it was accepted again.
#[tokio::test]
async fn after_a_refused_clock_the_time_begins_anew() -> Result<()> {
    let (database, table) = scene().await?;
    table.drop_table().await?;
    database.sweep().await?;
    let age = "UPDATE tailrace.policy SET gone_seen_at = now() - interval '91 days';
               UPDATE tailrace.spec_copy SET gone_seen_at = now() - interval '91 days';
               UPDATE tailrace.source_column_type SET gone_seen_at = now() - interval '91 days'";
    let left = "SELECT (SELECT count(*) FROM tailrace.policy) || ' '
                    || (SELECT count(*) FROM tailrace.spec_copy) || ' '
                    || (SELECT count(*) FROM tailrace.source_column_type)";
    database.sql(age).await?;
    for (began, expected) in [("1 hour", "1 1 1"), ("90 days 1 s", "0 0 0")] {
        database
            .sql(&format!(
                "UPDATE tailrace.clock_memory SET epoch = 1, epoch_began = now() - interval '{began}'"
            ))
            .await?;
        database.sweep().await?;
        assert_eq!(database.text(left).await?.as_deref(), Some(expected), "{began}");
    }
    Ok(())
}

/// What became of drops is told for as long as any data of theirs may be somewhere: a catalog that is
/// away for a moment comes back with it.
#[tokio::test]
async fn the_history_of_a_catalog_that_is_away_for_a_moment_stays() -> Result<()> {
    let (database, _) = scene().await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    let age = "UPDATE hog_snapshot SET snapshot_time = now() - interval '1 year'
                WHERE snapshot_id = (SELECT snapshot_id FROM tailrace.drop_history);
               UPDATE tailrace.drop_history SET dropped_at = now() - interval '1 year'";
    database.sql(age).await?;
    let receipt = "INSERT INTO tailrace.drop_receipt (catalog_id, idempotency_key, fingerprint,
             snapshot_id, schema_version, committed, files_ended, delete_files_ended, records,
             bytes, ended)
         SELECT catalog_id, gen_random_uuid(), '', 1, 1, false, 0, 0, 0, 0, '[]' FROM hog_catalog";
    database.sql(receipt).await?;
    let count = "SELECT (SELECT count(*) FROM tailrace.drop_history) || ' '
                     || (SELECT count(*) FROM tailrace.drop_receipt)";
    database
        .while_empty("hog_catalog", async || {
            database.sweep().await?;
            Ok(())
        })
        .await?;
    assert_eq!(database.text(count).await?.as_deref(), Some("1 1"));
    database.sweep().await?;
    let seen = "SELECT count(gone_seen_at) FROM tailrace.clock_memory";
    assert_eq!(database.text(seen).await?.as_deref(), Some("0"));
    Ok(())
}
