//! Tests of reasons for work that concern a whole catalog.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::Scene;
use crate::support::governed::outcomes;
use crate::support::program::{days_ago, settings};
use tailrace::sweep::Scope;

const HEAD: &str = "SELECT newest_through FROM tailrace.catalog_state";

#[tokio::test]
async fn a_restore_is_found_and_is_work_for_all() -> Result<()> {
    let scene = Scene::settled().await?;
    // The snapshot that is noted was made at another time than the one that is there.
    let head = scene.catalog.head().await?;
    let another = format!(
        "UPDATE hog_snapshot SET snapshot_time = snapshot_time - interval '1 second'
         WHERE snapshot_id = {head}"
    );
    scene.database.sql(&another).await?;
    assert_eq!(scene.worked_on().await?, ["other", "raw"]);
    scene.settle().await?;
    assert_eq!(scene.worked_on().await?, Vec::<String>::new(), "it is settled");
    // A drop that the catalog does not know.
    let unknown = format!(
        "INSERT INTO tailrace.drop_history (drop_id, catalog_id, snapshot_id, table_id, table_uuid,
           dropped_at, files_ended, delete_files_ended, records, bytes, partitions)
         SELECT gen_random_uuid(), catalog_id, {head} + 5, table_id, table_uuid, now(), 1, 0, 1, 1, '[]'
         FROM hog_table WHERE table_id = {}",
        scene.raw.table_id
    );
    scene.database.sql(&unknown).await?;
    assert_eq!(scene.worked_on().await?, ["other", "raw"]);
    scene.settle().await?;
    assert_eq!(scene.worked_on().await?, Vec::<String>::new(), "it is undone");
    Ok(())
}

/// The heads of passes that have nothing to do are facts too: else a restore to before the last pass with work
/// would not be found.
#[tokio::test]
async fn a_head_is_noted_where_nothing_is_to_be_done() -> Result<()> {
    let scene = Scene::settled().await?;
    let ungoverned = scene.database.table(&scene.catalog, "free", &[]).await?;
    // Its definition is none of ours, and the specs are copied.
    scene.worked_on().await?;
    let before = scene.database.text(HEAD).await?;
    ungoverned.append(vec![NewFile::new(vec![])]).await?;
    let head = scene.catalog.head().await?;
    assert_eq!(scene.worked_on().await?, Vec::<String>::new());
    let noted = "SELECT max(snapshot_id) FROM tailrace.noted_head";
    assert_eq!(scene.database.text(noted).await?, Some(head.to_string()));
    assert_eq!(scene.database.text(HEAD).await?, Some(head.to_string()));
    assert_ne!(before, Some(head.to_string()));
    let newest = "SELECT (SELECT newest_time FROM tailrace.catalog_state)
                       = (SELECT max(snapshot_time) FROM hog_snapshot)";
    assert_eq!(scene.database.text(newest).await?.as_deref(), Some("true"));
    Ok(())
}

#[tokio::test]
async fn what_lacks_its_head_is_reported_each_time() -> Result<()> {
    let scene = Scene::settled().await?;
    let head = scene.catalog.head().await?;
    scene.database.sql(&format!("DELETE FROM hog_snapshot WHERE snapshot_id = {head}")).await?;
    for _ in 0..2 {
        let (_, report) = scene.pass(&settings(), &Scope::default()).await?;
        assert_eq!(report.failed_catalogs.len(), 1, "{report:?}");
        assert_eq!(report.tables, []);
    }
    Ok(())
}

/// Nothing is due in it, and its clock is judged all the same.
#[tokio::test]
async fn a_refused_clock_is_reported_for_every_table() -> Result<()> {
    let scene = Scene::settled().await?;
    scene.raw.append(vec![NewFile::of([days_ago(0)])]).await?;
    let head = scene.catalog.head().await?;
    let ahead = format!(
        "UPDATE hog_snapshot SET snapshot_time = now() + interval '10 minutes'
         WHERE snapshot_id = {head}"
    );
    scene.database.sql(&ahead).await?;
    scene.settle().await?;
    let (_, report) = scene.pass(&settings(), &Scope::default()).await?;
    let refused = [("other", Outcome::ClockBehind), ("raw", Outcome::ClockBehind)];
    assert_eq!(outcomes(&report), refused);
    let why = "SELECT refusal IS NOT NULL FROM tailrace.clock_memory";
    assert_eq!(scene.database.text(why).await?.as_deref(), Some("true"));
    // The memory of the tables stands.
    let standing = "SELECT count(*) FROM tailrace.table_state WHERE outcome = 'nothing_to_do'";
    assert_eq!(scene.database.text(standing).await?.as_deref(), Some("2"));
    Ok(())
}

#[tokio::test]
async fn specs_are_copied_where_a_definition_changed() -> Result<()> {
    let scene = Scene::settled().await?;
    let copies = "SELECT count(*) FROM tailrace.spec_copy";
    assert_eq!(scene.database.text(copies).await?.as_deref(), Some("2"));
    let fields = [tailrace_kit::lake::Field::day("at")];
    scene.database.table(&scene.catalog, "free", &fields).await?;
    assert_eq!(scene.worked_on().await?, Vec::<String>::new());
    assert_eq!(scene.database.text(copies).await?.as_deref(), Some("3"));
    Ok(())
}
