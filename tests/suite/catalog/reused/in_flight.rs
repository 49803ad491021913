//! Tests of a restore between the planning of a drop and its commit: the ids of files that were
//! found belong to other files at the commit.

use anyhow::Result;
use tailrace_kit::lake::{Column, Field, NewFile};

use super::Scene;
use crate::explicit::days;
use crate::support::gate::{Gate, queue, while_it_waits};
use crate::support::governed::outcomes;
use crate::support::program::{days_ago, proven_18000, settings};

/// A drop by request has found the file of three days ago; while it waits for the commit lock the catalog
/// is restored, and the file's id is given to a file of today.
#[tokio::test]
async fn a_requested_drop_ends_no_file_that_got_the_id_of_one_found() -> Result<()> {
    for is_noted in [true, false] {
        let scene = Scene::new().await?;
        scene.append([0]).await?;
        let backup = scene.database.back_up("before").await?;
        let found = scene.append([3]).await?;
        if is_noted {
            scene.sweep().await?;
        }
        let body = days([&days_ago(3)]);
        let meanwhile = async {
            scene.database.restore(&backup).await?;
            let reused = scene.slip_in(&days_ago(0)).await?;
            assert_eq!(reused, found[0]);
            Ok(())
        };
        let asked = async { Ok(scene.ask(&body).await) };
        let (answer, ()) = while_it_waits(&scene.catalog, asked, meanwhile).await?;
        assert_eq!(
            scene.live().await?.len(),
            2,
            "both files are of today; a pass noted a head: {is_noted}; {answer:?}"
        );
    }
    Ok(())
}

/// A pass has found a file that came after it noted the head, and waits with its second commit. The
/// restore is to the very head that it noted, so that this head agrees.
#[tokio::test]
async fn a_pass_ends_no_file_that_got_the_id_of_one_it_found_late() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 9, 8]).await?;
    let backup = scene.database.back_up("before").await?;
    let mut settings = settings();
    settings.batch.files_per_commit = 1;
    settings.lock_duty = 1.0;
    let gate = Gate::shut(&scene.catalog).await?;
    let (report, found) = tokio::try_join!(scene.database.sweep_with(&settings), async {
        queue(&scene.catalog, 1).await?;
        // The first commit waits. Somebody appends a file of the day that the second one drops.
        let late = scene.slip_in(&days_ago(8)).await?;
        let (second, ()) = tokio::try_join!(Gate::shut(&scene.catalog), async {
            queue(&scene.catalog, 2).await?;
            gate.open().await
        })?;
        queue(&scene.catalog, 1).await?;
        // The first commit is made, and the second one waits with the late file in its plan.
        scene.database.restore(&backup).await?;
        let reused = scene.slip_in(&days_ago(0)).await?;
        assert_eq!(reused, late);
        second.open().await?;
        Ok(reused)
    })?;
    assert!(scene.live().await?.contains(&found), "a file of today was ended: {report:#?}");
    Ok(())
}

/// A pass waits with a commit of one table while the catalog is restored and goes on to a head above the one
/// that it noted. That table is refused. For the next one it notes the new head, which agrees, and so
/// nothing tells any more that what it goes by was not settled: a policy on a column that is no more.
#[tokio::test]
async fn a_pass_at_work_takes_what_it_learned_to_no_other_table() -> Result<()> {
    let scene = Scene::new().await?;
    let one = scene.database.table(&scene.catalog, "a_one", &[Field::day("at")]).await?;
    scene.database.govern(&one, "at", "7d").await?;
    let backup = scene.database.back_up("before").await?;
    // What the catalog will be: restored, and gone on from there.
    let birth = scene.table.add_column(None, Column::new("birth", "timestamptz")).await?;
    scene.table.evolve_spec(&[Field::day("birth")]).await?;
    let raw_of_then = scene.catalog.open_table("events", "raw").await?;
    let born = raw_of_then.append(vec![proven_18000("birth")]).await?.file_ids;
    for _ in 0..6 {
        scene.append([0]).await?;
    }
    let then = scene.database.back_up("gone_on").await?;
    scene.database.restore(&backup).await?;
    // What the pass learns of it.
    let late = scene.table.add_column(None, Column::new("late", "timestamptz")).await?;
    assert_eq!(late.get("late"), birth.get("birth"));
    scene.table.evolve_spec(&[Field::day("late")]).await?;
    scene.database.govern(&scene.table, "late", "7d").await?;
    one.append(vec![NewFile::of([days_ago(9)])]).await?;
    let pass = scene.database.sweep();
    let (report, ()) = while_it_waits(&scene.catalog, pass, scene.database.restore(&then)).await?;
    assert!(
        scene.live().await?.contains(&born[0]),
        "nobody set a policy on birth: {:?}",
        outcomes(&report)
    );
    Ok(())
}
