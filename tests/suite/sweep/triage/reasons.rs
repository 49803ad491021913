//! Tests of each reason for work alone: the pass works on that table and no other, and the next
//! pass leaves the table out.

use anyhow::Result;
use tailrace_kit::lake::{Column, Field, NewFile};

use super::Scene;
use crate::support::program::{days_ago, settings};
use tailrace::sweep::Scope;

/// A row of the calendar of `raw`, that ended so long ago and whose pause ends so far from now.
fn calendar(ended: &str, next_look: &str) -> String {
    format!(
        "INSERT INTO tailrace.calendar (catalog_id, table_uuid, spec_id, is_day, value, range_end,
           last_end, span_seconds, next_look)
         SELECT catalog_id, table_uuid, 1, false, '18000', now() - interval '{ended}',
                now() - interval '{ended}', 86400, {next_look}
         FROM hog_table JOIN hog_table_version USING (catalog_id, table_id) WHERE name = 'raw'"
    )
}

/// A tuple of `raw` that waits by itself and is looked at again then.
fn waiting(next_look: &str) -> String {
    format!(
        "INSERT INTO tailrace.waiting (catalog_id, table_uuid, tuple_hash, spec_id, tuple, display,
           reason, since, attempts, last_look, next_look, files, range_end)
         SELECT catalog_id, table_uuid, 'hash', 1, '{{}}', 'day', 'busy', now(), 1, now(),
                {next_look}, 1, now() - interval '9 days'
         FROM hog_table JOIN hog_table_version USING (catalog_id, table_id) WHERE name = 'raw'"
    )
}

fn state(change: &str) -> String {
    format!(
        "UPDATE tailrace.table_state s SET {change} FROM hog_table_version v
         WHERE v.catalog_id = s.catalog_id AND v.table_id = s.table_id AND v.name = 'raw'"
    )
}

#[tokio::test]
async fn each_note_of_work_is_enough() -> Result<()> {
    let scene = Scene::settled().await?;
    for (what, change) in [
        ("due", calendar("8 days", "null")),
        ("due, its pause over", calendar("8 days", "now() - interval '1 minute'")),
        (
            "no memory",
            "DELETE FROM tailrace.table_state s USING hog_table_version v
           WHERE v.catalog_id = s.catalog_id AND v.table_id = s.table_id AND v.name = 'raw'"
                .into(),
        ),
        ("another UUID", state("table_uuid = gen_random_uuid()")),
        ("another column", state("source_field_id = 99")),
        ("another policy", state("policy_revision = -1")),
        ("other rules of the table", state("schema_version = -1, shape = 'other'")),
        ("other rules of the program", state("book = substr(book, 1, 64) || '\\x02'")),
        ("a program that noted none", state("book = substr(book, 1, 64)")),
        ("a full scan", state("reading = '{}'")),
        ("an owed full pass", state("owes_full_pass = true")),
        ("a full pass that is due", state("full_pass_at = now() - interval '30 days'")),
        ("not through", state("outcome = null")),
        ("failed", state("outcome = 'failed'")),
    ] {
        scene.database.sql(&change).await?;
        assert_eq!(scene.worked_on().await?, ["raw"], "{what}");
        scene
            .database
            .sql("DELETE FROM tailrace.waiting; DELETE FROM tailrace.table_state")
            .await?;
        scene.settle().await?;
        assert_eq!(scene.worked_on().await?, Vec::<String>::new(), "{what}");
    }
    for (what, change) in [
        ("not due", calendar("6 days", "null")),
        ("a pause", calendar("8 days", "now() + interval '1 hour'")),
        ("a tuple that waits", waiting("now() + interval '1 hour'")),
        // The calendar's rows tell when it is looked at.
        ("a tuple that waited", waiting("now() - interval '1 minute'")),
    ] {
        scene.database.sql(&change).await?;
        assert_eq!(scene.worked_on().await?, Vec::<String>::new(), "{what}");
        scene.database.sql("DELETE FROM tailrace.waiting; DELETE FROM tailrace.calendar").await?;
    }
    // Where no pause is heeded, it is none.
    scene.database.sql(&calendar("8 days", "now() + interval '1 hour'")).await?;
    let mut heedless = settings();
    heedless.heeds_pauses = false;
    assert_eq!(scene.pass(&heedless, &Scope::default()).await?.0, ["raw"]);
    Ok(())
}

#[tokio::test]
async fn files_that_came_since_are_work_and_those_of_others_are_not() -> Result<()> {
    let scene = Scene::settled().await?;
    scene.raw.append(vec![NewFile::of([days_ago(0)])]).await?;
    assert_eq!(scene.worked_on().await?, ["raw"]);
    scene.settle().await?;
    assert_eq!(scene.worked_on().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_table_defined_anew_is_work_and_its_neighbours_are_not() -> Result<()> {
    let scene = Scene::settled().await?;
    let versions = "SELECT string_agg(v.name || ' ' || (s.schema_version = c.schema_version), ','
                      ORDER BY v.name)
                    FROM tailrace.table_state s JOIN hog_catalog c USING (catalog_id)
                    JOIN hog_table_version v USING (catalog_id, table_id)
                    WHERE v.end_snapshot IS NULL";
    scene.raw.add_column(None, Column::new("kind", "string")).await?;
    assert_eq!(scene.worked_on().await?, ["raw"], "a column");
    // Of the other one it is noted that nothing changed.
    let noted = scene.database.text(versions).await?;
    assert!(noted.as_deref().is_some_and(|noted| noted.starts_with("other true")), "{noted:?}");
    scene.settle().await?;
    scene.raw.rename_column("kind", "sort").await?;
    assert_eq!(scene.worked_on().await?, ["raw"], "a column's name");
    scene.settle().await?;
    scene.raw.evolve_spec(&[Field::day("at"), Field::identity("sort")]).await?;
    assert_eq!(scene.worked_on().await?, ["raw"], "a spec");
    scene.settle().await?;
    scene.raw.rename("renamed").await?;
    assert_eq!(scene.worked_on().await?, ["renamed"], "a name");
    scene.settle().await?;
    scene.raw.drop_column("sort").await.ok();
    scene.settle().await?;
    assert_eq!(scene.worked_on().await?, Vec::<String>::new());
    Ok(())
}

/// Also where the server changes a property without another `schema_version`.
#[tokio::test]
async fn a_property_is_compared_in_each_pass() -> Result<()> {
    let scene = Scene::settled().await?;
    let set = |property: &str| {
        format!(
            "UPDATE hog_table_version SET properties = {property}
             WHERE table_id = {} AND end_snapshot IS NULL",
            scene.raw.table_id
        )
    };
    let text = |keep: &str| {
        format!(
            "jsonb_build_object('partition_retention', '{{\"field\": \"at\", \"keep\": \"{keep}\"}}')"
        )
    };
    for keep in ["9d", "8d"] {
        scene.database.sql(&set(&text(keep))).await?;
        assert_eq!(scene.worked_on().await?, ["raw"], "{keep}");
        scene.database.sql("UPDATE tailrace.table_state SET outcome = 'nothing_to_do'").await?;
        assert_eq!(scene.worked_on().await?, Vec::<String>::new(), "{keep}");
    }
    scene.database.sql(&set("'{}'")).await?;
    assert_eq!(scene.worked_on().await?, ["raw"], "gone");
    assert_eq!(scene.worked_on().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_changed_policy_is_work() -> Result<()> {
    let scene = Scene::settled().await?;
    scene.database.govern(&scene.raw, "at", "8d").await?;
    assert_eq!(scene.worked_on().await?, ["raw"]);
    // What came of it is noted, with the revision.
    assert_eq!(scene.worked_on().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_named_is_always_worked_on() -> Result<()> {
    let scene = Scene::settled().await?;
    let scope = Scope { catalog: None, table: Some(("events".to_owned(), "raw".to_owned())) };
    let (worked, report) = scene.pass(&settings(), &scope).await?;
    assert_eq!(worked, ["raw"]);
    assert_eq!(report.tables.len(), 1);
    assert_eq!(scene.other.table_id, scene.database.live(&scene.other).await?.identity.table_id);
    Ok(())
}
