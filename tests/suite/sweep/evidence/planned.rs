//! Tests that files which arrive between the check of a tuple and the plan of its commit are
//! checked in the write as well.

use anyhow::Result;
use tailrace::sweep::{Progress, Scope, Settings, run_pass};
use tailrace_kit::lake::{Commit, Field, NewFile};
use tokio_util::sync::CancellationToken;

use super::{NOW, Scene, micros};
use crate::drop::races::patient;
use crate::support::gate::queue;

/// A file lands between the check and the plan of its commit, and its footer is read between that plan and
/// the grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_late_file_that_is_hydrated_before_the_grant_stays() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    scene.append(vec![NewFile::of(["20819"]), NewFile::of(["20820"])]).await?;
    let mut settings = patient();
    settings.batch.files_per_commit = 1;
    let settings = Settings { as_of: Some(NOW.parse()?), ..settings };
    let handle = tokio::runtime::Handle::current();
    let (catalog, table) = (scene.catalog.clone(), scene.table.clone());
    let (say, hear) = tokio::sync::oneshot::channel();
    let say = std::sync::Mutex::new(Some(say));
    let at_commit = |progress: Progress<'_>| {
        let Progress::Dropped { .. } = progress else { return };
        let Some(say) = say.lock().expect("no panic").take() else { return };
        let (catalog, table) = (catalog.clone(), table.clone());
        let done = tokio::task::block_in_place(|| {
            handle.block_on(async {
                let late = table.append(vec![NewFile::of(["20820"]).pending()]).await?.file_ids;
                let gate = Commit::begin(&catalog).await?;
                anyhow::Ok((late, gate))
            })
        });
        let _ = say.send(done);
    };
    let database = scene.database.tailrace();
    let stop = CancellationToken::new();
    let scope = Scope::default();
    let pass = run_pass(&database, &settings, &scope, &stop, &at_commit);
    let hydrate = async {
        let (late, gate) = hear.await??;
        queue(&scene.catalog, 1).await?;
        let field_id = scene.table.field_id("at")?;
        sqlx::query(
            "INSERT INTO hog_file_column_stats (catalog_id, data_file_id, field_id, value_count,
                                                null_count, upper_bound)
             VALUES ($1, $2, $3, 100, 0, $4)",
        )
        .bind(scene.catalog.catalog_id)
        .bind(late[0])
        .bind(field_id)
        .bind(&micros("2027-01-09T00:00:00Z")[..])
        .execute(scene.catalog.pool())
        .await?;
        gate.tx.rollback().await?;
        anyhow::Ok(late)
    };
    let (report, late) = tokio::join!(pass, hydrate);
    let (report, late) = (report?, late?);
    assert_eq!(scene.live().await?, late, "{report:?}");
    Ok(())
}
