//! Tests that what an earlier version stored by table ids alone gets the UUIDs of its tables.

use std::borrow::Cow;

use anyhow::{Context, Result};
use sqlx::Connection;
use tailrace_kit::lake::Field;

use crate::support::TestDatabase;
use crate::support::governed::outcomes;

#[tokio::test]
async fn rows_of_an_earlier_version_are_of_their_tables() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    let mut earlier = sqlx::migrate!();
    earlier.dangerous_set_table_name("tailrace.schema_migration");
    earlier.create_schema("tailrace");
    let before = earlier.iter().filter(|migration| migration.version < 10).cloned();
    earlier.migrations = Cow::Owned(before.collect());
    let mut session = database.connection().await?;
    earlier.run_direct(None, &mut session, false).await.context("as an earlier version")?;
    session.close().await?;

    let catalog = database.catalog("lake").await?;
    let live = database.table(&catalog, "live", &[Field::day("at")]).await?;
    let dropped = database.table(&catalog, "dropped", &[Field::day("at")]).await?;
    dropped.drop_table().await?;
    // 71 and 72 are not in the catalog; only of the first there is a policy.
    let (gone, unknown) = (71, 72);
    let lost = uuid::Uuid::from_u128(71);
    let mut old = String::new();
    for (table, uuid) in [
        (live.table_id, Some(live.table_uuid)),
        (dropped.table_id, Some(dropped.table_uuid)),
        (gone, Some(lost)),
        (unknown, None),
    ] {
        let catalog = catalog.catalog_id;
        old += &format!(
            "INSERT INTO tailrace.spec_copy (catalog_id, table_id, spec_id, fields)
             VALUES ({catalog}, {table}, 1, '[]');
             INSERT INTO tailrace.source_column_type (catalog_id, table_id, field_id, col_type)
             VALUES ({catalog}, {table}, 1, 'date');"
        );
        if let Some(uuid) = uuid {
            old += &format!(
                "INSERT INTO tailrace.policy (catalog_id, table_id, source, table_uuid, field,
                   source_field_id, keep, keep_seconds, mode, revision, updated_by)
                 VALUES ({catalog}, {table}, 'stored', '{uuid}', 'at', 1, '7d', 604800, 'enforce',
                         {table}, 'tester');"
            );
        }
    }
    database.sql(&old).await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);

    let uuids = [(live.table_id, live.table_uuid), (dropped.table_id, dropped.table_uuid)];
    let expected: Vec<String> = uuids
        .into_iter()
        .chain([(gone, lost)])
        .map(|(table, uuid)| format!(r#"{{"table_id": {table}, "table_uuid": "{uuid}"}}"#))
        .collect();
    for table in ["spec_copy", "source_column_type", "policy"] {
        let rows = format!("SELECT table_id, table_uuid FROM tailrace.{table} ORDER BY table_id");
        assert_eq!(database.rows(&rows).await?, expected, "{table}");
    }
    let names =
        "SELECT catalog_name, namespace_name, table_name FROM tailrace.policy ORDER BY revision";
    let named = |table: &str| {
        format!(
            r#"{{"table_name": "{table}", "catalog_name": "lake", "namespace_name": "events"}}"#
        )
    };
    let nothing = r#"{"table_name": null, "catalog_name": null, "namespace_name": null}"#;
    assert_eq!(database.rows(names).await?, [named("live"), named("dropped"), nothing.to_owned()]);
    let report = database.sweep().await?;
    assert_eq!(outcomes(&report).first().map(|(table, _)| *table), Some("live"));
    Ok(())
}
