//! Tests of `tailrace spec list` and `tailrace spec trust`.

use anyhow::Result;
use chrono::Datelike;
use serde_json::{Value, json};
use tailrace::policy::Mode;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{live_values, values};
use crate::support::program::settings;

const TRUST: [&str; 6] = ["spec", "trust", "lake", "events.raw", "2", "--reason"];

fn trust<'a>(reason: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&TRUST[..], &[reason], more].concat()
}

/// A table that went from `identity(tenant)` to `day(at)`, with a file of day 42, or of tenant 42 by
/// a writer that knew only the first spec.
async fn of_tenants(database: &TestDatabase) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("tenant", "long"), Column::new("at", "timestamptz")];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::identity("tenant")]).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["42"]).records(10).bytes(100)]).await?;
    Ok(table)
}

/// What our copy of spec 2 says of trust.
async fn record(database: &TestDatabase) -> Result<Vec<Value>> {
    let query = "select trusted_by, trust_reason,
                        trusted_at between clock_timestamp() - interval '1 minute'
                                       and clock_timestamp() as is_of_now
                 from tailrace.spec_copy where spec_id = 2";
    let rows = database.rows(query).await?;
    Ok(rows.iter().map(|row| serde_json::from_str(row)).collect::<Result<_, _>>()?)
}

fn untrusted() -> [Value; 1] {
    [json!({"trusted_by": null, "trust_reason": null, "is_of_now": null})]
}

async fn list(database: &TestDatabase) -> Result<Vec<Value>> {
    let report = database.done(&["spec", "list", "lake", "events.raw", "--output", "json"]).await?;
    Ok(report["specs"].as_array().cloned().unwrap_or_default())
}

#[tokio::test]
async fn ambiguous_files_are_dropped_once_their_spec_is_trusted() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = of_tenants(&database).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    let plan = database.done(&["plan", "--output", "json"]).await?;
    assert_eq!(plan["tables"][0]["kept"], json!({"ambiguous_spec": 1}));
    assert_eq!(database.sweep_one().await?.outcome, Outcome::NothingToDo);

    // Nobody to ask, and nobody said yes: it shows what would be dropped, and does nothing.
    let ran = database.ran(&trust("backfilled by hand", &[])).await?;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""));
    assert!(ran.err.contains("there is no terminal to ask on: say --yes"), "{}", ran.err);
    let shown = "Under the policy day(at) keep 7d, enforce: kept now, and dropped by the next pass:\n\
                 \x20 expired      1 partition: 1 file, 0 vectors, 10 records, 100 B\n\
                 \x20   1970-02-12  ended 1970-02-13T00:00:00Z  1 file  100 B\n\
                 \x20 may also be  a value of identity(tenant)\n";
    assert!(ran.err.contains(shown), "{}", ran.err);
    assert_eq!(record(&database).await?, untrusted());

    let ran = database.ran(&trust("backfilled by hand", &["--yes"])).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.starts_with("lake events.raw: spec 2 is day(at)\nTo trust it is to vouch"));
    assert!(ran.out.contains(shown), "{}", ran.out);
    let last = ran.out.lines().last().unwrap_or_default();
    assert!(last.starts_with("lake events.raw: spec 2 is trusted since 2"), "{last}");
    let told = ran.events("spec_trusted");
    let told: Vec<_> = told
        .iter()
        .map(|event| {
            ["catalog", "namespace", "table", "spec_id", "by", "reason"].map(|key| &event[key])
        })
        .collect();
    let fields = json!(["lake", "events", "raw", 2, "tester", "backfilled by hand"]);
    assert_eq!(json!(told), json!([fields]));
    let first = json!({
        "trusted_by": "tester", "trust_reason": "backfilled by hand", "is_of_now": true,
    });
    assert_eq!(record(&database).await?, std::slice::from_ref(&first));

    // Once more is harmless, and changes nothing.
    let ran = database.ran(&trust("another reason", &["--by", "somebody else"])).await?;
    assert_eq!((ran.code, ran.events("spec_trusted").len()), (0, 0), "{ran:?}");
    assert!(ran.out.contains("is trusted already, and that record stays: 2"), "{}", ran.out);
    assert!(ran.out.ends_with(" by tester: backfilled by hand\n"), "{}", ran.out);
    assert_eq!(record(&database).await?, [first]);

    let report = database.sweep_one().await?;
    assert_eq!((report.outcome, report.counts().files), (Outcome::Dropped, 1));
    assert!(table.live_files().await?.is_empty());
    Ok(())
}

#[tokio::test]
async fn trust_says_what_it_means_where_nothing_goes_for_it() -> Result<()> {
    for (mode, words) in [
        (None, "No policy is in force for the table: nothing would be dropped now.\n"),
        (Some(Mode::Observe), "observe: expired then, but not dropped in this mode:\n"),
    ] {
        let database = TestDatabase::new().await?;
        let table = of_tenants(&database).await?;
        if let Some(mode) = mode {
            database.govern_as(&table, "at", "7d", mode).await?;
        }
        // Nothing was copied so far; it is now.
        assert_eq!(
            database.text("select count(*) from tailrace.spec_copy").await?.as_deref(),
            Some("0")
        );
        let ran = database.ran(&trust("checked", &["--yes", "--by", "ops"])).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(ran.out.contains(words), "{}", ran.out);
        let expected = json!({"trusted_by": "ops", "trust_reason": "checked", "is_of_now": true});
        assert_eq!(record(&database).await?, [expected]);
        database.sweep().await?;
        assert_eq!(live_values(&table).await?, [values(["42"])]);
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_trusted_is_refused_and_nothing_is_recorded() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = of_tenants(&database).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    for (args, code, words) in [
        (
            vec!["lake", "events.raw", "3", "--reason", "x", "--yes"],
            1,
            "has no partition spec 3; it has: 1 (identity(tenant)), 2 (day(at))",
        ),
        (
            vec!["lake", "events.none", "2", "--reason", "x", "--yes"],
            1,
            "there is no table events.none in catalog \"lake\"",
        ),
        (
            vec!["sea", "events.raw", "2", "--reason", "x", "--yes"],
            1,
            "there is no catalog \"sea\"",
        ),
        (
            vec!["lake", "events.raw", "2", "--reason", " ", "--yes"],
            2,
            "say why the values are right",
        ),
        (vec!["lake", "events.raw", "2", "--yes"], 2, "--reason"),
        (vec!["lake", "events.raw", "day", "--reason", "x", "--yes"], 2, "invalid value 'day'"),
    ] {
        let ran = database.ran(&[&["spec", "trust"][..], &args].concat()).await?;
        assert_eq!((ran.code, ran.out.as_str()), (code, ""), "{args:?}: {ran:?}");
        assert!(ran.err.contains(words), "{args:?}: {ran:?}");
    }
    // The server numbers its specs anew, and 2 comes again with another meaning.
    table.drop_spec().await?;
    database.sql("delete from hog_partition_spec where spec_id = 2").await?;
    table.evolve_spec_as(2, &[Field::month("at")]).await?;
    let ran = database.ran(&trust("checked", &["--yes"])).await?;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{ran:?}");
    let words = "spec 2 of table events.raw cannot be trusted: it was seen with several definitions \
                 (day(at); month(at))";
    assert!(ran.err.contains(words), "{}", ran.err);
    assert_eq!(record(&database).await?, untrusted());
    let found = database.ran(&["spec", "list", "lake", "events.raw"]).await?;
    let words = "spec 2 was seen with several definitions: its files are kept as unknown_spec\n";
    assert!(found.out.ends_with(words), "{}", found.out);
    let disputed: Vec<_> =
        list(&database).await?.iter().map(|spec| spec["disputed"].clone()).collect();
    assert_eq!(json!(disputed), json!([false, true, true]));
    Ok(())
}

#[tokio::test]
async fn of_several_at_once_one_is_recorded() -> Result<()> {
    let database = TestDatabase::new().await?;
    of_tenants(&database).await?;
    let (one, two) = (trust("one", &["--yes"]), trust("two", &["--yes"]));
    let (one, two) = tokio::try_join!(database.ran(&one), database.ran(&two))?;
    assert_eq!((one.code, two.code), (0, 0), "{one:?} {two:?}");
    assert_eq!(one.events("spec_trusted").len() + two.events("spec_trusted").len(), 1);
    let reason = if one.events("spec_trusted").is_empty() { "two" } else { "one" };
    let expected = json!({"trusted_by": "tester", "trust_reason": reason, "is_of_now": true});
    assert_eq!(record(&database).await?, [expected]);
    Ok(())
}

/// What a value of the same column may mean otherwise, and what statistics say, is not a matter of
/// trust.
#[tokio::test]
async fn other_readings_of_the_column_and_newer_rows_still_keep() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = of_tenants(&database).await?;
    let month = table.evolve_spec(&[Field::month("at")]).await?;
    let day = table.evolve_spec(&[Field::day("at")]).await?;
    let now = chrono::Utc::now();
    let this_month = ((now.year() - 1970) * 12 + now.month0() as i32).to_string();
    let newer = table.append(vec![NewFile::of([this_month.clone()]), NewFile::of(["43"])]).await?;
    let bound = now.timestamp_micros().to_le_bytes().map(|byte| format!("{byte:02x}")).concat();
    database
        .sql(&format!(
            "insert into hog_file_column_stats (catalog_id, data_file_id, field_id, value_count,
                                                null_count, upper_bound)
             select {}, {}, field_id, 100, 0, '\\x{bound}' from hog_column
             where catalog_id = {0} and table_id = {} and name = 'at'",
            table.catalog.catalog_id, newer.file_ids[1], table.table_id
        ))
        .await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    assert_eq!((month, day), (3, 4));
    let ran = database
        .ran(&["spec", "trust", "lake", "events.raw", "4", "--reason", "checked", "--yes"])
        .await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("nothing that is kept now would be dropped\n"), "{}", ran.out);
    assert_eq!(database.sweep_one().await?.outcome, Outcome::NothingToDo);
    let plan = database.done(&["plan", "--output", "json"]).await?;
    // The file of spec 2 is as ambiguous as before; the two of spec 4 are not, and stay.
    let expected = json!({"ambiguous_spec": 2, "newer_rows_than_partition": 1});
    assert_eq!(plan["tables"][0]["kept"], expected);
    let expected = [values(["42"]), values([this_month.as_str()]), values(["43"])];
    assert_eq!(live_values(&table).await?, expected);
    Ok(())
}

#[tokio::test]
async fn every_known_spec_is_listed() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = of_tenants(&database).await?;
    // Without a policy, and before anything was copied.
    let spec = |id: i64, field: &str, state: &str, began: bool| {
        json!({
            "spec_id": id, "fields": [field], "state": state, "disputed": false, "seen_at": null,
            "began_with_table": began, "mark": null, "mark_due_at": null, "trusted": null,
        })
    };
    let (first, second) =
        (spec(1, "identity(tenant)", "ended", true), spec(2, "day(at)", "live", false));
    assert_eq!(list(&database).await?, [first, second]);
    let text = database.ran(&["spec", "list", "lake", "events.raw"]).await?;
    assert_eq!(
        (text.code, text.out.as_str()),
        (
            0,
            "lake events.raw\n\
             \x20 spec 1: identity(tenant): ended, began with its table\n\
             \x20   seen     not yet\n\
             \x20   mark     none\n\
             \x20   trusted  no\n\
             \x20 spec 2: day(at): live, began later than its table\n\
             \x20   seen     not yet\n\
             \x20   mark     none\n\
             \x20   trusted  no\n"
        )
    );

    // Copied, and trusted; then the server forgets the first one.
    assert_eq!(database.ran(&trust("two\nlines", &["--yes"])).await?.code, 0);
    assert_eq!(table.delete_vanished_specs().await?.0, 1);
    let copied = "2026-09-17T05:00:00Z";
    database
        .sql(&format!(
            "update tailrace.spec_copy set copied_at = '{copied}',
                       trusted_at = case when spec_id = 2 then timestamptz '{copied}' end"
        ))
        .await?;
    let due = "2026-09-24T05:00:00Z";
    let mut listed = list(&database).await?;
    let trusted = json!({"at": copied, "by": "tester", "reason": "two\nlines"});
    assert_eq!(listed[1]["trusted"].take(), trusted);
    for (at, state) in ["copy_only", "live"].into_iter().enumerate() {
        let of = |key: &str| listed[at][key].as_str();
        let expected = (Some(state), Some(copied), Some(due));
        assert_eq!((of("state"), of("seen_at"), of("mark_due_at")), expected);
    }
    // Marks are noted a window after that: by then 10 rows were appended.
    let as_of: UtcInstant = due.parse()?;
    database.sweep_with(&Settings { as_of: Some(as_of), ..settings() }).await?;
    let marks: Vec<_> = list(&database)
        .await?
        .into_iter()
        .map(|mut spec| (spec["mark"].take(), spec["mark_due_at"].take()))
        .collect();
    assert_eq!(marks, vec![(json!({"row_id": 10, "noted_at": due}), Value::Null); 2]);
    let text = database.ran(&["spec", "list", "lake", "events.raw"]).await?;
    let line = format!(
        "  spec 2: day(at): live, began later than its table\n    seen     {copied}\n    mark     row 10, \
         noted {due}\n    trusted  {copied} by tester: two\\nlines\n"
    );
    assert!(text.out.ends_with(&line), "{}", text.out);
    Ok(())
}

#[tokio::test]
async fn a_table_without_specs_has_none() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    database.table(&catalog, "raw", &[]).await?;
    assert!(list(&database).await?.is_empty());
    let text = database.ran(&["spec", "list", "lake", "events.raw"]).await?;
    assert_eq!(text.out, "lake events.raw has no partition spec\n");
    let ran = database.ran(&trust("checked", &["--yes"])).await?;
    assert_eq!(ran.code, 1);
    assert!(ran.err.contains("table events.raw has no partition spec\n"), "{}", ran.err);
    let ran = database.ran(&["spec", "list", "lake", "events.none"]).await?;
    assert_eq!((ran.code, ran.out.as_str()), (1, ""));
    Ok(())
}
