//! Tests of a server whose tables are in another schema than `public`.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::{Field, Lake, NewFile};

use crate::support::TestDatabase;
use crate::support::governed::live_ids;

#[tokio::test]
async fn the_catalog_may_be_in_any_schema() -> Result<()> {
    for schema in ["hog", "Hog-Lake", "$user_"] {
        let database = match TestDatabase::in_schema(schema).await {
            Ok(database) => database,
            Err(error) => return Err(error.context(schema.to_owned())),
        };
        let ran = database.ran(&["migrate"]).await?;
        if schema == "$user_" {
            assert_eq!(ran.code, 2, "{ran:?}");
            continue;
        }
        assert_eq!(ran.code, 0, "{schema}: {ran:?}");
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        table.append(vec![NewFile::of(["18000"]), NewFile::of(["99999"])]).await?;
        database.policy("lake", "events.raw", "day(at)", "7d").await?;
        let plan = database.done(&["plan", "--output", "json"]).await?;
        assert_eq!(plan["tables"][0]["expired"][0]["files"], 1, "{schema}");
        let swept = database.done(&["sweep", "--output", "json"]).await?;
        assert_eq!(swept["tables"][0]["outcome"], "dropped", "{schema}");
        assert_eq!(live_ids(&table).await?.len(), 1);
        let stray = database
            .text("SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace")
            .await?;
        assert_eq!(stray.as_deref(), Some("0"));
    }
    Ok(())
}

/// Where the role's own search_path leads elsewhere, to a lookalike even, the configured schema
/// counts.
#[tokio::test]
async fn a_role_with_another_search_path_finds_the_configured_one() -> Result<()> {
    let database = TestDatabase::in_schema("hog").await?;
    Lake::install(&database.pool, "public").await?;
    database
        .sql(
            "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = public',
               current_database()); END $$",
        )
        .await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["18000"])]).await?;
    database.policy("lake", "events.raw", "day(at)", "7d").await?;
    assert_eq!(database.sweep_one().await?.outcome, Outcome::Dropped);
    assert_eq!(live_ids(&table).await?.len(), 0);
    Ok(())
}

#[tokio::test]
async fn another_schema_is_refused_once_one_is_recorded() -> Result<()> {
    let database = TestDatabase::in_schema("hog").await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    // A second lake, so that it is not for want of tables.
    Lake::install(&database.pool, "public").await?;
    let env = [("TAILRACE__DATABASE__SCHEMA", "public")];
    for args in [vec!["migrate"], vec!["plan"], vec!["sweep"], vec!["policy", "list"]] {
        let ran = database.ran_with(&args, &env).await?;
        assert_eq!((ran.code, ran.out.as_str()), (1, ""), "{args:?}");
        assert_eq!(
            ran.err,
            "tailrace: tailrace was set up in this database for the catalog in schema \"hog\", \
             and database.schema says \"public\": set it back, for policies and history belong to \
             that catalog\n"
        );
    }
    let recorded = database.text("SELECT catalog_schema FROM tailrace.installation").await?;
    assert_eq!(recorded.as_deref(), Some("hog"));
    assert_eq!(database.ran(&["plan"]).await?.code, 0);
    Ok(())
}

/// What a migration creates is bound to the schema of the catalog, so it is asked for first.
#[tokio::test]
async fn with_another_schema_no_pending_migration_is_applied() -> Result<()> {
    let database = TestDatabase::in_schema("hog").await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    Lake::install(&database.pool, "public").await?;
    let applied = "SELECT count(*) - 1 FROM tailrace.schema_migration";
    let pending = database.text(applied).await?.unwrap_or_default();
    // An installation of the first release.
    let first = include_str!("../../../migrations/0001_policies_and_drops.sql");
    database
        .sql(&format!(
            "CREATE TABLE kept AS SELECT * FROM tailrace.schema_migration WHERE version = 1;
             DROP SCHEMA tailrace CASCADE; CREATE SCHEMA tailrace;
             CREATE TABLE tailrace.schema_migration (LIKE kept, PRIMARY KEY (version));
             ALTER TABLE tailrace.schema_migration
               ALTER installed_on SET DEFAULT now();
             INSERT INTO tailrace.schema_migration SELECT * FROM kept;
             DROP TABLE kept;
             {first}
             INSERT INTO tailrace.installation (catalog_schema) VALUES ('hog')"
        ))
        .await?;
    let env = [("TAILRACE__DATABASE__SCHEMA", "public")];
    let refused = database.ran_with(&["migrate"], &env).await?;
    assert_eq!((refused.code, refused.out.as_str()), (1, ""));
    assert!(refused.err.contains("for the catalog in schema \"hog\""), "{refused:?}");
    let applied = "SELECT count(*) FROM tailrace.schema_migration";
    assert_eq!(database.text(applied).await?.as_deref(), Some("1"));

    let migrated = database.ran(&["migrate"]).await?;
    let told = format!("Applied {pending} migrations; ");
    assert!(migrated.out.starts_with(&told), "{migrated:?}");
    // What the later ones created reads the catalog of the recorded schema.
    let reads = database.text(
        "SELECT bool_and(position('hog.hog_' in prosrc) > 0) FROM pg_proc
          WHERE pronamespace = 'tailrace'::regnamespace AND prosrc LIKE '%.hog\\_%'",
    );
    assert_eq!(reads.await?.as_deref(), Some("true"));
    Ok(())
}
