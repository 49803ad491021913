//! Tests of `tailrace drop --from --to`: which partitions lie in a range, and that exactly these are dropped.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace_kit::lake::{Catalog, Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::live_values;

struct Scene {
    database: TestDatabase,
    catalog: Catalog,
    table: Table,
}

impl Scene {
    async fn of(spec: &[Field]) -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let columns = [Column::new("team_id", "long"), Column::new("at", "timestamptz")];
        let table = database.table_of(&catalog, "raw", &columns, spec).await?;
        Ok(Scene { database, catalog, table })
    }

    async fn append(&self, files: &[&[&str]]) -> Result<()> {
        let of = |values: &&[&str]| {
            NewFile::new(values.iter().map(|text| Some((*text).into())).collect())
        };
        self.table.append(files.iter().map(of).collect()).await?;
        Ok(())
    }

    /// The arguments of a drop of these days of September 2026.
    fn args<'a>(from: &'a str, to: &'a str, rest: &[&'a str]) -> Vec<&'a str> {
        let range = ["drop", "lake", "events.raw", "--from", from, "--to", to, "--yes"];
        [&range[..], rest].concat()
    }

    /// What is live: the values, joined by blanks.
    async fn live(&self) -> Result<Vec<String>> {
        let values = live_values(&self.table).await?.into_iter();
        let shown = |value: Option<String>| value.unwrap_or_else(|| "null".to_owned());
        let mut live: Vec<String> =
            values.map(|all| all.into_iter().map(shown).collect::<Vec<_>>().join(" ")).collect();
        live.sort();
        Ok(live)
    }
}

fn dropped(answer: &Value) -> Vec<Value> {
    let partitions = answer["partitions"].as_array().into_iter().flatten();
    partitions.map(|partition| partition["partition_values"].clone()).collect()
}

/// Day 20713 is 2026-09-17.
#[tokio::test]
async fn exactly_what_lies_in_the_range_is_dropped() -> Result<()> {
    let scene = Scene::of(&[Field::day("at")]).await?;
    scene.append(&[&["20712"], &["20713"], &["20714"], &["20714"], &["20715"], &["x"]]).await?;
    scene.table.append(vec![NewFile::new(vec![None])]).await?;
    let args = Scene::args("2026-09-17", "2026-09-19", &["--output", "json"]);
    let ran = scene.database.ran(&[&args[..], &["--dry-run"]].concat()).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let kept = "tailrace: kept, and to be named by --partition if they are meant:\n\
        tailrace: 2 partitions, 2 files: their time is unknown\n";
    assert!(ran.err.contains(kept), "{ran:?}");
    assert_eq!(scene.live().await?.len(), 7);
    let answer = scene.database.done(&args).await?;
    assert_eq!(dropped(&answer), [json!(["20713"]), json!(["20714"])]);
    assert_eq!((&answer["files_ended"], &answer["committed"]), (&json!(3), &json!(true)));
    assert_eq!(scene.live().await?, ["20712", "20715", "null", "x"]);
    Ok(())
}

#[tokio::test]
async fn a_partition_that_lies_partly_in_the_range_is_kept() -> Result<()> {
    let scene = Scene::of(&[Field::month("at")]).await?;
    // 679 is 2026-08, 681 is 2026-10.
    scene.append(&[&["679"], &["680"], &["681"]]).await?;
    let args = Scene::args("2026-08-15", "2026-10-15", &[]);
    let ran = scene.database.ran(&args).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let kept = "tailrace: 2 partitions, 2 files: only partly in the range\n";
    assert!(ran.err.contains(kept), "{ran:?}");
    assert_eq!(scene.live().await?, ["679", "681"]);
    Ok(())
}

/// A partition is dropped only if all of its rows certainly have the value.
#[tokio::test]
async fn where_chooses_what_certainly_has_the_value() -> Result<()> {
    let scene = Scene::of(&[Field::identity("team_id"), Field::day("at")]).await?;
    scene
        .append(&[&["42", "20713"], &["43", "20713"], &["042", "20713"], &["42", "20720"]])
        .await?;
    scene.table.evolve_spec(&[Field::day("at")]).await?;
    scene.append(&[&["20713"]]).await?;
    let args = Scene::args("2026-09-17", "2026-09-18", &["--where", "team_id=42"]);
    let ran = scene.database.ran(&args).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let kept = "tailrace: 2 partitions, 2 files: not certain to have the value of --where in all of their rows\n";
    assert!(ran.err.contains(kept), "{ran:?}");
    assert_eq!(scene.live().await?, ["042 20713", "20713", "42 20720", "43 20713"]);
    let ran = scene
        .database
        .ran(&Scene::args("2026-09-17", "2026-09-18", &["--where", "kind=1"]))
        .await?;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("the table has no column \"kind\""), "{ran:?}");
    Ok(())
}

/// Day 680 under a spec that came after one by month may be 2026-09.
#[tokio::test]
async fn what_may_mean_another_time_is_kept() -> Result<()> {
    let scene = Scene::of(&[Field::month("at")]).await?;
    scene.table.evolve_spec(&[Field::day("at")]).await?;
    scene.append(&[&["680"], &["681"], &["700"], &["20713"]]).await?;
    let ran = scene.database.ran(&Scene::args("1971-11-12", "1971-11-14", &[])).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let kept = "2 partitions, 2 files: their values may mean another time, or something else\n";
    assert!(ran.err.contains(kept), "{ran:?}");
    assert!(
        ran.err.contains("nothing was dropped: no partition lies whole in the range"),
        "{ran:?}"
    );
    assert_eq!(scene.live().await?.len(), 4);
    let ran = scene.database.ran(&Scene::args("2026-09-17", "2026-09-18", &[])).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(scene.live().await?, ["680", "681", "700"]);
    Ok(())
}

/// The receipt is asked before the range is resolved: what came since stays.
#[tokio::test]
async fn a_request_with_a_receipt_is_what_it_was() -> Result<()> {
    let scene = Scene::of(&[Field::day("at")]).await?;
    scene.append(&[&["20713"], &["20714"]]).await?;
    let key = "0b9f6d0e-6f0e-4a3e-9c83-0d4f6a1f9a10";
    let args =
        Scene::args("2026-09-17", "2026-09-19", &["--idempotency-key", key, "--output", "json"]);
    let first = scene.database.done(&args).await?;
    scene.append(&[&["20714"], &["20715"]]).await?;
    for _ in 0..2 {
        let again = scene.database.done(&args).await?;
        assert_eq!(again["replayed"], true);
        assert_eq!(
            (&again["partitions"], &again["snapshot_id"]),
            (&first["partitions"], &first["snapshot_id"])
        );
        assert_eq!(scene.live().await?, ["20714", "20715"]);
    }
    scene.table.drop_table().await?;
    assert_eq!(scene.database.done(&args).await?["replayed"], true);
    Ok(())
}

/// The refusal has commands that take the range in parts.
#[tokio::test]
async fn a_range_that_is_too_large_is_refused_with_its_parts() -> Result<()> {
    let scene = Scene::of(&[Field::day("at")]).await?;
    scene.append(&[&["20713"], &["20714"], &["20715"], &["20716"], &["20716"]]).await?;
    let few = [("TAILRACE__DROP__MAX_FILES", "2")];
    let ran = scene.database.ran_with(&Scene::args("2026-09-01", "2026-10-01", &[]), &few).await?;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(
        ran.err.contains("the range has 4 partitions with 5 files, and one drop takes 10,000"),
        "{ran:?}"
    );
    let command = |words: &str| ran.err.contains(words);
    for (from, to) in [
        ("2026-09-01T00:00:00Z", "2026-09-19T00:00:00Z"),
        ("2026-09-19T00:00:00Z", "2026-09-20T00:00:00Z"),
        ("2026-09-20T00:00:00Z", "2026-10-01T00:00:00Z"),
    ] {
        assert!(
            command(&format!("tailrace drop lake events.raw --from {from} --to {to}")),
            "{ran:?}"
        );
        let part = scene.database.ran_with(&Scene::args(from, to, &[]), &few).await?;
        assert_eq!(part.code, 0, "{part:?}");
    }
    assert_eq!(scene.live().await?, Vec::<String>::new());
    scene.append(&[&["20713"], &["20713"], &["20713"]]).await?;
    let ran = scene.database.ran_with(&Scene::args("2026-09-01", "2026-10-01", &[]), &few).await?;
    assert!(ran.err.contains("a single time has more than that: choose by --where"), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn a_range_is_a_range() -> Result<()> {
    let scene = Scene::of(&[Field::day("at")]).await?;
    scene.append(&[&["20713"]]).await?;
    for (args, says) in [
        (vec!["--from", "2026-09-17"], "--to <TIME>"),
        (vec!["--to", "2026-09-17"], "--from <TIME>"),
        (vec!["--from", "2026-09-18", "--to", "2026-09-18"], "is not before --to"),
        (
            vec!["--from", "2026-09-17", "--to", "2026-09-18", "--partition", "[\"20713\"]"],
            "cannot be used with",
        ),
        (vec!["--partition", "[\"20713\"]", "--where", "team_id=42"], "--from <TIME>"),
    ] {
        let all = [&["drop", "lake", "events.raw", "--yes"][..], &args].concat();
        let ran = scene.database.ran(&all).await?;
        assert_eq!(ran.code, 2, "{args:?} {ran:?}");
        assert!(ran.err.contains(says), "{args:?} {ran:?}");
    }
    let args = Scene::args("2025-01-01", "2025-02-01", &["--output", "json"]);
    let empty = scene.database.done(&args).await?;
    assert_eq!((&empty["committed"], &empty["partitions"]), (&json!(false), &json!([])));
    assert_eq!(empty["snapshot_id"], scene.catalog.head().await?);
    assert_eq!(scene.live().await?, ["20713"]);
    Ok(())
}

/// Of a table that is not small the values are looked up, or, without the index, all of it is read.
#[tokio::test]
async fn a_large_table_is_searched_by_its_values() -> Result<()> {
    let scene = Scene::of(&[Field::day("at")]).await?;
    let days = |files: usize| (0..files).map(|at| NewFile::of([(20_700 + at % 100).to_string()]));
    scene.table.append(days(20_100).collect()).await?;
    for index in [true, false] {
        if !index {
            scene.database.sql("drop index hog_file_partition_value_lookup").await?;
        }
        let (from, to) =
            if index { ("2026-09-17", "2026-09-19") } else { ("2026-09-19", "2026-09-20") };
        let args = Scene::args(from, to, &["--output", "json"]);
        let answer = scene.database.done(&args).await?;
        let expected =
            if index { vec![json!(["20713"]), json!(["20714"])] } else { vec![json!(["20715"])] };
        assert_eq!(dropped(&answer), expected);
        assert_eq!(answer["files_ended"], 201 * expected.len());
    }
    assert_eq!(scene.live().await?.len(), 20_100 - 603);
    Ok(())
}
