//! Tests of a pass that is killed (`kill -9`) at random points.

use std::time::Duration;

use anyhow::Result;
use tailrace_kit::lake::NewFile;

use crate::support::gate::leases;
use crate::support::program::days_ago;
use crate::support::wait::until;

use super::{Scene, whole};

const TUPLES: i64 = 400;
const KILLS: usize = 24;

/// Each tuple is two files, one with a vector, and a commit of its own.
async fn scene() -> Result<Scene> {
    let day = |age: i64| {
        let text = days_ago(8 + age);
        [NewFile::of([text.clone()]).records(3).bytes(5), NewFile::of([text]).records(4).bytes(6)]
    };
    let files: Vec<NewFile> = (0..TUPLES).flat_map(day).chain([super::file(0)]).collect();
    let scene = Scene::of(files).await?;
    // Vectors in one statement: four hundred commits of the lake would take longer than the test.
    sqlx::query(
        "INSERT INTO hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id,
                                      begin_snapshot, path, delete_count, file_size_bytes)
         SELECT catalog_id, data_file_id + 1000000, table_id, data_file_id, begin_snapshot,
                'vector ' || data_file_id, 1, 7
           FROM hog_data_file WHERE record_count = 3",
    )
    .execute(scene.catalog.pool())
    .await?;
    Ok(scene)
}

#[tokio::test]
async fn after_each_kill_every_drop_is_whole_or_absent() -> Result<()> {
    let scene = scene().await?;
    let first = scene.catalog.head().await?;
    let mut random = fastrand::Rng::with_seed(20_713);
    let env = [
        ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "2"),
        ("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "2"),
        ("TAILRACE__SWEEP__LOCK_DUTY", "1.0"),
    ];
    let mut made = Vec::new();
    for _ in 0..KILLS {
        let before = made.len();
        let mut run = scene.database.start(&["sweep"], &env)?;
        // After a commit that is reported, then anywhere within the next few.
        run.event("drop_committed", 1 + random.usize(0..8)).await?;
        tokio::time::sleep(Duration::from_micros(random.u64(0..8_000))).await;
        run.kill().await?;
        made = whole::drops(&scene.catalog, scene.table.table_id).await?;
        assert!(made.len() > before, "each of them got somewhere");
        // The session of the killed one may have a commit in its hands, which is its last.
        until("the lease is free", async || Ok(leases(&scene.catalog).await? == 0)).await?;
        made = whole::drops(&scene.catalog, scene.table.table_id).await?;
    }
    assert!(made.len() < TUPLES as usize, "the kills came before the end");

    let left = TUPLES as usize - made.len();
    let ended = scene.database.start(&["sweep", "--output", "json"], &env)?.end().await?;
    assert_eq!(ended.code, Some(0), "{:?}", ended.events());
    let report = ended.json()?;
    assert_eq!(report["tables"][0]["outcome"], "dropped");
    assert_eq!(report["tables"][0]["snapshots"].as_array().map(Vec::len), Some(left));
    let all = whole::drops(&scene.catalog, scene.table.table_id).await?;
    let expected: Vec<_> = (1..=TUPLES).map(|at| (first + at, 2)).collect();
    assert_eq!(all, expected, "every tuple once, in a snapshot of its own");
    assert_eq!(scene.live().await?, [*scene.files.last().expect("the young one")]);
    let sums: (i64, i64, i64, i64) = sqlx::query_as(
        "SELECT sum(files_ended)::bigint, sum(delete_files_ended)::bigint, sum(records)::bigint,
                sum(bytes)::bigint FROM tailrace.drop_history",
    )
    .fetch_one(scene.catalog.pool())
    .await?;
    assert_eq!(sums, (2 * TUPLES, TUPLES, 7 * TUPLES, 11 * TUPLES));
    Ok(())
}
