//! Tests of a table id that is given out again after a restore of the catalog. The new table gets
//! nothing of the earlier table with that id.

use anyhow::Result;
use tailrace::catalog::window_rules::keep_window_rules;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, Table};

use crate::catalog::window_rules::asked::{Question, in_drop_window};
use crate::support::TestDatabase;
use crate::support::governed::{expired, live_ids, values};

/// Takes a table out of the catalog as a restore to the time before it does, and makes another one with its
/// id.
async fn again(
    database: &TestDatabase,
    table: &Table,
    name: &str,
    spec: &[Field],
) -> Result<Table> {
    database
        .sql(&format!(
            "DELETE FROM hog_data_file WHERE table_id = {id};
             DELETE FROM hog_table WHERE table_id = {id};
             UPDATE hog_catalog SET next_table_id = {id}",
            id = table.table_id
        ))
        .await?;
    let made = database.table(&table.catalog, name, spec).await?;
    assert_eq!(made.table_id, table.table_id);
    assert_ne!(made.table_uuid, table.table_uuid);
    Ok(made)
}

#[tokio::test]
async fn a_reused_id_is_judged_by_its_own_specs_alone() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let first = database.table(&catalog, "first", &[Field::identity("kind")]).await?;
    first.evolve_spec(&[Field::month("at")]).await?;
    database.policy("lake", "events.first", "at", "7d").await?;
    database.sweep().await?;
    let second = again(&database, &first, "second", &[Field::day("at")]).await?;
    let files = second.append(vec![NewFile::of(["18000"]), NewFile::of(["680"])]).await?.file_ids;
    database.policy("lake", "events.second", "at", "7d").await?;

    // No other spec was ever in this place: 680 is a day of 1971 and no month.
    let plan = database.plan_one("2026-09-25T00:00:00Z").await?;
    assert_eq!(expired(&plan), [(1, values(["680"]), 1), (1, values(["18000"]), 1)]);
    let at = "2026-09-25T00:00:00Z".parse()?;
    let asked = ["680", "18000"].map(|text| Question { spec_id: 1, values: values([text]), at });
    let mut session = database.plain_session().await?;
    for is_kept in [false, true] {
        if is_kept {
            keep_window_rules(&mut session, catalog.catalog_id).await?;
        }
        let told = in_drop_window(&mut session, &second, &asked).await?;
        assert_eq!(told, [Some(true), Some(true)], "{is_kept}");
    }
    assert_eq!(live_ids(&second).await?, files);
    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 2));

    // Each has its own copies, and no id was given twice to a spec of the same table.
    let copies =
        "SELECT table_uuid = (SELECT table_uuid FROM hog_table) AS is_live, spec_id, is_reused
                    FROM tailrace.spec_copy ORDER BY 1, 2";
    assert_eq!(
        database.rows(copies).await?,
        [
            r#"{"is_live": false, "spec_id": 1, "is_reused": false}"#,
            r#"{"is_live": false, "spec_id": 2, "is_reused": false}"#,
            r#"{"is_live": true, "spec_id": 1, "is_reused": false}"#,
        ]
    );
    let shown = database.ran(&["spec", "list", "lake", "events.second"]).await?;
    assert!(!shown.out.contains("several definitions"), "{}", shown.out);
    Ok(())
}

/// The counter of another UUID's rows proves nothing of the old one's files.
#[tokio::test]
async fn no_mark_is_noted_for_a_table_uuid_that_is_not_there() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let first = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.policy("lake", "events.raw", "at", "7d").await?;
    database.sweep().await?;
    let second = again(&database, &first, "raw", &[Field::day("at")]).await?;
    database.sweep().await?;
    database.sql("UPDATE tailrace.spec_copy SET copied_at = now() - interval '8 days'").await?;
    database.sweep().await?;
    let marks = format!(
        "SELECT table_uuid = '{}' AS is_live, mark_row_id FROM tailrace.spec_copy ORDER BY 1",
        second.table_uuid
    );
    assert_eq!(
        database.rows(&marks).await?,
        [r#"{"is_live": false, "mark_row_id": null}"#, r#"{"is_live": true, "mark_row_id": 0}"#]
    );
    Ok(())
}

/// The stored policy of the table that is gone is none of those that a commit goes by.
#[tokio::test]
async fn the_other_ones_policy_is_no_policy_of_a_commit() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let first = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.policy("lake", "events.raw", "at", "30d").await?;
    let second = again(&database, &first, "raw", &[Field::day("at")]).await?;
    second.append(vec![NewFile::of(["18000"])]).await?;
    let property = r#"{"field": "day(at)", "keep": "7d"}"#;
    second.set_property("partition_retention", Some(property)).await?;
    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    // And its table may come back to it: the other one was never it.
    let of = format!("SELECT keep FROM tailrace.policy WHERE table_uuid = '{}'", first.table_uuid);
    assert_eq!(database.text(&of).await?.as_deref(), Some("30d"));
    Ok(())
}
