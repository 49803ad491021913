//! Tests of two renewals at the same time, and of a renewal while a policy is changed.

use anyhow::Result;
use tailrace::catalog::compaction_claims;
use tailrace::claims::{release, renew};
use tailrace::policy::Mode;

use super::{Scene, settings};
use crate::support::wait::until;

#[tokio::test]
async fn two_daemons_at_once_do_no_harm() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[8, 7, 0]).await?;
    let (one, two) = (scene.database.tailrace(), scene.database.tailrace());
    let settings = settings();
    let (one, two) = tokio::join!(renew(&one, &settings, None), renew(&two, &settings, None));
    assert_eq!((one?.failed, two?.failed), (vec![], vec![]));
    assert_eq!(scene.rows().await?, [("tailrace/0".to_owned(), ids[..2].to_vec())]);
    Ok(())
}

/// A renewal has found its files by a policy that is paused before it writes them: then it does
/// not, for whoever paused it has released already and believes so.
#[tokio::test]
async fn what_was_found_by_an_older_policy_is_not_claimed() -> Result<()> {
    let scene = Scene::new().await?;
    scene.files(&[8]).await?;
    let mut session = scene.database.plain_session().await?;
    let mut other = session.begin().await?;
    compaction_claims::lock(&mut other, scene.catalog.catalog_id).await?;
    let (database, settings) = (scene.database.tailrace(), settings());
    let renewing = tokio::spawn(async move { renew(&database, &settings, None).await });
    until("the renewal waits to write", async || {
        let waiting = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid)
                        WHERE l.locktype = 'advisory' AND NOT l.granted
                          AND a.datname = current_database()";
        Ok(scene.database.text(waiting).await?.as_deref() == Some("1"))
    })
    .await?;
    scene.database.govern_as(&scene.table, "at", "7d", Mode::Paused).await?;
    other.commit().await?;
    let renewed = renewing.await??;
    assert_eq!((renewed.files, renewed.failed), (0, vec![]));
    assert_eq!(scene.all_rows().await?, Vec::<String>::new());
    Ok(())
}

/// The ids of a claim may be dead: a release takes them as what they are.
#[tokio::test]
async fn dead_files_are_released_too() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[8, 7]).await?;
    scene.renew().await?;
    scene.database.sweep().await?;
    let identity = scene.database.live(&scene.table).await?.identity;
    let mut session = scene.database.plain_session().await?;
    assert_eq!(release(&mut session, &identity, &settings(), None).await?, 1);
    assert_eq!(scene.claimed().await?, ids[1..]);
    Ok(())
}
