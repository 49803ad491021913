//! Tests of what makes tuples due that wait for evidence, and of what is purged.

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::catalog::clock_memory::accept;
use tailrace::catalog::connect::close;
use tailrace::catalog::gone_tables::purge_waiting;
use tailrace::catalog::marks::note_marks;
use tailrace::catalog::session::Session;
use tailrace::catalog::tables::TableIdentity;
use tailrace::catalog::trust::record_trust;
use tailrace::rules::expiry::{KeptReason, StoredTuple};
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::waiting::{Remembered, WaitReason, Waiting, store};

use super::{NOW, Scene};

/// A table with one tuple for each of four reasons, and two rows of the calendar, and the same of another
/// table of its catalog and of one of another catalog; all pause.
async fn scene() -> Result<(Scene, TableIdentity, Session)> {
    let scene = Scene::days(1).await?;
    scene.sweep_at(NOW).await?;
    let other = uuid::Uuid::from_u128(7);
    let next = "2026-11-30T18:00:00Z";
    for (catalog, uuid) in [
        (scene.catalog.catalog_id, scene.table.table_uuid),
        (scene.catalog.catalog_id, other),
        (scene.catalog.catalog_id + 1, other),
    ] {
        let rows = format!(
            "insert into tailrace.waiting (catalog_id, table_uuid, tuple_hash, spec_id, tuple, display,
               reason, since, attempts, last_look, next_look, files, range_end)
             select {catalog}, '{uuid}', reason::bytea, 1, '{{\"keys\": [0], \"values\": [\"1\"]}}',
                    'day', reason, '{NOW}', 1, '{NOW}', '{next}', 1, '{NOW}'
             from unnest(array['ambiguous_spec', 'busy', 'newer_rows_than_partition', 'poisoned'])
               as reason;
             insert into tailrace.calendar (catalog_id, table_uuid, spec_id, is_day, value, range_end,
               last_end, span_seconds, next_look)
             select {catalog}, '{uuid}', 1, false, n::text, '{NOW}', '{NOW}', 86400, '{next}'
             from generate_series(1, 2) as n"
        );
        scene.database.sql(&rows).await?;
    }
    let identity = TableIdentity {
        catalog_id: scene.catalog.catalog_id,
        catalog: "lake".to_owned(),
        table_id: scene.table.table_id,
        table_uuid: scene.table.table_uuid,
        namespace: "events".to_owned(),
        table: "raw".to_owned(),
    };
    let session = scene.database.tailrace().session().await?;
    Ok((scene, identity, session))
}

/// What is due: of the table, of another one of its catalog, and of another catalog.
async fn due(scene: &Scene) -> Result<[String; 3]> {
    let (catalog, other) = (scene.catalog.catalog_id, scene.catalog.catalog_id + 1);
    let of = async |condition: String| -> Result<String> {
        let query = format!(
            "select coalesce(string_agg(name, ' ' order by name), '') from (
               select reason as name from tailrace.waiting where next_look is null and {condition}
               union all
               select value from tailrace.calendar where next_look is null and {condition}) as due"
        );
        scene.database.text(&query).await?.context("a text")
    };
    let uuid = scene.table.table_uuid;
    Ok([
        of(format!("table_uuid = '{uuid}'")).await?,
        of(format!("catalog_id = {catalog} and table_uuid <> '{uuid}'")).await?,
        of(format!("catalog_id = {other}")).await?,
    ])
}

const EVIDENCE: &str = "1 2 ambiguous_spec newer_rows_than_partition";

#[tokio::test]
async fn who_vouches_for_a_spec_has_its_table_looked_at() -> Result<()> {
    let (scene, table, mut session) = scene().await?;
    assert_eq!(due(&scene).await?, ["", "", ""]);
    assert!(!record_trust(&mut session, &table, 9, "me", "no such spec").await?);
    assert_eq!(due(&scene).await?, ["", "", ""]);
    assert!(record_trust(&mut session, &table, 1, "me", "I know").await?);
    assert_eq!(due(&scene).await?, [EVIDENCE, "", ""]);

    // A pass that had checked its tuple before does not have it pause again.
    let tuple = StoredTuple { keys: vec![0], values: vec![Some("2".to_owned())] };
    let entry = |reason, seen_at| Waiting {
        spec_id: 1,
        tuple: tuple.clone(),
        display: "day 2".to_owned(),
        reason: WaitReason::Evidence(reason),
        since: seen_at,
        seen_at,
        next_look: Some(seen_at.plus(Duration::from_secs(3_600))),
        tries: 3,
        said: None,
        error: None,
        files: 1,
        range_end: seen_at,
    };
    let now = UtcInstant::from(chrono::Utc::now());
    let (earlier, later) =
        (now.minus(Duration::from_secs(600)), now.plus(Duration::from_secs(600)));
    for (reason, seen_at, pauses) in [
        (KeptReason::AmbiguousSpec, earlier, false),
        (KeptReason::NewerRowsThanPartition, earlier, true),
        (KeptReason::AmbiguousSpec, later, true),
    ] {
        let after = Remembered { tuples: vec![entry(reason, seen_at)], ..Remembered::default() };
        store::save(&mut session, &table, &Remembered::default(), &after).await?;
        let loaded = store::load(&mut session, &table).await?.tuples;
        let of = loaded.iter().find(|one| one.tuple == tuple).context("it is there")?;
        assert_eq!(of.next_look.is_some(), pauses, "{reason}");
    }
    close(session).await;
    Ok(())
}

#[tokio::test]
async fn who_accepts_a_clock_has_its_catalog_looked_at() -> Result<()> {
    let (scene, table, mut session) = scene().await?;
    assert_eq!(accept(&mut session, 99, "me", "no such catalog").await?, None);
    assert_eq!(due(&scene).await?, ["", "", ""]);
    let head = accept(&mut session, table.catalog_id, "me", "I know").await?;
    assert_eq!(head, Some(scene.catalog.head().await?));
    assert_eq!(due(&scene).await?, [EVIDENCE, EVIDENCE, ""]);
    close(session).await;
    Ok(())
}

#[tokio::test]
async fn a_mark_that_is_noted_has_its_table_looked_at() -> Result<()> {
    let (scene, table, mut session) = scene().await?;
    let week = Duration::from_secs(7 * 86_400);
    // The spec was first seen at one or the other of these times.
    let times = [NOW.parse::<UtcInstant>()?, UtcInstant::from(chrono::Utc::now())];
    for (now, seen) in [(times[0], ""), (times[0].max(times[1]).plus(2 * week), EVIDENCE)] {
        note_marks(&mut session, table.catalog_id, now, week).await?;
        assert_eq!(due(&scene).await?, [seen, "", ""], "{now}");
    }
    close(session).await;
    Ok(())
}

/// In pieces of a thousand rows, after a while, and of no catalog that is left alone.
#[tokio::test]
async fn what_waited_in_a_table_that_is_gone_is_purged() -> Result<()> {
    let (scene, table, mut session) = scene().await?;
    let gone = format!(
        "insert into tailrace.waiting (catalog_id, table_uuid, tuple_hash, spec_id, tuple, display,
           reason, since, attempts, last_look, files, range_end)
         select {}, '{}', sha256(n::text::bytea), 1, '{{}}', 'day', 'busy', '{NOW}', 1, '{NOW}', 1, '{NOW}'
         from generate_series(1, 2100) as n",
        table.catalog_id,
        uuid::Uuid::from_u128(8)
    );
    scene.database.sql(&gone).await?;
    let day = Duration::from_secs(86_400);
    let noon: UtcInstant = NOW.parse()?;
    let second = Duration::from_secs(1);
    let left = "select count(*)::text from tailrace.waiting";
    let other = table.catalog_id + 1;
    for (now, but, rows) in [
        (noon.plus(day), vec![], "2112"),
        (noon.plus(day + second), vec![table.catalog_id, other], "2112"),
        (noon.plus(day + second), vec![other], "8"),
        (noon.plus(day + second), vec![], "4"),
    ] {
        purge_waiting(&mut session, now, day, &but).await?;
        assert_eq!(scene.database.text(left).await?.as_deref(), Some(rows), "{now} {but:?}");
    }
    close(session).await;
    Ok(())
}
