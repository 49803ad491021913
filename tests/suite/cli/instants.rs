//! Tests of `tailrace drop` with instants: each stands for every stored value of that instant.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::{live_values, values};

const FIVE: &str = "at=2026-10-31T05:00:00Z";

/// A table with an identity partition of `at`, and a file for each text.
async fn by_instant(database: &TestDatabase, col_type: &str, texts: &[&str]) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team", "long"), Column::new("at", col_type)];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::identity("at")]).await?;
    table.append(texts.iter().map(|text| NewFile::of([*text]).bytes(100)).collect()).await?;
    Ok(table)
}

/// What a table has left, in order.
async fn left(table: &Table) -> Result<Vec<String>> {
    let live = live_values(table).await?;
    let mut texts: Vec<_> = live.into_iter().flatten().flatten().collect();
    texts.sort_unstable();
    Ok(texts)
}

fn drop_of<'a>(partition: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["drop", "lake", "events.raw", "--partition", partition][..], more].concat()
}

const TZ: [&str; 7] = [
    "2026-10-31T05:00:00+00:00",
    "2026-10-31T07:00:00+02:00",
    "2026-10-30T23:15:00.000-05:45",
    "2026-10-31T05:00:00Z",
    // Another instant, and two that say none: no offset, and a letter that no client writes.
    "2026-10-31T05:00:00.000001+00:00",
    "2026-10-31T05:00:00",
    "2026-10-31T05:00:00z",
];

#[tokio::test]
async fn an_instant_ends_every_text_of_it_in_its_table_alone() -> Result<()> {
    for is_older in [false, true] {
        let database = TestDatabase::new().await?;
        let table = by_instant(&database, "timestamptz", &TZ).await?;
        let columns = [Column::new("at", "timestamptz")];
        let spec = [Field::identity("at")];
        let other = database.table_of(&table.catalog, "other", &columns, &spec).await?;
        other.append(TZ.iter().map(|text| NewFile::of([*text])).collect()).await?;
        if is_older {
            // Without the index by value the table's files are read.
            database.lake.downgrade(22).await?;
        }
        let dry = database.ran(&drop_of(FIVE, &["--dry-run"])).await?;
        let line = |text: &str, end: &str| {
            format!("  {FIVE}  [\"{text}\"]{end}  2026-10-31T05:00:00Z  spec 1  1 file  100 B\n")
        };
        let lines: String = [
            line("2026-10-30T23:15:00.000-05:45", ""),
            line("2026-10-31T05:00:00+00:00", "    "),
            line("2026-10-31T05:00:00Z", "         "),
            line("2026-10-31T07:00:00+02:00", "    "),
        ]
        .concat();
        let footnote = "  An instant stands for the values that are stored of it, which are listed; \
                        one that is first stored from now on is kept\n";
        assert!(dry.out.ends_with(&format!("{lines}{footnote}")), "{}", dry.out);
        assert_eq!((dry.code, dry.err.as_str()), (0, ""));

        let ran = database.ran(&drop_of(FIVE, &["--yes"])).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        let mut others = TZ[4..].to_vec();
        others.sort_unstable();
        assert_eq!(left(&table).await?, others, "older: {is_older}");
        assert_eq!(other.live_files().await?.len(), TZ.len());
    }
    Ok(())
}

#[tokio::test]
async fn every_type_has_its_texts() -> Result<()> {
    for (col_type, asked, goes, stays) in [
        (
            "timestamp",
            "at=2026-10-31T05:00:00Z",
            vec!["2026-10-31T05:00:00", "2026-10-31T05:00:00.000000"],
            vec!["2026-10-31T05:00:00+00:00", "2026-10-31T05:00:01"],
        ),
        (
            "timestamp_ms",
            "at=2026-10-31T05:00:00.250",
            vec!["2026-10-31T05:00:00.25", "2026-10-31T05:00:00.250000"],
            vec!["2026-10-31T05:00:00"],
        ),
        (
            "timestamp_ns",
            "at=2026-10-31T07:00:00+02:00",
            vec!["1793422800000000000"],
            vec!["1793422800000000001", "2026-10-31T05:00:00"],
        ),
        // A text that says no instant is looked for as it is written.
        (
            "timestamptz",
            "at=2026-10-31T05:00:00",
            vec!["2026-10-31T05:00:00"],
            vec!["2026-10-31T05:00:00+00:00"],
        ),
        (
            "timestamptz",
            "at=2026-10-31T05:00:00z",
            vec!["2026-10-31T05:00:00+00:00", "2026-10-31T05:00:00z"],
            vec!["x"],
        ),
        ("date", "at=2026-10-31", vec!["2026-10-31"], vec!["2026-11-01"]),
        (
            "string",
            "at=2026-10-31T05:00:00Z",
            vec!["2026-10-31T05:00:00Z"],
            vec!["2026-10-31T05:00:00+00:00"],
        ),
    ] {
        let database = TestDatabase::new().await?;
        let table = by_instant(&database, col_type, &[&goes[..], &stays].concat()).await?;
        let ran = database.ran(&drop_of(asked, &["--yes"])).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        assert_eq!(left(&table).await?, stays, "{col_type} {asked}");
    }
    Ok(())
}

/// With `--literal` and in JSON, a text is that text.
#[tokio::test]
async fn a_text_that_is_meant_as_it_is_stands_for_no_other() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = by_instant(&database, "timestamptz", &TZ[..4]).await?;
    let json = r#"["2026-10-31T05:00:00+00:00"]"#;
    let five = FIVE;
    for (asked, left_over) in
        [(drop_of(five, &["--yes", "--literal"]), 3), (drop_of(json, &["--yes"]), 2)]
    {
        assert_eq!(database.ran(&asked).await?.code, 0);
        assert_eq!(table.live_files().await?.len(), left_over);
    }
    Ok(())
}

#[tokio::test]
async fn other_fields_are_as_they_are_written() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
    let spec = [Field::identity("team"), Field::identity("at")];
    let table = database.table_of(&catalog, "raw", &columns, &spec).await?;
    let files = [("1", TZ[0]), ("1", TZ[1]), ("2", TZ[0]), ("1", TZ[4])];
    table.append(files.map(|(team, at)| NewFile::of([team, at])).into()).await?;
    let partition = format!("team=1,{FIVE}");
    assert_eq!(database.ran(&drop_of(&partition, &["--yes"])).await?.code, 0);
    assert_eq!(live_values(&table).await?, [values(["2", TZ[0]]), values(["1", TZ[4]])]);
    Ok(())
}

/// So many instants that the table's files are read instead of looking for each text.
#[tokio::test]
async fn a_long_list_of_instants_is_found_as_well() -> Result<()> {
    let database = TestDatabase::new().await?;
    let stored = |hour: usize| format!("2026-10-31T{hour:02}:30:00.0+00:30");
    let hours: Vec<String> = (0..24).map(stored).collect();
    let hours: Vec<&str> = hours.iter().map(String::as_str).collect();
    let table = by_instant(&database, "timestamptz", &hours).await?;
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("list.csv");
    let asked: String = (0..60).map(|minute| format!("2026-10-31T05:{minute:02}:00Z\n")).collect();
    std::fs::write(&path, format!("at\n2026-10-31T07:00:00Z\n{asked}"))?;
    let path = path.to_str().context("a path")?;
    let args = ["drop", "lake", "events.raw", "--yes", "--output", "json", "--from-file", path];
    let answer = database.done(&args).await?;
    assert_eq!(answer["files_ended"], json!(2));
    assert_eq!(table.live_files().await?.len(), 22);
    let ended: Vec<&Value> = answer["partitions"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|one| one["files_ended"] == json!(1))
        .map(|one| &one["partition_values"][0])
        .collect();
    assert_eq!(ended, [&json!(stored(7)), &json!(stored(5))]);
    Ok(())
}

/// A retry reads the same although the texts that the first one found are gone by now.
#[tokio::test]
async fn a_retry_gets_the_first_answer_again() -> Result<()> {
    for stored in [&TZ[..2], &[TZ[4]]] {
        let database = TestDatabase::new().await?;
        let table = by_instant(&database, "timestamptz", stored).await?;
        let key = ["--yes", "--output", "json", "--idempotency-key"];
        let key = [&key[..], &["0b9f6d0e-6f0e-4a3e-9c83-0d4f6a1f9a10"]].concat();
        let first = database.done(&drop_of(FIVE, &key)).await?;
        // What came since is none of the answered request's.
        table.append(vec![NewFile::of([TZ[3]]), NewFile::of([TZ[0]])]).await?;
        let again = database.done(&drop_of("at=2026-10-31T08:00:00+03:00", &key)).await?;
        assert_eq!(
            (&again["replayed"], &again["partitions"]),
            (&json!(true), &first["partitions"])
        );
        assert_eq!(again["snapshot_id"], first["snapshot_id"]);
        // The key is that request's alone.
        let other = database.ran(&drop_of("at=2026-10-31T06:00:00Z", &key)).await?;
        assert_eq!(other.code, 2);
        assert!(other.err.contains("idempotency_key was used by another request"), "{}", other.err);
    }
    Ok(())
}

/// Named by values a request is of the live spec, and a retry of the one that it was.
#[tokio::test]
async fn a_retry_is_of_the_spec_that_was_live_at_first() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["20775"])]).await?;
    let key = "0b9f6d0e-6f0e-4a3e-9c83-0d4f6a1f9a10";
    let asked = ["drop", "lake", "events.raw", "--partition", "day=2026-11-18", "--yes"];
    let asked = [&asked[..], &["--output", "json", "--idempotency-key", key]].concat();
    let first = database.done(&asked).await?;
    assert_eq!(first["files_ended"], json!(1));
    table.evolve_spec(&[Field::day("at")]).await?;
    let again = database.done(&asked).await?;
    assert_eq!((&again["replayed"], &again["partitions"]), (&json!(true), &first["partitions"]));
    Ok(())
}

#[tokio::test]
async fn an_instant_that_is_named_twice_is_refused() -> Result<()> {
    let database = TestDatabase::new().await?;
    by_instant(&database, "timestamptz", &TZ[..2]).await?;
    let twice = ["--partition", "at=2026-10-31T07:00:00+02:00", "--yes"];
    let ran = database.ran(&drop_of(FIVE, &twice)).await?;
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("is named twice"), "{}", ran.err);
    Ok(())
}
