//! Tests of a stored policy that is being written while the table has only a property that no pass
//! has mirrored yet. Writer and pass then share no row of the table on which one could wait for the
//! other.

use anyhow::Result;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::program::days_ago;
use crate::support::wait::until;

#[tokio::test]
async fn a_first_policy_that_is_being_written_is_not_acted_against() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of([days_ago(9)])]).await?;
    table.set_property("partition_retention", Some(r#"{"field":"at","keep":"7d"}"#)).await?;

    // As the writer of a policy does it, with its COMMIT still to come.
    let mut writer = database.pool.begin().await?;
    for step in [
        "lock table tailrace.policy in share row exclusive mode",
        "insert into tailrace.policy (catalog_id, table_id, source, table_uuid, field,
             source_field_id, keep, keep_seconds, mode, revision, updated_by)
         select catalog_id, table_id, 'stored', table_uuid, 'at', 1, '7d', 604800, 'paused',
                nextval('tailrace.policy_revision'), 'somebody' from hog_table",
    ] {
        sqlx::query(step).execute(&mut *writer).await?;
    }
    let commit = async {
        until("the pass waits for the writer", async || {
            let waiting: i64 = sqlx::query_scalar(
                "select count(*) from pg_locks where not granted
                    and relation = 'tailrace.policy'::regclass",
            )
            .fetch_one(&database.pool)
            .await?;
            Ok(waiting == 1)
        })
        .await?;
        writer.commit().await?;
        anyhow::Ok(())
    };
    let (report, ()) = tokio::try_join!(database.sweep(), commit)?;
    let ended: i64 = report.tables.iter().map(|table| table.counts().files).sum();
    assert_eq!(ended, 0, "{report:?}");
    assert_eq!(table.live_files().await?.len(), 1);
    assert_eq!(database.sweep_one().await?.outcome.name(), "paused");
    Ok(())
}

/// What the test above rests on: a writer of policies keeps out every other one, such as a pass
/// that mirrors a property, whether or not they have a row in common.
#[tokio::test]
async fn writers_of_policies_wait_for_each_other() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let mut other = database.pool.begin().await?;
    sqlx::query("lock table tailrace.policy in row exclusive mode").execute(&mut *other).await?;
    let release = async {
        until("the writer waits for the other one", async || {
            let waiting: i64 = sqlx::query_scalar(
                "select count(*) from pg_locks where not granted
                    and relation = 'tailrace.policy'::regclass and mode = 'ShareRowExclusiveLock'",
            )
            .fetch_one(&database.pool)
            .await?;
            Ok(waiting == 1)
        })
        .await?;
        other.rollback().await?;
        anyhow::Ok(())
    };
    let set = database.policy("lake", "events.raw", "day(at)", "7d");
    tokio::try_join!(set, release)?;
    Ok(())
}
