//! Tests that a refused pass writes nothing but the refusal.

use anyhow::{Context, Result};
use serde_json::json;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, NewFile, differences};
use tailrace_kit::simulated_loops::{Cleanup, Expiry};

use super::{DAY, HOUR, Scene, THIS, YEAR};
use crate::support::governed::outcomes;

/// A lake in which a pass has everything to do that it can: files to end, specs to copy, a property to
/// mirror, rows of a table that is gone, receipts and history to purge, drops to trace.
async fn busy() -> Result<Scene> {
    let scene = Scene::new().await?;
    let (database, spec) = (&scene.database, [Field::day("at")]);
    for day in ["17998", "17999"] {
        scene.table.append(vec![NewFile::of([day])]).await?;
        assert_eq!(scene.outcome(scene.agreed(0)).await?, Outcome::Dropped);
    }
    let own = database.table(&scene.catalog, "own", &spec).await?;
    own.set_property("partition_retention", Some(r#"{"field":"at","keep":"7d"}"#)).await?;
    let gone = database.table(&scene.catalog, "gone", &spec).await?;
    database.govern(&gone, "at", "7d").await?;
    gone.drop_table().await?;
    scene.delete_objects().await?;
    database
        .sql(
            "UPDATE tailrace.drop_history SET purged_seen_at = '2020-01-01', last_removal_id = 0,
                    gone_seen_at = '2020-01-01'
              WHERE snapshot_id = (SELECT min(snapshot_id) FROM tailrace.drop_history);
             INSERT INTO tailrace.drop_receipt (catalog_id, idempotency_key, fingerprint,
                    snapshot_id, schema_version, committed, files_ended, delete_files_ended,
                    records, bytes, ended, created_at)
             SELECT catalog_id, gen_random_uuid(), '', 1, 1, false, 0, 0, 0, 0, '[]', '2020-01-01'
               FROM hog_catalog",
        )
        .await?;
    scene.table.evolve_spec(&[Field::day("at"), Field::identity("kind")]).await?;
    scene.table.append(vec![NewFile::of(["18000", "a"])]).await?;
    Ok(scene)
}

impl Scene {
    /// As the server's expiry and cleanup do with what has ended by now.
    async fn delete_objects(&self) -> Result<()> {
        self.database.sql("UPDATE hog_catalog SET snapshot_retention_seconds = 60").await?;
        let expiry = Expiry::new(&self.catalog);
        expiry.advance_floor(Some(chrono::Utc::now() + chrono::TimeDelta::days(1))).await?;
        expiry.purge().await?;
        Cleanup::new(&self.catalog).run(10).await?;
        Ok(())
    }
}

/// What an accepted pass writes there, so that nothing is left out of what follows.
#[tokio::test]
async fn an_accepted_pass_has_all_of_that_to_do() -> Result<()> {
    let scene = busy().await?;
    let before = scene.everything().await?;
    let report = scene.pass(scene.agreed(HOUR)).await?;
    assert_eq!(outcomes(&report), [("own", Outcome::NothingToDo), ("raw", Outcome::Dropped)]);
    let differences = differences(&before, &scene.everything().await?);
    let changed: Vec<_> = differences.keys().map(String::as_str).collect();
    assert_eq!(
        changed,
        [
            "hog_catalog",
            "hog_data_file",
            "hog_snapshot",
            "hog_snapshot_change",
            "tailrace.catalog_state",
            "tailrace.clock_memory",
            "tailrace.drop_history",
            "tailrace.drop_receipt",
            "tailrace.noted_head",
            "tailrace.policy",
            "tailrace.policy_change",
            "tailrace.source_column_type",
            "tailrace.spec_copy",
            "tailrace.table_state",
        ]
    );
    // The old drop is forgotten, the other one is gone, and there is a new one.
    let history = &differences["tailrace.drop_history"];
    assert_eq!((history.gone.len(), history.new.len()), (2, 2), "{history:?}");
    Ok(())
}

#[tokio::test]
async fn a_refused_pass_writes_that_it_was_refused_and_nothing_else() -> Result<()> {
    let scene = busy().await?;
    let before = scene.everything().await?;
    let was = scene.remembered().await?;
    let mut refusals = Vec::new();
    for clock in [
        scene.clock(YEAR, YEAR, Some((HOUR, THIS))),
        scene.clock(YEAR + 60, HOUR, Some((HOUR, THIS))),
        scene.clock(-DAY, 0, Some((HOUR, THIS))),
    ] {
        let report = scene.pass(clock).await?;
        assert_eq!(outcomes(&report), [("own", Outcome::ClockSkew), ("raw", Outcome::ClockSkew)]);
        let mut differences = differences(&before, &scene.everything().await?);
        differences.remove("tailrace.clock_memory").context("it was noted")?;
        assert_eq!(differences, Default::default(), "{clock:?}");
        let is = scene.remembered().await?;
        let mut expected = was.clone();
        expected["refused_at"] = is["refused_at"].clone();
        expected["refusal"] = is["refusal"].clone();
        expected["refused_by_boot"] = json!(true);
        assert_eq!(is, expected);
        refusals.push((is["refused_at"].clone(), is["refusal"].clone()));
    }
    // The time is that of the first that boot time was the reason for, why of the last one.
    assert!(refusals.iter().all(|(at, _)| *at == refusals[0].0 && at.is_string()), "{refusals:?}");
    assert!(refusals[1].1 != refusals[0].1 && refusals[2].1 != refusals[1].1, "{refusals:?}");
    // When the clocks agree again, all of it is done; what is kept by age from then on, and traced by
    // the pass after that.
    let report = scene.pass(scene.agreed(HOUR)).await?;
    assert_eq!(outcomes(&report), [("own", Outcome::NothingToDo), ("raw", Outcome::Dropped)]);
    assert_eq!(scene.epoch().await?, (1, Some(HOUR)));
    let is = scene.remembered().await?;
    let refused = [&is["refused_at"], &is["refusal"], &is["refused_by_boot"]];
    assert_eq!(refused, [&json!(null), &json!(null), &json!(false)]);
    Ok(())
}

/// Nor does a pass over a catalog in good order purge or trace in one whose clock is refused.
#[tokio::test]
async fn nothing_is_purged_or_traced_from_another_catalog() -> Result<()> {
    let scene = busy().await?;
    let pond = scene.database.catalog("pond").await?;
    let table = scene.database.table(&pond, "other", &[Field::day("at")]).await?;
    scene.database.govern(&table, "at", "7d").await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    let before = scene.everything().await?;
    let scope = tailrace::sweep::Scope { catalog: Some("pond".to_owned()), table: None };
    let settings = super::by(scene.clock(YEAR, YEAR, Some((HOUR, THIS))));
    let (database, stop) = (scene.database.tailrace(), Default::default());
    let report = tailrace::sweep::run_pass(&database, &settings, &scope, &stop, &|_| {}).await?;
    assert_eq!(outcomes(&report), [("other", Outcome::Dropped)]);
    let differences = differences(&before, &scene.everything().await?);
    assert!(!differences.contains_key("tailrace.drop_receipt"), "{differences:?}");
    assert!(!differences.contains_key("tailrace.policy"), "{differences:?}");
    let history = &differences["tailrace.drop_history"];
    assert_eq!((history.gone.len(), history.new.len()), (0, 1), "{history:?}");
    Ok(())
}

/// A clock that is behind the catalog's own snapshots dates nothing either, once that is known.
#[tokio::test]
async fn nothing_is_traced_by_a_clock_that_is_behind() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    assert_eq!(scene.outcome(scene.agreed(0)).await?, Outcome::Dropped);
    let (head, now) = (scene.catalog.head().await?, chrono::Utc::now());
    let ahead = now + chrono::TimeDelta::hours(1);
    scene.catalog.backdate_snapshot(head, ahead).await?;
    assert_eq!(scene.outcome(scene.agreed(HOUR)).await?, Outcome::ClockBehind);
    scene.delete_objects().await?;
    // The first pass that is accepted again begins an epoch, and the next one traces.
    for (time, expected) in [(ahead, "0"), (now, "0"), (now, "1")] {
        scene.catalog.backdate_snapshot(head, time).await?;
        scene.pass(scene.agreed(HOUR)).await?;
        let gone = scene.database.text("SELECT count(gone_seen_at) FROM tailrace.drop_history");
        assert_eq!(gone.await?.as_deref(), Some(expected));
    }
    Ok(())
}
