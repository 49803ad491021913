//! Tests of which owners of objects `tailrace migrate` refuses, and which it accepts.

use anyhow::Result;

use super::Mallory;
use super::hostile::plant;
use crate::support::TestDatabase;
use crate::support::governed::Ran;

const OURS: &str = "SELECT count(*) FROM pg_class
                    WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = 'tailrace')";

async fn fresh() -> Result<TestDatabase> {
    TestDatabase::in_schema("public").await
}

async fn migrated_by(database: &TestDatabase, role: &str) -> Result<Ran> {
    let url = database.url().replace("//postgres@", &format!("//{role}@"));
    database.ran_with(&["migrate"], &[("TAILRACE__DATABASE__URL", &url)]).await
}

fn refusal(object: &str, owner: &str) -> String {
    format!(
        "tailrace: the {object} belongs to the role {owner}, and tailrace would work with whatever \
         that role puts there: drop it (`drop {object} cascade;`) if tailrace did not make it; else \
         give it to the role that migrates, as a superuser (`alter {object} owner to postgres;`), or \
         migrate as {owner} or as a member of it\n"
    )
}

#[tokio::test]
async fn a_schema_that_somebody_else_owns_is_refused() -> Result<()> {
    let database = fresh().await?;
    let mallory = Mallory::new(&database).await?;
    let name = &mallory.name;
    database.sql(&format!("CREATE SCHEMA tailrace AUTHORIZATION {name}")).await?;
    let ran = database.ran(&["migrate"]).await?;
    assert_eq!((ran.code, ran.err), (1, refusal("schema tailrace", name)));
    assert_eq!(database.text(OURS).await?.as_deref(), Some("0"));
    // As the message says.
    database.sql("ALTER SCHEMA tailrace OWNER TO postgres").await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    // And one that is up to date, ledger and all, may be a forgery.
    database.sql(&format!("ALTER SCHEMA tailrace OWNER TO {name}")).await?;
    let ran = database.ran(&["migrate"]).await?;
    assert_eq!((ran.code, ran.err), (1, refusal("schema tailrace", name)));
    let said = database.doctor().await?;
    let what = format!("another role owns the schema tailrace ({name})");
    assert!(said.of("creators").contains(&("note", what.as_str())), "{:?}", said.of("creators"));
    // One that is a member of the role that owns it may migrate.
    database.sql("DROP SCHEMA tailrace CASCADE").await?;
    let member = format!("member_of_{name}");
    database
        .sql(&format!(
            "CREATE SCHEMA tailrace AUTHORIZATION {name};
             DROP ROLE IF EXISTS {member}; CREATE ROLE {member} LOGIN IN ROLE {name}"
        ))
        .await?;
    let ran = migrated_by(&database, &member).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    database.sql(&format!("DROP OWNED BY {member} CASCADE; DROP ROLE {member}")).await?;
    mallory.end().await
}

/// A superuser made it, or the owner of the catalog: both could do worse.
#[tokio::test]
async fn a_schema_that_an_administrator_made_for_the_role_is_as_good() -> Result<()> {
    let database = fresh().await?;
    let mallory = Mallory::new(&database).await?;
    let name = &mallory.name;
    database
        .sql(&format!("CREATE SCHEMA tailrace; GRANT USAGE, CREATE ON SCHEMA tailrace TO {name}"))
        .await?;
    let ran = migrated_by(&database, name).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    mallory.end().await?;

    let database = fresh().await?;
    let mallory = Mallory::new(&database).await?;
    let name = &mallory.name;
    database
        .sql(&format!(
            "ALTER TABLE hog_catalog OWNER TO {name}; CREATE SCHEMA tailrace AUTHORIZATION {name}"
        ))
        .await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    Ok(())
}

#[tokio::test]
async fn a_table_or_function_of_somebody_else_in_it_is_refused() -> Result<()> {
    for (planted, object) in [
        ("CREATE TABLE tailrace.policy (x int)", "table tailrace.policy"),
        ("CREATE VIEW tailrace.schema_migration AS SELECT 1", "view tailrace.schema_migration"),
        (
            "CREATE FUNCTION tailrace.kinds_of_field(name, text[]) RETURNS text[] LANGUAGE sql
             AS 'SELECT null::text[]'",
            "function tailrace.kinds_of_field(name, text[])",
        ),
    ] {
        let database = fresh().await?;
        let mallory = Mallory::new(&database).await?;
        let name = &mallory.name;
        database
            .sql(&format!(
                "CREATE SCHEMA tailrace; GRANT USAGE, CREATE ON SCHEMA tailrace TO {name}"
            ))
            .await?;
        mallory.sql(planted).await?;
        // Nothing of it is even read: a view runs its functions as whoever reads it.
        let ran = database.ran(&["migrate"]).await?;
        assert_eq!((ran.code, ran.err), (1, refusal(object, name)), "{planted}");
        mallory.end().await?;
    }
    Ok(())
}

/// The texts of the first migrations cannot change any more: what they call by a bare name is looked
/// for before they run.
#[tokio::test]
async fn a_fresh_migration_calls_nothing_of_somebody_else() -> Result<()> {
    let database = fresh().await?;
    let mallory = plant(&database).await?;
    for signature in ["quote_ident(name)", "quote_ident(name[])"] {
        let ran = database.ran(&["migrate"]).await?;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert_eq!(
            ran.err,
            format!(
                "tailrace: the function {signature} of the role {} in the catalog's schema would be \
                 called by the migrations of tailrace in place of Postgres' own: drop it, or rename \
                 it until tailrace is migrated\n",
                mallory.name
            )
        );
        assert_eq!(database.text(OURS).await?.as_deref(), Some("0"));
        mallory.sql(&format!("DROP FUNCTION public.{signature}")).await?;
    }
    for _ in 0..2 {
        let ran = database.ran(&["migrate"]).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
    }
    assert!(!mallory.was_called().await?);
    let mut session = database.tailrace().session().await?;
    let wrong = super::statements::references(&mut session).await?;
    assert_eq!(wrong, Vec::<String>::new());
    Ok(())
}

/// A schema that was set up for one catalog gets no functions for another.
#[tokio::test]
async fn a_wrong_schema_is_refused_before_anything_is_applied() -> Result<()> {
    let database = fresh().await?;
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    tailrace_kit::lake::Lake::install(&database.pool, "other").await?;
    database.sql("DELETE FROM tailrace.schema_migration WHERE version = 6").await?;
    let env = [("TAILRACE__DATABASE__SCHEMA", "other")];
    let ran = database.ran_with(&["migrate"], &env).await?;
    assert!(ran.err.contains("database.schema says \"other\""), "{ran:?}");
    let applied = "SELECT count(*) FROM tailrace.schema_migration WHERE version = 6";
    assert_eq!(database.text(applied).await?.as_deref(), Some("0"));
    assert_eq!(database.ran(&["migrate"]).await?.code, 0);
    let text = "SELECT prosrc FROM pg_proc WHERE proname = 'enforcing_policies'";
    let text = database.text(text).await?.unwrap_or_default();
    assert!(text.contains("public.hog_table"), "{text}");
    Ok(())
}
