//! Tests of values that an earlier field can have stored, by `tests/ambiguous-values.json`.
//! `src/rules/expiry/spec_judge` is tested by the same table. No file proves here what such a value
//! means, so these values are in no window.

use anyhow::{Context, Result};
use serde::Deserialize;
use tailrace::rules::expiry::domain::Domain;
use tailrace::rules::expiry::{SpecBook, SpecField};
use tailrace_kit::lake::{Column, Field, Table};

use super::asked::{Answers, DAY, Question, agree};
use crate::support::TestDatabase;
use crate::support::governed::{Values, values};

/// A time at which every certain value here has expired, and none is an interpretation of the months ahead.
const NOW: &str = "2026-11-30T12:00:00Z";

/// The governed column `at` is a date; `kind` is of this type.
async fn table(
    database: &TestDatabase,
    kind: &str,
    first: &[Field],
    second: &[Field],
) -> Result<Table> {
    let catalog = match database.lake.open_catalog("lake").await {
        Ok(catalog) => catalog,
        Err(_) => database.catalog("lake").await?,
    };
    let name =
        database.text("SELECT 'raw_' || count(*) FROM hog_table").await?.context("a name")?;
    let columns = [Column::new("at", "date"), Column::new("kind", kind)];
    let table = database.table_of(&catalog, &name, &columns, first).await?;
    // A policy is set while the live spec has a time field, and stays when it has none any more.
    let early = database.govern(&table, "at", "7d").await;
    table.evolve_spec(second).await?;
    if early.is_err() {
        database.govern(&table, "at", "7d").await?;
    }
    Ok(table)
}

/// What both say of these tuples of a spec, the window's time being [`NOW`].
async fn answers(
    database: &TestDatabase,
    table: &Table,
    spec_id: i64,
    tuples: &[Values],
) -> Result<Answers> {
    let at = NOW.parse::<tailrace::rules::instant::UtcInstant>()?.minus(DAY);
    let asked: Vec<_> =
        tuples.iter().map(|values| Question { spec_id, values: values.clone(), at }).collect();
    agree(database, table, &asked).await
}

#[derive(Deserialize)]
struct Row {
    earlier: (String, String),
    own: (String, String),
    kind: String,
    ambiguous: Vec<String>,
    certain: Vec<String>,
}

#[derive(Deserialize)]
struct Rows {
    rows: Vec<Row>,
}

#[tokio::test]
async fn a_value_an_earlier_field_can_have_stored_is_in_no_window() -> Result<()> {
    let Rows { rows } = serde_json::from_str(include_str!("../../../ambiguous-values.json"))?;
    assert_eq!(rows.len(), 12);
    let database = TestDatabase::new().await?;
    let field = |(column, transform): &(String, String)| {
        Field::new(column, transform, (transform == "bucket").then_some(16))
    };
    for Row { earlier, own, kind, ambiguous, certain } in rows {
        let what = format!("{earlier:?} then {own:?} of {kind}");
        let table = table(&database, &kind, &[field(&earlier)], &[field(&own)]).await?;
        let tuples = |texts: &[String]| texts.iter().map(|text| values([text])).collect::<Vec<_>>();
        assert_eq!(
            answers(&database, &table, 2, &tuples(&ambiguous)).await.context(what.clone())?,
            Answers { yes: 0, ambiguous: ambiguous.len() },
            "{what}: {ambiguous:?}"
        );
        assert_eq!(
            answers(&database, &table, 2, &tuples(&certain)).await.context(what.clone())?,
            Answers { yes: certain.len(), ambiguous: 0 },
            "{what}: {certain:?}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn fields_that_changed_their_places_make_each_other_ambiguous() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (day, tenant) = (Field::day("at"), Field::identity("kind"));
    let fields = [[day.clone(), tenant.clone()], [tenant, day]];
    let table = table(&database, "int", &fields[0], &fields[1]).await?;
    let swapped = answers(&database, &table, 2, &[values(["20787", "42"])]).await?;
    assert_eq!(swapped, Answers { yes: 0, ambiguous: 1 });
    // Before the change nothing was ambiguous.
    let before = answers(&database, &table, 1, &[values(["42", "20787"])]).await?;
    assert_eq!(before, Answers { yes: 1, ambiguous: 0 });
    Ok(())
}

#[tokio::test]
async fn another_place_arity_or_later_spec_makes_nothing_ambiguous() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (day, tenant) = (Field::day("at"), Field::identity("kind"));
    let certain = Answers { yes: 1, ambiguous: 0 };
    for other in [[Field::month("at"), tenant.clone()], [tenant.clone(), tenant.clone()]] {
        let table = table(&database, "int", &other, std::slice::from_ref(&day)).await?;
        assert_eq!(answers(&database, &table, 2, &[values(["42"])]).await?, certain);
    }
    let table = table(&database, "int", &[day], &[tenant]).await?;
    assert_eq!(answers(&database, &table, 1, &[values(["42"])]).await?, certain);
    Ok(())
}

/// What each field can have stored is the same set of texts in SQL as in the rules.
#[tokio::test]
async fn the_domains_are_those_of_the_rules() -> Result<()> {
    let database = TestDatabase::new().await?;
    let edges = [7, 8, 15, 16, 31, 32, 63].map(|bits: u32| 1_i128 << bits);
    let numbers = edges.iter().flat_map(|edge| [-edge - 1, -edge, edge - 1, *edge]);
    let texts = "0 -0 01 +1 x 15 16 -1 20713 2026-09-17 2026-02-30 2026-09-17T05:00:00 \
                 2026-09-17T05:00:00.5 2026-09-17T05:00:00+00:00 2026-09-17T05:00:00Z 05:00:00 \
                 0..5 any date";
    let texts: Vec<String> = numbers
        .map(|number| number.to_string())
        .chain(texts.split(' ').chain(["", " 1"]).map(str::to_owned))
        .collect();
    let types = "boolean int8 int16 int long uint8 uint16 uint32 uint64 float decimal date time \
                 timestamp_s timestamp_ms timestamp timestamp_ns timestamptz string uuid binary";
    let identities = types.split(' ').map(|col_type| ("identity", None, vec![col_type]));
    let others = [
        ("identity", None, vec![]),
        ("identity", None, vec!["int8", "date"]),
        ("identity", None, vec!["time", "uint8", "timestamptz"]),
        ("identity", None, vec!["date", "string"]),
        ("year", None, vec![]),
        ("month", None, vec!["date"]),
        ("day", None, vec!["timestamp"]),
        ("hour", None, vec!["int"]),
        ("bucket", Some(16), vec!["string"]),
        ("bucket", Some(1), vec!["int"]),
        ("bucket", Some(0), vec!["int"]),
        ("bucket", Some(-3), vec!["int"]),
        ("bucket", Some(i32::MAX), vec![]),
        ("bucket", None, vec!["int"]),
        ("truncate", Some(4), vec!["int"]),
    ];
    for (transform, param, types) in identities.chain(others) {
        let field = SpecField {
            key_index: 0,
            source_field_id: 7,
            transform: transform.to_owned(),
            transform_param: param,
        };
        let mut book = SpecBook::default();
        let of_column = book.column_types.entry(7).or_default();
        of_column.extend(types.iter().map(|col_type| (*col_type).to_owned()));
        for (beside_times, domains) in
            [(false, Domain::of(&field, &book)), (true, Domain::beside_times(&field, &book))]
        {
            let expected: Vec<bool> =
                texts.iter().map(|text| domains.iter().any(|set| set.has(text))).collect();
            let found: Vec<bool> = sqlx::query_scalar(
                "SELECT tailrace.may_have_stored(array_to_string(
                          tailrace.domains_of_field($1, $2, $3, $4), ','), t.value)
                   FROM unnest($5::text[]) WITH ORDINALITY AS t (value, place) ORDER BY t.place",
            )
            .bind(transform)
            .bind(param.map(i64::from))
            .bind(&types)
            .bind(beside_times)
            .bind(&texts)
            .fetch_all(&database.pool)
            .await?;
            for ((text, expected), found) in texts.iter().zip(expected).zip(found) {
                assert_eq!(
                    found, expected,
                    "{transform} {param:?} {types:?}, beside times {beside_times}: {text:?}"
                );
            }
        }
    }
    Ok(())
}
