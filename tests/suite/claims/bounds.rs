//! Tests of how many files are claimed, and how many one row names.

use anyhow::Result;
use tailrace::claims::Settings;
use tailrace::claims::rows::MOST_IDS;
use tailrace_kit::lake::NewFile;

use super::{Scene, settings};
use crate::support::program::days_ago;

#[tokio::test]
async fn the_soonest_to_expire_come_first() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[7, 9, 8, 7, 10]).await?;
    let few = Settings { max_claimed_files: 3, ..settings() };
    assert_eq!(scene.renew_with(&few).await?.files, 3);
    assert_eq!(scene.claimed().await?, [ids[1], ids[2], ids[4]]);
    // As by the index, which a pass's cursor leads to.
    let mut by_index = few;
    by_index.scan_limits.small_table = 1;
    by_index.scan_limits.values_at_once = 1;
    assert_eq!(scene.renew_with(&by_index).await?.files, 3);
    assert_eq!(scene.claimed().await?, [ids[1], ids[2], ids[4]]);
    Ok(())
}

#[tokio::test]
async fn a_row_names_4096_files_at_most() -> Result<()> {
    let scene = Scene::new().await?;
    let file = NewFile::of([days_ago(7)]);
    let ids = scene.table.append(vec![file; MOST_IDS + 2]).await?.file_ids;
    assert_eq!(scene.renew().await?.rows, 2);
    let rows = scene.rows().await?;
    assert_eq!(rows[0], ("tailrace/0".to_owned(), ids[..MOST_IDS].to_vec()));
    assert_eq!(rows[1], ("tailrace/1".to_owned(), ids[MOST_IDS..].to_vec()));
    Ok(())
}

#[tokio::test]
async fn without_claims_what_was_claimed_is_let_go() -> Result<()> {
    let scene = Scene::new().await?;
    scene.files(&[8]).await?;
    scene.renew().await?;
    assert_eq!(scene.all_rows().await?.len(), 1);
    let off = Settings { claims: false, ..settings() };
    assert_eq!(scene.renew_with(&off).await?.files, 0);
    assert_eq!(scene.all_rows().await?, Vec::<String>::new());
    Ok(())
}
