//! Tests of rows that somebody else has locked without the commit lock.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::Commit;
use tailrace_kit::simulated_loops::HeldFiles;

use crate::support::gate::{Gate, in_order, queue};
use crate::support::program::days_ago;

use super::{Scene, file, only, texts, whole};

#[tokio::test]
async fn a_held_tuple_waits_and_the_others_go_in_one_snapshot() -> Result<()> {
    let ages = [0, 8, 9, 9, 10];
    let pending = |(at, age): (usize, &i64)| match at {
        3 => file(*age).pending(),
        _ => file(*age),
    };
    let scene = Scene::of(ages.iter().enumerate().map(pending).collect()).await?;
    scene.table.register_vector(scene.files[2], 1, None).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    assert_eq!(held.file_ids, [scene.files[3]]);
    let head = scene.catalog.head().await?;

    let report = scene.sweep().await?;
    assert_eq!((report.outcome, &report.error), (Outcome::Busy, &None));
    let snapshot = only(&report);
    assert_eq!(snapshot.snapshot_id, head + 1);
    assert_eq!(texts(snapshot), [(days_ago(10), 1), (days_ago(8), 1)]);
    assert_eq!(snapshot.delete_files_ended, 0);
    // The tuple stays whole, its unlocked file and the vector of that too.
    assert_eq!(scene.live().await?, [scene.files[0], scene.files[2], scene.files[3]]);
    // The commit lock is free although the rows are still held.
    let others = scene.table.append(vec![file(0)]).await?;
    assert_eq!(others.snapshot_id, head + 2);

    held.finish().await?;
    let next = scene.sweep().await?;
    assert_eq!(next.outcome, Outcome::Dropped);
    assert_eq!(texts(only(&next)), [(days_ago(9), 2)]);
    assert_eq!(only(&next).delete_files_ended, 1);
    assert_eq!(scene.live().await?, [scene.files[0], others.file_ids[0]]);
    whole::drops(&scene.catalog, scene.table.table_id).await?;
    Ok(())
}

/// Writers that come while the drop meets the held rows commit before those are released.
#[tokio::test]
async fn writers_get_through_beside_a_drop_that_meets_held_rows() -> Result<()> {
    let scene = Scene::of(vec![file(8).pending(), file(9)]).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    let writer = async {
        let mut appended = Vec::new();
        for _ in 0..5 {
            appended.push(scene.table.append(vec![file(0)]).await?.file_ids[0]);
        }
        anyhow::Ok(appended)
    };
    let (report, appended) = tokio::try_join!(scene.sweep(), writer)?;
    assert_eq!(report.outcome, Outcome::Busy);
    assert_eq!(texts(only(&report)), [(days_ago(9), 1)]);
    assert_eq!(scene.live().await?, [vec![scene.files[0]], appended].concat());
    held.release().await?;
    whole::drops(&scene.catalog, scene.table.table_id).await?;
    Ok(())
}

#[tokio::test]
async fn where_every_tuple_is_held_nothing_is_written() -> Result<()> {
    let scene = Scene::of([8, 9, 10].map(|age| file(age).pending()).to_vec()).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    let head = scene.catalog.head().await?;
    let report = scene.sweep().await?;
    assert_eq!((report.outcome, report.error), (Outcome::Busy, None));
    assert_eq!(report.snapshots.len(), 0);
    assert_eq!(scene.catalog.head().await?, head);
    assert_eq!(whole::drops(&scene.catalog, scene.table.table_id).await?, []);
    held.release().await?;
    assert_eq!(only(&scene.sweep().await?).files_ended, 3);
    Ok(())
}

/// The held file is none that planning found: it landed, and was taken by the hydrator, while
/// the drop waited for the commit lock.
#[tokio::test]
async fn a_held_late_file_makes_its_tuple_wait() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let first = Gate::shut(&scene.catalog).await?;
    let append = scene.table.append(vec![file(8).pending()]);
    let (late, held, report, ()) = tokio::try_join!(
        async { anyhow::Ok(append.await?) },
        async {
            queue(&scene.catalog, 1).await?;
            let second = Commit::begin(&scene.catalog).await?;
            // The late file is there, and the drop, which planned before it was, is next.
            let held = HeldFiles::hold(&scene.catalog, 10).await?;
            second.tx.rollback().await?;
            Ok(held)
        },
        async {
            queue(&scene.catalog, 2).await?;
            scene.sweep().await
        },
        async {
            queue(&scene.catalog, 3).await?;
            first.open().await
        }
    )?;
    assert_eq!(held.file_ids, late.file_ids);
    assert_eq!(report.outcome, Outcome::Busy);
    assert_eq!(texts(only(&report)), [(days_ago(9), 1)]);
    assert_eq!(scene.live().await?, [scene.files[0], scene.files[1], late.file_ids[0]]);
    held.release().await?;
    assert_eq!(texts(only(&scene.sweep().await?)), [(days_ago(8), 2)]);
    whole::drops(&scene.catalog, scene.table.table_id).await?;
    Ok(())
}

/// A late file of a tuple that is busy stays with it; one of a free tuple is dropped.
#[tokio::test]
async fn late_files_share_the_fate_of_their_tuples() -> Result<()> {
    let scene = Scene::of(vec![file(8).pending(), file(9)]).await?;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    let late = scene.table.append(vec![file(8), file(9)]);
    let (late, report) = in_order(&scene.catalog, late, scene.sweep()).await?;
    assert_eq!(report.outcome, Outcome::Busy);
    assert_eq!(texts(only(&report)), [(days_ago(9), 2)]);
    assert_eq!(scene.live().await?, [scene.files[0], late.file_ids[0]]);
    held.release().await?;
    Ok(())
}
