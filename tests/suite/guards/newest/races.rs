//! Tests of what other hands do between the look at the newest values and the commit.

use anyhow::Result;
use tailrace::catalog::commit_guards::{Question, look};
use tailrace_kit::lake::Field;
use tailrace_kit::simulated_loops::Compaction;

use crate::explicit::{Scene, days, file};
use crate::support::gate::in_order;
use crate::support::program::days_ago;

/// Both wait for the commit lock with their plans made; the other hand ends the newest first.
#[tokio::test]
async fn a_pass_plans_anew_once_the_newest_have_gone() -> Result<()> {
    let scene = Scene::of_days(&[40, 39, 38, 37, 36], "3").await?;
    let newest = [37, 36].map(days_ago);
    let body = days([newest[0].as_str(), newest[1].as_str()]);
    let (_, report) =
        in_order(&scene.catalog, scene.done(&body), scene.database.sweep_one()).await?;
    assert_eq!(report.counts().files, 0, "{report:?}");
    assert_eq!(scene.ages().await?, [40, 39, 38]);
    Ok(())
}

/// The second commit of a pass follows on its first, which ends files of the table as well, and alters it with a
/// fence.
#[tokio::test]
async fn a_pass_is_not_stopped_by_its_own_commits() -> Result<()> {
    for fence in ["--fence=false", "--fence"] {
        let scene = Scene::of_days(&[43, 42, 41, 40, 39, 38], "2").await?;
        scene.keeps(&[fence]).await?;
        let one_by_one = [("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "1")];
        let ran = scene.database.ran_with(&["sweep"], &one_by_one).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(ran.events("drop_committed").len(), 4);
        assert_eq!(ran.events("newest_changed").len(), 0, "{fence}");
        assert_eq!(scene.ages().await?, [39, 38]);
    }
    Ok(())
}

/// Appends and compactions lower none of the newest values.
#[tokio::test]
async fn only_deletes_and_ddl_may_change_the_newest() -> Result<()> {
    let scene = Scene::new().await?;
    let head = scene.catalog.head().await?;
    let changed = async |since: i64| -> Result<bool> {
        let question = Question {
            catalog_id: scene.catalog.catalog_id,
            table_id: scene.table.table_id,
            newest_as_of: Some(since),
            ..Question::NOTHING
        };
        Ok(look(&mut scene.session().await?, &question).await?.expect("it is there").newest_changed)
    };
    scene.table.append(vec![file("1"), file("1"), file("2")]).await?;
    assert!(!changed(head).await?);
    Compaction::new(&scene.catalog, 1000).run(&scene.table).await?;
    assert!(!changed(head).await?);
    let appended = scene.catalog.head().await?;
    scene.done(&days(["2"])).await?;
    let dropped = scene.catalog.head().await?;
    assert!(changed(head).await? && changed(appended).await?);
    assert!(!changed(dropped).await?);
    scene.table.evolve_spec(&[Field::month("at")]).await?;
    assert!(changed(dropped).await?);
    assert!(!changed(scene.catalog.head().await?).await?);
    Ok(())
}
