//! Tests of what is reported of tables without work.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace::sweep::Scope;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::Scene;
use crate::support::governed::{of_table, outcomes};
use crate::support::program::{days_ago, settings};

#[tokio::test]
async fn the_last_outcome_stands_in_report_exit_code_and_log() -> Result<()> {
    let scene = Scene::settled().await?;
    scene
        .database
        .sql(&format!(
            "UPDATE tailrace.table_state
             SET outcome = 'poisoned', error = 'a trigger', undatable_files = 3, uncovered_files = 4,
                 census_at = '2026-09-01T00:00:00Z'
             WHERE table_id = {}",
            scene.raw.table_id
        ))
        .await?;
    let ran = scene.database.ran(&["sweep", "--output", "json"]).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    let report: serde_json::Value = serde_json::from_str(&ran.out)?;
    let raw = &report["tables"][1];
    assert_eq!(
        [
            &raw["table"],
            &raw["outcome"],
            &raw["error"],
            &raw["field"],
            &raw["column"],
            &raw["keep"]
        ],
        ["raw", "poisoned", "a trigger", "at", "at", "7d"]
    );
    assert_eq!(raw["full"], false);
    assert_eq!(raw["counted"]["undatable_files"], 3);
    assert_eq!(raw["counted"]["uncovered_files"], 4);
    assert_eq!(report["tables"][0]["outcome"], "nothing_to_do");
    // None of them has a line of its own.
    assert_eq!(ran.events("table_finished").len(), 0);
    let finished = &ran.events("pass_finished")[0];
    assert_eq!(
        [&finished["tables"], &finished["tables_unchanged"], &finished["tables_failed"]],
        [2, 2, 1]
    );

    scene.raw.append(vec![NewFile::of([days_ago(9)])]).await?;
    let ran = scene.database.ran(&["sweep", "--output", "json"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(ran.events("table_finished").len(), 1);
    assert_eq!(ran.events("pass_finished")[0]["tables_unchanged"], 1);
    Ok(())
}

#[tokio::test]
async fn what_was_dropped_is_no_news_and_a_paused_table_says_so() -> Result<()> {
    let scene = Scene::settled().await?;
    scene.database.sql("UPDATE tailrace.table_state SET outcome = 'dropped'").await?;
    scene.database.govern_as(&scene.other, "at", "7d", Mode::Paused).await?;
    let (worked, report) = scene.pass(&settings(), &Scope::default()).await?;
    assert_eq!(worked, Vec::<String>::new());
    assert_eq!(outcomes(&report), [("other", Outcome::Paused), ("raw", Outcome::NothingToDo)]);
    Ok(())
}

/// What another daemon works on is skipped where there is work, and is no matter where there is none.
#[tokio::test]
async fn another_daemons_lease_matters_only_where_there_is_work() -> Result<()> {
    let scene = Scene::settled().await?;
    let mut other = scene.database.plain_session().await?;
    let catalog_id = scene.catalog.catalog_id;
    let lease = tailrace::catalog::commit_lock::try_lease(&mut other, catalog_id).await?;
    assert!(lease.is_some());
    let (_, report) = scene.pass(&settings(), &Scope::default()).await?;
    assert_eq!(report.skipped_catalogs, Vec::<String>::new());
    assert_eq!(report.tables.len(), 2);

    scene.raw.append(vec![NewFile::of([days_ago(9)])]).await?;
    let (worked, report) = scene.pass(&settings(), &Scope::default()).await?;
    assert_eq!(
        (worked.len(), report.skipped_catalogs.as_slice()),
        (0, ["lake".to_owned()].as_slice())
    );
    assert_eq!(outcomes(&report), [("other", Outcome::NothingToDo)]);

    // The one that has the lease ends, and the next pass finds the work still there.
    tailrace::catalog::connect::close(other).await;
    crate::support::wait::until("the lease is free", async || {
        let (_, report) = scene.pass(&settings(), &Scope::default()).await?;
        Ok(report.skipped_catalogs.is_empty() && of_table(&report, "raw").counts().files == 1)
    })
    .await
}

#[tokio::test]
async fn what_came_of_a_table_is_noted_for_the_next_pass() -> Result<()> {
    let scene = Scene::settled().await?;
    scene.database.sql("UPDATE tailrace.table_state SET outcome = null, unlooked = 3").await?;
    assert_eq!(scene.worked_on().await?, ["other", "raw"]);
    let noted = "SELECT string_agg(outcome || ' ' || unlooked || ' ' || (quiet_until is null), ',')
                 FROM tailrace.table_state";
    let quiet = Some("nothing_to_do 0 true,nothing_to_do 0 true");
    assert_eq!(scene.database.text(noted).await?.as_deref(), quiet);
    assert_eq!(scene.worked_on().await?, Vec::<String>::new());
    // A pass that is over before it begins looks at nothing.
    scene.database.sql("UPDATE tailrace.table_state SET outcome = null, unlooked = 1").await?;
    let mut hurried = settings();
    hurried.max_duration = std::time::Duration::ZERO;
    hurried.every = std::time::Duration::from_secs(300);
    scene.pass(&hurried, &Scope::default()).await?;
    let noted = "SELECT string_agg(unlooked || ' ' || (quiet_until between now() + interval '100 s'
                   and now() + interval '125 s'), ',')
                 FROM tailrace.table_state WHERE outcome IS NULL";
    assert_eq!(scene.database.text(noted).await?.as_deref(), Some("2 true,2 true"));
    Ok(())
}
