//! Tests that no statement of tailrace refers to a foreign object, as the server resolves the
//! statement with every overload in place.

use std::collections::BTreeSet;

use anyhow::Result;
use sqlx::AssertSqlSafe;

use super::hostile::plant;
use super::sql::statements;
use crate::support::TestDatabase;

use tailrace::catalog::session::Session;

/// What the functions of the schema `probe`, or any object of ours, refer to outside of
/// `pg_catalog` and of our schema, of functions and operators. What the server brings is no
/// dependency at all.
const REFERENCES: &str = "
    SELECT pg_catalog.pg_describe_object(d.classid, d.objid, d.objsubid) || ' refers to ' ||
           pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0)
    FROM pg_depend d
    LEFT JOIN pg_proc f ON d.refclassid = 'pg_proc'::regclass AND f.oid = d.refobjid
    LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
    WHERE coalesce(f.pronamespace, o.oprnamespace) = 'public'::regnamespace
      AND NOT EXISTS (SELECT FROM pg_proc own
                      WHERE d.classid = 'pg_proc'::regclass AND own.oid = d.objid
                        AND own.pronamespace = 'public'::regnamespace)
      AND d.classid NOT IN ('pg_operator'::regclass, 'pg_extension'::regclass,
                            'pg_opclass'::regclass, 'pg_opfamily'::regclass, 'pg_amop'::regclass,
                            'pg_amproc'::regclass, 'pg_cast'::regclass, 'pg_type'::regclass)
    ORDER BY 1";

async fn run(session: &mut Session, statement: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(session).await.map(|_| ())
}

/// What refers to something of somebody else. Nobody's function is called by the question itself.
pub async fn references(session: &mut Session) -> Result<Vec<String>> {
    run(session, "SET search_path = pg_catalog".to_owned()).await?;
    Ok(sqlx::query_scalar(REFERENCES).fetch_all(session).await?)
}

/// What is wrong with the statements in this database.
pub async fn wrong(database: &TestDatabase) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut session = database.tailrace().session().await?;
    run(&mut session, "CREATE SCHEMA probe".to_owned()).await?;
    for statement in statements()? {
        let (name, text) = (&statement.name, &statement.text);
        // As the driver sends them: with the types of the parameters; a &str is a text.
        let types: Vec<&str> = statement
            .parameters
            .iter()
            .map(|one| if *one == "name" { "text" } else { one })
            .collect();
        let probe = format!(
            "CREATE FUNCTION probe.\"{name}\"({}) RETURNS void LANGUAGE sql
             BEGIN ATOMIC {text}; END",
            types.join(", ")
        );
        if let Err(error) = run(&mut session, probe).await {
            wrong.push(format!("{name}: {error}: {text}"));
        }
        // As some are prepared ahead: without them.
        if let Err(error) = run(&mut session, format!("PREPARE \"{name}\" AS {text}")).await {
            wrong.push(format!("{name}: {error}: {text}"));
            continue;
        }
        let inferred: Vec<String> = sqlx::query_scalar(
            "SELECT pg_catalog.format_type(t.type::oid, NULL)
             FROM pg_catalog.pg_prepared_statements s,
                  unnest(s.parameter_types, null::text[]) WITH ORDINALITY AS t (type, nothing, at)
             WHERE s.name OPERATOR(pg_catalog.=) $1 ORDER BY t.at",
        )
        .bind(name)
        .fetch_all(&mut session)
        .await?;
        if inferred != statement.parameters {
            wrong.push(format!("{name}: the parameters become {inferred:?}: {text}"));
        }
    }
    wrong.extend(references(&mut session).await?);
    run(&mut session, "DROP SCHEMA probe CASCADE".to_owned()).await?;
    Ok(wrong)
}

#[tokio::test]
async fn no_statement_refers_to_anything_of_somebody_else() -> Result<()> {
    let database = TestDatabase::new().await?;
    assert_eq!(wrong(&database).await?, Vec::<String>::new(), "without any overload");
    let mallory = plant(&database).await?;
    let wrong: BTreeSet<String> = wrong(&database).await?.into_iter().collect();
    assert_eq!(wrong, BTreeSet::new());
    assert!(!mallory.was_called().await?);
    Ok(())
}

/// Functions of ours are asked from sessions with any search_path: each has one of its own, or names
/// the schema of all that it uses, which is seen by what it refers to under the worst of paths.
#[tokio::test]
async fn no_function_of_ours_goes_by_the_path_of_whoever_asks() -> Result<()> {
    let database = TestDatabase::new().await?;
    let mallory = plant(&database).await?;
    let mut session = database.tailrace().session().await?;
    let without: Vec<(String, String, String)> = sqlx::query_as(
        "SELECT p.proname::text, p.prosrc, pg_catalog.pg_get_function_arguments(p.oid)
         FROM pg_catalog.pg_proc p
         WHERE p.pronamespace OPERATOR(pg_catalog.=) 'tailrace'::regnamespace::oid
           AND NOT pg_catalog.starts_with(coalesce(p.proconfig::text, ''::text),
                                          '{\"search_path=pg_catalog, pg_temp\"'::text)
         ORDER BY 1",
    )
    .fetch_all(&mut session)
    .await?;
    let names: Vec<&str> = without.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["drop_window_at", "enforcing_policies"]);
    run(&mut session, "CREATE SCHEMA probe; SET search_path = public, pg_catalog".to_owned())
        .await?;
    for (name, text, arguments) in &without {
        run(
            &mut session,
            format!(
                "CREATE FUNCTION probe.{name}({arguments}) RETURNS void LANGUAGE sql
                 BEGIN ATOMIC {text}; END"
            ),
        )
        .await?;
    }
    assert_eq!(references(&mut session).await?, Vec::<String>::new());
    assert!(!mallory.was_called().await?);
    Ok(())
}
