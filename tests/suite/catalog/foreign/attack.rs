//! Tests of single foreign objects, each of which would have been enough to mislead tailrace.

use anyhow::Result;
use sqlx::AssertSqlSafe;
use tailrace::catalog::connect::close;
use tailrace::catalog::drop_lifecycle::unindexed::has_ended_index;
use tailrace::catalog::values::has_lookup_index;
use tailrace::claims::renew;
use tailrace_kit::lake::{Field, NewFile};

use super::Mallory;
use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::days_ago;

/// A function that makes the property of another table appear: one sweep ended all of its files.
#[tokio::test]
async fn a_property_that_a_foreign_function_invents_is_no_policy() -> Result<()> {
    let property = r#"pg_catalog.jsonb_build_object('properties', pg_catalog.jsonb_build_object(
        'partition_retention', '{"field":"at","keep":"1d"}'))"#;
    let overloads = [
        format!(
            "CREATE FUNCTION public.to_jsonb(public.hog_table_version) RETURNS jsonb LANGUAGE sql
             IMMUTABLE AS $$ SELECT {property} $$;
             CREATE FUNCTION public.to_jsonb(public.hog_table) RETURNS jsonb LANGUAGE sql
             IMMUTABLE AS $$ SELECT '{{}}'::jsonb $$"
        ),
        // Where the literal of a key counts as of the other operand's type.
        "CREATE FUNCTION public.of_key(jsonb, jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE
         AS $$ SELECT '{\"field\":\"at\",\"keep\":\"1d\"}'::jsonb $$;
         CREATE OPERATOR public.-> (LEFTARG = jsonb, RIGHTARG = jsonb, FUNCTION = public.of_key)"
            .to_owned(),
    ];
    for overload in overloads {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let free = database.table(&catalog, "free", &[Field::day("at")]).await?;
        let ids = free.append(vec![NewFile::of([days_ago(9)]); 3]).await?.file_ids;
        let mallory = Mallory::new(&database).await?;
        mallory.sql(&overload).await?;

        let swept = database.done(&["sweep", "--output", "json"]).await?;

        assert_eq!(swept["tables"], serde_json::json!([]), "{overload}");
        assert_eq!(live_ids(&free).await?, ids, "{overload}");
        mallory.end().await?;
    }
    Ok(())
}

/// A server before V15 has no table of claims: one that somebody else made by that name runs its
/// triggers as whoever writes into it.
#[tokio::test]
async fn a_table_of_somebody_else_is_none_of_the_server() -> Result<()> {
    let database = TestDatabase::new().await?;
    let claims = database
        .text(
            "SELECT pg_catalog.string_agg(attname || ' ' || format_type(atttypid, null), ', ')
               FROM pg_attribute WHERE attrelid = 'hog_compaction_claim'::regclass AND attnum > 0",
        )
        .await?
        .unwrap_or_default();
    database.lake.downgrade(14).await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![NewFile::of([days_ago(9)])]).await?;
    database.govern(&table, "at", "7d").await?;
    let mallory = Mallory::new(&database).await?;
    mallory
        .sql(&format!(
            "CREATE TABLE public.hog_compaction_claim ({claims},
               PRIMARY KEY (catalog_id, table_id, group_key));
             GRANT ALL ON public.hog_compaction_claim TO PUBLIC;
             CREATE FUNCTION public.taken() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN RAISE EXCEPTION 'somebody else''s trigger runs as %', current_user; END $$;
             CREATE TRIGGER taken BEFORE INSERT ON public.hog_compaction_claim
               EXECUTE FUNCTION public.taken()"
        ))
        .await?;

    let renewed = renew(&database.tailrace(), &crate::claims::settings(), None).await?;

    assert_eq!((renewed.files, renewed.failed), (0, vec![]));
    let said = database.doctor().await?;
    let what = format!(
        "not the owner of hog_catalog, but another role owns the table \
         public.hog_compaction_claim ({})",
        mallory.name
    );
    assert!(said.of("creators").contains(&("warning", what.as_str())), "{:?}", said.of("creators"));
    mallory.end().await
}

/// Nor is an index of somebody else's table one by which the server's files are found.
#[tokio::test]
async fn an_index_of_somebody_else_is_none_of_the_server() -> Result<()> {
    let database = TestDatabase::new().await?;
    let mut session = database.tailrace().session().await?;
    assert!(has_ended_index(&mut session).await? && has_lookup_index(&mut session).await?);
    database.lake.downgrade(18).await?;
    let mallory = Mallory::new(&database).await?;
    for index in ["hog_data_file_ended", "hog_file_partition_value_lookup"] {
        let planted = format!(
            "CREATE TABLE public.of_{index} (x int);
                               CREATE INDEX {index} ON public.of_{index} (x)"
        );
        mallory.sql(&planted).await?;
        let found = format!("SELECT to_regclass('{index}') IS NOT NULL");
        let found: bool = sqlx::query_scalar(AssertSqlSafe(found)).fetch_one(&mut session).await?;
        assert!(found, "{index}");
    }
    assert!(!has_ended_index(&mut session).await?);
    assert!(!has_lookup_index(&mut session).await?);
    close(session).await;
    mallory.end().await
}
