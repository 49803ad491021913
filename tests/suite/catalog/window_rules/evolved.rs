//! Tests of tables whose specs changed, so that a value may have several interpretations.

use anyhow::{Context, Result};
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::{Column, Field, Table};

use super::asked::{Answers, DAY, Question, agree, around};
use crate::support::TestDatabase;
use crate::support::governed::Values;

/// Texts that read as a recent time by one transform, as another by the next, and as none.
const TEXTS: [&str; 16] = [
    "0",
    "5",
    "15",
    "16",
    "56",
    "57",
    "677",
    "680",
    "681",
    "20713",
    "20780",
    "497117",
    "-1",
    "020",
    "2026-09-17",
    "2026-09-17T05:00:00",
];

/// At each text of each spec, around every end that it has by any transform.
fn questions(specs: &[i64], tuples: &[Values]) -> Vec<Question> {
    let mut ends = Vec::new();
    for text in tuples.iter().flatten().flatten() {
        for (transform, col_type) in [
            ("year", "date"),
            ("month", "date"),
            ("day", "date"),
            ("hour", "date"),
            ("identity", "date"),
            ("identity", "timestamp"),
        ] {
            let read =
                tailrace::rules::transform::TimeTransform::of_field(transform, Some(col_type));
            let range = read.and_then(|read| read.decode(Some(text)).ok());
            ends.extend(range.into_iter().flat_map(|range| [range.start, range.end]));
        }
    }
    let (from, to) = (UtcInstant::from_civil(2024, 1, 1), UtcInstant::from_civil(2028, 1, 1));
    ends.retain(|end| (from..to).contains(end));
    ends.sort_unstable();
    ends.dedup();
    let of_tuple = |spec: i64| {
        let ends = &ends;
        tuples.iter().flat_map(move |values| around(spec, values, ends, 7 * DAY))
    };
    // A time at which an interpretation begins turns an answer as well: `compaction.lead` alone is what counts.
    specs.iter().flat_map(|spec| of_tuple(*spec)).collect()
}

fn single() -> Vec<Values> {
    TEXTS.iter().map(|text| vec![Some((*text).to_owned())]).chain([vec![None]]).collect()
}

async fn table(database: &TestDatabase, col_type: &str, spec: &[Field]) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", col_type), Column::new("kind", "string")];
    database.table_of(&catalog, "raw", &columns, spec).await
}

#[tokio::test]
async fn every_time_transform_that_the_place_ever_had_counts() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = table(&database, "timestamp", &[Field::month("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let mut specs = vec![table.live_spec().await?.context("a spec")?];
    for field in [Field::day("at"), Field::hour("at"), Field::identity("at")] {
        specs.push(table.evolve_spec(&[field]).await?);
        let yes = agree(&database, &table, &questions(&specs, &single())).await?.yes;
        assert!(yes > 100, "{yes}");
    }
    // As well after the server forgot the ended ones.
    database.sweep().await?;
    assert_eq!(table.delete_vanished_specs().await?.0, 3);
    agree(&database, &table, &questions(&specs, &single())).await?;
    Ok(())
}

#[tokio::test]
async fn a_text_that_may_be_an_older_bucket_is_in_no_window() -> Result<()> {
    let database = TestDatabase::new().await?;
    let old = [Field::bucket("kind", 16), Field::day("at")];
    let table = table(&database, "timestamp", &old).await?;
    database.govern(&table, "at", "7d").await?;
    let first = table.live_spec().await?.context("a spec")?;
    let second = table.evolve_spec(&[Field::day("at"), Field::bucket("kind", 8)]).await?;
    let third = table.evolve_spec(&[Field::day("at"), Field::month("at")]).await?;
    let tuples: Vec<Values> = TEXTS
        .iter()
        .flat_map(|text| ["5", "680", "20713"].map(|other| (*text, other)))
        .flat_map(|(a, b)| [[Some(a), Some(b)], [Some(a), None]])
        .map(|values| values.map(|value| value.map(str::to_owned)).to_vec())
        .chain(single())
        .collect();
    let at = "2026-10-20T00:00:00Z".parse()?;
    let far = "2027-10-20T00:00:00Z".parse()?;
    let asked: Vec<_> = [first, second, third]
        .into_iter()
        .flat_map(|spec_id| tuples.iter().map(move |values| (spec_id, values.clone())))
        .flat_map(|(spec_id, values)| {
            [at, far].map(|at| Question { spec_id, values: values.clone(), at })
        })
        .collect();
    let yes = agree(&database, &table, &asked).await?.yes;
    assert!(yes > 20, "{yes}");
    Ok(())
}

/// A server that gives the id of a spec that it deleted to another one.
#[tokio::test]
async fn a_spec_id_with_two_meanings_is_in_no_window() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = table(&database, "timestamp", &[Field::month("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let first = table.live_spec().await?.context("a spec")?;
    let second = table.evolve_spec(&[Field::day("at")]).await?;
    database.sweep().await?;
    assert_eq!(table.delete_vanished_specs().await?.0, 1);
    table.evolve_spec_as(first, &[Field::hour("at")]).await?;
    let asked = questions(&[first, second], &single());
    let yes = agree(&database, &table, &asked).await?.yes;
    assert!(yes > 10, "{yes}");
    let none = questions(&[first], &single());
    assert_eq!(agree(&database, &table, &none).await?, Answers::default());
    Ok(())
}

#[tokio::test]
async fn a_column_that_changed_its_type_is_read_by_each() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = table(&database, "date", &[Field::identity("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let spec = table.live_spec().await?.context("a spec")?;
    database.sweep().await?;
    database
        .sql(
            "UPDATE hog_column SET col_type = 'timestamp' WHERE name = 'at';
             UPDATE hog_catalog SET schema_version = schema_version + 1",
        )
        .await?;
    let yes = agree(&database, &table, &questions(&[spec], &single())).await?.yes;
    assert!(yes > 4, "{yes}");
    Ok(())
}
