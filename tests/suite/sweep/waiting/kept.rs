//! Tests of tuples that are busy, too large or kept for their evidence: they are remembered for as
//! long as that lasts.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;
use tailrace_kit::simulated_loops::HeldFiles;

use super::{NOW, Scene};
use crate::support::program::settings;

const LATER: &str = "2026-11-30T12:10:00Z";
const LAST: &str = "2026-11-30T12:20:00Z";

#[tokio::test]
async fn busy_since_it_was_first_met_so() -> Result<()> {
    let mut scene = Scene::days(1).await?;
    scene.files.extend(scene.table.append(vec![NewFile::of(["18001"]).pending()]).await?.file_ids);
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    for at in [NOW, LATER] {
        assert_eq!(scene.sweep_at(at).await?.outcome, Outcome::Busy);
        let [waiting] = &scene.waiting().await?[..] else { panic!("one waits") };
        assert_eq!(
            (&waiting["display"], &waiting["reason"]),
            (&"2019-04-15".into(), &"busy".into())
        );
        assert_eq!((&waiting["since"], &waiting["seen_at"]), (&NOW.into(), &at.into()));
        let looks = if at == NOW { (1, serde_json::Value::Null) } else { (2, LAST.into()) };
        assert_eq!((&waiting["tries"], &waiting["next_look"]), (&looks.0.into(), &looks.1));
        assert_eq!(waiting["range_end"], "2019-04-16T00:00:00Z");
    }
    held.release().await?;
    assert_eq!(scene.sweep_at(LAST).await?.outcome, Outcome::Dropped);
    assert_eq!(scene.waiting().await?.len(), 0);
    Ok(())
}

/// Over every way in which a pass looks: at once, by texts, by reading it all.
#[tokio::test]
async fn oversize_since_it_was_first_met_so() -> Result<()> {
    for way in ["read", "texts", "pieces", "no index"] {
        let scene = Scene::days(2).await?;
        scene.table.append(vec![NewFile::of(["18010"]); 5]).await?;
        let mut skipping = settings();
        (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (2, 4);
        skipping.batch.split_oversize = false;
        if way != "read" {
            skipping.scan_limits.small_table = 0;
        }
        if way == "pieces" || way == "no index" {
            skipping.max_values = 0;
            skipping.scan_limits.piece = 2;
            skipping.scan_limits.pieces_remembered = 1;
        }
        if way == "no index" {
            scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
        }
        for at in [NOW, LATER, "2026-12-02T12:00:00Z"] {
            let report = scene.sweep_with(&skipping, at).await?;
            assert_eq!(report.outcome, Outcome::Oversize, "{way} {at}");
            let [waiting] = &scene.waiting().await?[..] else { panic!("{way}: one waits") };
            assert_eq!(waiting["reason"], "oversize", "{way}");
            assert_eq!(
                (&waiting["since"], &waiting["seen_at"]),
                (&NOW.into(), &at.into()),
                "{way} {at}"
            );
            assert_eq!(waiting["files"], 5, "{way}");
        }
        skipping.batch.split_oversize = true;
        // At the third look, the second one with a pause, that is twice as long.
        let report = scene.sweep_with(&skipping, "2026-12-02T12:20:00Z").await?;
        assert_eq!((report.outcome, report.snapshots.len()), (Outcome::Dropped, 3), "{way}");
        assert_eq!(scene.waiting().await?.len(), 0, "{way}");
    }
    Ok(())
}

/// Its newest row is of noon on 2026-11-28: it goes a week after that.
#[tokio::test]
async fn evidence_says_when_it_goes() -> Result<()> {
    let scene = Scene::days(1).await?;
    let noon = 1_795_867_200_000_000_i64;
    let newer = NewFile::of(["18001"]).upper("at", &noon.to_le_bytes());
    scene.table.append(vec![newer]).await?;
    let goes = "2026-12-05T12:00:00Z";
    for (at, outcome, next) in [
        (NOW, Outcome::Dropped, serde_json::Value::Null),
        (LATER, Outcome::NothingToDo, LAST.into()),
        ("2026-12-05T11:59:00Z", Outcome::NothingToDo, goes.into()),
    ] {
        assert_eq!(scene.sweep_at(at).await?.outcome, outcome);
        let [waiting] = &scene.waiting().await?[..] else { panic!("one waits") };
        assert_eq!(waiting["reason"], "newer_rows_than_partition");
        assert_eq!((&waiting["since"], &waiting["next_look"]), (&NOW.into(), &next), "{at}");
    }
    let plan = scene.database.plan_json("2026-12-05T11:59:30Z").await?;
    assert_eq!(plan["expired"], serde_json::json!([]));
    let [waiting] = plan["waiting"].as_array().map(Vec::as_slice).unwrap_or_default() else {
        panic!("{plan}")
    };
    assert_eq!((&waiting["since"], &waiting["next_look"]), (&NOW.into(), &goes.into()));
    assert_eq!(scene.sweep_at(goes).await?.outcome, Outcome::Dropped);
    assert_eq!(scene.waiting().await?.len(), 0);
    Ok(())
}
