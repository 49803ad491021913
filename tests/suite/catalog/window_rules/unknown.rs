//! Tests of specs that are not fully known: the predecessor is unknown, an id has two definitions,
//! or only tailrace's copy is left because the server deleted the spec.

use anyhow::{Context, Result};
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::{Column, Field, Table};

use super::asked::{Answers, DAY, Question, agree};
use crate::support::TestDatabase;
use crate::support::governed::values;

const CERTAIN: Answers = Answers { yes: 1, ambiguous: 0 };
const DOUBTFUL: Answers = Answers { yes: 0, ambiguous: 1 };
const NEITHER: Answers = Answers { yes: 0, ambiguous: 0 };

async fn table(database: &TestDatabase, spec: &[Field]) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "date"), Column::new("kind", "int")];
    let table = database.table_of(&catalog, "raw", &columns, spec).await?;
    Ok(table)
}

/// What both say of one value, at a time by which all days here have expired.
async fn answer(
    database: &TestDatabase,
    table: &Table,
    spec_id: i64,
    text: &str,
) -> Result<Answers> {
    let at = "2026-11-30T12:00:00Z".parse::<UtcInstant>()?.minus(DAY);
    let asked = [Question { spec_id, values: values([text]), at }];
    agree(database, table, &asked).await.with_context(|| format!("spec {spec_id}, {text}"))
}

/// Leaves only specs with these ids, all by day, of which none began with the table.
async fn only(database: &TestDatabase, table: &Table, ids: &[i64]) -> Result<()> {
    database.sql("DELETE FROM hog_partition_spec").await?;
    for (begin, id) in (100..).zip(ids) {
        database
            .sql(&format!(
                "INSERT INTO hog_partition_spec (catalog_id, table_id, spec_id, begin_snapshot)
                 VALUES ({catalog}, {table}, {id}, {begin});
                 INSERT INTO hog_partition_field (catalog_id, table_id, spec_id, key_index,
                                                  source_field_id, transform)
                 VALUES ({catalog}, {table}, {id}, 0, {field}, 'day')",
                catalog = table.catalog.catalog_id,
                table = table.table_id,
                field = table.field_id("at")?,
            ))
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_spec_whose_predecessor_is_unknown_is_in_no_window() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = table(&database, &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    assert_eq!(answer(&database, &table, 1, "20713").await?, CERTAIN);
    // The spec before which nobody knows any, and all that came after it.
    for ids in [[3, 4], [3, 5], [1, 2]] {
        only(&database, &table, &ids).await?;
        for spec_id in ids {
            let found = answer(&database, &table, spec_id, "20713").await?;
            assert_eq!(found, DOUBTFUL, "{ids:?}: {spec_id}");
        }
    }
    // The first one began with the table: only what comes after a gap is ambiguous.
    only(&database, &table, &[2, 3, 5, 6]).await?;
    database.sql("UPDATE hog_table SET created_snapshot = 100").await?;
    for (spec_id, expected) in [(2, CERTAIN), (3, CERTAIN), (5, DOUBTFUL), (6, DOUBTFUL)] {
        assert_eq!(answer(&database, &table, spec_id, "20713").await?, expected, "{spec_id}");
    }
    Ok(())
}

/// Copies speak for what the server deleted: of which spec a value may be, and that nothing was before.
#[tokio::test]
async fn copies_speak_for_specs_that_vanished() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = table(&database, &[Field::identity("kind")]).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    database.sweep().await?;
    assert_eq!(table.delete_vanished_specs().await?.0, 1);
    assert_eq!(answer(&database, &table, 2, "42").await?, DOUBTFUL);
    // No day is a time of a day.
    database
        .sql(
            "UPDATE tailrace.source_column_type SET col_type = 'time' WHERE col_type = 'int';
             UPDATE hog_column SET col_type = 'time' WHERE name = 'kind'",
        )
        .await?;
    assert_eq!(answer(&database, &table, 2, "42").await?, CERTAIN);
    // A copy made before begin_snapshot was copied does not tell that nothing was before it.
    database.sql("UPDATE tailrace.spec_copy SET begin_snapshot = null").await?;
    assert_eq!(answer(&database, &table, 2, "42").await?, DOUBTFUL);
    database
        .sql(
            "UPDATE tailrace.spec_copy c SET begin_snapshot = t.created_snapshot
             FROM hog_table t WHERE c.spec_id = 1",
        )
        .await?;
    assert_eq!(answer(&database, &table, 2, "42").await?, CERTAIN);
    // Without the copy its predecessor is unknown.
    database.sql("DELETE FROM tailrace.spec_copy WHERE spec_id = 1").await?;
    assert_eq!(answer(&database, &table, 2, "42").await?, DOUBTFUL);
    Ok(())
}

/// An id with several meanings is in no window itself, and each of its meanings may be that of a
/// value of any other spec, of a lower id too.
#[tokio::test]
async fn each_meaning_of_a_disputed_id_makes_ambiguous() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = table(&database, &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    database.sql("UPDATE hog_column SET col_type = 'int8' WHERE name = 'kind'").await?;
    table.evolve_spec(&[Field::identity("kind")]).await?;
    table.evolve_spec(&[Field::day("at")]).await?;
    database.sweep().await?;
    let of = async |spec_id: i64, text: &str| answer(&database, &table, spec_id, text).await;
    for (spec_id, text, expected) in
        [(1, "127", CERTAIN), (1, "-128", CERTAIN), (3, "127", DOUBTFUL), (3, "128", CERTAIN)]
    {
        assert_eq!(of(spec_id, text).await?, expected, "spec {spec_id}, {text}");
    }
    // The server gives the id 2 to another spec.
    assert_eq!(table.delete_vanished_specs().await?.0, 2);
    table.evolve_spec_as(2, &[Field::bucket("kind", 200)]).await?;
    for (spec_id, text, expected) in [
        (1, "199", DOUBTFUL),
        (1, "200", CERTAIN),
        (1, "-128", DOUBTFUL),
        (1, "-129", CERTAIN),
        (2, "200", NEITHER),
        (3, "199", DOUBTFUL),
        (3, "200", CERTAIN),
    ] {
        assert_eq!(of(spec_id, text).await?, expected, "spec {spec_id}, {text}");
    }
    Ok(())
}
