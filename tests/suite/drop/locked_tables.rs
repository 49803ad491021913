//! Tests of DDL on a table of the catalog or of tailrace, met under the commit lock. A drop gives
//! up within `drop.row_lock_timeout`, releases the commit lock, and names the table.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;
use tailrace::explicit::call::TruncateBody;
use tailrace::explicit::problem::Problem;
use tailrace::explicit::{Bounds, drop_partitions, truncate};
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Scope, run_pass};
use tailrace_kit::simulated_loops::HeldFiles;

use crate::drop::races::{self, Scene, file};
use crate::explicit::wire::Wire;
use crate::explicit::{self, days, raw};
use crate::support::ddl::Ddl;
use crate::support::gate::{Gate, is_free, queue, while_it_waits};
use crate::support::program::days_ago;
use crate::support::timer::{TestTimer, pacing};
use crate::support::wait::until;

/// Met by the guards; met by the guards and the write; one of ours.
const TABLES: [&str; 3] = ["hog_namespace", "hog_data_file", "tailrace.policy"];

/// Far below the wait for the commit lock, and far above that for a row or a table.
const AT_ONCE: Duration = Duration::from_secs(20);

/// What drops that meet a table that is locked for good are to be: at once out of the way.
fn bounds() -> Bounds {
    let mut bounds = explicit::patient();
    bounds.limits.row_lock_timeout = Duration::from_millis(200);
    bounds
}

/// What comes of a call that gets the commit lock when DDL on the table has come: nothing is written,
/// and the lock is free while the DDL is still there.
async fn beside_ddl<T>(
    scene: &Scene,
    call: impl Future<Output = Result<T>>,
    ddl: impl Future<Output = Result<Ddl>>,
) -> Result<T> {
    let before = scene.database.lake.dump().await?;
    let both = while_it_waits(&scene.catalog, call, ddl);
    let (told, ddl) =
        tokio::time::timeout(AT_ONCE, both).await.context("it waits for the DDL")??;
    assert!(is_free(&scene.catalog).await?, "the commit lock");
    ddl.end().await?;
    assert_eq!(scene.database.lake.dump().await?, before);
    let drops = scene.database.rows("SELECT 1 FROM tailrace.drop_history").await?;
    assert_eq!(drops, Vec::<String>::new());
    Ok(told)
}

fn is_locked(table: &str) -> Problem {
    Problem::CommitQueueTimeout {
        reason: format!(
            "somebody else has locked the table {table} of the catalog, as DDL does \
             (drop.row_lock_timeout)"
        ),
        retry_after: Duration::from_secs(1),
    }
}

async fn dropped(scene: &Scene, bounds: &Bounds) -> Result<Result<i64, Problem>> {
    let mut session = scene.database.tailrace().session().await?;
    let body = days([days_ago(8).as_str()]);
    let answer = drop_partitions(&mut session, &raw(), &body, "me", bounds).await;
    Ok(answer.map(|answer| answer.files_ended))
}

async fn truncated(scene: &Scene, bounds: &Bounds) -> Result<Result<i64, Problem>> {
    let mut session = scene.database.tailrace().session().await?;
    let (uuid, body) = (Some(scene.table.table_uuid), TruncateBody::default());
    let answer = truncate(&mut session, &raw(), uuid, &body, "me", bounds).await;
    Ok(answer.map(|answer| answer.snapshot_id))
}

#[tokio::test]
async fn a_pass_gives_up_and_the_next_one_drops() -> Result<()> {
    // No pause after a wait of a minute ends within the pass: there is one try.
    let env = [
        ("TAILRACE__SWEEP__LOCK_TIMEOUT", "1m"),
        ("TAILRACE__SWEEP__MAX_DURATION", "14s"),
        ("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "200ms"),
        ("TAILRACE__DROP__MAX_HOLD", "1m"),
    ];
    for table in TABLES {
        let scene = Scene::new(&[0, 8, 9]).await?;
        let pass =
            async { scene.database.start(&["sweep", "--output", "json"], &env)?.end().await };
        let ended = beside_ddl(&scene, pass, Ddl::queued(&scene.database, table)).await?;
        assert_eq!(ended.code, Some(3), "{ended:?}");
        let report = &ended.json()?["tables"][0];
        let error = format!(
            "somebody else has locked the table {table} of the catalog, as DDL does, for longer than \
             drop.row_lock_timeout; after 1 try"
        );
        assert_eq!(
            (&report["outcome"], &report["error"], &report["snapshots"]),
            (&json!("lock_timeout"), &json!(error), &json!([]))
        );
        let told: Vec<_> =
            ended.log.iter().filter(|line| line["event"] == "lock_not_had").collect();
        let [told] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((&told["locked_table"], &told["tries"]), (&json!(table), &json!(1)));
        assert_eq!(ended.count("tuple_busy") + ended.count("policy_changed"), 0, "{ended:?}");

        let next = scene.sweep().await?;
        assert_eq!((next.outcome, next.counts().files), (Outcome::Dropped, 2), "{table}");
    }
    Ok(())
}

#[tokio::test]
async fn explicit_drops_and_truncates_are_refused_until_it_is_gone() -> Result<()> {
    for table in TABLES {
        let scene = Scene::new(&[0, 8, 9]).await?;
        let ddl = || Ddl::queued(&scene.database, table);
        let refused = beside_ddl(&scene, dropped(&scene, &bounds()), ddl()).await?;
        assert_eq!(refused, Err(is_locked(table)));
        let refused = beside_ddl(&scene, truncated(&scene, &bounds()), ddl()).await?;
        let problem = is_locked(table);
        assert_eq!(refused.as_ref(), Err(&problem));
        assert_eq!((problem.status(), problem.code()), (503, "commit_queue_timeout"));
        let detail = format!(
            "somebody else has locked the table {table} of the catalog, as DDL does \
             (drop.row_lock_timeout); nothing was written, try again"
        );
        assert_eq!(problem.body()["detail"], detail);

        assert_eq!(dropped(&scene, &bounds()).await?, Ok(1));
        assert_eq!(truncated(&scene, &bounds()).await?, Ok(scene.catalog.head().await?));
        assert_eq!(scene.live().await?, Vec::<i64>::new());
    }
    Ok(())
}

/// A pass whose first try meets DDL on the table, which goes when the pass has paused so often.
async fn tries_again(scene: &Scene, table: &str, pauses: usize) -> Result<()> {
    let timer = TestTimer::holding();
    let pacing = pacing(&timer);
    let settings = races::patient();
    let gate = Gate::shut(&scene.catalog).await?;
    let meanwhile = async {
        queue(&scene.catalog, 1).await?;
        let ddl = Ddl::queued(&scene.database, table).await?;
        gate.open().await?;
        for pause in 1..pauses {
            timer.sleeps(pause).await?;
            assert!(is_free(&scene.catalog).await?, "{table}");
            timer.let_go();
        }
        timer.sleeps(pauses).await?;
        ddl.end().await?;
        timer.let_go();
        anyhow::Ok(())
    };
    let sweep = scene.database.sweep_paced(&settings, &pacing, &|_| {});
    let (report, ()) = tokio::try_join!(sweep, meanwhile)?;
    let [report] = report.tables.as_slice() else { bail!("{report:?}") };
    assert_eq!((report.outcome, &report.error), (Outcome::Dropped, &None), "{table}");
    assert_eq!((report.counts().files, timer.slept().len()), (2, pauses), "{table}");
    Ok(())
}

/// As where the commit lock could not be acquired: after a pause the same pass tries again.
#[tokio::test]
async fn a_pass_tries_again_after_a_pause() -> Result<()> {
    for table in TABLES {
        let scene = Scene::new(&[0, 8, 9]).await?;
        let tried = tries_again(&scene, table, 1);
        tokio::time::timeout(AT_ONCE, tried).await.context("it waits for the DDL")??;
    }
    Ok(())
}

/// A try that meets it in its planning, in nobody's way, is as one that meets it under the commit lock.
#[tokio::test]
async fn a_table_locked_before_the_commit_lock_is_waited_for_too() -> Result<()> {
    tries_again(&Scene::new(&[0, 8, 9]).await?, "hog_data_file", 2).await
}

#[tokio::test]
async fn the_log_says_for_which_table_a_pass_pauses() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let env =
        [("TAILRACE__SWEEP__LOCK_TIMEOUT", "3s"), ("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "200ms")];
    let gate = Gate::shut(&scene.catalog).await?;
    let mut run = scene.database.start(&["sweep", "--output", "json"], &env)?;
    queue(&scene.catalog, 1).await?;
    let ddl = Ddl::queued(&scene.database, "hog_namespace").await?;
    gate.open().await?;
    until("it is logged of the table", async || {
        Ok(run.so_far("lock_backoff").iter().any(|line| line["locked_table"] == "hog_namespace"))
    })
    .await?;
    ddl.end().await?;
    run.event("drop_committed", 1).await?;
    assert_eq!(run.end().await?.code, Some(0));
    Ok(())
}

/// An index that is being made lets everybody read, and nobody write.
#[tokio::test]
async fn an_index_that_is_being_made_is_named_too() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let make = "CREATE INDEX some_index ON hog_data_file (file_size_bytes)";
    let ddl = || Ddl::done(&scene.database, make);
    let refused = beside_ddl(&scene, dropped(&scene, &bounds()), ddl()).await?;
    assert_eq!(refused, Err(is_locked("hog_data_file")));
    let mut settings = races::patient();
    settings.max_duration = Duration::from_secs(14);
    let pass = scene.sweep_with(&settings);
    let report = beside_ddl(&scene, pass, ddl()).await?;
    assert_eq!(report.outcome, Outcome::LockTimeout, "{report:?}");
    assert!(report.error.unwrap_or_default().contains("the table hog_data_file"));
    Ok(())
}

/// Statistics of late files are read by a function, in the write.
#[tokio::test]
async fn a_table_that_a_function_reads_is_named_too() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let before = scene.live().await?;
    let mut settings = races::patient();
    settings.max_duration = Duration::from_secs(14);
    let lock = "LOCK TABLE hog_file_column_stats";
    let (wire, through) = Wire::to(&scene.database).await?;
    // The drop has planned before the late file is there, and has the lock when the table is locked.
    let first = Gate::shut(&scene.catalog).await?;
    let append = scene.table.append(vec![file(8)]);
    let (late, ddl, report, ()) = tokio::try_join!(
        async { anyhow::Ok(append.await?.file_ids) },
        async {
            queue(&scene.catalog, 1).await?;
            let second = Gate::shut(&scene.catalog).await?;
            let ddl = Ddl::done(&scene.database, lock).await?;
            second.open().await?;
            Ok(ddl)
        },
        async {
            queue(&scene.catalog, 2).await?;
            run_pass(&through, &settings, &Scope::default(), &Default::default(), &|_| {}).await
        },
        async {
            queue(&scene.catalog, 3).await?;
            first.open().await
        }
    )?;
    let [report] = report.tables.as_slice() else { bail!("{report:?}") };
    assert_eq!(report.outcome, Outcome::LockTimeout, "{report:?}");
    let error = report.error.as_deref().unwrap_or_default();
    assert!(error.contains("the table hog_file_column_stats"), "{error}");
    let is_of_rows = |sql: &String| sql.contains("skip locked") && sql.contains("hog_");
    let looked_for_rows = wire.asked().into_iter().filter(is_of_rows);
    assert_eq!(looked_for_rows.count(), 0, "it was taken for a row");
    ddl.end().await?;
    assert_eq!(scene.live().await?, [before, late].concat());
    Ok(())
}

/// That some other table is locked at the time makes nothing else of it.
#[tokio::test]
async fn a_row_is_told_as_a_row() -> Result<()> {
    let scene = Scene::of(vec![file(0), file(8).pending(), file(9)]).await?;
    let lock = "LOCK TABLE hog_consumer_offset";
    let other = Ddl::done(&scene.database, lock).await?;
    let held = HeldFiles::hold(&scene.catalog, 1).await?;
    let rows = Problem::CommitQueueTimeout {
        reason: "somebody else has locked rows of the named partitions (drop.row_lock_timeout)"
            .to_owned(),
        retry_after: Duration::from_secs(1),
    };
    assert_eq!(dropped(&scene, &bounds()).await?, Err(rows.clone()));
    assert_eq!(truncated(&scene, &bounds()).await?, Err(rows));
    let report = scene.sweep().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Busy, 1), "{report:?}");
    held.release().await?;
    other.end().await
}

/// Each commit writes the catalog's row, so nothing can be dropped: that is logged once, and for no partition.
#[tokio::test]
async fn the_catalogs_row_is_reported_as_a_lock_not_granted() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let held = Ddl::done(&scene.database, "SELECT FROM hog_catalog FOR NO KEY UPDATE").await?;
    let problem = Problem::CommitQueueTimeout {
        reason: "somebody else has locked the catalog's row of hog_catalog (drop.row_lock_timeout)"
            .to_owned(),
        retry_after: Duration::from_secs(1),
    };
    assert_eq!(dropped(&scene, &bounds()).await?, Err(problem.clone()));
    assert_eq!(truncated(&scene, &bounds()).await?, Err(problem));
    let env = [
        ("TAILRACE__SWEEP__LOCK_TIMEOUT", "1m"),
        ("TAILRACE__SWEEP__MAX_DURATION", "14s"),
        ("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "200ms"),
    ];
    let ended = scene.database.start(&["sweep", "--output", "json"], &env)?.end().await?;
    assert_eq!(ended.code, Some(3), "{ended:?}");
    let report = &ended.json()?["tables"][0];
    let error = "somebody else has locked the catalog's row of hog_catalog for longer than \
                 drop.row_lock_timeout; after 1 try";
    assert_eq!((&report["outcome"], &report["error"]), (&json!("lock_timeout"), &json!(error)));
    let told: Vec<_> = ended.log.iter().filter(|line| line["event"] == "lock_not_had").collect();
    let [told] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((&told["locked_table"], &told["tries"]), (&json!("hog_catalog"), &json!(1)));
    assert_eq!(ended.count("tuple_busy"), 0, "{ended:?}");
    let waits = scene.database.rows("SELECT 1 FROM tailrace.waiting").await?;
    assert_eq!(waits, Vec::<String>::new());

    held.end().await?;
    let next = scene.sweep().await?;
    assert_eq!((next.outcome, next.counts().files), (Outcome::Dropped, 2));
    Ok(())
}

/// The limit for rows and tables begins when the commit lock is there.
#[tokio::test]
async fn the_commit_lock_is_waited_for_by_its_own_limit() -> Result<()> {
    let scene = Scene::new(&[0, 8, 9]).await?;
    let mut bounds = bounds();
    bounds.limits.row_lock_timeout = Duration::from_millis(50);
    bounds.limits.max_hold = Duration::from_secs(30);
    let longer = async {
        until("it has waited ten times as long", async || {
            Ok(sqlx::query_scalar(
                "SELECT coalesce(bool_or(clock_timestamp() - query_start > '500 ms'), false)
                   FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event = 'advisory'",
            )
            .fetch_one(scene.catalog.pool())
            .await?)
        })
        .await
    };
    let (told, ()) = while_it_waits(&scene.catalog, dropped(&scene, &bounds), longer).await?;
    assert_eq!(told, Ok(1));
    Ok(())
}
