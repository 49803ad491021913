//! Tests of files that the database refuses to end: the other files of their table are dropped.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::explicit::drop_partitions;
use tailrace::explicit::problem::Problem;
use tailrace::sweep::report::{Outcome, TableReport};
use tailrace_kit::lake::NewFile;

use super::{NOW, Scene};
use crate::explicit::{drop_of, item, patient, raw};
use crate::support::governed::{live_ids, snapshots};
use crate::support::program::settings;

/// The days of each snapshot: the first, and how many.
fn days(report: &TableReport) -> Vec<(&str, usize)> {
    let of = |(_, days): (i64, Vec<_>)| (days[0], days.len());
    snapshots(report).into_iter().map(of).collect()
}

/// Three of forty in one commit, in the middle: the thirty-seven go in the same pass, in eleven
/// snapshots, and the sixteen commits that failed are not tried again by the next pass.
#[tokio::test]
async fn all_others_go_in_the_same_pass() -> Result<()> {
    let scene = Scene::days(40).await?;
    scene.refuse(&[7, 20, 33], "not this one").await?;
    let head = scene.catalog.head().await?;

    let report = scene.sweep_at(NOW).await?;

    assert_eq!(report.outcome, Outcome::Poisoned, "{:?}", report.error);
    assert_eq!(scene.live().await?, [7, 20, 33]);
    let expected = [
        ("2019-04-24", 10),
        ("2019-04-14", 5),
        ("2019-04-19", 2),
        ("2019-04-22", 2),
        ("2019-05-09", 5),
        ("2019-05-06", 3),
        ("2019-05-05", 1),
        ("2019-05-19", 5),
        ("2019-05-14", 2),
        ("2019-05-16", 1),
        ("2019-05-18", 1),
    ];
    assert_eq!(days(&report), expected);
    assert_eq!(report.counts().files, 37);
    assert_eq!(scene.catalog.head().await?, head + 11);
    assert_eq!(scene.refusals().await?, 16);
    let said = "the database says: not this one (SQLSTATE P0001); \
                in PL/pgSQL function refuse_files() line 4 at RAISE";
    let told = |day: &str| {
        format!(
            "partition {day} waits (poisoned) since {NOW}: {said}; next look 2026-11-30T12:15:00Z"
        )
    };
    let error = ["2019-04-21", "2019-05-04", "2019-05-17"].map(told).join("; ");
    assert_eq!(report.error, Some(error.clone()));

    let next = scene.sweep_at("2026-11-30T12:10:00Z").await?;
    assert_eq!((next.outcome, next.full), (Outcome::Poisoned, Some(false)));
    assert_eq!((next.snapshots.len(), next.error), (0, Some(error)));
    assert_eq!(scene.refusals().await?, 0);
    Ok(())
}

/// A row that breaks a constraint which came after it; at both ends. The error names the row.
#[tokio::test]
async fn a_constraint_is_told_with_its_row() -> Result<()> {
    let scene = Scene::days(0).await?;
    let records = [9_999, 1, 1, 1, 9_998];
    let file = |(day, records): (i64, i64)| NewFile::of([day.to_string()]).records(records);
    let files = scene.table.append((18_000..).zip(records).map(file).collect()).await?.file_ids;
    scene
        .database
        .sql("alter table hog_data_file add constraint few check (record_count < 9000) not valid")
        .await?;
    let report = scene.sweep_at(NOW).await?;
    assert_eq!(report.outcome, Outcome::Poisoned, "{:?}", report.error);
    assert_eq!(days(&report), [("2019-04-15", 1), ("2019-04-16", 1), ("2019-04-17", 1)]);
    let waiting = scene.waiting().await?;
    for (waiting, (day, file)) in
        waiting.iter().zip([("2019-04-14", files[0]), ("2019-04-18", files[4])])
    {
        assert_eq!((&waiting["display"], &waiting["files"]), (&day.into(), &1.into()));
        let error = waiting["error"].as_str().unwrap_or_default();
        let begin = "the database says: new row for relation \"hog_data_file\" violates check \
                     constraint \"few\" (SQLSTATE 23514); constraint few; table hog_data_file; \
                     Failing row contains (";
        assert!(error.starts_with(begin), "{error}");
        assert!(error.contains(&format!(" {file}, ")), "{error}");
        assert!(error.len() < 700, "{error}");
    }
    assert_eq!(waiting.len(), 2);
    Ok(())
}

/// A trigger may raise with a state of its own, or meet a limit or a damaged page: that is as much of the
/// file as a constraint is.
#[tokio::test]
async fn a_refusal_by_another_state_keeps_no_other() -> Result<()> {
    let scene = Scene::days(0).await?;
    for (state, first) in
        ["45000", "54000", "XX001", "38001", "21000"].into_iter().zip((18_000_i64..).step_by(4))
    {
        let days = (first..first + 4).map(|day| NewFile::of([day.to_string()]));
        let files = scene.table.append(days.collect()).await?.file_ids;
        scene
            .database
            .sql(&format!(
                "create or replace function meddle() returns trigger language plpgsql as
                   $$begin raise exception 'no' using errcode = '{state}'; end$$;
                 drop trigger if exists meddle on hog_data_file;
                 create trigger meddle before update on hog_data_file for each row
                   when (new.end_snapshot is not null and new.data_file_id = {})
                   execute function meddle()",
                files[1]
            ))
            .await?;
        let report = scene.sweep_at(NOW).await?;
        assert_eq!(report.outcome, Outcome::Poisoned, "{state}: {:?}", report.error);
        assert_eq!(days_left(&scene, &files).await?, [1], "{state}");
    }
    Ok(())
}

/// Which of some files are live.
async fn days_left(scene: &Scene, files: &[i64]) -> Result<Vec<usize>> {
    let live = live_ids(&scene.table).await?;
    Ok((0..files.len()).filter(|at| live.contains(&files[*at])).collect())
}

/// What is deferred is refused only at COMMIT, where the server answers all the same.
#[tokio::test]
async fn a_deferred_trigger_refuses_at_commit() -> Result<()> {
    let scene = Scene::days(4).await?;
    scene
        .database
        .sql(&format!(
            "create function late() returns trigger language plpgsql as
               $$begin perform nextval('tries'); raise exception 'too late'; end$$;
             create constraint trigger late after update on hog_data_file
               deferrable initially deferred for each row
               when (new.data_file_id = {}) execute function late()",
            scene.files[2]
        ))
        .await?;
    let report = scene.sweep_at(NOW).await?;
    assert_eq!(report.outcome, Outcome::Poisoned, "{:?}", report.error);
    assert_eq!(days(&report), [("2019-04-14", 2), ("2019-04-17", 1)]);
    assert_eq!((scene.live().await?, scene.refusals().await?), (vec![2], 3));

    // So it is for a person who asks for it.
    let mut session = scene.database.tailrace().session().await?;
    let body = drop_of(vec![item([Some("18002")])]);
    let refused = drop_partitions(&mut session, &raw(), &body, "me", &patient()).await;
    close(session).await;
    assert_eq!(refused, Err(Problem::Refused { table: "events.raw".to_owned() }));
    Ok(())
}

/// Three commits at the old end fail, each for one tuple of two. They stopped the table once.
#[tokio::test]
async fn bad_commits_at_the_old_end_hold_up_none_of_the_newer() -> Result<()> {
    let scene = Scene::days(10).await?;
    scene.refuse(&[0, 3, 4], "no").await?;
    let mut settings = settings();
    settings.batch.files_per_commit = 2;
    let report = scene.sweep_with(&settings, NOW).await?;
    assert_eq!(report.outcome, Outcome::Poisoned, "{:?}", report.error);
    let expected = [
        ("2019-04-20", 2),
        ("2019-04-22", 2),
        ("2019-04-15", 1),
        ("2019-04-16", 1),
        ("2019-04-19", 1),
    ];
    assert_eq!(days(&report), expected);
    assert_eq!((scene.live().await?, scene.refusals().await?), (vec![0, 3, 4], 6));
    Ok(())
}

/// Twenty, one after another or every other one: all are found in one pass, and the rest goes.
#[tokio::test]
async fn twenty_of_forty_are_found_in_one_pass() -> Result<()> {
    let old: Vec<usize> = (0..20).collect();
    let every_other: Vec<usize> = (0..40).step_by(2).collect();
    let new: Vec<usize> = (20..40).collect();
    for poison in [old, every_other, new] {
        let scene = Scene::days(40).await?;
        scene.refuse(&poison, "no").await?;
        let report = scene.sweep_at(NOW).await?;
        assert_eq!(report.outcome, Outcome::Poisoned, "{poison:?}: {:?}", report.error);
        assert_eq!(scene.live().await?, poison);
        assert_eq!(scene.waiting().await?.len(), 20);
        assert!(report.error.is_some_and(|told| told.ends_with("and 17 more: see tailrace plan")));
    }
    Ok(())
}

/// A tuple that goes in several commits: one that is refused is that tuple's.
#[tokio::test]
async fn a_piece_that_is_refused_is_its_tuples() -> Result<()> {
    let mut scene = Scene::days(1).await?;
    scene.files.extend(scene.table.append(vec![NewFile::of(["18001"]); 5]).await?.file_ids);
    scene.files.extend(scene.table.append(vec![NewFile::of(["18002"])]).await?.file_ids);
    scene.refuse(&[3], "no").await?;
    let mut settings = settings();
    (settings.batch.files_per_commit, settings.batch.files_per_tuple) = (2, 4);
    let report = scene.sweep_with(&settings, NOW).await?;
    assert_eq!(report.outcome, Outcome::Poisoned, "{:?}", report.error);
    assert_eq!(scene.live().await?, [3, 4, 5]);
    assert_eq!(scene.waits().await?, [("2019-04-15".to_owned(), "poisoned".to_owned())]);
    Ok(())
}

/// Pauses grow; what fails by itself is in nobody's commit, and what comes meanwhile goes.
#[tokio::test]
async fn it_is_tried_alone_after_growing_pauses() -> Result<()> {
    let scene = Scene::days(3).await?;
    scene.refuse(&[1], "no").await?;
    scene.sweep_at(NOW).await?;
    scene.refusals().await?;
    let (second, third) = ("2026-11-30T12:15:00Z", "2026-11-30T13:00:00Z");
    for (at, refusals, next, tries, last) in [
        ("2026-11-30T12:14:59Z", 0, second, 1, NOW),
        (second, 1, "2026-11-30T12:45:00Z", 2, second),
        ("2026-11-30T12:44:59Z", 0, "2026-11-30T12:45:00Z", 2, second),
        (third, 1, "2026-11-30T14:00:00Z", 3, third),
    ] {
        let innocent = scene.table.append(vec![NewFile::of(["18003"])]).await?;
        let report = scene.sweep_at(at).await?;
        assert_eq!((report.outcome, report.full), (Outcome::Poisoned, Some(false)), "{at}");
        let snapshot = innocent.snapshot_id + 1;
        assert_eq!(
            report.snapshots.iter().map(|one| one.snapshot_id).collect::<Vec<_>>(),
            [snapshot]
        );
        assert_eq!((scene.live().await?, scene.refusals().await?), (vec![1], refusals), "{at}");
        let [waiting] = &scene.waiting().await?[..] else { panic!("one waits") };
        assert_eq!((&waiting["since"], &waiting["next_look"]), (&NOW.into(), &next.into()), "{at}");
        assert_eq!((&waiting["tries"], &waiting["seen_at"]), (&tries.into(), &last.into()), "{at}");
    }
    // Alone it says nothing of the table: with nothing else to do the pass is no failure of that.
    let report = scene.sweep_at("2026-11-30T14:00:00Z").await?;
    assert_eq!((report.outcome, scene.refusals().await?), (Outcome::Poisoned, 1));
    scene.let_go().await?;
    assert_eq!(scene.sweep_at("2026-11-30T15:59:59Z").await?.outcome, Outcome::Poisoned);
    let report = scene.sweep_at("2026-11-30T16:00:00Z").await?;
    assert_eq!((report.outcome, days(&report)), (Outcome::Dropped, vec![("2019-04-15", 1)]));
    assert_eq!(scene.waiting().await?.len(), 0);
    assert_eq!(scene.sweep_at("2026-11-30T16:10:00Z").await?.outcome, Outcome::NothingToDo);
    Ok(())
}

/// A trigger that keeps a row without a word: no snapshot is made in which nothing ends, and the
/// partition waits like one that the database refuses.
#[tokio::test]
async fn what_the_database_keeps_without_a_word_waits_too() -> Result<()> {
    let scene = Scene::days(3).await?;
    scene
        .database
        .sql(&format!(
            "create function keep_file() returns trigger language plpgsql as
               $$ begin return null; end $$;
             create trigger keep before update on hog_data_file for each row
               when (new.data_file_id = {}) execute function keep_file()",
            scene.files[1]
        ))
        .await?;
    let head = scene.catalog.head().await?;

    let report = scene.sweep_at(NOW).await?;

    assert_eq!(report.outcome, Outcome::Poisoned);
    assert_eq!(snapshots(&report), [(1, vec!["2019-04-14"]), (1, vec!["2019-04-16"])]);
    assert_eq!((scene.live().await?, scene.catalog.head().await?), (vec![1], head + 2));
    let said = "the database keeps files or deletion vectors live that it was told to end (at least 1), \
                and does not say why: a trigger may do so";
    assert!(report.error.as_ref().is_some_and(|error| error.contains(said)), "{report:?}");

    let mut session = scene.database.tailrace().session().await?;
    let drop = drop_of(vec![item([Some("18001")])]);
    let refused = drop_partitions(&mut session, &raw(), &drop, "me", &patient()).await;
    assert!(matches!(refused, Err(Problem::Refused { .. })), "{refused:?}");
    close(session).await;
    assert_eq!(scene.catalog.head().await?, head + 2);
    Ok(())
}
