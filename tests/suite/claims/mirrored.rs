//! Tests that a renewal mirrors the tables' properties, as a pass does.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::claims::{Renewed, Settings, renew};
use tailrace::rules::clock_guard::Reading;
use tailrace_kit::lake::{Field, Table};

use super::settings;
use crate::support::TestDatabase;

const PROPERTY: &str = "partition_retention";
const WEEK: &str = r#"{"field": "at", "keep": "7d"}"#;

async fn scene() -> Result<(TestDatabase, Table)> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.set_property(PROPERTY, Some(WEEK)).await?;
    Ok((database, table))
}

async fn renewed(database: &TestDatabase, settings: &Settings) -> Result<Renewed> {
    renew(&database.tailrace(), settings, None).await
}

/// The mirrors: keep, text and problem.
async fn mirrors(database: &TestDatabase) -> Result<Vec<Value>> {
    let rows = database
        .rows(
            "SELECT keep, property_text AS text, problem IS NOT NULL AS refused FROM tailrace.policy
             WHERE source = 'property'",
        )
        .await?;
    rows.iter().map(|row| Ok(serde_json::from_str(row)?)).collect()
}

fn mirror(keep: &str, text: &str, refused: bool) -> [Value; 1] {
    [json!({"keep": keep, "text": text, "refused": refused})]
}

#[tokio::test]
async fn what_a_property_says_anew_is_mirrored() -> Result<()> {
    let (database, table) = scene().await?;
    for settings in [settings(), Settings { claims: false, ..settings() }] {
        table.set_property(PROPERTY, Some(WEEK)).await?;
        assert_eq!(renewed(&database, &settings).await?.failed, []);
        assert_eq!(mirrors(&database).await?, mirror("7d", WEEK, false));
        let longer = r#"{"field": "at", "keep": "8d"}"#;
        table.set_property(PROPERTY, Some(longer)).await?;
        renewed(&database, &settings).await?;
        assert_eq!(mirrors(&database).await?, mirror("8d", longer, false));
        // What says nothing new is not written again.
        let rows = "SELECT * FROM tailrace.policy";
        let before = database.rows(rows).await?;
        renewed(&database, &settings).await?;
        assert_eq!(database.rows(rows).await?, before);
        table.set_property(PROPERTY, Some("{")).await?;
        renewed(&database, &settings).await?;
        assert_eq!(mirrors(&database).await?, mirror("8d", longer, true));
        let before = database.rows(rows).await?;
        renewed(&database, &settings).await?;
        assert_eq!(database.rows(rows).await?, before);
        table.set_property(PROPERTY, None).await?;
        renewed(&database, &settings).await?;
        assert_eq!(mirrors(&database).await?, [] as [Value; 0]);
        // One that was never good has no mirror.
        table.set_property(PROPERTY, Some("{")).await?;
        assert_eq!(renewed(&database, &settings).await?.failed, []);
        assert_eq!(mirrors(&database).await?, [] as [Value; 0]);
    }
    Ok(())
}

/// The mirror beside a stored policy is kept up as well, and what it is bound to stays.
#[tokio::test]
async fn beside_a_stored_policy_and_bound_as_by_a_pass() -> Result<()> {
    let (database, table) = scene().await?;
    database.govern(&table, "at", "30d").await?;
    renewed(&database, &settings()).await?;
    assert_eq!(mirrors(&database).await?, mirror("7d", WEEK, false));
    let bound = table.field_id("at")?;
    table.rename_column("at", "then").await?;
    table.set_property(PROPERTY, Some(r#"{"field": "at", "keep": "9d"}"#)).await?;
    renewed(&database, &settings()).await?;
    let source = "SELECT source_field_id FROM tailrace.policy WHERE source = 'property'";
    assert_eq!(database.text(source).await?, Some(bound.to_string()));
    Ok(())
}

/// By a clock that passes refuse nothing is mirrored; nor in a catalog that was restored, before a pass has
/// settled that, nor in one that is being loaded.
#[tokio::test]
async fn nothing_is_mirrored_where_a_pass_would_not() -> Result<()> {
    let (database, table) = scene().await?;
    let nothing: [Value; 0] = [];
    let now = tailrace::rules::instant::UtcInstant::from(chrono::Utc::now());
    let apart =
        Reading { host: now.plus(std::time::Duration::from_secs(3600)), ..Reading::rehearsed(now) };
    let refused = Settings { clock: Some(apart), ..settings() };
    assert_eq!(renewed(&database, &refused).await?.failed.len(), 1);
    assert_eq!(mirrors(&database).await?, nothing);

    database.sweep().await?;
    let backup = database.back_up("before").await?;
    let longer = r#"{"field": "at", "keep": "8d"}"#;
    table.set_property(PROPERTY, Some(longer)).await?;
    renewed(&database, &settings()).await?;
    assert_eq!(mirrors(&database).await?, mirror("8d", longer, false));
    database.restore(&backup).await?;
    renewed(&database, &settings()).await?;
    assert_eq!(mirrors(&database).await?, mirror("8d", longer, false), "no pass has settled it");
    database.sweep().await?;
    assert_eq!(mirrors(&database).await?, mirror("7d", WEEK, false));

    table.set_property(PROPERTY, Some(longer)).await?;
    let columns = "ALTER TABLE hog_column RENAME TO loaded_later; \
                   CREATE TABLE hog_column (LIKE loaded_later)";
    database.sql(columns).await?;
    renewed(&database, &settings()).await?;
    assert_eq!(mirrors(&database).await?, mirror("7d", WEEK, false), "it is not whole");
    database.sql("DROP TABLE hog_column; ALTER TABLE loaded_later RENAME TO hog_column").await?;
    renewed(&database, &settings()).await?;
    assert_eq!(mirrors(&database).await?, mirror("8d", longer, false));
    Ok(())
}
