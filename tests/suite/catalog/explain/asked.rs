//! Tests of what plans, the commands of policies, and explicit drops read, in sessions without
//! restrictions on the planner.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::explicit::call::{DropBody, PartitionItem, TableRef, TruncateBody};
use tailrace::explicit::{Bounds, drop_partitions, truncate};
use tailrace::policy::set::{Wanted, set_policy};
use tailrace::sweep::Scope;
use tailrace::sweep::planning::plan_all;
use uuid::Uuid;

use super::crowd::{Crowd, EXPIRED, KEEP, Statistics};
use super::pins::{assert_keeps_to, by, drop_of};
use super::watch::{Planned, Watch};
use super::{
    ALL, CHANGES, DATA_LOOKUP, FEED, FILE_KEY, LIVE, LOOKUP, MAINTENANCE_SCAN, SNAPSHOT_KEY,
    STATS_KEY, VALUE_KEY,
};
use crate::support::program::{NO_LIMITS, days_ago, settings};

fn table(name: &str) -> TableRef {
    TableRef { catalog: "lake".to_owned(), namespace: "events".to_owned(), table: name.to_owned() }
}

async fn plans(statistics: Statistics, planned: Planned) -> Result<()> {
    let crowd = Crowd::new(statistics).await?;
    let watch = Watch::begin();
    let database = watch.over(&crowd.database, planned);
    let mut settings = settings();
    let live_since =
        by("live since", &[(LIVE, 20_131), (VALUE_KEY, 40_262), (DATA_LOOKUP, 20_131)]);
    let distinct = by("distinct values", &[(LOOKUP, 20_510)]);
    let with_values: [(&str, i64); 4] =
        [(LOOKUP, 4_640), (FILE_KEY, 4_630), (VALUE_KEY, 300), (DATA_LOOKUP, 300)];

    plan_all(&database, &settings, &Scope::default(), None).await?;
    let next_piece =
        by("next_piece", &[(MAINTENANCE_SCAN, 34_300), (VALUE_KEY, 60_300), (DATA_LOOKUP, 30_300)]);
    let evidence = by("evidence", &[(FILE_KEY, 330), (STATS_KEY, 330)]);
    let newest_snapshots = by("newest snapshots", &[("hog_snapshot_pkey", 1_000)]);
    let found = by("files with values", &with_values);
    let newest = by("newest live", &[(LIVE, 1_200), (VALUE_KEY, 2_400), (DATA_LOOKUP, 1_200)]);
    let all = [live_since, distinct, found, next_piece, evidence, newest_snapshots, newest];
    assert_keeps_to("a plan", &watch.take()?, &all);

    // What stays is not counted where there is no time for it, and where nothing has expired the
    // newest files tell whether the policy dates anything.
    settings.count_timeout = Duration::ZERO;
    crowd.database.govern(&crowd.raw, "at", "2000d").await?;
    plan_all(&database, &settings, &Scope::default(), None).await?;
    let newest = by("newest live", &[(LIVE, 2_200), (VALUE_KEY, 4_400), (DATA_LOOKUP, 2_200)]);
    let evidence = by("evidence", &[(FILE_KEY, 30), (STATS_KEY, 30)]);
    let hurried = [live_since, distinct, newest, evidence, newest_snapshots];
    assert_keeps_to("a plan in a hurry", &watch.take()?, &hurried);

    // A policy is set without a look at any file.
    let mut session = database.session().await?;
    let wanted = Wanted {
        catalog: "lake",
        namespace: "events",
        table: "raw",
        field: "at",
        keep: KEEP,
        keep_last: None,
        mode: None,
        fence: None,
        is_confirmed: true,
        by: "tester",
        reason: None,
    };
    set_policy(&mut session, wanted, NO_LIMITS).await?;
    close(session).await;
    assert_keeps_to("a policy is set", &watch.take()?, &[]);
    Ok(())
}

async fn drops(statistics: Statistics, planned: Planned) -> Result<()> {
    let crowd = Crowd::new(statistics).await?;
    let watch = Watch::begin();
    let database = watch.over(&crowd.database, planned);
    let limits = settings().limits;
    let bounds = Bounds { limits, max_files: 100_000 };
    let mut session = database.session().await?;
    let spec = crowd.first_spec().await?;
    let read_snapshot = crowd.catalog.head().await?;
    let day = |age: i64| PartitionItem {
        partition_values: vec![Some(days_ago(age))],
        spec_id: Some(spec),
        literal: false,
    };
    let mut body = DropBody {
        partitions: EXPIRED.map(day).collect(),
        idempotency_key: Uuid::new_v4(),
        expected_table_uuid: None,
        // The days before and their 300 files of `raw` have been seen, but for the last three.
        read_snapshot: Some(read_snapshot - 4),
        author: None,
        message: None,
        dry_run: true,
        fence: false,
    };
    let guards = by("guards", &[(FEED, 300), (VALUE_KEY, 600), (CHANGES, 3), (SNAPSHOT_KEY, 2)]);
    let raw = table("raw");
    let counted = drop_partitions(&mut session, &raw, &body, "me", &bounds).await?;
    assert_eq!((counted.files_ended, counted.delete_files_ended), (300, 30));
    // Each of the 630 entries of the three days costs one look.
    let found = by(
        "files with values",
        &[(LOOKUP, 632), (FILE_KEY, 630), (VALUE_KEY, 300), (DATA_LOOKUP, 300)],
    );
    assert_keeps_to("a dry run", &watch.take()?, &[guards, found]);

    body.dry_run = false;
    let done = drop_partitions(&mut session, &raw, &body, "me", &bounds).await?;
    assert_eq!((done.files_ended, done.delete_files_ended), (300, 30));
    let guards_twice =
        by("guards", &[(FEED, 600), (VALUE_KEY, 1_200), (CHANGES, 6), (SNAPSHOT_KEY, 4)]);
    assert_keeps_to("a drop", &watch.take()?, &[guards_twice, found, drop_of(300)]);

    let read_snapshot = Some(crowd.catalog.head().await?);
    let all_of_it = TruncateBody { read_snapshot, ..TruncateBody::default() };
    let uuid = Some(crowd.catalog.open_table("events", "small").await?.table_uuid);
    truncate(&mut session, &table("small"), uuid, &all_of_it, "me", &bounds).await?;
    let guards = by("guards", &[(FEED, 0), (CHANGES, 0), (SNAPSHOT_KEY, 4)]);
    let all = [guards, by("count live", &[(LIVE, 130)]), drop_of(260)];
    assert_keeps_to("a truncate", &watch.take()?, &all);
    close(session).await;
    Ok(())
}

#[tokio::test]
async fn plans_and_policies() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        plans(statistics, planned).await?;
    }
    Ok(())
}

#[tokio::test]
async fn explicit_drops() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        drops(statistics, planned).await?;
    }
    Ok(())
}
