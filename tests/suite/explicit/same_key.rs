//! Tests of requests with the same key at the same time.

use anyhow::Result;
use tailrace::explicit::call::{DropAnswer, DropBody, TruncateBody};
use tailrace_kit::lake::Field;

use crate::support::gate::{Gate, in_order, queue};

use super::{Scene, days, file, ledger};

#[tokio::test]
async fn of_two_at_the_same_instant_one_commits_and_the_other_replays() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2")]).await?;
    let head = scene.catalog.head().await?;
    let mut reversed = days(["2", "1"]);
    let body = days(["1", "2"]);
    reversed.idempotency_key = body.idempotency_key;
    let (one, two) = in_order(&scene.catalog, scene.done(&body), scene.done(&reversed)).await?;
    assert_eq!((one.committed, one.replayed, one.snapshot_id), (true, false, head + 1));
    // In the order of the first request, for it is the first one's answer.
    assert_eq!(two, DropAnswer { replayed: true, ..one });
    assert_eq!((scene.catalog.head().await?, scene.receipts().await?), (head + 1, 1));
    ledger::agrees(&scene.catalog).await
}

/// The receipt comes before every other guard: what the first one did is no conflict for the
/// second, and neither is what came between them.
#[tokio::test]
async fn the_second_is_answered_before_any_guard_looks() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let read = scene.catalog.head().await?;
    let body = DropBody { fence: true, read_snapshot: Some(read), ..days(["1"]) };
    let gate = Gate::shut(&scene.catalog).await?;
    let (one, appended, dropped, two, ()) = tokio::try_join!(
        scene.done(&body),
        async {
            queue(&scene.catalog, 1).await?;
            Ok(scene.table.append(vec![file("1")]).await?)
        },
        async {
            queue(&scene.catalog, 2).await?;
            Ok(scene.table.drop_table().await?)
        },
        async {
            queue(&scene.catalog, 3).await?;
            scene.done(&body).await
        },
        async {
            queue(&scene.catalog, 4).await?;
            gate.open().await
        }
    )?;
    assert_eq!((one.snapshot_id, appended.snapshot_id, dropped), (read + 1, read + 2, read + 3));
    assert_eq!(two, DropAnswer { replayed: true, ..one });
    Ok(())
}

/// The second resolved its tuples after the spec had changed, and still means what the first did.
#[tokio::test]
async fn the_second_means_the_firsts_spec() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let body = days(["1"]);
    // The first has planned under spec 1 when the spec changes; the second plans under spec 2.
    let gate = Gate::shut(&scene.catalog).await?;
    let spec = [Field::identity("kind")];
    let (evolved, one, ()) = tokio::try_join!(
        async { Ok(scene.table.evolve_spec(&spec).await?) },
        async {
            queue(&scene.catalog, 1).await?;
            scene.done(&body).await
        },
        async {
            queue(&scene.catalog, 2).await?;
            gate.open().await
        }
    )?;
    assert_eq!((evolved, one.partitions[0].spec_id, one.files_ended), (2, 1, 1));
    let two = scene.done(&body).await?;
    assert_eq!(two, DropAnswer { replayed: true, ..one });
    Ok(())
}

#[tokio::test]
async fn of_two_different_requests_with_one_key_the_second_is_refused() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.table.append(vec![file("1"), file("2")]).await?.file_ids;
    let (body, mut other) = (days(["1"]), days(["2"]));
    other.idempotency_key = body.idempotency_key;
    let second = async { anyhow::Ok(scene.call(&other).await?.expect_err("the key is taken")) };
    let (one, two) = in_order(&scene.catalog, scene.done(&body), second).await?;
    assert_eq!((one.files_ended, two.status()), (1, 422));
    assert_eq!(scene.live().await?, ids[1..]);
    ledger::agrees(&scene.catalog).await
}

#[tokio::test]
async fn truncates_with_one_key_are_one() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let head = scene.catalog.head().await?;
    let key = Some(uuid::Uuid::new_v4());
    let body = TruncateBody { idempotency_key: key, ..TruncateBody::default() };
    let call = || async { anyhow::Ok(scene.truncate(&body).await??) };
    let (one, two) = in_order(&scene.catalog, call(), call()).await?;
    assert_eq!((one.snapshot_id, two), (head + 1, one));
    assert_eq!((scene.catalog.head().await?, scene.receipts().await?), (head + 1, 1));
    ledger::agrees(&scene.catalog).await
}
