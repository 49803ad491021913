//! Tests of files that are appended around the time of a drop.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};

use crate::support::TestDatabase;
use crate::support::gate::in_order;
use crate::support::program::days_ago;

use super::{Scene, file, only, patient, texts, whole};

#[tokio::test]
async fn a_file_that_lands_between_plan_and_commit_goes_too() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let late = vec![file(8).records(7).bytes(70), file(3)];
    let (appended, report) =
        in_order(&scene.catalog, scene.table.append(late), scene.sweep()).await?;
    assert_eq!(report.outcome, Outcome::Dropped);
    let snapshot = only(&report);
    assert_eq!(snapshot.snapshot_id, appended.snapshot_id + 1);
    assert_eq!(texts(snapshot), [(days_ago(9), 1), (days_ago(8), 2)]);
    assert_eq!((snapshot.files_ended, snapshot.records, snapshot.bytes), (3, 27, 270));
    assert_eq!(scene.live().await?, [scene.files[0], appended.file_ids[1]]);
    let drops = whole::drops(&scene.catalog, scene.table.table_id).await?;
    assert_eq!(drops, [(snapshot.snapshot_id, 3)]);
    Ok(())
}

#[tokio::test]
async fn a_file_that_lands_after_the_commit_stays_until_the_next_pass() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let late = vec![file(8)];
    let (report, appended) =
        in_order(&scene.catalog, scene.sweep(), scene.table.append(late)).await?;
    assert_eq!(only(&report).snapshot_id, appended.snapshot_id - 1);
    assert_eq!(only(&report).files_ended, 2);
    assert_eq!(scene.live().await?, [scene.files[0], appended.file_ids[0]]);

    let next = scene.sweep().await?;
    assert_eq!(texts(only(&next)), [(days_ago(8), 1)]);
    assert_eq!(scene.live().await?, [scene.files[0]]);
    Ok(())
}

/// The drop has its list of tuples; what is expired but not on it waits for the next pass.
#[tokio::test]
async fn a_late_file_of_a_tuple_that_was_not_planned_stays() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let late = vec![file(30), file(8)];
    let (appended, report) =
        in_order(&scene.catalog, scene.table.append(late), scene.sweep()).await?;
    assert_eq!(texts(only(&report)), [(days_ago(8), 2)]);
    assert_eq!(scene.live().await?, [scene.files[0], appended.file_ids[0]]);
    Ok(())
}

#[tokio::test]
async fn a_late_file_of_the_same_text_under_another_spec_stays() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    // Under the second spec the text is a string that happens to look like a day.
    scene.table.evolve_spec(&[Field::identity("kind")]).await?;
    let early = scene.table.append(vec![file(8)]).await?;
    let late = vec![file(8), file(8).spec(1), file(8).spec(77)];
    let (appended, report) =
        in_order(&scene.catalog, scene.table.append(late), scene.sweep()).await?;
    let snapshot = only(&report);
    assert_eq!(texts(snapshot), [(days_ago(8), 2)]);
    assert_eq!(snapshot.partitions[0].spec_id, 1);
    assert_eq!(
        scene.live().await?,
        [scene.files[0], early.file_ids[0], appended.file_ids[0], appended.file_ids[2]]
    );
    Ok(())
}

#[tokio::test]
async fn a_late_file_whose_tuple_is_incomplete_or_null_stays() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = database.table(&catalog, "raw", &spec).await?;
    let of = |kind: Option<&str>| {
        let values = vec![Some(days_ago(8)), kind.map(str::to_owned)];
        NewFile::new(values)
    };
    table.append(vec![of(Some("a")), of(None)]).await?;
    database.policy("lake", "events.raw", "at", "7d").await?;
    // The tuple with a null is expired like any other; a file that lacks the row is neither.
    let late = vec![of(Some("a")), of(None), of(None).missing(1), of(Some("b"))];
    let settings = patient();
    let sweep = database.sweep_with(&settings);
    let (appended, report) = in_order(&catalog, table.append(late), sweep).await?;
    assert_eq!(only(&report.tables[0]).files_ended, 4);
    let live: Vec<_> = table.live_files().await?.iter().map(|file| file.data_file_id).collect();
    assert_eq!(live, appended.file_ids[2..]);
    Ok(())
}
