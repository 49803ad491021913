//! A catalog in which a wrong index shows. It has one governed table, and neighbours that share its
//! partition values, have many values of their own, or whose files came in one commit.

use anyhow::Result;
use sqlx::AssertSqlSafe;
use tailrace_kit::lake::{Catalog, CatalogOptions, Column, Field, Lake, Table};
use tokio::sync::OnceCell;

use crate::support::TestDatabase;

/// The database that the others are copied from.
const TEMPLATE: &str = "crowd_template";

static MADE: OnceCell<()> = OnceCell::const_new();

/// What the planner knows of the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Statistics {
    /// Nothing: the tables are new, and nobody has analyzed them.
    None,
    /// What an analysis says.
    Gathered,
}

/// How long the policies keep: between the oldest files that stay and the youngest that go there
/// are fifty days on both sides, so that no hour of a test matters.
pub const KEEP: &str = "350d";

/// How old in days the files are that have expired: all tables by day have them.
pub const EXPIRED: std::ops::RangeInclusive<i64> = 400..=402;

/// The catalog `lake`, with `events.raw`, `events.small`, which has 100 live files that stay, 10 a
/// day, and 30 that have expired, and three tables without a policy: `noisy` with 100 files on each
/// of the days of `raw`, `names` with 20,000 files of as many texts, and `bulk` with 10,000 files of
/// one commit and one day.
pub struct Crowd {
    pub database: TestDatabase,
    pub catalog: Catalog,
    /// 30,000 live files that stay, 100 a day, and 300 that have expired, each tenth with a live
    /// vector and each tenth with one that ended; 4,000 files of older days that ended, as where a
    /// consumer lags. Those of the last 150 days are of a second spec, by day and kind.
    pub raw: Table,
}

impl Crowd {
    /// A crowd of one's own, with policies on `raw` and `small`.
    pub async fn new(statistics: Statistics) -> Result<Self> {
        MADE.get_or_try_init(|| TestDatabase::make_template(TEMPLATE, fill)).await?;
        let database = TestDatabase::copy_of(TEMPLATE).await?;
        let catalog = database.lake.open_catalog("lake").await?;
        let raw = catalog.open_table("events", "raw").await?;
        for table in [&raw, &catalog.open_table("events", "small").await?] {
            database.govern(table, "at", KEEP).await?;
        }
        if statistics == Statistics::Gathered {
            database.sql("ANALYZE").await?;
        }
        Ok(Crowd { database, catalog, raw })
    }

    /// As many live files again in every table, with values and vectors as they are.
    pub async fn double(&self) -> Result<()> {
        self.database.sql(include_str!("double.sql")).await
    }

    /// The spec of the files of `raw` that are 150 days old and older.
    pub async fn first_spec(&self) -> Result<i64> {
        let query = "SELECT min(spec_id) FROM hog_partition_spec WHERE table_id = $1";
        Ok(sqlx::query_scalar(query).bind(self.raw.table_id).fetch_one(&self.database.pool).await?)
    }
}

async fn fill(lake: &Lake) -> Result<()> {
    let catalog = lake.catalog("lake", CatalogOptions::default()).await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [Column::new("at", "timestamptz"), Column::new("kind", "string")];
    let day = [Field::day("at")];
    let raw = catalog.create_table(&namespace, "raw", &columns, &day).await?;
    let by_kind = [Field::day("at"), Field::identity("kind")];
    let first_spec = raw.live_spec().await?.unwrap_or_default();
    raw.evolve_spec(&by_kind).await?;
    let small = catalog.create_table(&namespace, "small", &columns, &day).await?;
    let noisy = catalog.create_table(&namespace, "noisy", &columns, &day).await?;
    let names = [Field::identity("kind")];
    let names = catalog.create_table(&namespace, "names", &columns, &names).await?;
    let bulk = catalog.create_table(&namespace, "bulk", &columns, &day).await?;
    let second_spec = raw.live_spec().await?.unwrap_or_default();
    let mut staged = format!(
        "CREATE TEMP TABLE staged AS
         SELECT {raw}::bigint AS table_id,
                CASE WHEN age < 150 THEN {second_spec} ELSE {first_spec} END::bigint AS spec_id,
                age, no, ended, NULL::text AS text,
                CASE WHEN age < 150 THEN 'kind ' || no % 3 END AS kind
           FROM (SELECT age, no, false FROM generate_series(0, 402) AS age,
                        generate_series(1, 100) AS no
                  WHERE age < 300 OR age >= 400
                 UNION ALL
                 SELECT age, no, true FROM generate_series(500, 699) AS age,
                        generate_series(1, 20) AS no) AS files (age, no, ended);",
        raw = raw.table_id,
    );
    for (table, rows) in [
        (
            &noisy,
            "SELECT age, no, NULL FROM generate_series(0, 402) AS age, generate_series(1, 100) AS no
              WHERE age < 300 OR age >= 400",
        ),
        (
            &small,
            "SELECT age, no, NULL FROM generate_series(0, 402) AS age, generate_series(1, 10) AS no
              WHERE age < 10 OR age >= 400",
        ),
        (&names, "SELECT no % 300, no, md5(no::text) FROM generate_series(1, 20000) AS no"),
        (&bulk, "SELECT 0, no, NULL FROM generate_series(1, 10000) AS no"),
    ] {
        let spec_id = table.live_spec().await?.unwrap_or_default();
        let table_id = table.table_id;
        staged.push_str(&format!(
            "INSERT INTO staged SELECT {table_id}, {spec_id}, age, no, false, text, NULL
               FROM ({rows}) AS files (age, no, text);"
        ));
    }
    let rows = include_str!("crowd.sql").replace(":catalog", &catalog.catalog_id.to_string());
    sqlx::raw_sql(AssertSqlSafe(staged + &rows)).execute(lake.pool()).await?;
    Ok(())
}
