//! Tests of drops whose snapshot has the id of an undone drop's snapshot, and of their receipts.

use anyhow::Result;
use tailrace::explicit::call::{DropAnswer, TruncateBody};
use tailrace::explicit::truncate;
use uuid::Uuid;

use super::Scene;
use crate::explicit::{patient, raw};
use crate::support::gate::while_it_waits;
use crate::support::program::days_ago;

#[tokio::test]
async fn a_drop_by_request_may_have_the_id_of_an_undone_one() -> Result<()> {
    for is_noted in [false, true] {
        let scene = Scene::new().await?;
        scene.append([3, 2]).await?;
        let backup = scene.database.back_up("before").await?;
        let (_, first) = scene.request(3).await?;
        scene.database.restore(&backup).await?;
        if is_noted {
            scene.sweep().await?;
        }
        let (_, again) = scene.request(3).await?;
        assert_eq!((again.snapshot_id, again.files_ended), (first.snapshot_id, 1));
        assert_eq!((again.committed, again.undone), (true, false));
        assert_eq!(
            scene.stages().await?,
            [(first.snapshot_id, "retained", false), (first.snapshot_id, "undone", is_noted)]
        );
        // What comes after it is compared with it.
        scene.sweep().await?;
        assert_eq!(
            scene.stages().await?,
            [(first.snapshot_id, "retained", false), (first.snapshot_id, "undone", true)]
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_drop_of_a_pass_may_have_the_id_of_an_undone_one() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9, 3]).await?;
    let backup = scene.database.back_up("before").await?;
    let (_, first) = scene.request(3).await?;
    scene.database.restore(&backup).await?;
    assert_eq!(scene.dropping(1).await?, first.snapshot_id);
    Ok(())
}

/// Files were found, and the request waits for the commit lock: their ids may be those of other files.
#[tokio::test]
async fn a_request_that_waits_during_a_restore_is_a_conflict() -> Result<()> {
    let scene = Scene::new().await?;
    let backup = scene.database.back_up("before").await?;
    let ids = scene.append([3, 3]).await?;
    let restore = scene.database.restore(&backup);
    let asked = async { anyhow::Ok(scene.request(3).await) };
    let (answer, ()) = while_it_waits(&scene.catalog, asked, restore).await?;
    let error = answer.expect_err("it is refused").to_string();
    assert!(error.ends_with("the catalog was restored to an earlier time meanwhile"), "{error}");
    assert_eq!(scene.append([2, 2]).await?, ids);
    Ok(())
}

/// A replay compares by itself, and goes on to say so when a pass has noted it and the id is another
/// drop's.
#[tokio::test]
async fn a_replay_of_an_undone_drop_says_undone() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([3]).await?;
    let backup = scene.database.back_up("before").await?;
    let (body, first) = scene.request(3).await?;
    assert_eq!((first.committed, first.undone, first.files_ended), (true, false, 1));
    let replay = DropAnswer { replayed: true, ..first.clone() };
    assert_eq!(scene.ask(&body).await?, replay);
    scene.database.restore(&backup).await?;
    let undone = DropAnswer { committed: false, undone: true, ..replay };
    assert_eq!(scene.ask(&body).await?, undone, "before any pass");
    let json = serde_json::to_value(&undone)?;
    assert_eq!((&json["committed"], &json["undone"]), (&false.into(), &true.into()));
    assert_eq!(serde_json::to_value(&first)?.get("undone"), None);
    let (other, again) = scene.request(3).await?;
    assert_eq!(again.snapshot_id, first.snapshot_id);
    assert_eq!(scene.ask(&body).await?, undone, "its id is another drop's");
    scene.sweep().await?;
    assert_eq!(scene.ask(&body).await?, undone, "after a pass");
    assert_eq!(scene.ask(&other).await?, DropAnswer { replayed: true, ..again });

    // The history keeps it as long as the receipt is there.
    let old = "UPDATE tailrace.drop_history
                  SET undone_seen_at = undone_seen_at - interval '91 days'
                WHERE undone_seen_at IS NOT NULL";
    scene.database.sql(old).await?;
    scene.sweep().await?;
    assert_eq!(scene.ask(&body).await?, undone, "a long time after");
    scene.database.sql("DELETE FROM tailrace.drop_receipt").await?;
    scene.sweep().await?;
    assert_eq!(scene.stages().await?, [(first.snapshot_id, "retained", false)]);
    Ok(())
}

/// Nothing of the restored catalog that can be looked at shows it any more.
#[tokio::test]
async fn a_receipt_without_a_drop_is_told_by_its_snapshot() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([3]).await?;
    let backup = scene.database.back_up("before").await?;
    let (body, first) = scene.request(3).await?;
    scene.append([0]).await?;
    scene.sweep().await?;
    scene.database.sql("UPDATE tailrace.drop_receipt SET drop_id = NULL").await?;
    assert!(!scene.ask(&body).await?.undone);
    scene.database.restore(&backup).await?;
    let replayed = scene.ask(&body).await?;
    assert_eq!((replayed.snapshot_id, replayed.undone), (first.snapshot_id, true));
    Ok(())
}

#[tokio::test]
async fn a_replay_of_an_undone_truncate_says_undone() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([3]).await?;
    let backup = scene.database.back_up("before").await?;
    let key = Some(Uuid::new_v4());
    let body = TruncateBody { idempotency_key: key, ..TruncateBody::default() };
    let ask = async || -> Result<_> {
        let mut session = scene.database.tailrace().session().await?;
        let uuid = Some(scene.table.table_uuid);
        Ok(truncate(&mut session, &raw(), uuid, &body, "me", &patient()).await?)
    };
    assert!(!ask().await?.undone);
    assert!(!ask().await?.undone);
    scene.database.restore(&backup).await?;
    assert!(ask().await?.undone);
    Ok(())
}

#[tokio::test]
async fn the_command_says_what_to_do() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([3]).await?;
    let backup = scene.database.back_up("before").await?;
    let (key, values) = (Uuid::new_v4().to_string(), format!("[\"{}\"]", days_ago(3)));
    let args =
        ["drop", "lake", "events.raw", "--yes", "--idempotency-key", &key, "--partition", &values];
    assert_eq!(scene.database.ran(&args).await?.code, 0);
    assert_eq!(scene.database.ran(&args).await?.code, 0);
    scene.database.restore(&backup).await?;
    let ran = scene.database.ran(&args).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.out.contains(": dropped by an earlier request of this key, and undone by a restore:"),
        "{ran:?}"
    );
    assert!(
        ran.err.ends_with(
            "tailrace: the catalog was restored to a time before this drop, and its data may be \
             live again: drop it with a fresh idempotency key\n"
        ),
        "{ran:?}"
    );
    Ok(())
}
