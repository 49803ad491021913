//! Tests of the stored rules of the window, and of changes without DDL: the rules may be out of
//! date, but then they only exclude values from the window.

use std::borrow::Cow;

use anyhow::{Context, Result};
use tailrace::catalog::connect::close;
use tailrace::catalog::window_rules::keep_window_rules;
use tailrace_kit::lake::{Column, Field, Table};

use super::asked::{Answers, Question, agree, in_drop_window};
use crate::support::TestDatabase;
use crate::support::governed::values;

/// A table that was partitioned by an int before it was by day, and a value that may be either.
async fn ambiguous(database: &TestDatabase) -> Result<(Table, [Question; 1])> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "date"), Column::new("kind", "int")];
    let fields = [Field::identity("kind")];
    let table = database.table_of(&catalog, "raw", &columns, &fields).await?;
    let spec_id = table.evolve_spec(&[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    database.sweep().await?;
    let at = "2026-11-30T12:00:00Z".parse()?;
    Ok((table, [Question { spec_id, values: values(["42"]), at }]))
}

const TRUST: &str = "UPDATE tailrace.spec_copy
    SET trusted_at = now(), trusted_by = 'tester', trust_reason = 'checked' WHERE spec_id = 2";
const NO_TRUST: &str = "UPDATE tailrace.spec_copy
    SET trusted_at = null, trusted_by = null, trust_reason = null";

#[tokio::test]
async fn a_trusted_spec_has_no_doubt_from_the_next_renewal_on() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (table, asked) = ambiguous(&database).await?;
    let catalog_id = table.catalog.catalog_id;
    assert_eq!(agree(&database, &table, &asked).await?, Answers { yes: 0, ambiguous: 1 });
    let mut session = database.plain_session().await?;
    database.sql(TRUST).await?;
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(false)]);
    keep_window_rules(&mut session, catalog_id).await?;
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(true)]);
    assert_eq!(agree(&database, &table, &asked).await?, Answers { yes: 1, ambiguous: 0 });
    // Trust that is gone is gone at once, and not with the next renewal.
    database.sql(NO_TRUST).await?;
    let is_kept = "SELECT is_trusted FROM tailrace.window_rule WHERE spec_id = 2";
    assert_eq!(database.text(is_kept).await?.as_deref(), Some("true"));
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(false)]);
    keep_window_rules(&mut session, catalog_id).await?;
    assert_eq!(database.text(is_kept).await?.as_deref(), Some("false"));
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(false)]);
    close(session).await;
    Ok(())
}

/// Trust in one spec says nothing of another.
#[tokio::test]
async fn trust_counts_for_its_own_spec() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (table, [of_second]) = ambiguous(&database).await?;
    let third = table.evolve_spec(&[Field::month("at")]).await?;
    database.sweep().await?;
    database.sql(TRUST).await?;
    let of_third = Question { spec_id: third, ..of_second.clone() };
    assert_eq!(agree(&database, &table, &[of_second]).await?, Answers { yes: 1, ambiguous: 0 });
    assert_eq!(agree(&database, &table, &[of_third]).await?, Answers { yes: 0, ambiguous: 1 });
    Ok(())
}

#[tokio::test]
async fn a_begin_snapshot_counts_from_the_renewal_after_it_was_copied() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    database.sweep().await?;
    // As an earlier version left it, and then the server deleted the spec.
    database
        .sql("UPDATE tailrace.spec_copy SET begin_snapshot = null; DELETE FROM hog_partition_spec")
        .await?;
    let at = "2026-11-30T12:00:00Z".parse()?;
    let asked = [Question { spec_id: 1, values: values(["42"]), at }];
    assert_eq!(agree(&database, &table, &asked).await?, Answers { yes: 0, ambiguous: 1 });
    let mut session = database.plain_session().await?;
    database
        .sql("UPDATE tailrace.spec_copy SET begin_snapshot = created_snapshot FROM hog_table")
        .await?;
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(false)]);
    keep_window_rules(&mut session, catalog.catalog_id).await?;
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(true)]);
    close(session).await;
    Ok(())
}

/// A rule that an earlier version kept says nothing of doubt, so none stays.
#[tokio::test]
async fn rules_kept_by_an_earlier_version_are_not_used() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    let mut earlier = sqlx::migrate!();
    earlier.dangerous_set_table_name("tailrace.schema_migration");
    earlier.create_schema("tailrace");
    let before = earlier.iter().filter(|migration| migration.version < 9).cloned();
    earlier.migrations = Cow::Owned(before.collect());
    let mut connection = database.connection().await?;
    earlier.run_direct(None, &mut connection, false).await.context("as an earlier version")?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "date"), Column::new("kind", "int")];
    let fields = [Field::identity("kind")];
    let table = database.table_of(&catalog, "raw", &columns, &fields).await?;
    let spec_id = table.evolve_spec(&[Field::day("at")]).await?;
    // As `policy set` writes it; a session of this program refuses the earlier version.
    let policy = format!(
        "INSERT INTO tailrace.policy (catalog_id, table_id, source, table_uuid, field, source_field_id,
                                      keep, keep_seconds, mode, revision, updated_by)
         VALUES ({}, {}, 'stored', '{}', 'at', {}, '7d', 604800, 'enforce', 1, 'tester')",
        catalog.catalog_id,
        table.table_id,
        table.table_uuid,
        table.field_id("at")?
    );
    database.sql(&policy).await?;
    let at = "2026-11-30T12:00:00Z".parse()?;
    let asked = [Question { spec_id, values: values(["42"]), at }];
    let mut session = database.plain_session().await?;
    keep_window_rules(&mut session, catalog.catalog_id).await?;
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(true)]);
    close(session).await;

    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    let kept = database.text("SELECT count(*) FROM tailrace.window_rule").await?;
    assert_eq!(kept.as_deref(), Some("0"));
    let mut session = database.plain_session().await?;
    assert_eq!(in_drop_window(&mut session, &table, &asked).await?, [Some(false)]);
    close(session).await;
    assert_eq!(agree(&database, &table, &asked).await?, Answers { yes: 0, ambiguous: 1 });
    Ok(())
}
