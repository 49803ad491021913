//! Tests of what trace, verify and doctor report of drops that a restore undid.

use anyhow::Result;
use tailrace::verify::report::{Check, Status};
use tailrace::verify::verify;
use tailrace_kit::simulated_loops::Cleanup;

use super::Scene;
use crate::verify::{of, of_status, settings};

/// The data of the drop is live, however far the drop had come, whatever has its id by now, and whether
/// or not a pass has noted it.
#[tokio::test]
async fn no_stage_is_proof_of_what_is_live_again() -> Result<()> {
    for stage in ["retained", "queued", "gone"] {
        for foreign in ["none", "an append", "a deletion from the same table"] {
            let scene = Scene::new().await?;
            let ids = scene.append([0, 3]).await?;
            let backup = scene.database.back_up("before").await?;
            let (_, answer) = scene.request(3).await?;
            let dropped = answer.snapshot_id;
            if stage != "retained" {
                scene.floor_to(dropped).await?.purge().await?;
                scene.sweep().await?;
            }
            if stage == "gone" {
                Cleanup::new(&scene.catalog).run(10).await?;
                scene.sweep().await?;
            }
            let what = format!("{stage}, {foreign}");
            assert_eq!(scene.stages().await?, [(dropped, stage, false)], "{what}");

            scene.database.restore(&backup).await?;
            match foreign {
                "none" => {}
                "an append" => drop(scene.append([0]).await?),
                _ => drop(scene.table.register_vector(ids[0], 1, None).await?),
            }
            assert!(scene.live().await?.contains(&ids[1]), "{what}");
            assert_eq!(scene.stages().await?, [(dropped, "undone", false)], "{what}");
            scene.sweep().await?;
            assert_eq!(scene.stages().await?, [(dropped, "undone", true)], "{what}");
            if foreign != "none" {
                scene.floor_to(dropped).await?.purge().await?;
                scene.sweep().await?;
                scene.sweep().await?;
                assert_eq!(scene.stages().await?, [(dropped, "undone", true)], "{what}");
            }
        }
    }
    Ok(())
}

/// The floor has passed its snapshot, so that it is unknown whose it was: a head that was noted
/// after it tells that the catalog was restored.
#[tokio::test]
async fn a_drop_below_the_floor_is_undone_unless_disproved() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3]).await?;
    scene.sweep().await?;
    let backup = scene.database.back_up("before").await?;
    let (_, answer) = scene.request(3).await?;
    let dropped = answer.snapshot_id;
    for _ in 0..3 {
        scene.append([0]).await?;
    }
    scene.sweep().await?;
    scene.database.restore(&backup).await?;
    for _ in 0..2 {
        scene.append([0]).await?;
    }
    scene.floor_to(dropped + 1).await?.purge().await?;
    assert_eq!(scene.stages().await?, [(dropped, "undone", false)]);
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(dropped, "undone", true)]);
    Ok(())
}

/// What came before the restored time is what it was; what passes noted of it since is looked at anew.
#[tokio::test]
async fn earlier_drops_stay_and_their_ends_are_noted_anew() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9]).await?;
    let first = scene.dropping(1).await?;
    scene.append([0, 3]).await?;
    let backup = scene.database.back_up("before").await?;
    let (_, answer) = scene.request(3).await?;
    let second = answer.snapshot_id;
    scene.floor_to(first).await?.purge().await?;
    scene.sweep().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(second, "retained", false), (first, "gone", false)]);
    scene.database.restore(&backup).await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(second, "undone", true), (first, "retained", false)]);
    let drops = scene.drops().await?;
    assert_eq!((drops[1].purged_seen_at, drops[1].last_removal_id), (None, None));
    scene.floor_to(first).await?.purge().await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(second, "undone", true), (first, "queued", false)]);
    Ok(())
}

/// Pages are by snapshot: drops of one snapshot are on one page.
#[tokio::test]
async fn drops_of_one_snapshot_are_told_together() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([3]).await?;
    let backup = scene.database.back_up("before").await?;
    for _ in 0..3 {
        scene.request(3).await?;
        scene.sweep().await?;
        scene.database.restore(&backup).await?;
    }
    scene.append([0]).await?;
    scene.request(3).await?;
    let head = scene.catalog.head().await?;
    let snapshots = async |args: &[&str]| -> Result<Vec<i64>> {
        let args = [&["trace", "lake", "--output", "json"], args].concat();
        let report = scene.database.done(&args).await?;
        let drops = report["catalogs"][0]["drops"].as_array().cloned().unwrap_or_default();
        Ok(drops.iter().filter_map(|drop| drop["snapshot_id"].as_i64()).collect())
    };
    assert_eq!(snapshots(&[]).await?, [head, head - 1, head - 1, head - 1]);
    let mut session = scene.database.tailrace().read_only_session().await?;
    let catalog = tailrace::catalog::tables::catalogs(&mut session).await?.pop().expect("lake");
    let mut before = i64::MAX;
    for (page, next) in
        [(vec![head], Some(head)), (vec![head - 1; 3], Some(head - 1)), (vec![], None)]
    {
        let asked = tailrace::trace::Asked { table: Some(("events", "raw")), before, limit: 1 };
        let report = tailrace::trace::trace(&mut session, &catalog, asked).await?;
        let told: Vec<_> = report.drops.iter().map(|drop| drop.snapshot_id).collect();
        assert_eq!((told, report.next_before), (page, next));
        before = next.unwrap_or_default();
    }
    Ok(())
}

#[tokio::test]
async fn verify_reports_undone_drops_and_finds_nothing_wrong() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.append([0, 9, 3]).await?;
    scene.table.register_vector(ids[1], 1, None).await?;
    let backup = scene.database.back_up("before").await?;
    scene.dropping(1).await?;
    scene.request(3).await?;
    // Nothing matched, at a head that is no more.
    scene.request(3).await?;
    let told = async |history: &[&str], receipts: &[&str]| -> Result<()> {
        let report = verify(&scene.database.tailrace(), &settings(), &Default::default()).await?;
        assert_eq!(of_status(&report, Status::Violated), [], "{report:#?}");
        assert_eq!(report.status, Status::Ok, "{report:#?}");
        assert_eq!(of(&report, Check::DropHistory)?.notes, history);
        assert_eq!(of(&report, Check::Receipts)?.notes, receipts);
        Ok(())
    };
    told(&[], &[]).await?;
    scene.database.restore(&backup).await?;
    let drops = "2 drops are undone: the catalog was restored to a time before, and their data may be \
                 live again";
    let receipt =
        "1 receipt is of a drop that is undone: the catalog was restored to a time before";
    told(&[drops], &[receipt]).await?;
    // A vector of the restored file is live beside an id of a drop that is another snapshot now.
    scene.table.register_vector(ids[0], 1, None).await?;
    told(&[drops], &[receipt]).await?;
    scene.sweep().await?;
    told(&[drops], &[receipt]).await?;
    scene.request(3).await?;
    told(&[drops], &[receipt]).await?;
    Ok(())
}

#[tokio::test]
async fn doctor_reports_a_restore_before_a_pass_and_after_it() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([0, 3]).await?;
    scene.sweep().await?;
    let agreed = scene.catalog.head().await?;
    let backup = scene.database.back_up("before").await?;
    let found = async || -> Result<Vec<String>> {
        let (report, _) = scene.database.json(&["doctor", "--output", "json"]).await?;
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        let ours = findings.iter().filter(|finding| finding["check"] == "restores");
        Ok(ours.map(|f| format!("{} {}", f["level"], f["what"])).collect())
    };
    scene.request(3).await?;
    assert_eq!(found().await?, Vec::<String>::new());
    scene.database.restore(&backup).await?;
    assert_eq!(
        found().await?,
        [format!(
            "\"warning\" \"the catalog was restored, to snapshot {agreed} or a later one, and is at \
             {agreed} now; no pass has noted that yet\""
        )]
    );
    scene.sweep().await?;
    assert_eq!(
        found().await?,
        ["\"warning\" \"1 drop is undone: the catalog was restored to a time before\""]
    );
    Ok(())
}
