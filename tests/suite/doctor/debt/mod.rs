//! Tests of `tailrace debt`: compaction debt by the server's sample, with and without the drop
//! window.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::policy::Mode;
use tailrace_kit::lake::{Field, Table};

use crate::support::TestDatabase;
use crate::support::program::days_ago;

/// A tier of the sample, as the server's sampler writes it.
pub struct Tier<'a> {
    /// A generation may be published or not.
    pub generation: i64,
    /// Whose.
    pub table: &'a Table,
    /// `None` for files without a spec.
    pub values: Option<&'a [&'a str]>,
    /// files, small files, selected, bytes, bytes of small ones, rows
    pub counts: [i64; 6],
}

impl TestDatabase {
    /// Writes rows of the sample; each gets a bucket of its own.
    pub async fn sample(&self, tiers: &[Tier<'_>]) -> Result<()> {
        for (at, tier) in tiers.iter().enumerate() {
            let [files, small, selected, bytes, small_bytes, rows] = tier.counts;
            sqlx::query(
                "INSERT INTO hog_maintenance_summary_tier (catalog_id, generation, bucket_key,
                   table_id, spec_id, partition_values, quota, remaining, pending, selected,
                   file_count, small_count, total_bytes, small_bytes, record_count)
                 VALUES ($1, $2, $3, $4, $5, $6, 8, 1, 0, $7, $8, $9, $10, $11, $12)",
            )
            .bind(tier.table.catalog.catalog_id)
            .bind(tier.generation)
            .bind(format!("{}/{at}", tier.table.table_id))
            .bind(tier.table.table_id)
            .bind(tier.values.map(|_| 1_i64))
            .bind(tier.values)
            .bind(selected)
            .bind(files)
            .bind(small)
            .bind(bytes)
            .bind(small_bytes)
            .bind(rows)
            .execute(self.lake.pool())
            .await?;
        }
        Ok(())
    }

    /// Publishes a generation, with measures of the same or of another one.
    pub async fn publish(&self, table: &Table, generation: i64, measures: i64) -> Result<()> {
        let catalog_id = table.catalog.catalog_id;
        self.sql(&format!(
            "INSERT INTO hog_maintenance_summary (catalog_id, generation, published_generation,
               measures_generation, sampled_at, sample)
             VALUES ({catalog_id}, {generation} + 1, {generation}, {measures},
                     '2026-09-17T00:00:00Z', '{{}}')"
        ))
        .await
    }
}

fn amount(counts: [i64; 5], records: Option<i64>) -> Value {
    let [files, small_files, selected, bytes, selected_bytes] = counts;
    json!({"files": files, "small_files": small_files, "selected": selected, "bytes": bytes,
           "selected_bytes": selected_bytes, "records": records})
}

/// A policy of a week at day 7 drops what is 8 days old, and within a `compaction.lead` of a day what is 7
/// days old.
#[tokio::test]
async fn the_window_is_what_expires_within_a_day() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let days: Vec<String> = [9, 8, 7, 6, 0].map(days_ago).into();
    let values: Vec<[&str; 1]> = days.iter().map(|day| [day.as_str()]).collect();
    let tier = |generation, at: usize, counts| Tier {
        generation,
        table: &table,
        values: Some(&values[at]),
        counts,
    };
    database
        .sample(&[
            // All selected: all bytes. Half of the small ones selected: half of their bytes.
            tier(3, 0, [4, 4, 4, 400, 400, 40]),
            tier(3, 0, [2, 0, 0, 9_000, 0, 90]),
            tier(3, 1, [6, 4, 2, 1_000, 100, 60]),
            tier(3, 2, [1, 1, 0, 7, 7, 1]),
            tier(3, 3, [10, 10, 10, 50, 50, 5]),
            tier(3, 4, [3, 0, 1, 300, 0, 30]),
            Tier { generation: 3, table: &table, values: None, counts: [1, 1, 1, 11, 11, 1] },
            // The next generation is being written; the last one was not cleared yet.
            tier(4, 0, [1_000, 1_000, 1_000, 1_000, 1_000, 1_000]),
            tier(2, 0, [1_000, 1_000, 1_000, 1_000, 1_000, 1_000]),
        ])
        .await?;
    database.publish(&table, 3, 3).await?;

    let debt = database.done(&["debt", "--output", "json"]).await?;

    assert_eq!(debt["lead_seconds"], 86_400);
    assert_eq!(debt["catalogs"].as_array().map(Vec::len), Some(1));
    let catalog = &debt["catalogs"][0];
    assert_eq!(
        (&catalog["catalog"], &catalog["generation"], &catalog["sampled_at"]),
        (&json!("lake"), &json!(3), &json!("2026-09-17T00:00:00Z"))
    );
    let expected = json!([{
        "namespace": "events", "table": "raw", "is_enforced": true, "problem": null,
        "all": amount([27, 20, 18, 10_768, 611], Some(227)),
        "window": amount([13, 9, 6, 10_407, 450], Some(191)),
        "without_window": amount([14, 11, 12, 361, 161], Some(36)),
        "saved_rewrite_bytes": 450,
    }]);
    assert_eq!(catalog["tables"], expected);

    let text = database.ran(&["debt"]).await?;
    assert_eq!(text.code, 0, "{text:?}");
    assert!(text.out.contains("lake: generation 3, sampled at 2026-09-17T00:00:00Z"), "{text:?}");
    assert!(
        text.out.contains("not rewritten thanks to compaction claims: about 450 B"),
        "{text:?}"
    );
    Ok(())
}

/// Only a policy that enforces has a window, and measures of another generation do not count.
#[tokio::test]
async fn only_enforcing_policies_have_a_window() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let mut tables = Vec::new();
    for (name, mode) in [
        ("a", Some(Mode::Enforce)),
        ("b", Some(Mode::Observe)),
        ("c", Some(Mode::Paused)),
        ("d", None),
    ] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        if let Some(mode) = mode {
            database.govern_as(&table, "at", "7d", mode).await?;
        }
        tables.push(table);
    }
    let refused = database.table(&catalog, "e", &[Field::day("at")]).await?;
    refused.set_property("partition_retention", Some(r#"{"field":"kind","keep":"7d"}"#)).await?;
    tables.push(refused);
    let gone = database.table(&catalog, "gone", &[Field::day("at")]).await?;
    tables.push(gone);
    for table in &tables {
        let values: &[&str] = &["18000"];
        let counts = [2, 2, 2, 20, 20, 2];
        database.sample(&[Tier { generation: 1, table, values: Some(values), counts }]).await?;
    }
    database.publish(&tables[0], 1, 0).await?;
    tables[5].drop_table().await?;

    let debt = database.done(&["debt", "--catalog", "lake", "--output", "json"]).await?;

    let shown = debt["catalogs"][0]["tables"].as_array().into_iter().flatten();
    let shown: Vec<_> = shown
        .map(|table| {
            let saved = table["saved_rewrite_bytes"].as_i64();
            assert_eq!(table["all"], amount([2, 2, 2, 20, 20], None));
            (table["table"].as_str(), table["is_enforced"].as_bool(), saved)
        })
        .collect();
    assert_eq!(
        shown,
        [
            (Some("a"), Some(true), Some(20)),
            (Some("b"), Some(false), Some(0)),
            (Some("c"), Some(false), Some(0)),
            (Some("d"), Some(false), Some(0)),
            (Some("e"), Some(false), Some(0)),
        ]
    );
    let problem = debt["catalogs"][0]["tables"][4]["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("kind"), "{problem}");
    let unknown = database.ran(&["debt", "--catalog", "sea"]).await?;
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (1, "tailrace: there is no catalog \"sea\"\n")
    );
    Ok(())
}

#[tokio::test]
async fn without_a_sample_there_is_nothing_to_show() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let nothing = "\nlake: the server has published no sample\n";
    let ran = database.ran(&["debt"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.ends_with(nothing), "{ran:?}");
    // Sampling has begun and nothing is published.
    database.sample(&[Tier { generation: 1, table: &table, values: None, counts: [1; 6] }]).await?;
    database.publish(&table, 0, -1).await?;
    let ran = database.ran(&["debt"]).await?;
    assert!(ran.out.ends_with(nothing), "{ran:?}");
    // A server that has no sampler at all.
    database.sql("DROP TABLE hog_maintenance_summary, hog_maintenance_summary_tier").await?;
    let ran = database.ran(&["debt"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.ends_with(nothing), "{ran:?}");
    Ok(())
}

/// Before V22 the sample has no rows and no generation of measures.
#[tokio::test]
async fn an_older_sampler_is_read_too() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let (values, counts): (&[&str], _) = (&["18000"], [2, 2, 1, 20, 20, 2]);
    database.sample(&[Tier { generation: 1, table: &table, values: Some(values), counts }]).await?;
    database.publish(&table, 1, 1).await?;
    database.lake.downgrade(21).await?;
    let debt = database.done(&["debt", "--output", "json"]).await?;
    let table = &debt["catalogs"][0]["tables"][0];
    assert_eq!(table["window"], amount([2, 2, 1, 20, 10], None));
    Ok(())
}

/// What may be a value of an earlier field goes only by the proof of its files, and the sample has
/// none: no window has it, neither this one nor that of SQL.
#[tokio::test]
async fn an_ambiguous_tuple_stays_debt() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::bucket("kind", 16)]).await?;
    assert_eq!(table.evolve_spec(&[Field::day("at")]).await?, 2);
    database.govern(&table, "at", "7d").await?;
    let day = days_ago(9);
    for (value, selected) in [("7", 1), ("15", 2), ("16", 4), (day.as_str(), 8)] {
        let counts = [selected, selected, selected, 0, 0, 0];
        let tier = Tier { generation: 1, table: &table, values: Some(&[value]), counts };
        database.sample(&[tier]).await?;
        // Each row is the first one of its call.
        database
            .sql(&format!(
                "UPDATE hog_maintenance_summary_tier
                 SET spec_id = 2, bucket_key = 'of {value}' WHERE spec_id = 1"
            ))
            .await?;
    }
    database.publish(&table, 1, 1).await?;
    let debt = database.done(&["debt", "--output", "json"]).await?;
    let of_table = &debt["catalogs"][0]["tables"][0];
    let selected = |part: &str| of_table[part]["selected"].as_i64();
    assert_eq!((selected("window"), selected("without_window")), (Some(12), Some(3)));
    let by_sql = "SELECT sum(selected) FROM hog_maintenance_summary_tier t
        WHERE NOT tailrace.in_drop_window(catalog_id, table_id, spec_id, partition_values)";
    assert_eq!(database.text(by_sql).await?.as_deref(), Some("3"));
    Ok(())
}
