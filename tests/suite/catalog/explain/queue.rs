//! Tests of the search for the rows that name queued paths: one look-up for each path, however many
//! files there are, and none where the server has no index of paths.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::removal_queue::{TOLD, has_path_indexes, stuck};

use super::ALL;
use super::crowd::{Crowd, Statistics};
use super::pins::{assert_keeps_to, by};
use super::watch::{Planned, Watch};

async fn looked_up(statistics: Statistics, planned: Planned) -> Result<()> {
    let crowd = Crowd::new(statistics).await?;
    let catalog_id = crowd.catalog.catalog_id;
    // The first of 3,000 undrained rows are 500 paths of files, 500 of nothing, tried often, and 500 of files
    // that nobody tried yet.
    crowd
        .database
        .sql(&format!(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, attempts)
             SELECT {catalog_id}, path, 'data', 'snapshot_expiry', 1 FROM (
               SELECT path FROM hog_data_file ORDER BY data_file_id LIMIT 500) AS files;
             INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason, attempts)
             SELECT {catalog_id}, 'x' || n, 'data', 'snapshot_expiry', 9
               FROM generate_series(1, 500) n;
             INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
             SELECT {catalog_id}, path, 'data', 'snapshot_expiry' FROM (
               SELECT path FROM hog_data_file ORDER BY data_file_id LIMIT 2000) AS files"
        ))
        .await?;
    let watch = Watch::begin();
    let database = watch.over(&crowd.database, planned);
    let mut session = database.read_only_session().await?;
    assert!(has_path_indexes(&mut session).await?);
    let found = stuck(&mut session, catalog_id, true).await?;
    assert_eq!(found.len() as i64, TOLD);
    assert!(found.iter().all(|stuck| stuck.named_by.is_some()));
    let most = [("hog_data_file_path", 1_000), ("hog_delete_file_path", 1_000)];
    assert_keeps_to("what is stuck", &watch.take()?, &[by("rows of paths", &most)]);
    let found = stuck(&mut session, catalog_id, false).await?;
    assert_eq!((found.len() as i64, found[0].attempts), (TOLD, 9));
    assert_keeps_to("without the indexes", &watch.take()?, &[]);
    close(session).await;
    Ok(())
}

#[tokio::test]
async fn rows_that_name_queued_paths() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        looked_up(statistics, planned).await?;
    }
    Ok(())
}
