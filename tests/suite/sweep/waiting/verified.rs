//! Tests that waiting tuples are no violation, however many there are, and that nothing waits
//! before it has expired.

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Scope;
use tailrace::verify::report::{Check, Report, Status};
use tailrace::verify::verify;
use tailrace_kit::lake::NewFile;

use super::Scene;
use crate::support::program::settings;
use crate::verify::{of, of_status};

async fn verified(scene: &Scene) -> Result<Report> {
    verify(&scene.database.tailrace(), &crate::verify::settings(), &Scope::default()).await
}

fn now() -> String {
    UtcInstant::from(chrono::Utc::now()).to_string()
}

/// Makes all of the lake and its policies older than any grace.
async fn age(scene: &Scene) -> Result<()> {
    let day_ago = chrono::Utc::now() - chrono::TimeDelta::days(1);
    scene.catalog.backdate_through(scene.catalog.head().await?, day_ago).await?;
    let aged = "UPDATE tailrace.policy SET updated_at = clock_timestamp() - interval '1 day'";
    scene.database.sql(aged).await
}

/// A tuple of several commits of which a later one is refused is gone in part, and waits: what is left of
/// it is no partition that a drop missed.
#[tokio::test]
async fn what_is_left_of_a_refused_tuple_is_no_violation() -> Result<()> {
    let mut scene = Scene::days(1).await?;
    scene.files.extend(scene.table.append(vec![NewFile::of(["18001"]); 5]).await?.file_ids);
    scene.refuse(&[4], "no").await?;
    let mut splitting = settings();
    (splitting.batch.files_per_commit, splitting.batch.files_per_tuple) = (2, 4);
    scene.sweep_with(&splitting, &now()).await?;
    assert_eq!(scene.live().await?, [3, 4, 5]);
    assert_eq!(scene.waits().await?, [("2019-04-15".to_owned(), "poisoned".to_owned())]);
    // The drops are older than the grace, and the pause of the tuple is not over.
    age(&scene).await?;
    let dropped = "update tailrace.drop_history h set dropped_at = s.snapshot_time
                   from hog_snapshot s
                   where s.catalog_id = h.catalog_id and s.snapshot_id = h.snapshot_id";
    scene.database.sql(dropped).await?;
    let report = verified(&scene).await?;
    assert_eq!(of(&report, Check::WaitingPartitions)?.count, 1);
    assert_eq!(of_status(&report, Status::Violated), [], "{report:#?}");

    // Nobody keeps the memory up: it excuses nothing.
    scene.database.sql("delete from tailrace.waiting").await?;
    assert_eq!(of(&verified(&scene).await?, Check::DroppedPartitions)?.count, 3);
    Ok(())
}

/// By a longer keep it has not expired, before a pass has followed that.
#[tokio::test]
async fn what_has_not_expired_does_not_wait() -> Result<()> {
    let scene = Scene::days(3).await?;
    scene.refuse(&[1], "no").await?;
    scene.database.ran(&["sweep"]).await?;
    assert_eq!(of(&verified(&scene).await?, Check::WaitingPartitions)?.count, 1);
    assert_eq!(scene.database.doctor().await?.of("waiting")[0].0, "warning");

    scene.database.govern(&scene.table, "day(at)", "7300d").await?;
    assert_eq!(of(&verified(&scene).await?, Check::WaitingPartitions)?.count, 0);
    let nothing = [("ok", "no expired partition is refused, too large or kept for long")];
    assert_eq!(scene.database.doctor().await?.of("waiting"), nothing);
    Ok(())
}

/// Ten thousand and five tuples that are too large, all of a day ago, after a pass of now. Of the five that
/// are only counted nobody knows which they are, so none is called overdue, nor is all well.
#[tokio::test]
async fn more_than_ten_thousand_are_no_violation_and_counted() -> Result<()> {
    let scene = Scene::days(0).await?;
    let files = (0..10_005).flat_map(|day| vec![NewFile::of([(8_000 + day).to_string()]); 2]);
    scene.table.append(files.collect()).await?;
    let mut skipping = settings();
    (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (1, 1);
    skipping.batch.split_oversize = false;
    scene.sweep_with(&skipping, &now()).await?;
    assert_eq!(scene.waiting().await?.len(), 10_000);
    // From the second pass on they pause: the third one meets only one of them, of which a file came late.
    scene.sweep_with(&skipping, &now()).await?;
    scene.table.append(vec![NewFile::of(["8000"])]).await?;
    scene.sweep_with(&skipping, &now()).await?;
    let looks = "select string_agg(files || ' ' || attempts || ' ' || n, ', ' order by files)
                 from (select files, attempts, count(*) as n from tailrace.waiting group by 1, 2) as w";
    assert_eq!(scene.database.text(looks).await?.as_deref(), Some("2 2 9999, 3 2 1"));
    age(&scene).await?;

    let report = verified(&scene).await?;
    assert_eq!(of_status(&report, Status::Violated), []);
    let overdue = of(&report, Check::OverdueFiles)?;
    assert_eq!((overdue.count, overdue.status), (0, Status::Incomplete));
    let why = "of 10 expired files of events.raw it is not known whether they wait: 5 more partitions wait \
               than are remembered one by one, and these may be among them";
    assert_eq!(overdue.notes, [why]);
    let doctor = scene.database.doctor().await?;
    let [(level, what)] = doctor.of("waiting")[..] else { panic!("{:?}", doctor.findings) };
    assert_eq!(level, "warning");
    assert!(what.starts_with("10005 partitions too large for one commit: "), "{what}");
    assert!(what.ends_with("; and 10000 more"), "{what}");

    // What expired before the last of those that are remembered is late all the same.
    scene.table.append(vec![NewFile::of(["7999"])]).await?;
    age(&scene).await?;
    let report = verified(&scene).await?;
    assert_eq!(of(&report, Check::OverdueFiles)?.count, 1);
    Ok(())
}
