//! Tests with a role that has too many rights and that others use too: what doctor prints creates
//! another role and revokes nothing.

use anyhow::{Context, Result, ensure};
use tailrace::doctor::Level;
use tailrace::installation::rights::needed;
use tailrace_kit::lake::Field;

use super::rights::{Role, told};
use crate::drop::races::file;
use crate::support::TestDatabase;

/// The statements that make the role `name`.
fn making(name: &str) -> Vec<String> {
    let grants = needed().into_iter().map(|right| right.grant("public", name));
    std::iter::once(format!("create role {name} login;")).chain(grants).collect()
}

/// The role that statements make: its name is one that is free at the moment.
fn made<'a>(statements: &[&'a str]) -> Result<&'a str> {
    let first = statements.first().context("a statement")?;
    let name = first.strip_prefix("create role ").and_then(|rest| rest.strip_suffix(" login;"));
    let name = name.with_context(|| (*first).to_owned())?;
    ensure!(name.starts_with("tailrace"), "{name}");
    Ok(name)
}

/// What the role has, to compare before and after.
async fn standing(database: &TestDatabase, role: &str) -> Result<Vec<String>> {
    let query = format!(
        "SELECT r.*, (SELECT count(*) FROM pg_class WHERE relowner = r.oid) AS owned
           FROM pg_roles r WHERE rolname = '{role}'"
    );
    database.rows(&query).await
}

/// The printed statements, as the last superuser of a server pastes them: it still is one, and
/// the new role has what tailrace needs and no more.
#[tokio::test]
async fn a_superuser_makes_another_role_and_stays_one() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    table.append(vec![file(9), file(0)]).await?;
    database.govern(&table, "at", "7d").await?;
    // What anybody may is no right of the new role's own.
    database.sql("REVOKE ALL ON SCHEMA public FROM PUBLIC").await?;
    let before = standing(&database, "postgres").await?;

    let said = database.doctor().await?;
    let what = "the role postgres is superuser, createrole, createdb, replication, bypassrls";
    assert_eq!(said.of("rights"), [("warning", what)]);
    let statements = said.statements("rights");
    assert_eq!(statements, making("tailrace"));
    for statement in statements {
        database.sql(statement).await?;
    }

    assert_eq!(standing(&database, "postgres").await?, before);
    let url = database.url().replace("//postgres@", "//tailrace@");
    let env = [("TAILRACE__DATABASE__URL", url.as_str())];
    let said = database.doctor_with(&env).await?;
    let what = "the role tailrace has what it needs and no more";
    assert_eq!(said.of("rights"), [("ok", what)]);
    let swept = database.ran_with(&["sweep"], &env).await?;
    assert_eq!(swept.code, 0, "{swept:?}");
    assert_eq!(table.live_files().await?.len(), 1);
    // The name is taken now.
    let said = database.doctor().await?;
    assert_eq!(said.statements("rights"), making("tailrace_2"));
    database.sql("DROP OWNED BY tailrace; DROP ROLE tailrace").await
}

/// Each way to be more than tailrace's own role, with what is said of it.
#[tokio::test]
async fn nothing_is_taken_from_a_role_that_somebody_else_may_need() -> Result<()> {
    for (more, whats) in [
        ("ALTER ROLE {} CREATEDB", vec!["is createdb"]),
        ("ALTER ROLE {} CREATEROLE REPLICATION", vec!["is createrole, replication"]),
        ("ALTER TABLE hog_table_stats OWNER TO {}", vec!["owns hog_table_stats"]),
        // An owner's right to another table is not revoked either.
        (
            "ALTER TABLE hog_table_stats OWNER TO {}; GRANT DELETE ON hog_data_file TO {}",
            vec!["owns hog_table_stats", "has more rights than it needs: delete on hog_data_file"],
        ),
        (
            "ALTER ROLE {} CREATEDB; GRANT DELETE ON hog_data_file TO {}",
            vec!["is createdb", "has more rights than it needs: delete on hog_data_file"],
        ),
        // Whoever commits for hoglake's clients adds files.
        (
            "GRANT INSERT, UPDATE ON hog_data_file TO {}",
            vec!["has more rights than it needs: insert on hog_data_file, update on hog_data_file"],
        ),
        (
            "GRANT INSERT (path) ON hog_data_file TO {}",
            vec!["has more rights than it needs: insert (path) on hog_data_file"],
        ),
    ] {
        let database = TestDatabase::new().await?;
        let role = Role::new(&database).await?;
        role.sql(&more.replace("{}", &role.name)).await?;
        let before = standing(&database, &role.name).await?;
        let findings = role.findings().await?;
        let told = told(&findings);
        let expected: Vec<_> =
            whats.iter().map(|what| format!("the role {} {what}", role.name)).collect();
        assert_eq!(told.iter().map(|(_, what, _)| *what).collect::<Vec<_>>(), expected);
        assert!(told.iter().all(|(level, ..)| *level == Level::Warning), "{told:?}");
        // The statements are said once.
        let statements = &told[0].2;
        assert_eq!(*statements, making(made(statements)?), "{more}");
        assert!(told[1..].iter().all(|(_, _, statements)| statements.is_empty()), "{told:?}");
        for finding in &findings {
            assert!(!finding.statements.iter().any(|sql| sql.contains("revoke")), "{finding:?}");
        }
        assert!(findings[0].to_do.contains(&format!("leave {} as it is", role.name)));
        assert_eq!(standing(&database, &role.name).await?, before);
        role.sql("ALTER TABLE hog_table_stats OWNER TO postgres").await?;
        role.end().await?;
    }
    Ok(())
}

/// Before anything of ours is there: no grant on what does not exist.
#[tokio::test]
async fn before_the_migration_there_is_nothing_of_ours_to_grant() -> Result<()> {
    let database = TestDatabase::in_schema("public").await?;
    database.lake.downgrade(14).await?;
    let said = database.doctor().await?;
    let whole = said.whole("rights");
    assert!(whole[0]["to_do"].as_str().is_some_and(|to_do| to_do.contains("`tailrace migrate`")));
    let statements = said.statements("rights");
    let name = made(&statements)?;
    // V15 brought hog_compaction_claim.
    let expected: Vec<_> = making(name)
        .into_iter()
        .filter(|sql| !sql.contains("tailrace.") && !sql.contains("schema tailrace"))
        .filter(|sql| !sql.contains("hog_compaction_claim"))
        .collect();
    assert_eq!(statements, expected);
    // They can be run as they stand, but for the name, which is the server's and not this test's.
    let own = database.text("SELECT current_database()").await?.context("a name")?;
    for statement in statements {
        let statement = statement.replace(&format!(" {name} login"), &format!(" made_{own} login"));
        database
            .sql(&statement.replace(&format!("to {name};"), &format!("to made_{own};")))
            .await?;
    }
    database.sql(&format!("DROP OWNED BY made_{own}; DROP ROLE made_{own}")).await
}
