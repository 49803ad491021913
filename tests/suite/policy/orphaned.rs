//! Tests of a live table with the name of a dropped table that had a policy. The live table has no
//! policy, and this is logged until somebody has decided.

use anyhow::Result;
use serde_json::json;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, outcomes};

const SET: &str = "tailrace policy set lake events.raw --field 'day(at)' --keep 7d";
const UNSET: &str = "tailrace policy unset lake events.raw";

/// `events.raw` under a policy, and the pass that saw it.
async fn scene() -> Result<(TestDatabase, Table)> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    database.sweep().await?;
    Ok((database, table))
}

/// Another table of the same name, with an expired file.
async fn made_again(database: &TestDatabase, table: &Table) -> Result<Table> {
    let again = database.table(&table.catalog, "raw", &[Field::day("at")]).await?;
    again.append(vec![NewFile::of(["18000"])]).await?;
    Ok(again)
}

/// What verify says of replaced tables, the problems of policies that doctor has, and its statements.
async fn told(database: &TestDatabase) -> Result<(Vec<String>, Vec<String>, Vec<String>)> {
    let (report, _) = database.json(&["verify", "--output", "json"]).await?;
    let checks = report["catalogs"][0]["checks"].as_array().cloned().unwrap_or_default();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let verified = checks
        .iter()
        .filter(|check| check["check"] == "replaced_tables" && check["status"] == "violated")
        .flat_map(|check| check["samples"].as_array().cloned().unwrap_or_default())
        .map(|sample| format!("{} {}", text(&sample["table"]), text(&sample["problem"])))
        .collect();
    let said = database.doctor().await?;
    let problems: Vec<_> = said
        .of("policies")
        .into_iter()
        .filter(|(level, _)| *level == "problem")
        .map(|(_, what)| what.to_owned())
        .collect();
    assert_eq!(said.code, if problems.is_empty() { 0 } else { 3 });
    let statements = said.statements("policies").into_iter().map(str::to_owned).collect();
    Ok((verified, problems, statements))
}

fn nothing() -> (Vec<String>, Vec<String>, Vec<String>) {
    Default::default()
}

#[tokio::test]
async fn dropped_and_made_anew_is_logged_once_and_shown_until_settled() -> Result<()> {
    for settled_by in ["set", "observe", "property", "unset"] {
        let (database, table) = scene().await?;
        assert_eq!(told(&database).await?, nothing());
        table.drop_table().await?;
        let again = made_again(&database, &table).await?;
        let live = live_ids(&again).await?;

        let verified = "events.raw it has the name of table 1, which is gone and had the policy day(at) \
                        keep 7d, and has none";
        let found = "it has the name of table 1, which is gone and had the policy day(at) keep 7d";
        let expected = (
            vec![verified.to_owned()],
            vec![found.to_owned()],
            vec![SET.to_owned(), UNSET.to_owned()],
        );
        // Before any pass, after each, and when the server has forgotten the old table altogether.
        assert_eq!(told(&database).await?, expected);
        let ran = database.ran(&["sweep"]).await?;
        let [event] = &ran.events("policy_orphaned")[..] else { panic!("{}", ran.err) };
        for (field, value) in [
            ("level", "WARN"),
            ("catalog", "lake"),
            ("namespace", "events"),
            ("table", "raw"),
            ("field", "day(at)"),
            ("keep", "7d"),
            ("mode", "enforce"),
            ("set", SET),
            ("unset", UNSET),
        ] {
            assert_eq!(event[field], value, "{field}");
        }
        assert_eq!(ran.events("policy_tombstoned").len(), 0);
        database.sql(&format!("DELETE FROM hog_table WHERE table_id = {}", table.table_id)).await?;
        let ran = database.ran(&["sweep"]).await?;
        assert_eq!(ran.events("policy_orphaned").len(), 0, "{}", ran.err);
        assert_eq!(told(&database).await?, expected);
        // For as long as it is so, whatever history.keep.
        database
            .sql("UPDATE tailrace.policy SET gone_seen_at = gone_seen_at - interval '1 year'")
            .await?;
        database.sweep().await?;
        assert_eq!(told(&database).await?, expected);
        // Nothing was dropped for the name.
        assert_eq!(live_ids(&again).await?, live);

        let set = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep", "7d"];
        let code = match settled_by {
            "set" => database.ran(&set).await?.code,
            "observe" => database.ran(&[&set[..], &["--mode", "observe"]].concat()).await?.code,
            "property" => {
                let property = r#"{"field": "day(at)", "keep": "7d"}"#;
                again.set_property("partition_retention", Some(property)).await?;
                0
            }
            _ => {
                let ran = database.ran(&["policy", "unset", "lake", "events.raw"]).await?;
                let forgotten = format!(
                    "lake events.raw: the policy day(at) keep 7d of the table that is gone (uuid {}) is \
                     forgotten\n",
                    table.table_uuid
                );
                assert_eq!(ran.out, forgotten);
                ran.code
            }
        };
        assert_eq!(code, 0);
        assert_eq!(told(&database).await?, nothing(), "{settled_by}");
        let swept = outcomes(&database.sweep().await?).first().map(|(_, outcome)| *outcome);
        let expected = match settled_by {
            "observe" => Some(Outcome::Observed),
            "unset" => None,
            _ => Some(Outcome::Dropped),
        };
        assert_eq!(swept, expected, "{settled_by}");
        let left = format!(
            "SELECT count(*) FROM tailrace.policy WHERE table_uuid = '{}'",
            table.table_uuid
        );
        // The others are no longer needed, and old enough.
        assert_eq!(database.text(&left).await?.as_deref(), Some("0"), "{settled_by}");
    }
    Ok(())
}

/// The old table's policy may be gone for long when the name is taken; it is told then, once.
#[tokio::test]
async fn a_name_that_is_taken_later_is_told_then() -> Result<()> {
    let (database, table) = scene().await?;
    table.drop_table().await?;
    database.sql("DELETE FROM hog_table").await?;
    let events = async |name: &str| -> Result<usize> {
        Ok(database.ran(&["sweep"]).await?.events(name).len())
    };
    assert_eq!(events("policy_tombstoned").await?, 1);
    assert_eq!(told(&database).await?, nothing());
    let said = database.ran(&["policy", "get", "lake", "events.raw"]).await?;
    let expected = "tailrace: there is no table events.raw in catalog \"lake\"; one that had the name is \
                    gone, and its policy with it: `tailrace policy list --all` shows it\n";
    assert_eq!((said.code, said.err.as_str()), (1, expected));
    made_again(&database, &table).await?;
    assert_eq!(events("policy_orphaned").await?, 1);
    assert_eq!(events("policy_orphaned").await?, 0);
    Ok(())
}

/// The name that counts is the last one that the table had, also where no pass has seen it.
#[tokio::test]
async fn a_renamed_table_leaves_its_last_name() -> Result<()> {
    let (database, table) = scene().await?;
    table.rename("silver").await?;
    // A table with the former name is no successor: the policy is on the renamed one.
    made_again(&database, &table).await?;
    assert_eq!(told(&database).await?, nothing());
    table.drop_table().await?;
    database.table(&table.catalog, "silver", &[Field::day("at")]).await?;
    let (verified, ..) = told(&database).await?;
    assert_eq!(verified.len(), 1);
    assert!(verified[0].starts_with("events.silver it has the name of table 1"), "{verified:?}");
    let ran = database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("policy_orphaned")[0]["table"], "silver");
    Ok(())
}

/// Whoever takes a policy away means it, whatever tables had the name before.
#[tokio::test]
async fn a_policy_that_was_taken_away_is_not_missed() -> Result<()> {
    let (database, table) = scene().await?;
    table.drop_table().await?;
    made_again(&database, &table).await?;
    database.policy("lake", "events.raw", "day(at)", "9000d").await?;
    let unset = ["policy", "unset", "lake", "events.raw"];
    assert_eq!(database.ran(&unset).await?.code, 0);
    assert_eq!(told(&database).await?, nothing());
    let ran = database.ran(&["sweep"]).await?;
    assert_eq!(ran.events("policy_orphaned").len(), 0);
    // The old table's own is still there for it.
    let listed = database.policies(&["policy", "list", "--all", "--output", "json"]).await?;
    assert_eq!((&listed[0]["keep"], &listed[0]["gone"]), (&json!("7d"), &json!(true)));
    // Without a live table, or one with a policy, it is what `unset` forgets.
    assert_eq!(database.ran(&unset).await?.code, 0);
    let ran = database.ran(&unset).await?;
    assert_eq!(ran.err, "tailrace: table events.raw has no stored policy\n");
    assert_eq!(
        database.policies(&["policy", "list", "--all", "--output", "json"]).await?,
        json!([])
    );
    Ok(())
}

/// A replacement says so itself, whatever the names, and is told like any other.
#[tokio::test]
async fn a_replacement_is_told_in_the_log_too() -> Result<()> {
    let (database, table) = scene().await?;
    let instead =
        table.replace_table(&[Column::new("at", "timestamptz")], &[Field::day("at")]).await?;
    instead.rename("silver").await?;
    let ran = database.ran(&["sweep"]).await?;
    let [event] = &ran.events("policy_orphaned")[..] else { panic!("{}", ran.err) };
    assert_eq!((&event["table"], &event["keep"]), (&json!("silver"), &json!("7d")));
    let (verified, ..) = told(&database).await?;
    let expected = "events.silver it took the place of table 1, which had the policy day(at) keep 7d, and \
                    has none";
    assert_eq!(verified, [expected]);
    assert_eq!(database.ran(&["policy", "unset", "lake", "events.silver"]).await?.code, 0);
    assert_eq!(told(&database).await?, nothing());
    Ok(())
}
