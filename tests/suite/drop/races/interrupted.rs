//! Tests of passes that lose the database after it has answered: they are soon tried again.

use anyhow::{Context, Result};
use chrono::{DateTime, FixedOffset, TimeDelta};
use serde_json::Value;
use tailrace::catalog::errors::is_connection_error;
use tailrace::sweep::LostOnTheWay;
use tailrace_kit::lake::Field;

use crate::support::process::start;
use crate::support::proxy::Cut;
use crate::support::wait::until;

use super::{Scene, file, patient};

/// When events of this name were logged.
fn times(log: &[Value], event: &str) -> Result<Vec<DateTime<FixedOffset>>> {
    let told = log.iter().filter(|line| line["event"] == event);
    told.map(|line| {
        let time = line["timestamp"].as_str().context("a time")?;
        Ok(DateTime::parse_from_rfc3339(time)?)
    })
    .collect()
}

/// Each pass commits something, of a drop or of its own notes, and then the network is gone for the
/// rest of it.
#[tokio::test]
async fn passes_that_commit_and_break_off_are_soon_tried_again() -> Result<()> {
    let rounds = 4;
    let scene = Scene::new(&[0]).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.database.policy("lake", "events.other", "day(at)", "7d").await?;
    let (proxy, through) = scene.database.through_proxy().await?;
    let name = through.options.get_database().context("a name")?;
    let url = format!("postgres://postgres@127.0.0.1:{}/{name}", through.options.get_port());
    let schedule = [("TAILRACE__SCHEDULE__EVERY", "5s"), ("TAILRACE__SCHEDULE__JITTER", "0s")];
    let mut run = start(&url, &["run"], &schedule)?;
    // Its transactions are not those that are to be cut.
    run.event("shield_renewed", 1).await?;
    run.event("pass_finished", 1).await?;
    for round in 1..=rounds {
        for table in [&scene.table, &other] {
            table.append(vec![file(9)]).await?;
        }
        proxy.cut_next(Cut::AfterCommitShut);
        proxy.open();
        run.event("catalog_failed", round).await?;
        assert!(proxy.has_cut());
    }
    proxy.open();
    run.event("database_back", 1).await?;
    run.signal("TERM").await?;
    let ended = run.end().await?;
    assert_eq!((ended.code, ended.count("database_lost")), (Some(0), 1));
    // How long it rested after each pass that broke off: a second or two, where tries in vain would
    // have it wait for eight at least before the last one.
    let starts = times(&ended.log, "pass_started")?;
    for failed in times(&ended.log, "catalog_failed")? {
        let next = starts.iter().find(|start| **start > failed).context("another pass")?;
        assert!(*next - failed < TimeDelta::seconds(6), "{failed} {next}");
    }
    Ok(())
}

#[tokio::test]
async fn a_pass_that_breaks_off_at_once_says_the_database_answered() -> Result<()> {
    let scene = Scene::new(&[0]).await?;
    let mut holder = scene.catalog.pool().begin().await?;
    sqlx::query("LOCK TABLE hog_catalog").execute(&mut *holder).await?;
    let settings = patient();
    let operator = async {
        until("the pass waits for the catalogs, and is ended", async || {
            let ended: Option<bool> = sqlx::query_scalar(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                  WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .fetch_optional(scene.catalog.pool())
            .await?;
            Ok(ended == Some(true))
        })
        .await
    };
    let (pass, operator) = tokio::join!(scene.database.sweep_with(&settings), operator);
    operator?;
    let error = pass.err().context("it was ended")?;
    assert!(error.is::<LostOnTheWay>() && is_connection_error(&error), "{error:#}");
    Ok(())
}
