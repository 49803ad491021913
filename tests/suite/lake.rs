//! The lake builder and the stand-ins, against the catalog's contract.

use anyhow::Result;
use tailrace::demo::lake::{Field, NewFile};

use crate::support::TestDatabase;

#[tokio::test]
async fn an_append_takes_ids_rows_and_totals_from_the_counters() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("c").await?;
    let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
    let before = catalog.head().await?;
    let done = table
        .append(vec![
            NewFile::of(["20713"]).records(7).bytes(70),
            NewFile::new(vec![None]).records(3).bytes(30),
        ])
        .await?;
    assert_eq!(done.snapshot_id, before + 1);
    assert_eq!(done.file_ids, [1, 2]);
    assert_eq!(catalog.next_file_id().await?, 3);
    let files = table.live_files().await?;
    assert_eq!(files[0].values, [Some("20713".to_owned())]);
    assert_eq!(files[1].values, [None]);
    assert_eq!((files[0].row_id_start, files[1].row_id_start), (0, 7));
    assert_eq!(table.rows_at(done.snapshot_id).await?, 10);
    Ok(())
}
