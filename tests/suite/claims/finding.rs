//! Tests that each way to find the files of the window finds the same files.

use anyhow::Result;
use tailrace::claims::Settings;
use tailrace_kit::lake::{Field, NewFile};

use super::{Scene, append, settings};
use crate::support::program::days_ago;

/// No table is small: what there is, is found by text.
fn by_text() -> Settings {
    let mut settings = settings();
    settings.scan_limits.small_table = 2;
    settings
}

#[tokio::test]
async fn by_the_texts_of_the_whole_catalog_or_those_since_a_pass() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    append(&other, &[7, 8, 9]).await?;
    let ids = scene.files(&[0, 1, 6, 7, 8]).await?;
    scene.renew_with(&by_text()).await?;
    assert_eq!(scene.claimed().await?, ids[3..]);

    // A pass drops day 8, and remembers how far it came: only what expires after that is looked up.
    assert_eq!(scene.database.sweep_one().await?.counts().files, 1);
    let late = scene.files(&[7, 30]).await?;
    scene.renew_with(&by_text()).await?;
    assert_eq!(scene.claimed().await?, [ids[3], late[0], late[1]]);
    Ok(())
}

/// What a pass had to leave is claimed too: here a tuple with a row that somebody has locked.
#[tokio::test]
async fn by_the_texts_that_a_pass_left() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[0, 1, 2, 8]).await?;
    let mut hydrator = scene.database.pool.begin().await?;
    sqlx::query("SELECT FROM hog_data_file WHERE data_file_id = $1 FOR UPDATE")
        .bind(ids[3])
        .execute(&mut *hydrator)
        .await?;
    let mut quick = crate::support::program::settings();
    quick.limits.row_lock_timeout = std::time::Duration::from_millis(20);
    scene.database.sweep_with(&quick).await?;
    hydrator.rollback().await?;
    scene.renew_with(&by_text()).await?;
    assert_eq!(scene.claimed().await?, ids[3..]);
    Ok(())
}

/// A timestamp's texts cannot be counted out; they lie between two.
#[tokio::test]
async fn by_the_texts_between_two() -> Result<()> {
    let scene = Scene::new().await?;
    let table = scene.database.table(&scene.catalog, "exact", &[Field::identity("at")]).await?;
    scene.database.govern(&table, "at", "7d").await?;
    let text = |hours: i64| {
        let at = chrono::Utc::now() - chrono::Duration::hours(hours);
        NewFile::of([at.format("%Y-%m-%dT%H:%M:%S+00:00").to_string()])
    };
    let files = [1, 2, 143, 145, 167].map(text).to_vec();
    let ids = table.append(files).await?.file_ids;
    for _ in 0..2 {
        scene.renew_with(&by_text()).await?;
        let claimed = super::rows_of(&scene.database, &table).await?;
        assert_eq!(claimed, [("tailrace/0".to_owned(), ids[3..].to_vec())]);
        // From here on there is a cursor.
        scene.database.sweep().await?;
    }
    Ok(())
}

/// A neighbour with many files of the same days: then the table itself is the shorter way.
#[tokio::test]
async fn by_the_table_itself_where_its_neighbours_crowd_the_index() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    other.append(vec![NewFile::of([days_ago(7)]); 20]).await?;
    let ids = scene.files(&[0, 7]).await?;
    scene.database.sweep().await?;
    let mut settings = settings();
    settings.scan_limits.small_table = 10;
    scene.renew_with(&settings).await?;
    assert_eq!(scene.claimed().await?, ids[1..]);
    Ok(())
}
