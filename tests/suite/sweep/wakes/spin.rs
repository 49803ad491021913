//! Tests of each way in which passes leave what is due: how many passes a daemon runs in an hour,
//! with ticks every ten minutes and every five. After each pass that did not look at the due rows,
//! the table wakes nobody for a minute, then for two, then for four.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::commit_lock::lease_key;
use tailrace::policy::Mode;
use tailrace_kit::lake::NewFile;
use tailrace_kit::simulated_loops::HeldFiles;

use super::hour::Stuck;
use crate::support::gate::Gate;

const EVERY: [Duration; 2] = [Duration::from_secs(600), Duration::from_secs(300)];

/// An hour of each distance: how many passes there are, how they end for the table, and how many rows are due
/// after it.
async fn told(stuck: impl AsyncFn() -> Result<Stuck>) -> Result<Vec<String>> {
    events_of(EVERY, stuck).await
}

async fn events_of(
    distances: [Duration; 2],
    stuck: impl AsyncFn() -> Result<Stuck>,
) -> Result<Vec<String>> {
    let mut hours = Vec::new();
    for every in distances {
        let stuck = stuck().await?;
        let told = stuck.hour(every).await?;
        let most = usize::try_from(3_600 / every.as_secs())? + 10;
        assert!(told.passes <= most, "{every:?}: {told:?}, not {most}");
        let ends = told.outcomes.iter().map(|(outcome, times)| format!("{times} {outcome}"));
        let ends: Vec<String> = ends.collect();
        let due = stuck.due().await?;
        hours.push(format!("{} passes, {}; {due} due", told.passes, ends.join(", ")));
    }
    Ok(hours)
}

/// Has the database refuse to end files under this condition.
async fn refusing(which: &str) -> Result<Stuck> {
    let stuck = Stuck::new().await?;
    stuck
        .database
        .sql(&format!(
            "create function refuse() returns trigger language plpgsql as $$
             begin raise exception 'no'; end $$;
             create trigger refuse before update on hog_data_file for each row
               when (new.end_snapshot is not null and {which}) execute function refuse()"
        ))
        .await?;
    Ok(stuck)
}

#[tokio::test]
async fn under_a_policy_that_is_paused() -> Result<()> {
    let paused = async || {
        let stuck = Stuck::new().await?;
        stuck.database.govern_as(&stuck.table, "at", "7d", Mode::Paused).await?;
        Ok(stuck)
    };
    assert_eq!(told(paused).await?, ["6 passes, 6 paused; 2 due", "12 passes, 12 paused; 2 due"]);
    Ok(())
}

/// Those that were woken leave it to the regular ones to say so.
#[tokio::test]
async fn under_a_policy_that_the_guard_refuses() -> Result<()> {
    let refused = async || {
        let mut stuck = Stuck::new().await?;
        stuck.settings.policy_limits.min_keep = Duration::from_secs(8 * 86_400);
        Ok(stuck)
    };
    let expected =
        ["9 passes, 6 failed, 3 no report; 2 due", "14 passes, 12 failed, 2 no report; 2 due"];
    assert_eq!(told(refused).await?, expected);
    Ok(())
}

#[tokio::test]
async fn while_the_clock_is_refused() -> Result<()> {
    let apart = async || {
        let mut stuck = Stuck::new().await?;
        stuck.skew = Duration::from_secs(3_600);
        Ok(stuck)
    };
    let expected = ["9 passes, 9 clock_skew; 2 due", "14 passes, 14 clock_skew; 2 due"];
    assert_eq!(told(apart).await?, expected);
    let behind = async || {
        let stuck = Stuck::new().await?;
        let head = stuck.catalog.head().await?;
        let ahead = chrono::Utc::now() + chrono::Duration::days(1);
        stuck.catalog.backdate_snapshot(head, ahead).await?;
        Ok(stuck)
    };
    let expected = ["9 passes, 9 clock_behind; 2 due", "14 passes, 14 clock_behind; 2 due"];
    assert_eq!(told(behind).await?, expected);
    Ok(())
}

#[tokio::test]
async fn while_somebody_has_the_lease() -> Result<()> {
    let leased = async || {
        let mut stuck = Stuck::new().await?;
        let mut other = stuck.database.connection().await?;
        sqlx::query("SELECT pg_advisory_lock($1)")
            .bind(lease_key(stuck.catalog.catalog_id))
            .execute(&mut other)
            .await?;
        stuck.holder = Some(Box::new(other));
        Ok(stuck)
    };
    let expected = ["9 passes, 9 no report; 2 due", "14 passes, 14 no report; 2 due"];
    assert_eq!(told(leased).await?, expected);
    Ok(())
}

#[tokio::test]
async fn while_somebody_has_the_commit_lock() -> Result<()> {
    let locked = async || {
        let mut stuck = Stuck::new().await?;
        stuck.settings.limits.lock_timeout = Duration::from_millis(5);
        stuck.holder = Some(Box::new(Gate::shut(&stuck.catalog).await?));
        Ok(stuck)
    };
    let expected = ["9 passes, 9 lock_timeout; 2 due", "14 passes, 14 lock_timeout; 2 due"];
    assert_eq!(told(locked).await?, expected);
    Ok(())
}

#[tokio::test]
async fn where_too_many_objects_wait_for_the_server() -> Result<()> {
    let held_back = async || {
        let mut stuck = Stuck::new().await?;
        stuck.settings.removal_queue_ceiling = Some(0);
        let queued = format!(
            "insert into hog_file_removal (catalog_id, path, file_kind, reason)
             values ({}, 'gone', 'data', 'snapshot_expiry')",
            stuck.catalog.catalog_id
        );
        stuck.database.sql(&queued).await?;
        Ok(stuck)
    };
    let expected = ["9 passes, 9 held_back; 2 due", "14 passes, 14 held_back; 2 due"];
    assert_eq!(told(held_back).await?, expected);
    Ok(())
}

#[tokio::test]
async fn where_a_pass_has_no_time() -> Result<()> {
    let hurried = async || {
        let mut stuck = Stuck::new().await?;
        stuck.settings.max_duration = Duration::ZERO;
        Ok(stuck)
    };
    let expected = ["9 passes, 9 partial; 2 due", "14 passes, 14 partial; 2 due"];
    assert_eq!(told(hurried).await?, expected);
    Ok(())
}

#[tokio::test]
async fn where_the_server_refuses_everything() -> Result<()> {
    let expected = ["9 passes, 9 failed; 2 due", "14 passes, 14 failed; 2 due"];
    assert_eq!(told(async || refusing("true").await).await?, expected);
    Ok(())
}

/// After a quarter of an hour, then after half of one: at no tick of these, where the moment that a pass takes would
/// tell whether the tick looks.
#[tokio::test]
async fn where_it_refuses_one_partition() -> Result<()> {
    let poisoned = async || refusing("new.stats_state = 'pending'").await;
    let distances = [Duration::from_secs(600), Duration::from_secs(400)];
    let expected = ["8 passes, 8 poisoned; 1 due", "11 passes, 11 poisoned; 1 due"];
    assert_eq!(events_of(distances, poisoned).await?, expected);
    Ok(())
}

#[tokio::test]
async fn where_somebody_has_locked_a_partition() -> Result<()> {
    let busy = async || {
        let mut stuck = Stuck::new().await?;
        stuck.holder = Some(Box::new(HeldFiles::hold(&stuck.catalog, 10).await?));
        Ok(stuck)
    };
    let expected = ["9 passes, 9 busy; 1 due", "16 passes, 16 busy; 1 due"];
    assert_eq!(told(busy).await?, expected);
    Ok(())
}

#[tokio::test]
async fn where_a_partition_is_too_large() -> Result<()> {
    let oversize = async || {
        let mut stuck = Stuck::new().await?;
        stuck.settings.batch.files_per_commit = 1;
        stuck.settings.batch.files_per_tuple = 1;
        stuck.settings.batch.split_oversize = false;
        stuck.table.append(vec![NewFile::of(["18000"]); 2]).await?;
        Ok(stuck)
    };
    let expected = ["9 passes, 9 oversize; 1 due", "16 passes, 16 oversize; 1 due"];
    assert_eq!(told(oversize).await?, expected);
    Ok(())
}
