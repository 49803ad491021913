//! Tests of where a pass, an explicit drop and a truncate differ, row by row of the table of
//! `Authority` in `src/drop/guard.rs`. Most rows are tested elsewhere, and the others here.
//!
//! | | pass | explicit drop | truncate |
//! |---|---|---|---|
//! | before any other guard | here | `explicit::same_key` | here |
//! | guard of its own | `races::policy`, `races::policy_writer` | here; `explicit::guards`, `explicit::between` | here; `explicit::truncate` |
//! | a row that somebody has locked | `races::hydrator` | `explicit::locked_rows` | `explicit::locked_rows` |
//! | files that came after planning | here; `evidence::late`, [`super::between`] | here; `explicit::between` | here |
//! | size after the write | here | `explicit::size` | `explicit::size` |
//! | which files | `races::late` | `explicit::matching` | `explicit::truncate` |
//! | fence | `cli::drop` | `explicit::fence` | `explicit::truncate` |
//! | last statement before COMMIT | [`super::round_trips`] | `explicit::round_trips` | `explicit::round_trips` |

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::explicit::call::{DropBody, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{Bounds, drop_partitions, truncate};
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};
use uuid::Uuid;

use crate::drop::races;
use crate::explicit::{days, patient, raw};
use crate::support::gate::{Gate, in_order, queue, while_it_waits};
use crate::sweep::evidence::{NOW, Scene, file};

/// Day 20820 is 2027-01-02, and has expired at [`NOW`].
const DAY: &str = "20820";

/// Who drops the day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Pass,
    Drop,
    Truncate,
}

const WAYS: [Way; 3] = [Way::Pass, Way::Drop, Way::Truncate];

/// A table by day, with one file of the day.
async fn scene() -> Result<Scene> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    scene.append(vec![NewFile::of([DAY])]).await?;
    Ok(scene)
}

impl Way {
    /// Drops the day; the outcome of a pass, or the code of a refusal, or `done`.
    async fn end(self, scene: &Scene) -> Result<String> {
        let (bounds, key) = (patient(), Some(Uuid::new_v4()));
        let told = match self {
            Way::Pass => {
                let report = scene.sweep_with(NOW, races::patient()).await?;
                return Ok(report.outcome.name().to_owned());
            }
            Way::Drop => dropped(scene, &days([DAY]), &bounds).await?,
            Way::Truncate => truncated(scene, key, &bounds).await?.map(|_| ()),
        };
        Ok(told.err().map_or("done", |problem| problem.code()).to_owned())
    }
}

async fn dropped(scene: &Scene, body: &DropBody, bounds: &Bounds) -> Result<Result<(), Problem>> {
    let mut session = scene.database.tailrace().session().await?;
    Ok(drop_partitions(&mut session, &raw(), body, "me", bounds).await.map(|_| ()))
}

/// The snapshot of a truncate.
async fn truncated(
    scene: &Scene,
    idempotency_key: Option<Uuid>,
    bounds: &Bounds,
) -> Result<Result<i64, Problem>> {
    let mut session = scene.database.tailrace().session().await?;
    let body = TruncateBody { idempotency_key, ..TruncateBody::default() };
    let uuid = Some(scene.table.table_uuid);
    let answer = truncate(&mut session, &raw(), uuid, &body, "me", bounds).await;
    Ok(answer.map(|answer| answer.snapshot_id))
}

/// All four have planned when the first of them gets the lock. The table is dropped before the
/// others have it: who has a receipt hears of that first, and the others that the table is gone.
#[tokio::test]
async fn with_a_key_a_receipt_answers_before_any_other_guard() -> Result<()> {
    let scene = scene().await?;
    let (key, bounds) = (Some(Uuid::new_v4()), patient());
    let head = scene.catalog.head().await?;
    let gate = Gate::shut(&scene.catalog).await?;
    let (first, gone, second, unkeyed, pass, ()) = tokio::try_join!(
        truncated(&scene, key, &bounds),
        async {
            queue(&scene.catalog, 1).await?;
            Ok(scene.table.drop_table().await?)
        },
        async {
            queue(&scene.catalog, 2).await?;
            truncated(&scene, key, &bounds).await
        },
        async {
            queue(&scene.catalog, 3).await?;
            truncated(&scene, None, &bounds).await
        },
        async {
            queue(&scene.catalog, 4).await?;
            scene.sweep_with(NOW, races::patient()).await
        },
        async {
            queue(&scene.catalog, 5).await?;
            gate.open().await
        }
    )?;
    assert_eq!((first, gone), (Ok(head + 1), head + 2));
    assert_eq!(second, Ok(head + 1));
    assert_eq!(unkeyed, Err(Problem::TableDropped { table: "events.raw".to_owned() }));
    assert_eq!((pass.outcome, pass.error), (Outcome::Gone, None));
    assert_eq!(scene.catalog.head().await?, head + 2);
    Ok(())
}

/// Whoever names what is dropped asks for no policy, and waits for nobody who writes one.
#[tokio::test]
async fn a_policy_that_is_being_written_stops_a_pass_alone() -> Result<()> {
    for way in WAYS {
        let scene = scene().await?;
        let head = scene.catalog.head().await?;
        let mut writer = scene.database.pool.begin().await?;
        let lock = async {
            let locked: Vec<i64> =
                sqlx::query_scalar("SELECT revision FROM tailrace.policy FOR UPDATE")
                    .fetch_all(&mut *writer)
                    .await?;
            assert_eq!(locked.len(), 1);
            Ok(())
        };
        let both = while_it_waits(&scene.catalog, way.end(&scene), lock);
        let waits = || format!("{way:?} waits for the writer");
        let both = tokio::time::timeout(Duration::from_secs(60), both).await;
        let (told, ()) = both.with_context(waits)??;
        let (expected, snapshots) = match way {
            Way::Pass => ("policy_changed", 0),
            Way::Drop | Way::Truncate => ("done", 1),
        };
        assert_eq!(told, expected, "{way:?}");
        assert_eq!(scene.catalog.head().await?, head + snapshots, "{way:?}");
        writer.rollback().await?;
    }
    Ok(())
}

/// Of two files that land in between, one says that it has rows that are newer than the day. A pass
/// leaves that one; who named the day, or the table, meant it with all that it holds.
#[tokio::test]
async fn what_statistics_say_of_a_late_file_counts_for_a_pass_alone() -> Result<()> {
    for way in WAYS {
        let scene = scene().await?;
        let late = vec![NewFile::of([DAY]), file(&[DAY], "2027-01-09T00:00:00Z")];
        let append = scene.table.append(late);
        let (late, told) = in_order(&scene.catalog, append, way.end(&scene)).await?;
        let (expected, left) = match way {
            Way::Pass => ("dropped", &late.file_ids[1..]),
            Way::Drop | Way::Truncate => ("done", &[][..]),
        };
        assert_eq!((told.as_str(), &*scene.live().await?), (expected, left), "{way:?}");
    }
    Ok(())
}

/// What fits a commit at planning goes with all that landed since: another pass would find it expired
/// just the same.
#[tokio::test]
async fn a_pass_takes_more_late_files_than_a_commit_was_planned_for() -> Result<()> {
    let scene = scene().await?;
    let mut settings = races::patient();
    settings.batch.files_per_commit = 1;
    settings.batch.files_per_tuple = 1;
    let append = scene.table.append(vec![NewFile::of([DAY]); 2]);
    let (late, report) = in_order(&scene.catalog, append, scene.sweep_with(NOW, settings)).await?;
    assert_eq!((report.outcome, report.snapshots.len()), (Outcome::Dropped, 1), "{report:?}");
    let snapshot = &report.snapshots[0];
    assert_eq!((snapshot.snapshot_id, snapshot.files_ended), (late.snapshot_id + 1, 3));
    assert_eq!(scene.live().await?, Vec::<i64>::new());
    Ok(())
}
