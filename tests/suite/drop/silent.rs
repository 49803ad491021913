//! Tests of a client that becomes silent while it holds the commit lock: the client is stopped, or
//! the network loses everything that it sends.
//!
//! A server from Postgres 17 on ends such a hold by its total length. An older server ends it after
//! 5 s without a statement. Both end the session, and the pass continues with another session when
//! it can.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use sqlx::AssertSqlSafe;
use tailrace::drop::request::HOLD_EXCEEDED;
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace::sweep::{Progress, Scope, Settings, run_paced_pass};
use tokio_util::sync::CancellationToken;

use crate::drop::races::{Scene, file, patient};
use crate::explicit::wire::Wire;
use crate::support::TestDatabase;
use crate::support::gate::is_free;
use crate::support::timer::{TestTimer, pacing};
use crate::support::wait::until;

/// Whether the server bounds transactions.
async fn bounds_transactions(database: &TestDatabase) -> Result<bool> {
    let number = database.text("current_setting('server_version_num')").await?;
    Ok(number.context("it has a version")?.parse::<i32>()? >= 170_000)
}

/// One file a commit, each with 2 s for its hold.
fn brief() -> Settings {
    let mut settings = patient();
    settings.batch.files_per_commit = 1;
    settings.limits.max_hold = Duration::from_secs(2);
    settings
}

/// A pass that falls silent in the hold of its second commit, for as long as something else is done.
async fn pass<T>(
    scene: &Scene,
    settings: &Settings,
    meanwhile: impl Future<Output = Result<T>>,
) -> Result<(TableReport, T)> {
    let (wire, through) = Wire::to(&scene.database).await?;
    let (scope, stop, timer) = (Scope::default(), CancellationToken::new(), TestTimer::new());
    let pacing = pacing(&timer);
    // By then the statements are parsed: the next one with these words is under the lock.
    let is_warm = AtomicBool::new(false);
    let progress = |progress: Progress<'_>| {
        if matches!(progress, Progress::Dropped { .. }) && !is_warm.swap(true, Ordering::SeqCst) {
            wire.stop_at("with numbers");
        }
    };
    let pass = run_paced_pass(&through, settings, &scope, &stop, &progress, &pacing);
    let silence = async {
        wire.stopped().await?;
        assert!(!is_free(&scene.catalog).await?, "it is caught in its hold");
        let done = meanwhile.await?;
        wire.go_on();
        anyhow::Ok(done)
    };
    let (mut report, done) = tokio::try_join!(pass, silence)?;
    match (report.tables.pop(), report.tables.is_empty()) {
        (Some(table), true) => Ok((table, done)),
        other => bail!("not one table: {other:?}"),
    }
}

/// Silent until the server has let go of the commit lock and somebody else has committed; with how long
/// that took, and the snapshot of the other one.
async fn silent_pass(scene: &Scene) -> Result<(TableReport, Duration, i64)> {
    let meanwhile = async {
        let since = Instant::now();
        until("it is over", async || is_free(&scene.catalog).await).await?;
        let length = since.elapsed();
        Ok((length, scene.table.append(vec![file(0)]).await?.snapshot_id))
    };
    let (report, (length, other)) = pass(scene, &brief(), meanwhile).await?;
    Ok((report, length, other))
}

fn snapshots(report: &TableReport) -> Vec<i64> {
    report.snapshots.iter().map(|snapshot| snapshot.snapshot_id).collect()
}

#[tokio::test]
async fn its_hold_ends_and_its_pass_goes_on() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let (report, length, other) = silent_pass(&scene).await?;
    let expected = match bounds_transactions(&scene.database).await? {
        true => 1.0..4.0,
        false => 4.0..8.0,
    };
    assert!(expected.contains(&length.as_secs_f64()), "{length:?}");
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None));
    assert_eq!(snapshots(&report), [other - 1, other + 1], "nothing of the one that was ended");
    assert_eq!(scene.live().await?.len(), 2);
    Ok(())
}

/// An administrator's limit for transactions began before the lock was there.
#[tokio::test]
async fn a_limit_of_the_database_on_transactions_is_not_waited_for() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    if !bounds_transactions(&scene.database).await? {
        return Ok(());
    }
    let name = scene.database.text("quote_ident(current_database())").await?.context("a name")?;
    let alter = format!("ALTER DATABASE {name} SET transaction_timeout = '10min'");
    sqlx::raw_sql(AssertSqlSafe(alter)).execute(&scene.database.pool).await?;
    let (report, length, other) = silent_pass(&scene).await?;
    assert!((1.0..4.0).contains(&length.as_secs_f64()), "{length:?}");
    assert_eq!(snapshots(&report), [other - 1, other + 1]);
    Ok(())
}

/// A server that ends the transaction ends the session. What a pass does after its commits it does with one
/// that answers.
#[tokio::test]
async fn a_pass_that_has_no_time_for_another_try_ends_in_good_order() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    // The pause after a hold that was too long is 2.5 s at least.
    let settings = Settings { max_duration: Duration::from_secs(2), ..brief() };
    // Silent for most of the hold, it then begins a write that takes longer than what is left.
    let meanwhile = async {
        let slow = "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
                    $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$;
                    CREATE TRIGGER slow AFTER INSERT ON hog_snapshot_change
                      FOR EACH STATEMENT EXECUTE FUNCTION public.slow()";
        scene.database.sql(slow).await?;
        until("it was silent for 1.5 s", async || {
            Ok(sqlx::query_scalar(
                "SELECT clock_timestamp() - state_change > '1500 ms' FROM pg_stat_activity
                  WHERE datname = current_database() AND state = 'idle in transaction'",
            )
            .fetch_one(&scene.database.pool)
            .await?)
        })
        .await
    };
    let (report, ()) = pass(&scene, &settings, meanwhile).await?;
    assert_eq!((report.outcome, report.error.as_deref()), (Outcome::Partial, Some(HOLD_EXCEEDED)));
    assert_eq!(report.snapshots.len(), 1);
    Ok(())
}
