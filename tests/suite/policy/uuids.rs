//! Tests of policies of dropped tables and deleted catalogs.

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, outcomes};
use crate::support::program::settings;

async fn governed(database: &TestDatabase, name: &str) -> Result<Table> {
    let catalog = match database.lake.open_catalog("lake").await {
        Ok(catalog) => catalog,
        Err(_) => database.catalog("lake").await?,
    };
    let table = database.table(&catalog, name, &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    database.policy("lake", &format!("events.{name}"), "day(at)", "7d").await?;
    Ok(table)
}

#[tokio::test]
async fn a_table_of_the_same_name_does_not_inherit() -> Result<()> {
    let database = TestDatabase::new().await?;
    let dropped = governed(&database, "dropped").await?;
    dropped.drop_table().await?;
    let again = database.table(&dropped.catalog, "dropped", &[Field::day("at")]).await?;
    let replaced = governed(&database, "replaced").await?;
    let columns = [Column::new("at", "timestamptz"), Column::new("kind", "string")];
    let instead = replaced.replace_table(&columns, &[Field::day("at")]).await?;
    for table in [&again, &instead] {
        table.append(vec![NewFile::of(["18000"])]).await?;
    }
    assert_eq!(outcomes(&database.sweep().await?), []);
    assert_eq!((live_ids(&again).await?.len(), live_ids(&instead).await?.len()), (1, 1));
    for table in ["events.dropped", "events.replaced"] {
        let ran = database.ran(&["policy", "get", "lake", table]).await?;
        assert_eq!(ran.err, format!("tailrace: table {table} has no policy\n"));
    }
    assert_eq!(
        database.ran(&["policy", "list", "--output", "json"]).await?.out,
        "{\"policies\":[]}\n"
    );
    Ok(())
}

/// Ids are given again after a catalog was dropped and made anew: the UUID decides.
#[tokio::test]
async fn a_row_of_another_table_uuid_is_none() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = governed(&database, "raw").await?;
    database.sql("UPDATE tailrace.policy SET table_uuid = gen_random_uuid()").await?;
    assert_eq!(outcomes(&database.sweep().await?), []);
    assert_eq!(live_ids(&table).await?.len(), 1);
    // A policy that is set now takes the row over.
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    Ok(())
}

#[tokio::test]
async fn a_renamed_and_moved_table_keeps_its_policy() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = governed(&database, "raw").await?;
    table.rename("silver").await?;
    table.move_to(&table.catalog.namespace("elsewhere").await?).await?;
    let listed = database.policies(&["policy", "list", "--output", "json"]).await?;
    assert_eq!(
        (&listed[0]["namespace"], &listed[0]["table"]),
        (&"elsewhere".into(), &"silver".into())
    );
    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.namespace.as_str()), (Outcome::Dropped, "elsewhere"));
    Ok(())
}

#[tokio::test]
async fn tables_in_a_dropped_namespace_are_gone() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = governed(&database, "raw").await?;
    let namespace = table.catalog.namespace("events").await?;
    namespace.drop_namespace().await?;
    let head = table.catalog.head().await?;
    assert_eq!(outcomes(&database.sweep().await?), []);
    assert_eq!(table.catalog.head().await?, head);
    Ok(())
}

/// Rows of tables that the server has retired, and of catalogs that it has dropped, are kept for
/// `history.keep` from the pass on that first saw it.
#[tokio::test]
async fn a_pass_purges_what_nothing_stands_behind() -> Result<()> {
    let database = TestDatabase::new().await?;
    governed(&database, "stays").await?;
    let retired = governed(&database, "retired").await?;
    let other = database.catalog("other").await?;
    let theirs = database.table(&other, "raw", &[Field::day("at")]).await?;
    theirs.set_property("partition_retention", Some(r#"{"field":"at","keep":"7d"}"#)).await?;
    database.policy("other", "events.raw", "day(at)", "7d").await?;
    database.sweep().await?;
    let counts = "SELECT (SELECT count(*) FROM tailrace.policy) || ' ' ||
                         (SELECT count(*) FROM tailrace.spec_copy) || ' ' ||
                         (SELECT count(*) FROM tailrace.source_column_type)";
    assert_eq!(database.text(counts).await?.as_deref(), Some("4 3 3"));

    retired.drop_table().await?;
    database
        .sql(&format!(
            "DELETE FROM hog_table WHERE table_id = {} AND catalog_id = {}",
            retired.table_id, retired.catalog.catalog_id
        ))
        .await?;
    database.sql("DELETE FROM hog_catalog WHERE name = 'other'").await?;
    // Until then they are ignored.
    assert_eq!(database.ran(&["plan"]).await?.code, 0);
    let (first, keep) = (chrono::Utc::now(), chrono::TimeDelta::days(90));
    for (at, left) in [
        (first, "4 3 3"),
        (first + keep, "4 3 3"),
        (first + keep + chrono::TimeDelta::microseconds(1), "1 1 1"),
    ] {
        database.sweep_with(&Settings { as_of: Some(at.into()), ..settings() }).await?;
        assert_eq!(database.text(counts).await?.as_deref(), Some(left), "{at}");
    }
    Ok(())
}

/// Our history is kept as long as it is asked to be.
#[tokio::test]
async fn old_history_is_purged() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = governed(&database, "raw").await?;
    database.sweep().await?;
    table.append(vec![NewFile::of(["18001"])]).await?;
    database.sweep().await?;
    database
        .sql(
            "UPDATE tailrace.drop_history h
                SET purged_seen_at = o.at, last_removal_id = 0, gone_seen_at = o.at
               FROM (SELECT h.snapshot_id, clock_timestamp() - CASE snapshot_id
                              WHEN min(snapshot_id) OVER () THEN interval '90 days 1 s'
                              ELSE interval '89 days' END AS at
                       FROM tailrace.drop_history h) o
              WHERE h.snapshot_id = o.snapshot_id",
        )
        .await?;
    let head = table.catalog.head().await?;
    database.sweep().await?;
    let left =
        database.text("SELECT string_agg(snapshot_id::text, ' ') FROM tailrace.drop_history");
    assert_eq!(left.await?, Some(head.to_string()));
    Ok(())
}
