//! Tests of `drop.max_files`: files are counted before the lock is taken, and again under the lock.

use anyhow::Result;
use tailrace::explicit::call::{DropBody, TruncateBody};
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{Bounds, truncate};

use crate::support::gate::{Gate, in_order};

use super::{Scene, days, file, ledger, patient, raw};

fn at_most(max_files: i64) -> Bounds {
    Bounds { max_files, ..patient() }
}

fn too_many(files: i64, most: i64) -> Problem {
    Problem::Validation(format!(
        "the request matches {files} files, and one commit ends at most {most} (drop.max_files): split it"
    ))
}

#[tokio::test]
async fn too_many_files_are_refused_while_somebody_else_has_the_lock() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(["1", "1", "2", "2", "3"].map(file).to_vec()).await?;
    let before = scene.everything().await?;
    let gate = Gate::shut(&scene.catalog).await?;
    let body = days(["1", "2"]);
    assert_eq!(scene.call_with(&body, &at_most(3)).await?, Err(too_many(4, 3)));
    assert_eq!(scene.call_with(&body, &at_most(1)).await?, Err(too_many(4, 1)));
    let dry = DropBody { dry_run: true, ..body.clone() };
    assert_eq!(scene.call_with(&dry, &at_most(3)).await?, Err(too_many(4, 3)));
    let mut session = scene.session().await?;
    let (call, uuid) = (TruncateBody::default(), Some(scene.table.table_uuid));
    let refused = truncate(&mut session, &raw(), uuid, &call, "me", &at_most(4)).await;
    assert_eq!(refused, Err(too_many(5, 4)));
    gate.open().await?;
    assert_eq!(scene.everything().await?, before);
    assert_eq!(scene.call_with(&body, &at_most(4)).await??.files_ended, 4);
    truncate(&mut session, &raw(), uuid, &call, "me", &at_most(1)).await?;
    assert_eq!(scene.live().await?, Vec::<i64>::new());
    Ok(())
}

#[tokio::test]
async fn late_files_that_are_too_many_are_found_under_the_lock() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    for whole_table in [false, true] {
        let late = || async { anyhow::Ok(scene.table.append(vec![file("1")]).await?) };
        let files = scene.live().await?.len() as i64;
        let (bounds, body) = (at_most(files), days(["1", "2"]));
        let call = async {
            anyhow::Ok(match whole_table {
                false => scene.call_with(&body, &bounds).await?.map(|_| ()),
                true => {
                    let mut session = scene.session().await?;
                    let (call, uuid) = (TruncateBody::default(), Some(scene.table.table_uuid));
                    truncate(&mut session, &raw(), uuid, &call, "me", &bounds).await.map(|_| ())
                }
            })
        };
        let (appended, refused) = in_order(&scene.catalog, late(), call).await?;
        assert_eq!(refused, Err(too_many(files + 1, files)));
        assert_eq!(scene.live().await?.len() as i64, files + 1, "all is rolled back");
        assert_eq!(scene.catalog.head().await?, appended.snapshot_id);
        assert_eq!(scene.receipts().await?, 0);
    }
    ledger::agrees(&scene.catalog).await
}

/// Under the lock each file that came since costs one look, however many tuples are named: forty
/// million comparisons would take longer than any hold may.
#[tokio::test]
async fn a_long_guarded_list_is_quick_beside_many_appends() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let read = scene.catalog.head().await?;
    let others: Vec<_> = (0..4000).map(|day| file(&format!("-{}", day + 1))).collect();
    scene.table.append(others).await?;
    let items = (0..10_000).map(|day| super::item([Some(day.to_string().as_str())])).collect();
    let body = DropBody { read_snapshot: Some(read), ..super::drop_of(items) };
    let mut bounds = patient();
    bounds.limits.max_hold = std::time::Duration::from_secs(4);
    assert_eq!(scene.call_with(&body, &bounds).await??.files_ended, 1);
    let late = DropBody { read_snapshot: Some(read - 1), ..body };
    let refused = scene
        .call_with(&super::DropBody { idempotency_key: uuid::Uuid::new_v4(), ..late }, &bounds)
        .await?;
    assert_eq!(refused.expect_err("day 1 came since").code(), "commit_conflict");
    Ok(())
}
