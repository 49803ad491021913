//! Tests that SQL decides as the passes do, for random histories of specs and random values.

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::json;
use tailrace::rules::instant::UtcInstant;
use tailrace::rules::transform::TimeTransform;
use tailrace_kit::lake::{Column, Field, Table};

use super::asked::{Answers, DAY, Question, agree};
use crate::support::TestDatabase;
use crate::support::governed::Values;

const TIMES: [&str; 6] =
    ["date", "timestamp_s", "timestamp_ms", "timestamp", "timestamptz", "timestamp_ns"];
const TYPES: &str = "int8 int16 int long uint8 uint16 uint32 uint64 date time timestamp timestamptz \
    timestamp_ns string decimal boolean";

/// Numbers at the ends of what a type, a bucket or a range has, texts of times, and what is nearly one.
const TEXTS: &str = "0 1 7 15 16 -1 -400 42 99 100 127 128 -128 -129 255 256 32767 32768 -32768 \
    -32769 65535 65536 670 682 683 694 695 696 20713 20787 497117 2147483647 2147483648 -2147483648 \
    -2147483649 4294967295 4294967296 9223372036854775807 -9223372036854775808 9223372036854775808 \
    1789621200000000001 -0 020 +1 x 2026-09-17 1969-12-31 2026-02-30 2026-09-17T05:00:00 \
    2026-09-17T05:00:00.1234567 2026-09-17T05:00:00+00:00 1970-01-01T00:00:00Z \
    1969-12-31T23:59:59-23:59";

/// A column's id that the catalog does not know, nor any copy.
const UNKNOWN_COLUMN: i64 = 99;

fn pick<T: Copy>(random: &mut Rng, of: &[T]) -> T {
    of[random.usize(..of.len())]
}

/// The fields of a spec as JSON has them, one or two; those that the server would refuse only in a
/// copy.
fn fields(random: &mut Rng, columns: [i64; 2], is_copy: bool) -> serde_json::Value {
    let arity = random.usize(1..=2);
    let second = if random.u8(..4) == 0 { 3 } else { 1 };
    let field = |(key_index, random): (i32, &mut Rng)| {
        let source = match random.u8(..10) {
            0 => UNKNOWN_COLUMN,
            1..=3 => columns[1],
            _ => columns[0],
        };
        let (transform, param) = match random.u8(..12) {
            0..=2 => ("day", None),
            3 | 4 => ("month", None),
            5 => ("year", None),
            6 => ("hour", None),
            7..=9 => ("identity", None),
            10 if is_copy && random.bool() => pick(random, &[("truncate", None), ("bucket", None)]),
            _ => ("bucket", Some(pick(random, &[1, 8, 16, 100]))),
        };
        json!({"key_index": key_index, "source_field_id": source, "transform": transform,
               "transform_param": param})
    };
    let mut all = Vec::new();
    for key_index in [0, second].into_iter().take(arity) {
        all.push(field((key_index, random)));
    }
    all.into()
}

/// Puts a spec into the catalog.
async fn put(
    database: &TestDatabase,
    table: &Table,
    id: i64,
    begin: i64,
    fields: &serde_json::Value,
) -> Result<()> {
    sqlx::query(
        "WITH s AS (
           INSERT INTO hog_partition_spec (catalog_id, table_id, spec_id, begin_snapshot)
           VALUES ($1, $2, $3, $4))
         INSERT INTO hog_partition_field (catalog_id, table_id, spec_id, key_index,
                                          source_field_id, transform, transform_param)
         SELECT $1, $2, $3, f.* FROM jsonb_to_recordset($5)
           AS f (key_index int, source_field_id bigint, transform text, transform_param int)",
    )
    .bind(table.catalog.catalog_id)
    .bind(table.table_id)
    .bind(id)
    .bind(begin)
    .bind(fields)
    .execute(database.lake.pool())
    .await?;
    Ok(())
}

/// Puts a copy of a spec into our tables.
async fn copy(
    database: &TestDatabase,
    table: &Table,
    id: i64,
    begin: Option<i64>,
    is_trusted: bool,
    fields: &serde_json::Value,
) -> Result<()> {
    let trust = is_trusted.then_some("tester");
    sqlx::query(
        "INSERT INTO tailrace.spec_copy (catalog_id, table_id, spec_id, begin_snapshot, fields,
                                         trusted_at, trusted_by, trust_reason, table_uuid)
         VALUES ($1, $2, $3, $4, $5, CASE WHEN $6::text IS NOT NULL THEN now() END, $6, $6, $7)
         ON CONFLICT DO NOTHING",
    )
    .bind(table.catalog.catalog_id)
    .bind(table.table_id)
    .bind(id)
    .bind(begin)
    .bind(fields)
    .bind(trust)
    .bind(table.table_uuid)
    .execute(database.lake.pool())
    .await?;
    Ok(())
}

/// A table whose columns `at`, which is governed, and `kind` had any types, with any past of specs; the
/// ids that were used.
async fn any_table(random: &mut Rng, database: &TestDatabase, table: &Table) -> Result<Vec<i64>> {
    let columns = [table.field_id("at")?, table.field_id("kind")?];
    database
        .sql(&format!("DELETE FROM hog_partition_spec WHERE table_id = {}", table.table_id))
        .await?;
    let all_types: Vec<&str> = TYPES.split(' ').collect();
    for (column, types) in columns.into_iter().zip([&TIMES[..], &all_types[..]]) {
        let (now, earlier) = (pick(random, types), pick(random, &all_types));
        let uuid = table.table_uuid;
        let (table, catalog) = (table.table_id, table.catalog.catalog_id);
        let mut changes = format!(
            "UPDATE hog_column SET col_type = '{now}' WHERE table_id = {table} AND field_id = {column};"
        );
        if random.u8(..3) == 0 {
            changes += &format!(
                "INSERT INTO tailrace.source_column_type
                   (catalog_id, table_id, table_uuid, field_id, col_type)
                 VALUES ({catalog}, {table}, '{uuid}', {column}, '{earlier}')"
            );
        }
        database.sql(&changes).await?;
    }
    let created = database
        .text(&format!(
            "SELECT created_snapshot FROM hog_table WHERE table_id = {}",
            table.table_id
        ))
        .await?
        .context("the table")?
        .parse::<i64>()?;
    let first = random.i64(1..=3);
    let ids: Vec<i64> = (first..=first + 4).filter(|_| random.u8(..6) > 0).collect();
    for (place, id) in ids.iter().enumerate() {
        let begin = if place == 0 && random.bool() { created } else { created + id };
        let of_copy = fields(random, columns, true);
        let of_catalog = fields(random, columns, false);
        let is_trusted = random.u8(..8) == 0;
        // As the catalog has it, as an earlier version of the program left it, or anything.
        let known = pick(random, &[Some(begin), None, Some(created)]);
        match random.u8(..8) {
            0..=2 => put(database, table, *id, begin, &of_catalog).await?,
            3 | 4 => copy(database, table, *id, known, is_trusted, &of_copy).await?,
            5 | 6 => {
                put(database, table, *id, begin, &of_catalog).await?;
                copy(database, table, *id, known, is_trusted, &of_catalog).await?;
            }
            // Two meanings, but for a chance.
            _ => {
                put(database, table, *id, begin, &of_catalog).await?;
                copy(database, table, *id, known, is_trusted, &of_copy).await?;
            }
        }
    }
    Ok(ids)
}

/// A time at which the answer about a tuple may turn, or any.
fn any_time(random: &mut Rng, values: &Values) -> UtcInstant {
    let text = values[random.usize(..values.len())].as_deref();
    let transform = pick(random, &["year", "month", "day", "hour", "identity", "identity"]);
    let read = TimeTransform::of_field(transform, Some(pick(random, &TIMES)));
    let range = read.and_then(|read| read.decode(text).ok());
    let micros = random.i64(-1..=1);
    let turn = range.map(|range| match random.bool() {
        true => range.end.plus(7 * DAY).minus(DAY),
        false => range.start.minus(366 * DAY).minus(DAY),
    });
    let turn = turn.map(|turn| {
        let floored = turn.nanos().div_euclid(1_000) + i128::from(micros);
        UtcInstant::from_nanos(floored * 1_000)
    });
    match (random.u8(..3), turn.filter(|turn| (1..=9999).contains(&turn.civil().0))) {
        (0, Some(turn)) => turn,
        (1, _) => UtcInstant::from_civil(9998, 7, 6),
        _ => UtcInstant::from_civil(2026, 11, 29),
    }
}

#[tokio::test]
async fn any_past_of_specs_is_judged_as_the_passes_do() -> Result<()> {
    let seed = fastrand::u64(..);
    let mut random = Rng::with_seed(seed);
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "date"), Column::new("kind", "string")];
    let texts: Vec<&str> = TEXTS.split(' ').chain([""]).collect();
    let (mut asked, mut all) = (0, Answers::default());
    for number in 0..80 {
        let name = format!("raw_{number}");
        let table = database.table_of(&catalog, &name, &columns, &[Field::day("at")]).await?;
        database.govern(&table, "at", "7d").await?;
        let ids = any_table(&mut random, &database, &table).await?;
        if ids.is_empty() {
            continue;
        }
        let questions: Vec<_> = (0..150)
            .map(|_| {
                let arity = random.usize(1..=2);
                let mut text = || match random.u8(..30) {
                    0 => None,
                    _ => Some(pick(&mut random, &texts).to_owned()),
                };
                let values: Values = (0..arity).map(|_| text()).collect();
                let at = any_time(&mut random, &values);
                Question { spec_id: pick(&mut random, &ids), values, at }
            })
            .collect();
        let answers = agree(&database, &table, &questions)
            .await
            .with_context(|| format!("seed {seed}, table {number}"))?;
        asked += questions.len();
        all.yes += answers.yes;
        all.ambiguous += answers.ambiguous;
    }
    let rest = asked - all.yes - all.ambiguous;
    assert!(all.yes > 100 && all.ambiguous > 100 && rest > 100, "seed {seed}: {all:?} of {asked}");
    Ok(())
}
