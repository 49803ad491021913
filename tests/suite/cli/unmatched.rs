//! Tests of what `tailrace drop` shows of partitions, and of its message where none matches.

use anyhow::Result;
use tailrace_kit::lake::{Column, Field, NewFile, Table};

use crate::support::TestDatabase;

async fn a_table(
    database: &TestDatabase,
    columns: &[Column],
    spec: &[Field],
    files: Vec<NewFile>,
) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let table = database.table_of(&catalog, "raw", columns, spec).await?;
    if !files.is_empty() {
        table.append(files).await?;
    }
    Ok(table)
}

/// The lines of partitions, of a dry run.
async fn shown(database: &TestDatabase, partition: &str) -> Result<Vec<String>> {
    let args = ["drop", "lake", "events.raw", "--dry-run", "--partition", partition];
    let ran = database.ran(&args).await?;
    assert_eq!((ran.code, ran.err.as_str()), (0, ""), "{ran:?}");
    Ok(ran.out.lines().skip(1).map(|line| line.trim_start().to_owned()).collect())
}

/// What is said on stderr beside the key, where nothing matches.
async fn said(database: &TestDatabase, partitions: &[&str]) -> Result<Vec<String>> {
    let mut args = vec!["drop", "lake", "events.raw", "--yes"];
    partitions.iter().for_each(|partition| args.extend(["--partition", partition]));
    let ran = database.ran(&args).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains(": nothing matched: 0 files,"), "{ran:?}");
    Ok(ran.err.lines().skip(1).filter(|line| !line.starts_with('{')).map(str::to_owned).collect())
}

#[tokio::test]
async fn what_was_typed_is_shown_with_what_is_stored_and_its_meaning() -> Result<()> {
    let database = TestDatabase::new().await?;
    let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
    let table = a_table(
        &database,
        &columns,
        &[Field::identity("team"), Field::day("at")],
        vec![NewFile::of(["1", "20775"]).bytes(100)],
    )
    .await?;
    let stored =
        r#"["1","20775"]  2026-11-18T00:00:00Z to 2026-11-19T00:00:00Z  spec 1  1 file  100 B"#;
    let typed = "day=2026-11-18,team=1";
    assert_eq!(shown(&database, typed).await?, [format!("{typed}  {stored}")]);
    // The values are those that were typed.
    assert_eq!(shown(&database, r#"["1","20775"]"#).await?, [stored]);
    for (field, partition, stored, range) in [
        (Field::year("at"), "year=2026", "56", "2026-01-01T00:00:00Z to 2027-01-01T00:00:00Z"),
        (
            Field::month("at"),
            "month=2026-11",
            "682",
            "2026-11-01T00:00:00Z to 2026-12-01T00:00:00Z",
        ),
        (
            Field::hour("at"),
            "hour=2026-11-18T05",
            "498605",
            "2026-11-18T05:00:00Z to 2026-11-18T06:00:00Z",
        ),
    ] {
        table.evolve_spec(&[field]).await?;
        let spec = table.live_spec().await?.unwrap_or_default();
        table
            .catalog
            .open_table("events", "raw")
            .await?
            .append(vec![NewFile::of([stored]).bytes(100)])
            .await?;
        let line = format!("{partition}  [\"{stored}\"]  {range}  spec {spec}  1 file  100 B");
        assert_eq!(shown(&database, partition).await?, [line]);
    }
    Ok(())
}

#[tokio::test]
async fn the_nearest_in_time_are_listed_where_nothing_matches() -> Result<()> {
    let database = TestDatabase::new().await?;
    let days = ["20700", "20768", "20770", "20774", "20776", "20900", "x", "20774"];
    let columns = [Column::new("at", "timestamptz")];
    let files = days.iter().map(|day| NewFile::of([*day])).collect();
    let table = a_table(&database, &columns, &[Field::day("at")], files).await?;
    for (asked, whose) in [
        (&["day=2026-11-18"][..], "this partition; nearest is stored"),
        (
            &["day=2026-11-18", "day=2030-01-01"],
            "any of these 2 partitions; nearest to the first of them is stored",
        ),
    ] {
        assert_eq!(
            said(&database, asked).await?,
            [
                format!("tailrace: nothing matched: no live file of the table is in {whose}")
                    .as_str(),
                r#"  ["20774"]  2026-11-17T00:00:00Z to 2026-11-18T00:00:00Z  spec 1  2 files"#,
                r#"  ["20776"]  2026-11-19T00:00:00Z to 2026-11-20T00:00:00Z  spec 1   1 file"#,
                r#"  ["20770"]  2026-11-13T00:00:00Z to 2026-11-14T00:00:00Z  spec 1   1 file"#,
                r#"  ["20768"]  2026-11-11T00:00:00Z to 2026-11-12T00:00:00Z  spec 1   1 file"#,
                r#"  ["20700"]  2026-09-04T00:00:00Z to 2026-09-05T00:00:00Z  spec 1   1 file"#,
            ]
        );
    }
    assert_eq!(table.live_files().await?.len(), days.len());
    // As long as one partition has a file, the answer shows which have none.
    let args = ["drop", "lake", "events.raw", "--dry-run", "--partition", "day=2026-11-18"];
    let ran = database.ran(&[&args[..], &["--partition", "day=2026-11-17"]].concat()).await?;
    assert_eq!(ran.err, "");
    // Programs read stdout, and people stderr.
    let ran = database.ran(&[&args[..], &["--output", "json"]].concat()).await?;
    assert!(ran.out.starts_with('{') && ran.out.lines().count() == 1, "{ran:?}");
    assert!(ran.err.starts_with("tailrace: nothing matched: "), "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn an_instant_that_is_not_stored_is_told_with_its_neighbours() -> Result<()> {
    let database = TestDatabase::new().await?;
    let columns = [Column::new("at", "timestamptz")];
    let texts = ["2026-10-31T09:00:00+02:00", "2026-10-31T05:00:01Z", "2026-10-30T05:00:00+00:00"];
    let files = texts.iter().map(|text| NewFile::of([*text])).collect();
    a_table(&database, &columns, &[Field::identity("at")], files).await?;
    for asked in ["at=2026-10-31T05:00:00Z", "at=2026-10-31T05:00:00", "at=2026-10-31T05:00:00 Z"] {
        let lines = said(&database, &[asked]).await?;
        assert_eq!(
            lines[0],
            "tailrace: nothing matched: no live file of the table is in this partition; nearest is stored"
        );
        let lines: Vec<_> = lines[1..].iter().map(|line| line.split_whitespace().next()).collect();
        let near = [
            r#"["2026-10-31T05:00:01Z"]"#,
            r#"["2026-10-31T09:00:00+02:00"]"#,
            r#"["2026-10-30T05:00:00+00:00"]"#,
        ];
        if asked.ends_with(" Z") {
            // It seems to say no time: then the order of the texts counts.
            let in_order = [near[2], near[0], near[1]];
            assert_eq!(lines, in_order.map(Some), "{asked}");
        } else {
            assert_eq!(lines, near.map(Some), "{asked}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn other_values_are_near_in_the_order_of_their_texts() -> Result<()> {
    let database = TestDatabase::new().await?;
    let columns = [Column::new("kind", "string")];
    let kinds = ["a", "b", "c", "e", "f", "g", "\u{1b}[2J\u{9b}"];
    let files = kinds.iter().map(|kind| NewFile::of([*kind])).collect();
    a_table(&database, &columns, &[Field::identity("kind")], files).await?;
    let near = |kinds: &[&str]| {
        let line = |kind: &&str| format!("  [\"{kind}\"]  spec 1  1 file");
        kinds.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(said(&database, &["kind=d"]).await?[1..], near(&["b", "c", "e", "f", "g"]));
    assert_eq!(said(&database, &["kind=z"]).await?[1..], near(&["b", "c", "e", "f", "g"]));
    // No stored value commands the terminal.
    let first = said(&database, &["kind=A"]).await?;
    let esc = r"\u001b[2J\u009b";
    assert_eq!(
        first[1..].iter().map(|line| line.trim_start()).collect::<Vec<_>>()[0],
        format!("[\"{esc}\"]  spec 1  1 file")
    );
    Ok(())
}

#[tokio::test]
async fn a_table_without_files_or_with_those_of_another_spec_says_so() -> Result<()> {
    let database = TestDatabase::new().await?;
    let columns = [Column::new("at", "timestamptz")];
    let table = a_table(&database, &columns, &[Field::day("at")], Vec::new()).await?;
    let none = "tailrace: nothing matched: no live file of the table is in this partition; it has no \
                live file in any partition";
    assert_eq!(said(&database, &["day=2026-11-18"]).await?, [none]);
    table.append(vec![NewFile::of(["20775"])]).await?;
    table.evolve_spec(&[Field::month("at")]).await?;
    assert_eq!(
        said(&database, &["month=2026-11"]).await?[1..],
        [r#"  ["20775"]  2026-11-18T00:00:00Z to 2026-11-19T00:00:00Z  spec 1  1 file"#]
    );
    Ok(())
}

/// Where only ordinals stood, there is what they mean beside them.
#[tokio::test]
async fn a_plan_shows_its_samples_as_dates_too() -> Result<()> {
    let database = TestDatabase::new().await?;
    let columns = [Column::new("team", "long"), Column::new("at", "timestamptz")];
    let spec = [Field::identity("team"), Field::day("at")];
    let files = vec![NewFile::of(["1", "99999"]), NewFile::of(["1", "x"])];
    a_table(&database, &columns, &spec, files).await?;
    database.policy("lake", "events.raw", "at", "7d").await?;
    let plan = database.ran(&["plan"]).await?.out;
    for line in [
        "\n      spec 1, [\"1\",\"99999\"] (1 / 2243-10-16): 1 file\n",
        "\n      spec 1, [\"1\",\"x\"]: 1 file\n",
    ] {
        assert!(plan.contains(line), "{line}: {plan}");
    }
    Ok(())
}
