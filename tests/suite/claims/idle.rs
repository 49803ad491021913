//! Tests of what a renewal reads, and what brings work to it.

use anyhow::Result;
use tailrace::catalog::connect::Database;
use tailrace::catalog::triage::catalogs::note_copied;
use tailrace::claims::{Settings, renew};
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use super::{append, rows_of, settings};
use crate::explicit::wire::Wire;
use crate::support::TestDatabase;
use tailrace::policy::grace::PolicyLimits;

use crate::support::program::days_ago;

/// Only where a table's own files are looked for.
const LOOKED_FOR: &str = "null::bigint as watched_from";

/// Only where a catalog's rules of the window are kept.
const KEPT: &str = "tailrace.keep_window_rules(";

/// Only where specs are copied.
const COPIED: &str = "insert into tailrace.spec_copy";

const PROPERTY: &str = "partition_retention";

/// A database, and what is asked of it.
struct Scene {
    database: TestDatabase,
    table: Table,
    /// A table of the same catalog without a policy.
    free: Table,
    wire: Wire,
    through: Database,
}

/// How often something was in what a renewal asked.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    looked_for: usize,
    kept: usize,
    copied: usize,
}

const NOTHING: Asked = Asked { looked_for: 0, kept: 0, copied: 0 };
const LOOKED: Asked = Asked { looked_for: 1, ..NOTHING };
const KEEPS: Asked = Asked { kept: 1, ..NOTHING };

impl Scene {
    /// The table `raw` keeps a week and has files of which none is in the window: so a pass found it, and a
    /// renewal has nothing to do.
    async fn quiet() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let free = database.table(&catalog, "free", &[Field::day("at")]).await?;
        append(&table, &[0, 5]).await?;
        database.govern(&table, "at", "7d").await?;
        database.sweep().await?;
        let (wire, through) = Wire::to(&database).await?;
        let scene = Scene { database, table, free, wire, through };
        scene.renew().await?;
        assert_eq!(scene.renew().await?, NOTHING);
        Ok(scene)
    }

    async fn renew(&self) -> Result<Asked> {
        self.renew_with(&settings()).await
    }

    /// Renews; what was asked for it. What is prepared is told twice.
    async fn renew_with(&self, settings: &Settings) -> Result<Asked> {
        self.wire.forget();
        assert_eq!(renew(&self.through, settings, None).await?.failed, []);
        let asked = self.wire.asked();
        let times = |text: &str| asked.iter().filter(|sql| sql.contains(text)).count().div_ceil(2);
        Ok(Asked { looked_for: times(LOOKED_FOR), kept: times(KEPT), copied: times(COPIED) })
    }

    async fn claimed(&self) -> Result<Vec<i64>> {
        let rows = rows_of(&self.database, &self.table).await?;
        Ok(rows.into_iter().flat_map(|(_, ids)| ids).collect())
    }

    async fn sql(&self, sql: &str) -> Result<()> {
        self.database.sql(sql).await
    }
}

/// How many requests a renewal sends, of so many catalogs with three tables each: with nothing to do, after
/// commits elsewhere in each catalog, and after a change of another table's definition.
async fn requests(catalogs: usize) -> Result<[usize; 3]> {
    let database = TestDatabase::new().await?;
    let mut others = Vec::new();
    for number in 0..catalogs {
        let catalog = database.catalog(&format!("lake{number}")).await?;
        for name in ["one", "two", "three"] {
            let table = database.table(&catalog, name, &[Field::day("at")]).await?;
            append(&table, &[0, 5]).await?;
            database.govern(&table, "at", "7d").await?;
        }
        others.push(database.table(&catalog, "free", &[Field::day("at")]).await?);
    }
    database.sweep().await?;
    let (wire, through) = Wire::to(&database).await?;
    let idle = async || -> Result<usize> {
        renew(&through, &settings(), None).await?;
        wire.forget();
        let renewed = renew(&through, &settings(), None).await?;
        assert_eq!((renewed.files, renewed.failed), (0, vec![]));
        Ok(wire.asked().len())
    };
    let at_rest = idle().await?;
    for other in &others {
        append(other, &[9]).await?;
    }
    let moved = idle().await?;
    for other in &others {
        other.rename_column("at", "then").await?;
    }
    Ok([at_rest, moved, idle().await?])
}

#[tokio::test]
async fn an_idle_renewal_asks_as_much_of_any_number_of_tables() -> Result<()> {
    assert_eq!(requests(2).await?, requests(20).await?);
    Ok(())
}

/// And writes nothing, nor does it lease anything.
#[tokio::test]
async fn an_idle_renewal_writes_nothing() -> Result<()> {
    let scene = Scene::quiet().await?;
    append(&scene.free, &[9]).await?;
    let ours =
        "SELECT string_agg(format('SELECT %L AS of, xmin::text AS written, to_jsonb(t) AS row
                                          FROM tailrace.%I t', relname, relname), ' UNION ALL ')
                FROM pg_class WHERE relnamespace = 'tailrace'::regnamespace AND relkind = 'r'";
    let ours = scene.database.text(ours).await?.unwrap_or_default();
    let before = scene.database.rows(&format!("{ours} ORDER BY 1, 3")).await?;
    assert!(!before.is_empty());
    assert_eq!(scene.renew().await?, NOTHING);
    assert_eq!(scene.database.rows(&format!("{ours} ORDER BY 1, 3")).await?, before);
    Ok(())
}

/// What the calendar has in the window is looked for, by the end with the keep and by the next look.
#[tokio::test]
async fn rows_of_the_calendar_within_compaction_lead_bring_work() -> Result<()> {
    let scene = Scene::quiet().await?;
    let row = "UPDATE tailrace.calendar
               SET last_end = date_trunc('second', now() - interval '6 days') ";
    for (change, expected) in [
        ("+ interval '1 minute'", NOTHING),
        ("- interval '1 minute'", LOOKED),
        ("- interval '1 day', next_look = now() + interval '25 hours'", NOTHING),
        ("- interval '1 day', next_look = now() + interval '23 hours'", LOOKED),
        ("+ interval '1 minute', next_look = now() - interval '1 hour'", NOTHING),
    ] {
        scene.sql(&format!("{row} {change} WHERE value = '{}'", days_ago(5))).await?;
        assert_eq!(scene.renew().await?, expected, "{change}");
    }
    // `compaction.lead` is the setting's.
    scene.sql("UPDATE tailrace.calendar SET next_look = null").await?;
    let settings = Settings { lead: std::time::Duration::from_secs(3 * 86_400), ..settings() };
    assert_eq!(scene.renew_with(&settings).await?, Asked { kept: 1, ..LOOKED });
    Ok(())
}

#[tokio::test]
async fn files_since_the_watermark_bring_work() -> Result<()> {
    let scene = Scene::quiet().await?;
    append(&scene.free, &[8]).await?;
    assert_eq!(scene.renew().await?, NOTHING);
    let ids = append(&scene.table, &[8]).await?;
    assert_eq!(scene.renew().await?, LOOKED);
    assert_eq!(scene.claimed().await?, ids);
    Ok(())
}

/// Where the calendar does not tell, or not by how the table is now. A file in the window of which there is no
/// row shows that it is not gone by.
#[tokio::test]
async fn what_the_calendar_does_not_tell_is_looked_for() -> Result<()> {
    for change in [
        "DELETE FROM tailrace.table_state",
        "UPDATE tailrace.table_state SET source_field_id = 99",
        "UPDATE tailrace.table_state SET owes_full_pass = true",
        "UPDATE tailrace.table_state SET full_pass_at = null",
        "UPDATE tailrace.table_state SET schema_version = null, shape = 'another', book = ''",
    ] {
        let scene = Scene::quiet().await?;
        let ids = append(&scene.table, &[8]).await?;
        scene
            .sql("UPDATE tailrace.table_state SET through_snapshot = last_snapshot_id FROM hog_catalog")
            .await?;
        assert_eq!(scene.renew().await?, NOTHING, "{change}");
        scene.sql(change).await?;
        assert_eq!(scene.renew().await?, LOOKED, "{change}");
        assert_eq!(scene.claimed().await?, ids, "{change}");
    }
    // Another version with the same shape is no other table; nor has a pass more to say that only it does.
    let scene = Scene::quiet().await?;
    for change in [
        "UPDATE tailrace.table_state SET schema_version = 0",
        "UPDATE tailrace.table_state SET outcome = null",
        "UPDATE tailrace.table_state SET full_pass_at = full_pass_at - interval '90 days'",
    ] {
        scene.sql(change).await?;
        assert_eq!(scene.renew().await?, NOTHING, "{change}");
    }
    // What paused under another policy is looked at by the next pass, and may be in the window.
    scene.sql("UPDATE tailrace.table_state SET policy_revision = null").await?;
    assert_eq!(scene.renew().await?, LOOKED);
    Ok(())
}

/// What is claimed is renewed or released, whatever the calendar says.
#[tokio::test]
async fn claims_of_ours_bring_work() -> Result<()> {
    let scene = Scene::quiet().await?;
    let ids = append(&scene.table, &[8]).await?;
    scene.renew().await?;
    scene
        .sql("UPDATE tailrace.table_state SET through_snapshot = last_snapshot_id FROM hog_catalog")
        .await?;
    scene.sql("UPDATE hog_compaction_claim SET expires_at = now()").await?;
    assert_eq!(scene.renew().await?, LOOKED);
    // By the calendar it is not in the window any more.
    assert_eq!(scene.claimed().await?, [] as [i64; 0]);
    assert_eq!(scene.renew().await?, NOTHING);
    // Those of somebody else bring none.
    scene
        .sql(&format!(
            "INSERT INTO hog_compaction_claim (catalog_id, table_id, group_key, input_file_ids,
                                               claimant, expires_at)
             VALUES ({}, {}, 'theirs', '{{{}}}', gen_random_uuid(), now())",
            scene.table.catalog.catalog_id, scene.table.table_id, ids[0]
        ))
        .await?;
    assert_eq!(scene.renew().await?, NOTHING);
    Ok(())
}

/// A table whose property is set, changed, refused by how it is defined now, or gone.
#[tokio::test]
async fn a_property_with_news_brings_work() -> Result<()> {
    let scene = Scene::quiet().await?;
    let table = &scene.free;
    let ids = append(table, &[8]).await?;
    let mirror = async || {
        let mirror = "SELECT keep || ' ' || (problem IS NOT NULL) FROM tailrace.policy
                      WHERE source = 'property'";
        scene.database.text(mirror).await
    };
    let claimed = async || rows_of(&scene.database, table).await;
    let week = r#"{"field": "at", "keep": "7d"}"#;
    table.set_property(PROPERTY, Some(week)).await?;
    // Before a pass nothing is known of it, so it is looked for each time.
    for kept in [1, 0] {
        assert_eq!((scene.renew().await?.looked_for, kept), (1, kept));
        assert_eq!(mirror().await?.as_deref(), Some("7d false"));
        assert_eq!(claimed().await?, [("tailrace/0".to_owned(), ids.clone())]);
    }
    scene.database.sweep().await?;
    scene.renew().await?;
    assert_eq!(scene.renew().await?, NOTHING);
    table.set_property(PROPERTY, Some(r#"{"field": "at", "keep": "8d"}"#)).await?;
    scene.renew().await?;
    assert_eq!(mirror().await?.as_deref(), Some("8d false"));
    scene.database.sweep().await?;
    assert_eq!(scene.renew().await?, NOTHING);

    // The text is as it was, and the column that it names is another one.
    table.rename_column("at", "then").await?;
    let fresh = scene.renew().await?;
    assert_eq!((fresh.copied, mirror().await?.as_deref()), (1, Some("8d false")));
    table.add_column(None, Column::new("at", "timestamptz")).await?;
    scene.renew().await?;
    assert_eq!(mirror().await?.as_deref(), Some("8d true"));

    table.set_property(PROPERTY, None).await?;
    scene.renew().await?;
    assert_eq!(mirror().await?, None);
    assert_eq!(scene.renew().await?, NOTHING);
    Ok(())
}

/// A property that is mirrored is refused when the shortest keep is raised.
#[tokio::test]
async fn a_property_that_keeps_too_short_by_now_is_refused() -> Result<()> {
    let scene = Scene::quiet().await?;
    scene.free.set_property(PROPERTY, Some(r#"{"field": "at", "keep": "7d"}"#)).await?;
    scene.database.sweep().await?;
    scene.renew().await?;
    assert_eq!(scene.renew().await?, NOTHING);
    let settings = settings();
    let min_keep = std::time::Duration::from_secs(8 * 86_400);
    let policy_limits = PolicyLimits { min_keep, ..settings.policy_limits };
    let settings = Settings { policy_limits, ..settings };
    scene.renew_with(&settings).await?;
    let refused = "SELECT count(*) FROM tailrace.policy WHERE problem IS NOT NULL";
    assert_eq!(scene.database.text(refused).await?.as_deref(), Some("1"));
    Ok(())
}

/// Specs are copied when the catalog's definitions moved, once.
#[tokio::test]
async fn specs_are_copied_where_they_moved() -> Result<()> {
    let scene = Scene::quiet().await?;
    scene.free.evolve_spec(&[Field::month("at")]).await?;
    let copied = Asked { looked_for: 0, kept: 1, copied: 1 };
    assert_eq!(scene.renew().await?, copied);
    let copies = "SELECT count(*) FROM tailrace.spec_copy WHERE copied_at IS NULL";
    assert_eq!(scene.database.text(copies).await?.as_deref(), Some("1"));
    assert_eq!(scene.renew().await?, NOTHING);
    // The head is noted before, for a restore to be told by it.
    let noted = "SELECT count(*) FROM tailrace.noted_head n JOIN hog_catalog c USING (catalog_id)
                 WHERE n.snapshot_id = c.last_snapshot_id";
    assert_eq!(scene.database.text(noted).await?.as_deref(), Some("1"));
    // The next pass dates the copy all the same.
    scene.database.sweep().await?;
    assert_eq!(scene.database.text(copies).await?.as_deref(), Some("0"));
    Ok(())
}

/// That specs were copied is noted of the definitions that were read: not where the catalog has others by now, as
/// after a restore.
#[tokio::test]
async fn specs_of_other_definitions_are_not_noted_as_copied() -> Result<()> {
    let scene = Scene::quiet().await?;
    let noted = "SELECT specs_copied_at_version - schema_version
                 FROM tailrace.catalog_state JOIN hog_catalog USING (catalog_id)";
    assert_eq!(scene.database.text(noted).await?.as_deref(), Some("0"));
    scene.sql("UPDATE hog_catalog SET schema_version = schema_version + 1").await?;
    let version = "SELECT schema_version FROM hog_catalog";
    let version: i64 = scene.database.text(version).await?.unwrap_or_default().parse()?;
    let mut session = scene.database.plain_session().await?;
    for (looked_at, off_by) in [(version + 1, "-1"), (version - 1, "-1"), (version, "0")] {
        note_copied(&mut session, scene.table.catalog.catalog_id, looked_at).await?;
        assert_eq!(scene.database.text(noted).await?.as_deref(), Some(off_by), "{looked_at}");
    }
    Ok(())
}

/// Whatever makes the kept rules old has them kept, and then they are those that the function keeps.
#[tokio::test]
async fn rules_of_the_window_are_kept_where_they_are_old() -> Result<()> {
    let copying = Asked { copied: 1, ..KEEPS };
    for (change, expected) in [
        ("DELETE FROM tailrace.window_rule", KEEPS),
        ("UPDATE tailrace.window_rule SET schema_version = 0", KEEPS),
        ("UPDATE tailrace.window_rule SET table_uuid = gen_random_uuid()", KEEPS),
        ("UPDATE tailrace.window_rule SET source_field_id = 99", KEEPS),
        ("UPDATE tailrace.window_rule SET lead_ms = 1", KEEPS),
        ("UPDATE tailrace.window_rule SET min_keep_seconds = 1", KEEPS),
        ("UPDATE tailrace.window_rule SET table_id = 99", KEEPS),
        (
            "UPDATE tailrace.spec_copy SET trusted_at = now(), trusted_by = 'me', trust_reason = 'so'",
            KEEPS,
        ),
        ("UPDATE tailrace.policy SET mode = 'paused'", KEEPS),
        // A copy is told its beginning, without DDL.
        (
            "UPDATE tailrace.spec_copy SET begin_snapshot = null;
             UPDATE tailrace.catalog_state SET specs_copied_at_version = null",
            copying,
        ),
    ] {
        let scene = Scene::quiet().await?;
        scene.sql(change).await?;
        assert_eq!(scene.renew().await?, expected, "{change}");
        assert_eq!(scene.renew().await?, NOTHING, "{change}");
        let rules = "SELECT * FROM tailrace.window_rule ORDER BY table_id, spec_id";
        let kept = scene.database.rows(rules).await?;
        scene.sql("DELETE FROM tailrace.window_rule").await?;
        scene.sql("SELECT tailrace.keep_window_rules(catalog_id) FROM hog_catalog").await?;
        assert_eq!(scene.database.rows(rules).await?, kept, "{change}");
    }
    Ok(())
}

/// Files of the window that a pass was to drop are claimed from the calendar alone, and no row of it changes.
#[tokio::test]
async fn the_calendar_is_read_and_not_written() -> Result<()> {
    let scene = Scene::quiet().await?;
    let ids = scene.table.append(vec![NewFile::of([days_ago(7)])]).await?.file_ids;
    scene.database.sweep().await?;
    let rows = "SELECT xmin::text AS written, t.* FROM tailrace.calendar t ORDER BY value";
    let before = scene.database.rows(rows).await?;
    assert_eq!(scene.renew().await?, LOOKED);
    assert_eq!(scene.claimed().await?, ids);
    assert_eq!(scene.database.rows(rows).await?, before);
    Ok(())
}
