//! Tests the upgrade from schema version 9 with drops, receipts and an undone drop, and a restore
//! after the upgrade.

use std::borrow::Cow;

use anyhow::{Context, Result};
use sqlx::Connection;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::program::days_ago;

#[tokio::test]
async fn rows_of_version_9_are_no_restore_and_show_one() -> Result<()> {
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
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let backup = database.back_up("before").await?;
    for _ in 0..4 {
        table.append(vec![NewFile::of([days_ago(0)])]).await?;
    }
    let (catalog_id, table_id, uuid) = (catalog.catalog_id, table.table_id, table.table_uuid);
    database
        .sql(&format!(
            "INSERT INTO tailrace.policy (catalog_id, table_id, source, table_uuid, field,
                   source_field_id, keep, keep_seconds, mode, revision, updated_by)
             VALUES ({catalog_id}, {table_id}, 'stored', '{uuid}', 'at', 1, '7d', 604800, 'enforce', 1, 'me');
             INSERT INTO tailrace.spec_copy (catalog_id, table_id, spec_id, fields)
             VALUES ({catalog_id}, {table_id}, 1, '[{{\"key_index\": 0, \"transform\": \"day\",
                      \"transform_param\": null, \"source_field_id\": 1}}]');
             INSERT INTO tailrace.drop_history (catalog_id, snapshot_id, drop_id, table_id, table_uuid,
                 dropped_at, files_ended, delete_files_ended, records, bytes, partitions)
             SELECT catalog_id, snapshot_id, gen_random_uuid(), {table_id}, '{uuid}', snapshot_time,
                    1, 0, 1, 1, '[]'
               FROM hog_snapshot WHERE snapshot_id IN (4, 6);
             INSERT INTO tailrace.drop_history (catalog_id, snapshot_id, drop_id, table_id, table_uuid,
                 dropped_at, files_ended, delete_files_ended, records, bytes, partitions, undone_seen_at)
             VALUES ({catalog_id}, 5, gen_random_uuid(), {table_id}, '{uuid}', now() - interval '9 days',
                    1, 0, 1, 1, '[]', now() - interval '8 days');
             INSERT INTO tailrace.drop_receipt (catalog_id, idempotency_key, fingerprint, snapshot_id,
                 schema_version, committed, files_ended, delete_files_ended, records, bytes, ended)
             SELECT catalog_id, gen_random_uuid(), '', snapshot_id, 1, true, 1, 0, 1, 1, '[]'
               FROM tailrace.drop_history"
        ))
        .await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    let receipts = "SELECT count(drop_id) FROM tailrace.drop_receipt";
    assert_eq!(database.text(receipts).await?.as_deref(), Some("3"));
    for _ in 0..2 {
        let ran = database.ran(&["sweep"]).await?;
        assert_eq!((ran.code, ran.events("catalog_restored").len()), (0, 0), "{}", ran.err);
    }
    table.append(vec![NewFile::of([days_ago(9)])]).await?;
    let report = database.sweep_one().await?;
    assert_eq!(report.counts().files, 1, "{report:#?}");
    database.restore(&backup).await?;
    let ran = database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("catalog_restored").len(), 1, "{}", ran.err);
    let standing = "SELECT count(*) FROM tailrace.drop_history WHERE undone_seen_at IS NULL";
    assert_eq!(database.text(standing).await?.as_deref(), Some("0"));
    Ok(())
}
