//! Tests of the proof by order: rows that were appended long after the earlier definition ended.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile};
use tailrace_kit::simulated_loops::Compaction;

use super::{Scene, file};
use crate::support::governed::{expired, kept, values};
use crate::support::program::settings;

/// Specs are first seen by this pass; the window is 7 days.
const SEEN: &str = "2027-01-10T00:00:00Z";
const BEFORE: &str = "2027-01-16T23:59:59.999999Z";
const MARKED: &str = "2027-01-17T00:30:00Z";
const AFTER: &str = "2027-01-17T01:00:00Z";

impl Scene {
    /// (spec, mark) of each copy of ours.
    async fn marks(&self) -> Result<Vec<String>> {
        self.database
            .rows("SELECT spec_id, mark_row_id FROM tailrace.spec_copy ORDER BY spec_id")
            .await
    }
}

#[tokio::test]
async fn rows_from_the_mark_on_are_proven() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    let before = scene.append(vec![NewFile::of(["42"])]).await?;
    scene.sweep_at(SEEN).await?;
    // Seen a moment after the pass began; here to the microsecond.
    scene.database.sql(&format!("UPDATE tailrace.spec_copy SET copied_at = '{SEEN}'")).await?;
    scene.sweep_at(BEFORE).await?;
    let none = [r#"{"spec_id": 1, "mark_row_id": null}"#, r#"{"spec_id": 2, "mark_row_id": null}"#];
    assert_eq!(scene.marks().await?, none);
    scene.sweep_at("2027-01-17T00:00:00Z").await?;
    // One file of 100 rows was there.
    let both = [r#"{"spec_id": 1, "mark_row_id": 100}"#, r#"{"spec_id": 2, "mark_row_id": 100}"#];
    assert_eq!(scene.marks().await?, both);
    assert_eq!(scene.live().await?, before);

    // Day 100 is 1970-04-11: rows of long ago by a writer of today.
    scene.append(vec![NewFile::of(["100"])]).await?;
    let report = scene.sweep_at(AFTER).await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    assert_eq!(scene.live().await?, before);
    Ok(())
}

/// A compaction's output begins late and holds old rows.
#[tokio::test]
async fn an_output_of_old_rows_is_not_proven() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.append(vec![NewFile::of(["100"])]).await?;
    scene.sweep_at(SEEN).await?;
    scene.sweep_at(MARKED).await?;
    scene.append(vec![NewFile::of(["100"])]).await?;
    assert_eq!(Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?, 1);
    let [output] = scene.live().await?[..] else { panic!("one output") };
    assert_eq!(scene.sweep_at(AFTER).await?.snapshots, []);
    assert_eq!(scene.live().await?, [output]);
    // An output of new rows alone is.
    scene.append(vec![NewFile::of(["101"]), NewFile::of(["101"])]).await?;
    assert_eq!(Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?, 1);
    assert_eq!(scene.sweep_at(AFTER).await?.counts().files, 1);
    assert_eq!(scene.live().await?, [output]);
    Ok(())
}

/// A writer that goes on with the old spec shows itself by statistics: the mark is noted anew, one
/// window after its file.
#[tokio::test]
async fn a_stale_writer_at_work_takes_the_proof_away() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.sweep_at(SEEN).await?;
    scene.sweep_at(MARKED).await?;
    let mut live =
        scene.append(vec![NewFile::of(["100"]), file(&["42"], "2027-01-17T00:40:00Z")]).await?;
    assert_eq!(scene.sweep_at(AFTER).await?.snapshots, []);
    assert_eq!(scene.live().await?, live);
    let marks = scene.marks().await?;
    assert_eq!(marks[1], r#"{"spec_id": 2, "mark_row_id": null}"#);
    // The same file shows nothing new, and another one puts it off again.
    scene.sweep_at("2027-01-20T00:00:00Z").await?;
    live.extend(scene.append(vec![file(&["43"], "2027-01-20T12:00:00Z")]).await?);
    scene.sweep_at("2027-01-21T00:00:00Z").await?;
    // The window of the first file has passed, that of the second has not. The first has expired by
    // its statistics.
    scene.sweep_at("2027-01-24T02:00:00Z").await?;
    assert_eq!(scene.marks().await?[1], r#"{"spec_id": 2, "mark_row_id": null}"#);
    assert_eq!(scene.live().await?, [live[0], live[2]]);
    scene.sweep_at("2027-01-28T00:30:00Z").await?;
    assert_eq!(scene.marks().await?[1], r#"{"spec_id": 2, "mark_row_id": 300}"#);
    // So has the second by now. What is proven by nothing stays.
    scene.append(vec![NewFile::of(["102"])]).await?;
    scene.sweep_at("2027-01-28T01:00:00Z").await?;
    assert_eq!(scene.live().await?, live[..1]);
    Ok(())
}

/// What statistics deny, order does not prove, in the very pass that finds it.
#[tokio::test]
async fn the_log_says_that_a_stale_writer_was_seen() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.database.ran(&["sweep"]).await?;
    scene
        .database
        .sql("UPDATE tailrace.spec_copy SET copied_at = now() - interval '8 days'")
        .await?;
    scene.database.ran(&["sweep"]).await?;
    let now = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
    scene.append(vec![file(&["42"], &now)]).await?;
    let ran = scene.database.ran(&["sweep"]).await?;
    let [event] = &ran.events("stale_writer_seen")[..] else { panic!("{}", ran.err) };
    assert_eq!((event["table"].as_str(), event["specs"].as_str()), (Some("raw"), Some("[2]")));
    let due = scene
        .database
        .text(
            "SELECT mark_due > now() + interval '6 days 23 hours'
        FROM tailrace.spec_copy WHERE spec_id = 2",
        )
        .await?;
    assert_eq!(due.as_deref(), Some("true"));
    Ok(())
}

/// Each earlier definition has its own mark, from the first spec without it.
#[tokio::test]
async fn every_definition_must_have_been_gone_for_the_window() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.sweep_at(SEEN).await?;
    scene.sweep_at(MARKED).await?;
    let days = scene.append(vec![NewFile::of(["100"])]).await?;
    scene.table.evolve_spec(&[Field::bucket("name", 16)]).await?;
    scene.table.evolve_spec(&[Field::day("at")]).await?;
    let fresh = scene.append(vec![NewFile::of(["5"]), NewFile::of(["100"])]).await?;
    let report = scene.sweep_at(AFTER).await?;
    // 5 may be a bucket, and buckets were written a moment ago; 100 is none.
    assert_eq!(report.counts().files, 2);
    assert_eq!(scene.live().await?, fresh[..1]);
    assert!(!days.is_empty());
    // A week later what lands is proven of buckets too, what landed before is not.
    scene.sweep_at("2027-01-24T01:30:00Z").await?;
    scene.append(vec![NewFile::of(["6"])]).await?;
    assert_eq!(scene.sweep_at("2027-01-24T02:00:00Z").await?.counts().files, 1);
    assert_eq!(scene.live().await?, fresh[..1]);
    Ok(())
}

/// A spec whose predecessor the server has deleted before we saw it.
#[tokio::test]
async fn a_spec_without_its_predecessor_is_ambiguous_until_its_mark() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.table.delete_vanished_specs().await?;
    let before = scene.append(vec![NewFile::of(["20000"])]).await?;
    scene.sweep_at(SEEN).await?;
    assert_eq!(scene.live().await?, before);
    scene.sweep_at(MARKED).await?;
    scene.append(vec![NewFile::of(["20001"])]).await?;
    assert_eq!(scene.sweep_at(AFTER).await?.counts().files, 1);
    assert_eq!(scene.live().await?, before);
    let plan = scene.database.plan("raw", AFTER).await?;
    assert_eq!(kept(&plan), [("ambiguous_spec", 1)]);
    Ok(())
}

/// A spec that began with its table has no predecessor, even if it is not the first number.
#[tokio::test]
async fn a_spec_that_began_with_its_table_is_not_ambiguous() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    scene
        .database
        .sql("SET session_replication_role = replica;
              UPDATE hog_partition_field SET spec_id = 7; UPDATE hog_partition_spec SET spec_id = 7")
        .await?;
    scene.append(vec![NewFile::of(["100"])]).await?;
    let plan = scene.database.plan("raw", SEEN).await?;
    assert_eq!(expired(&plan), [(7, values(["100"]), 1)]);
    Ok(())
}

/// A later start, such as an upgrade: what the catalog still dates proves appends, and no output.
#[tokio::test]
async fn at_an_upgrade_snapshots_prove_appends() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.append(vec![NewFile::of(["100"]), NewFile::of(["101"]), NewFile::of(["101"])]).await?;
    let early = scene.live().await?;
    let head = scene.catalog.head().await?;
    // Our copy is as old as an earlier version of this program left it: before there were marks.
    let now = chrono::Utc::now();
    scene.catalog.backdate_through(head, now - chrono::TimeDelta::days(30)).await?;
    scene
        .database
        .ran(&["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"])
        .await?;
    scene
        .database
        .sql("UPDATE tailrace.spec_copy SET copied_at = now() - interval '30 days', begin_snapshot = null")
        .await?;
    // Of the snapshots that are late enough the second counts: no single wrong date decides.
    let neighbour = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    neighbour.append(vec![NewFile::of(["20820"])]).await?;
    let appended = scene.append(vec![NewFile::of(["102"])]).await?;
    assert_eq!(Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?, 1);
    scene.database.sweep_with(&settings()).await?;
    let live = scene.live().await?;
    assert!(!live.contains(&appended[0]), "an append after the window");
    assert!(live.contains(&early[0]), "an append before it");
    assert_eq!(live.len(), 2, "the output of old rows stays");
    Ok(())
}

/// Only a pass knows whether the clock is acted by: what a command copied is dated by the next pass.
#[tokio::test]
async fn a_spec_that_a_command_copied_is_dated_by_a_pass() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
    assert_eq!(scene.database.ran(&set).await?.code, 0);
    let dated = "SELECT count(copied_at) || ' of ' || count(*) FROM tailrace.spec_copy";
    assert_eq!(scene.database.text(dated).await?.as_deref(), Some("0 of 2"));
    scene.sweep_at(SEEN).await?;
    assert_eq!(scene.database.text(dated).await?.as_deref(), Some("2 of 2"));
    // A later command does not take the date back.
    assert_eq!(scene.database.ran(&set).await?.code, 0);
    scene.sweep_at(BEFORE).await?;
    let early = format!(
        "SELECT count(*) FROM tailrace.spec_copy WHERE copied_at BETWEEN '{SEEN}' AND '2027-01-10T01:00:00Z'"
    );
    assert_eq!(scene.database.text(&early).await?.as_deref(), Some("2"));
    Ok(())
}

/// A server that gives a vanished spec's id to another one with the same fields: what was known of the
/// first says nothing of the second.
#[tokio::test]
async fn an_id_that_is_used_again_proves_nothing() -> Result<()> {
    let scene = Scene::new(&[&[Field::day("at")]]).await?;
    scene.table.evolve_spec(&[Field::identity("tenant")]).await?;
    scene.sweep_at(SEEN).await?;
    scene.sweep_at(MARKED).await?;
    scene.table.drop_spec().await?;
    scene.table.delete_vanished_specs().await?;
    scene.table.evolve_spec_as(1, &[Field::day("at")]).await?;
    let stale = scene.append(vec![NewFile::of(["42"])]).await?;
    let plan = scene.database.plan("raw", AFTER).await?;
    assert_eq!((expired(&plan), kept(&plan)), (vec![], vec![("unknown_spec", 1)]));
    for now in [AFTER, "2027-02-20T00:00:00Z"] {
        assert_eq!(scene.sweep_at(now).await?.snapshots, []);
    }
    assert_eq!(scene.live().await?, stale);
    // Nor once the second one has vanished too.
    scene.table.evolve_spec(&[Field::day("at")]).await?;
    scene.table.delete_vanished_specs().await?;
    assert_eq!(scene.sweep_at("2027-02-21T00:00:00Z").await?.snapshots, []);
    assert_eq!(scene.live().await?, stale);
    Ok(())
}

/// What was noted under a clock that was refused since is noted anew, a window after the clock was
/// accepted again.
#[tokio::test]
async fn a_mark_of_an_older_epoch_is_not_relied_on() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.sweep_at(SEEN).await?;
    scene.sweep_at(MARKED).await?;
    scene
        .database
        .sql("UPDATE tailrace.clock_memory SET epoch = 1, epoch_began = '2027-01-17T00:45:00Z'")
        .await?;
    let files = scene.append(vec![NewFile::of(["100"])]).await?;
    assert_eq!(scene.sweep_at(AFTER).await?.snapshots, []);
    assert_eq!(scene.live().await?, files);
    let none = [r#"{"spec_id": 1, "mark_row_id": null}"#, r#"{"spec_id": 2, "mark_row_id": null}"#];
    assert_eq!(scene.marks().await?, none);
    scene.sweep_at("2027-01-24T00:44:59Z").await?;
    assert_eq!(scene.marks().await?, none);
    scene.sweep_at("2027-01-24T00:45:00Z").await?;
    let both = [r#"{"spec_id": 1, "mark_row_id": 100}"#, r#"{"spec_id": 2, "mark_row_id": 100}"#];
    assert_eq!(scene.marks().await?, both);
    Ok(())
}

/// The file that shows it is merged with one from before the mark, and takes its row id.
#[tokio::test]
async fn a_compaction_does_not_hide_a_stale_writer() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    scene.sweep_at(SEEN).await?;
    scene.append(vec![file(&["42"], "2027-01-12T00:00:00Z")]).await?;
    scene.sweep_at(MARKED).await?;
    let stale =
        scene.append(vec![NewFile::of(["100"]), file(&["42"], "2027-01-17T00:40:00Z")]).await?;
    assert_eq!(Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?, 1);
    for now in [AFTER, "2027-01-17T02:00:00Z"] {
        assert_eq!(scene.sweep_at(now).await?.snapshots, []);
        assert!(scene.live().await?.contains(&stale[0]));
    }
    // It is withdrawn once for it, and not again by each pass.
    scene.sweep_at("2027-01-24T01:30:00Z").await?;
    assert_eq!(scene.marks().await?[1], r#"{"spec_id": 2, "mark_row_id": 300}"#);
    Ok(())
}
