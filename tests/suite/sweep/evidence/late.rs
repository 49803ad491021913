//! Tests that a proof holds only for the files that were checked. Files that arrive between the
//! check and the grant of the commit lock are checked in the write, by their own keys.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::{Compacted, Compaction, HeldFiles};

use super::{NOW, Scene, file};
use crate::drop::races::patient;
use crate::support::gate::{in_order, while_it_waits};

/// Day 20820 is 2027-01-02; the cutoff is 2027-01-03.
#[tokio::test]
async fn a_stale_append_between_check_and_grant_stays() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    scene.append(vec![NewFile::of(["20820"])]).await?;
    let late = vec![
        file(&["20820"], "2027-01-03T00:00:00Z"),
        file(&["20820"], "2027-01-03T00:00:00.000001Z"),
        NewFile::of(["20820"]),
    ];
    let sweep = scene.sweep_with(NOW, patient());
    let (late, report) = in_order(&scene.catalog, scene.table.append(late), sweep).await?;
    // Its bound at the cutoff, or none at all, keeps a late file no more than an early one.
    assert_eq!(report.counts().files, 3);
    assert_eq!(scene.live().await?, [late.file_ids[1]]);
    // The next pass keeps it, and takes it when its row has expired.
    assert_eq!(scene.sweep_at(NOW).await?.outcome, Outcome::NothingToDo);
    assert_eq!(scene.sweep_at("2027-01-10T00:00:00.000001Z").await?.counts().files, 1);
    Ok(())
}

/// Of an ambiguous tuple, whose files were proven one by one, no late file is dropped.
#[tokio::test]
async fn no_late_file_of_an_ambiguous_tuple_is_dropped() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.append(vec![file(&["42"], "2026-12-01T00:00:00Z")]).await?;
    scene.append(vec![file(&["20820"], "2027-01-01T00:00:00Z")]).await?;
    let late = vec![
        NewFile::of(["42"]),
        file(&["42"], "2026-12-01T00:00:00Z"),
        file(&["20820"], "2027-01-01T00:00:00Z"),
    ];
    let sweep = scene.sweep_with(NOW, patient());
    let (late, report) = in_order(&scene.catalog, scene.table.append(late), sweep).await?;
    assert_eq!(report.counts().files, 2);
    assert_eq!(scene.live().await?, late.file_ids);
    // What is proven goes with the next pass; the tuple of the one without statistics stays whole.
    assert_eq!(scene.sweep_at(NOW).await?.counts().files, 1);
    assert_eq!(scene.live().await?, late.file_ids[..2]);
    Ok(())
}

/// The output is late. It has the statistics of its inputs, and of an ambiguous tuple it waits for the
/// next pass.
#[tokio::test]
async fn a_compaction_of_checked_files_between_check_and_grant() -> Result<()> {
    for (specs, gone_at_once) in [
        (vec![vec![Field::day("at")]], true),
        (vec![vec![Field::identity("tenant")], vec![Field::day("at")]], false),
    ] {
        let specs: Vec<&[Field]> = specs.iter().map(Vec::as_slice).collect();
        let scene = Scene::new(&specs).await?;
        let old = || file(&["20820"], "2027-01-01T12:00:00Z");
        scene.append(vec![old(), old()]).await?;
        let compaction = Compaction::new(&scene.catalog, 1 << 30);
        let group = compaction.plan(&scene.table).await?.pop().expect("a group");
        let sweep = scene.sweep_with(NOW, patient());
        let (compacted, report) = in_order(&scene.catalog, compaction.commit(group), sweep).await?;
        let Compacted::Done { output, .. } = compacted else { panic!("{compacted:?}") };
        match gone_at_once {
            true => assert_eq!((report.counts().files, scene.live().await?), (1, vec![])),
            false => {
                assert_eq!((report.snapshots.len(), scene.live().await?), (0, vec![output]));
                assert_eq!(scene.sweep_at(NOW).await?.counts().files, 1);
            }
        }
    }
    Ok(())
}

/// Statistics that come between check and grant say nothing about what was checked without them; of a
/// late file they count.
#[tokio::test]
async fn a_hydration_between_check_and_grant() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    let checked = scene.append(vec![NewFile::of(["20820"]).pending()]).await?;
    let (report, ()) = while_it_waits(&scene.catalog, scene.sweep_with(NOW, patient()), async {
        let held = HeldFiles::hold(&scene.catalog, 10).await?;
        assert_eq!(held.file_ids, checked);
        held.finish().await?;
        Ok(())
    })
    .await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));

    // A late file whose footer was read just before the grant.
    scene.append(vec![NewFile::of(["20819"])]).await?;
    let hydrated = file(&["20819"], "2027-01-09T00:00:00Z");
    let append = scene.table.append(vec![hydrated]);
    let (late, report) = in_order(&scene.catalog, append, scene.sweep_with(NOW, patient())).await?;
    assert_eq!(report.counts().files, 1);
    assert_eq!(scene.live().await?, late.file_ids);
    Ok(())
}

/// A split tuple: its last piece takes late files, by the same rule.
#[tokio::test]
async fn the_last_piece_of_a_large_tuple_keeps_the_rule() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    scene.append(vec![NewFile::of(["20820"]); 5]).await?;
    let mut settings = patient();
    settings.batch.files_per_commit = 2;
    settings.batch.files_per_tuple = 4;
    let late = vec![NewFile::of(["20820"]), file(&["20820"], "2027-01-09T00:00:00Z")];
    let sweep = scene.sweep_with(NOW, settings);
    let (late, report) = in_order(&scene.catalog, scene.table.append(late), sweep).await?;
    assert_eq!((report.snapshots.len(), report.counts().files), (3, 6));
    assert_eq!(scene.live().await?, late.file_ids[1..]);
    Ok(())
}
