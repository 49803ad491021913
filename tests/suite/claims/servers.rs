//! Tests of renewals on older servers.

use anyhow::Result;
use tailrace::claims::renew;
use tailrace_kit::lake::{Field, NewFile};

use super::{Scene, append, settings};
use crate::support::TestDatabase;
use crate::support::program::days_ago;

/// Before V15 there are no claims: nothing is claimed, nothing fails.
#[tokio::test]
async fn without_the_table_of_claims_they_are_off() -> Result<()> {
    let database = TestDatabase::new().await?;
    database.lake.downgrade(14).await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    append(&table, &[8]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let renewed = renew(&database.tailrace(), &settings(), None).await?;
    assert_eq!((renewed.files, renewed.failed), (0, vec![]));
    let asked = format!(
        "tailrace.in_drop_window({}, {}, 1, array['1'])",
        catalog.catalog_id, table.table_id
    );
    assert_eq!(database.text(&asked).await?.as_deref(), Some("true"));
    Ok(())
}

/// Before V23 there is no index by partition value: small tables are read, larger ones are left as
/// they are.
#[tokio::test]
async fn without_the_lookup_index_only_small_tables_are_claimed() -> Result<()> {
    let scene = Scene::new().await?;
    scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
    let ids = scene.files(&[0, 8]).await?;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids[1..]);
    scene.table.append(vec![NewFile::of([days_ago(8)]); 3]).await?;
    let mut settings = settings();
    settings.scan_limits.small_table = 2;
    assert_eq!(scene.renew_with(&settings).await?.files, 0);
    assert_eq!(scene.claimed().await?, ids[1..]);
    Ok(())
}
