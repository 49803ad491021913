//! Tests of several catalogs in one renewal: a problem in one catalog does not affect the others.

use anyhow::Result;
use tailrace::claims::renew;
use tailrace::policy::Mode;
use tailrace_kit::lake::{Field, Table};

use super::{append, rows_of, settings};
use crate::explicit::wire::Wire;
use crate::support::TestDatabase;

const PROPERTY: &str = "partition_retention";
const WEEK: &str = r#"{"field": "at", "keep": "7d"}"#;

/// The table `raw` with a file in the window, governed as a week, in each of these catalogs.
async fn tables(database: &TestDatabase, catalogs: &[&str]) -> Result<Vec<Table>> {
    let mut tables = Vec::new();
    for name in catalogs {
        let catalog = database.catalog(name).await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        append(&table, &[7, 0]).await?;
        database.govern(&table, "at", "7d").await?;
        tables.push(table);
    }
    Ok(tables)
}

/// How many files are claimed of each.
async fn claimed(database: &TestDatabase, tables: &[Table]) -> Result<Vec<usize>> {
    let mut claimed = Vec::new();
    for table in tables {
        claimed.push(rows_of(database, table).await?.iter().map(|(_, ids)| ids.len()).sum());
    }
    Ok(claimed)
}

/// The names of the catalogs with such rows.
async fn names(database: &TestDatabase, rows: &str) -> Result<String> {
    let names = format!(
        "SELECT string_agg(DISTINCT c.name, ' ' ORDER BY c.name) FROM hog_catalog c JOIN {rows}"
    );
    Ok(database.text(&names).await?.unwrap_or_default())
}

/// Tables that are not governed any more are released in all catalogs by one statement.
#[tokio::test]
async fn what_is_not_governed_any_more_is_released_at_once() -> Result<()> {
    let database = TestDatabase::new().await?;
    let raw = tables(&database, &["a", "b", "c", "d", "e"]).await?;
    let mut more = Vec::new();
    for table in &raw {
        let other = database.table(&table.catalog, "other", &[Field::day("at")]).await?;
        append(&other, &[7]).await?;
        other.set_property(PROPERTY, Some(WEEK)).await?;
        more.push(other);
    }
    let (wire, through) = Wire::to(&database).await?;
    let renewed = renew(&through, &settings(), None).await?;
    assert_eq!((renewed.tables, renewed.failed), (10, vec![]));
    assert_eq!(claimed(&database, &raw).await?, [1; 5]);

    raw[0].drop_table().await?;
    database.govern_as(&raw[1], "at", "7d", Mode::Observe).await?;
    database.govern_as(&raw[2], "at", "7d", Mode::Paused).await?;
    let unset = format!(
        "DELETE FROM tailrace.policy WHERE source = 'stored' AND catalog_id = {}",
        raw[3].catalog.catalog_id
    );
    database.sql(&unset).await?;
    more[4].set_property(PROPERTY, None).await?;
    wire.forget();
    let renewed = renew(&through, &settings(), None).await?;
    assert_eq!((renewed.tables, renewed.files, renewed.failed), (5, 5, vec![]));
    assert_eq!(claimed(&database, &raw).await?, [0, 0, 0, 0, 1]);
    assert_eq!(claimed(&database, &more).await?, [1, 1, 1, 1, 0]);
    let asked = wire.asked();
    let releases = asked.iter().filter(|sql| sql.contains("delete from hog_compaction_claim"));
    assert_eq!(releases.count(), 2, "parsed and run");
    Ok(())
}

/// Where that fails in one catalog it is logged of that one, and done in the others.
#[tokio::test]
async fn a_release_that_fails_in_one_catalog_stops_no_other() -> Result<()> {
    let database = TestDatabase::new().await?;
    let raw = tables(&database, &["a", "b", "c"]).await?;
    renew(&database.tailrace(), &settings(), None).await?;
    database
        .sql(&format!(
            "CREATE FUNCTION public.kept() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'these stay'; END $$;
             CREATE TRIGGER kept BEFORE DELETE ON hog_compaction_claim FOR EACH ROW
               WHEN (old.catalog_id = {}) EXECUTE FUNCTION public.kept();
             UPDATE tailrace.policy SET mode = 'paused'",
            raw[1].catalog.catalog_id
        ))
        .await?;
    let renewed = renew(&database.tailrace(), &settings(), None).await?;
    let failed: Vec<_> =
        renewed.failed.iter().map(|one| (one.catalog.as_str(), &one.table)).collect();
    assert_eq!(failed, [("b", &None)]);
    assert!(renewed.failed[0].error.contains("these stay"), "{:?}", renewed.failed);
    assert_eq!(claimed(&database, &raw).await?, [0, 1, 0]);
    Ok(())
}

/// All of them are released where nothing is to be claimed.
#[tokio::test]
async fn without_claims_all_is_released_in_all_catalogs() -> Result<()> {
    let database = TestDatabase::new().await?;
    let raw = tables(&database, &["a", "b"]).await?;
    renew(&database.tailrace(), &settings(), None).await?;
    assert_eq!(claimed(&database, &raw).await?, [1, 1]);
    let off = tailrace::claims::Settings { claims: false, ..settings() };
    let renewed = renew(&database.tailrace(), &off, None).await?;
    assert_eq!((renewed.files, renewed.failed), (0, vec![]));
    assert_eq!(claimed(&database, &raw).await?, [0, 0]);
    Ok(())
}

/// One whose clock is refused, one that is not whole, one that was restored and two that are well: each is
/// dealt with as if it were alone.
#[tokio::test]
async fn catalogs_in_doubt_beside_those_that_are_well() -> Result<()> {
    let database = TestDatabase::new().await?;
    let raw = tables(&database, &["a_well", "b_refused", "c_part", "d_restored", "e_well"]).await?;
    database.sweep().await?;
    for table in &raw {
        table.set_property(PROPERTY, Some(WEEK)).await?;
        table.evolve_spec(&[Field::month("at")]).await?;
    }
    let id = |place: usize| raw[place].catalog.catalog_id;
    // The database's clock went on by a day since the last pass, and the host's did not.
    let jumped = format!(
        "UPDATE tailrace.clock_memory SET accepted_now = accepted_now - interval '1 day', boot_ms = null,
                process = null WHERE catalog_id = {}",
        id(1)
    );
    let part = format!(
        "CREATE TABLE public.loaded_later AS
           SELECT * FROM hog_partition_field WHERE catalog_id = {0};
         DELETE FROM hog_partition_field WHERE catalog_id = {0}",
        id(2)
    );
    let restored = format!(
        "INSERT INTO tailrace.noted_head (catalog_id, snapshot_id, snapshot_time, noted_at)
         SELECT catalog_id, last_snapshot_id + 5, now(), now() FROM hog_catalog WHERE catalog_id = {}",
        id(3)
    );
    for change in [jumped, part, restored] {
        database.sql(&change).await?;
    }

    let renewed = renew(&database.tailrace(), &settings(), None).await?;

    let failed: Vec<_> =
        renewed.failed.iter().map(|one| (one.catalog.as_str(), &one.table)).collect();
    assert_eq!(failed, [("b_refused", &None)]);
    assert!(renewed.failed[0].error.starts_with("nothing is claimed or released: "));
    assert_eq!((renewed.tables, renewed.files), (3, 3));
    // What a spec without fields means is not known.
    assert_eq!(claimed(&database, &raw).await?, [1, 0, 0, 1, 1]);
    let mirrored = "tailrace.policy p ON p.catalog_id = c.catalog_id AND p.source = 'property'";
    assert_eq!(names(&database, mirrored).await?, "a_well e_well");
    let copied = "tailrace.spec_copy k ON k.catalog_id = c.catalog_id AND k.spec_id = 2";
    assert_eq!(names(&database, copied).await?, "a_well e_well");
    let noted = "tailrace.catalog_state s ON s.catalog_id = c.catalog_id
                   AND s.specs_copied_at_version = c.schema_version";
    assert_eq!(names(&database, noted).await?, "a_well e_well");

    // When its fields are loaded, the one that was not whole is looked after with no other version.
    database.sql("INSERT INTO hog_partition_field SELECT * FROM public.loaded_later").await?;
    renew(&database.tailrace(), &settings(), None).await?;
    assert_eq!(names(&database, copied).await?, "a_well c_part e_well");
    assert_eq!(names(&database, mirrored).await?, "a_well c_part e_well");
    assert_eq!(claimed(&database, &raw).await?, [1, 0, 1, 1, 1]);
    Ok(())
}
