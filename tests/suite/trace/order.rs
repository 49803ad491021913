//! Tests of several drops at the same time, and of drops among objects that others queue.

use anyhow::Result;
use tailrace::trace::state::{Hold, Stage};
use tailrace_kit::simulated_loops::Cleanup;

use super::{Scene, at};

const FIRST: &str = "2031-01-01T00:00:00Z";
const SECOND: &str = "2031-01-02T00:00:00Z";
const THIRD: &str = "2031-01-03T00:00:00Z";

impl Scene {
    /// Queues an object that is no drop's; its id.
    async fn foreign(&self, catalog_id: i64, path: &str) -> Result<i64> {
        Ok(sqlx::query_scalar(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
             VALUES ($1, $2, 'data', 'compaction_staging') RETURNING removal_id",
        )
        .bind(catalog_id)
        .bind(path)
        .fetch_one(&self.database.pool)
        .await?)
    }

    /// Drains what came from expiry, and nothing else.
    async fn drain_expired(&self) -> Result<()> {
        self.database
            .sql(
                "UPDATE hog_file_removal SET drained_at = now(), drained_outcome = 'deleted'
                  WHERE drained_at IS NULL AND reason = 'snapshot_expiry'",
            )
            .await
    }

    async fn stages(&self) -> Result<Vec<(i64, Stage)>> {
        let report = self.report().await?;
        Ok(report.drops.iter().map(|drop| (drop.snapshot_id, drop.stage)).collect())
    }
}

#[tokio::test]
async fn two_drops_go_each_in_its_own_time() -> Result<()> {
    let mut scene = Scene::new().await?;
    let (first, second) = (scene.drop(9, 2).await?, scene.drop(8, 3).await?);
    scene.floor_to(first).await?;
    scene.expiry.purge().await?;
    scene.note(FIRST).await?;
    assert_eq!(scene.stages().await?, [(second, Stage::Retained), (first, Stage::Queued)]);
    let first_mark = scene.last_removal().await?;

    scene.floor_to(second).await?;
    assert_eq!(scene.stages().await?, [(second, Stage::Purging), (first, Stage::Queued)]);
    scene.expiry.purge().await?;
    scene.note(SECOND).await?;
    let held: Vec<_> = scene
        .report()
        .await?
        .drops
        .into_iter()
        .map(|drop| (drop.last_removal_id, drop.held_by))
        .collect();
    assert_eq!(
        held,
        [
            (Some(first_mark + 3), vec![Hold::Queue { objects: 5, stuck: 0 }]),
            (Some(first_mark), vec![Hold::Queue { objects: 2, stuck: 0 }])
        ]
    );
    let cleanup = Cleanup::new(&scene.catalog);
    cleanup.run(4).await?;
    scene.note(THIRD).await?;
    assert_eq!(scene.stages().await?, [(second, Stage::Queued), (first, Stage::Gone)]);
    cleanup.run(1).await?;
    scene.note("2031-01-04T00:00:00Z").await?;
    let drops = scene.report().await?.drops;
    assert_eq!(
        drops.iter().map(|drop| drop.gone_seen_at).collect::<Vec<_>>(),
        [at("2031-01-04T00:00:00Z"), at(THIRD)]
    );
    Ok(())
}

#[tokio::test]
async fn what_others_queued_before_counts_and_after_does_not() -> Result<()> {
    let mut scene = Scene::new().await?;
    let other = scene.database.catalog("other").await?;
    scene.foreign(other.catalog_id, "another catalog's").await?;
    let below = scene.foreign(scene.catalog.catalog_id, "below").await?;
    let dropped = scene.drop(8, 2).await?;
    scene.floor_to(dropped).await?;
    scene.expiry.purge().await?;
    scene.note(FIRST).await?;
    assert_eq!(scene.only().await?.last_removal_id, Some(below + 2));
    scene.foreign(scene.catalog.catalog_id, "above").await?;
    assert_eq!(scene.only().await?.held_by, [Hold::Queue { objects: 3, stuck: 0 }]);

    scene.drain_expired().await?;
    scene.note(SECOND).await?;
    // Whose the row below is, nothing says.
    assert_eq!(scene.only().await?.held_by, [Hold::Queue { objects: 1, stuck: 0 }]);
    scene
        .database
        .sql("UPDATE hog_file_removal SET drained_at = now(), drained_outcome = 'absent' WHERE path = 'below'")
        .await?;
    scene.note(THIRD).await?;
    let report = scene.report().await?;
    assert_eq!((report.drops[0].stage, report.drops[0].gone_seen_at), (Stage::Gone, at(THIRD)));
    assert_eq!(report.undrained, 1);
    Ok(())
}

/// An id is taken before its transaction commits: one that was taken before ours, and appears
/// after them, is not ours. It delays what is noted, and takes nothing back.
#[tokio::test]
async fn an_id_that_appears_late_below_the_mark_takes_nothing_back() -> Result<()> {
    for commits_before_the_drain in [true, false] {
        let mut scene = Scene::new().await?;
        let dropped = scene.drop(8, 2).await?;
        scene.floor_to(dropped).await?;
        let mut late = scene.database.pool.begin().await?;
        let late_id: i64 = sqlx::query_scalar(
            "INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
             VALUES ($1, 'late', 'data', 'table_drop_gc') RETURNING removal_id",
        )
        .bind(scene.catalog.catalog_id)
        .fetch_one(&mut *late)
        .await?;
        scene.expiry.purge().await?;
        scene.note(FIRST).await?;
        assert_eq!(scene.only().await?.last_removal_id, Some(late_id + 2));
        if commits_before_the_drain {
            late.commit().await?;
            scene.drain_expired().await?;
            scene.note(SECOND).await?;
            assert_eq!(scene.only().await?.held_by, [Hold::Queue { objects: 1, stuck: 0 }]);
        } else {
            scene.drain_expired().await?;
            scene.note(SECOND).await?;
            late.commit().await?;
            let told = scene.only().await?;
            assert_eq!((told.stage, told.gone_seen_at), (Stage::Gone, at(SECOND)));
        }
    }
    Ok(())
}

/// A purge that has not committed is none, though its ids are taken.
#[tokio::test]
async fn a_purge_in_flight_is_none() -> Result<()> {
    let mut scene = Scene::new().await?;
    let dropped = scene.drop(8, 1).await?;
    scene.floor_to(dropped).await?;
    let mut purge = scene.database.pool.begin().await?;
    sqlx::query(
        "WITH gone AS (DELETE FROM hog_data_file WHERE end_snapshot = $1 RETURNING catalog_id, path)
         INSERT INTO hog_file_removal (catalog_id, path, file_kind, reason)
         SELECT catalog_id, path, 'data', 'snapshot_expiry' FROM gone",
    )
    .bind(dropped)
    .execute(&mut *purge)
    .await?;
    scene.note(FIRST).await?;
    assert_eq!(scene.only().await?.held_by, [Hold::Purge]);
    purge.commit().await?;
    scene.note(SECOND).await?;
    let told = scene.only().await?;
    assert_eq!((told.stage, told.purged_seen_at), (Stage::Queued, at(SECOND)));
    assert_eq!(told.last_removal_id, Some(scene.last_removal().await?));
    Ok(())
}
