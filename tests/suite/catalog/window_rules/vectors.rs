//! Tests of the shared vectors, of texts that differ a little from them, and of random texts.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use tailrace::rules::instant::UtcInstant;
use tailrace::rules::transform::TimeTransform;
use tailrace_kit::lake::{Column, Field, Table};

use super::asked::{DAY, Question, agree, around};
use crate::support::TestDatabase;

/// The column's type and the transform that the texts are read by.
type Kind = (String, String);

/// Every text of the shared vectors, by what it is read by.
fn vectors() -> Result<BTreeMap<Kind, Vec<Option<String>>>> {
    let all: serde_json::Value =
        serde_json::from_str(include_str!("../../../partition-vectors.json"))?;
    let mut by_kind: BTreeMap<Kind, Vec<Option<String>>> = BTreeMap::new();
    for vector in all["vectors"].as_array().context("vectors")? {
        let col_type = vector["type"].as_str().unwrap_or("timestamptz").to_owned();
        let transform = vector["transform"].as_str().context("a transform")?.to_owned();
        let text = vector["text"].as_str().map(str::to_owned);
        by_kind.entry((col_type, transform)).or_default().push(text);
    }
    Ok(by_kind)
}

async fn table_of(database: &TestDatabase, (col_type, transform): &Kind) -> Result<(Table, i64)> {
    let catalog = match database.lake.open_catalog("lake").await {
        Ok(catalog) => catalog,
        Err(_) => database.catalog("lake").await?,
    };
    let field = match transform.as_str() {
        "year" => Field::year("at"),
        "month" => Field::month("at"),
        "day" => Field::day("at"),
        "hour" => Field::hour("at"),
        _ => Field::identity("at"),
    };
    let name = format!("{transform}_{col_type}");
    let table =
        database.table_of(&catalog, &name, &[Column::new("at", col_type)], &[field]).await?;
    database.govern(&table, "at", "7d").await?;
    let spec_id = table.live_spec().await?.context("a spec")?;
    Ok((table, spec_id))
}

fn ends((col_type, transform): &Kind, text: Option<&str>) -> Vec<UtcInstant> {
    TimeTransform::of_field(transform, Some(col_type))
        .and_then(|transform| transform.decode(text).ok())
        .map(|range| vec![range.start, range.end])
        .unwrap_or_default()
}

#[tokio::test]
async fn every_shared_vector_is_decided_as_the_passes_do() -> Result<()> {
    let database = TestDatabase::new().await?;
    let (mut asked, mut yes) = (0, 0);
    for (kind, texts) in vectors()? {
        let (table, spec_id) = table_of(&database, &kind).await?;
        let questions: Vec<_> = texts
            .iter()
            .flat_map(|text| {
                let ends = ends(&kind, text.as_deref());
                around(spec_id, &vec![text.clone()], &ends, 7 * DAY)
            })
            .collect();
        asked += questions.len();
        yes += agree(&database, &table, &questions).await?.yes;
    }
    assert!(asked > 400 && yes > 150 && yes < asked - 150, "{yes} of {asked}");
    Ok(())
}

/// A text with one letter put in, taken out or replaced, most often by one that could belong.
fn spoiled(random: &mut fastrand::Rng, text: &str) -> String {
    const LETTERS: [char; 16] =
        ['0', '1', '2', '9', '-', '+', ':', '.', 'T', 'Z', ' ', 't', '٣', '\n', 'é', '0'];
    let mut letters: Vec<char> = text.chars().collect();
    let at = random.usize(..=letters.len());
    let letter = LETTERS[random.usize(..LETTERS.len())];
    match random.u8(..3) {
        0 => letters.insert(at, letter),
        1 if at < letters.len() => drop(letters.remove(at)),
        _ if at < letters.len() => letters[at] = letter,
        _ => letters.push(letter),
    }
    letters.into_iter().collect()
}

/// A text of a time, of a number near the ends of what has a range, or one that is nearly right.
fn any_text(random: &mut fastrand::Rng, (col_type, transform): &Kind) -> String {
    const EDGES: [i64; 16] = [
        0,
        -2_440_588,
        106_751_990,
        -58_574_112,
        2_562_047_787,
        -80_185,
        3_507_323,
        -6_682,
        292_276,
        i64::MAX,
        i64::MIN,
        9_999_999_999,
        -9_999_999_999,
        4_294_967_296,
        2_147_483_648,
        1_000,
    ];
    let at = UtcInstant::from_nanos(match random.u8(..3) {
        0 => random.i64(-62_000_000_000..250_000_000_000).into(),
        1 => i128::from(random.i64(-62_000_000_000..250_000_000_000)) * 1_000_000_000,
        _ => i128::from(random.i64(0..4_000_000_000_000_000)) * 1_001,
    });
    let encoded = TimeTransform::of_field(transform, Some(col_type))
        .map(|transform| transform.encode(at))
        .unwrap_or_default();
    match random.u8(..8) {
        0 => EDGES[random.usize(..EDGES.len())].saturating_add(random.i64(-2..=2)).to_string(),
        1 => random.i64(..).to_string(),
        2 => encoded.replace("+00:00", ["-23:59", "+05:30", "Z", "+24:00"][random.usize(..4)]),
        3..=5 => spoiled(random, &encoded),
        _ => encoded,
    }
}

#[tokio::test]
async fn any_text_is_decided_as_the_passes_do() -> Result<()> {
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    let database = TestDatabase::new().await?;
    for kind in vectors()?.into_keys() {
        let (table, spec_id) = table_of(&database, &kind).await?;
        let mut questions: Vec<Question> = Vec::new();
        for _ in 0..300 {
            let text = any_text(&mut random, &kind);
            let ends = ends(&kind, Some(&text));
            questions.extend(around(spec_id, &vec![Some(text)], &ends, 7 * DAY));
        }
        agree(&database, &table, &questions).await.with_context(|| format!("seed {seed}"))?;
    }
    Ok(())
}

/// Nothing raises, and where nothing can be told the answer is no; a time without end is after all.
#[tokio::test]
async fn whatever_is_asked_is_answered() -> Result<()> {
    let database = TestDatabase::new().await?;
    let kind = ("timestamptz".to_owned(), "day".to_owned());
    let (table, spec) = table_of(&database, &kind).await?;
    let (catalog, id) = (table.catalog.catalog_id, table.table_id);
    for (arguments, expected) in [
        (format!("{catalog}, {id}, {spec}, array['1']"), "true"),
        (format!("{catalog}, {id}, {spec}, '[0:0]={{1}}'"), "true"),
        (format!("{catalog}, {id}, {spec}, array['106751990'], 'infinity'"), "true"),
        (format!("{catalog}, {id}, {spec}, array['1'], '-infinity'"), "false"),
        (format!("{catalog}, {id}, {spec}, array['-2440588'], '4713-01-02 BC'"), "true"),
        (format!("{catalog}, {id}, {spec}, array['106751990'], '294276-12-31'"), "true"),
        (format!("{catalog}, {id}, {spec}, array['1'], null"), "false"),
        (format!("{catalog}, {id}, {spec}, null"), "false"),
        (format!("{catalog}, {id}, {spec}, '{{}}'"), "false"),
        (format!("{catalog}, {id}, {spec}, array[null]"), "false"),
        (format!("{catalog}, {id}, {spec}, array['1', '1']"), "false"),
        (format!("{catalog}, {id}, {spec}, array[array['1']]"), "false"),
        (format!("{catalog}, {id}, {spec}, array[repeat('1', 100000)]"), "false"),
        (format!("{catalog}, {id}, null, array['1']"), "false"),
        (format!("{catalog}, {id}, 99, array['1']"), "false"),
        (format!("{catalog}, 99, {spec}, array['1']"), "false"),
        (format!("99, {id}, {spec}, array['1']"), "false"),
        (format!("null, null, {spec}, array['1']"), "false"),
    ] {
        let answer = database.text(&format!("tailrace.in_drop_window({arguments})")).await;
        assert_eq!(
            answer.with_context(|| arguments.clone())?.as_deref(),
            Some(expected),
            "{arguments}"
        );
    }
    Ok(())
}
