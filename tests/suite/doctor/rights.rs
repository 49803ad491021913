//! Tests of the findings on rights that the role has, needs, and should not have.

use anyhow::{Context, Result};
use tailrace::catalog::connect::{Access, Database, close};
use tailrace::catalog::inventory::privileges::privileges;
use tailrace::doctor::{Finding, Level, rights};
use tailrace::installation::rights::{Purpose, Right, grants, needed};
use tailrace_kit::lake::Field;

use crate::support::TestDatabase;

/// A role with every right of the list and no other. Roles are the server's, so the name is the
/// test's.
pub struct Role<'a> {
    pub name: String,
    database: &'a TestDatabase,
}

impl<'a> Role<'a> {
    pub async fn new(database: &'a TestDatabase) -> Result<Self> {
        let own = database.text("SELECT current_database()").await?.context("a name")?;
        let name = format!("doctor_{own}");
        let sql = format!(
            "DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN;
             REVOKE ALL ON SCHEMA public FROM PUBLIC"
        );
        database.sql(&sql).await?;
        let role = Role { name, database };
        role.sql(&grants("public", &role.name)).await?;
        Ok(role)
    }

    pub async fn sql(&self, statement: &str) -> Result<()> {
        self.database.sql(statement).await
    }

    async fn revoke(&self, right: &Right) -> Result<()> {
        let (privilege, object) = (right.privilege_in_sql(), right.object.in_sql("public"));
        self.sql(&format!("REVOKE {privilege} ON {object} FROM {}", self.name)).await
    }

    /// What doctor says of its rights, as the role itself reads them.
    pub async fn findings(&self) -> Result<Vec<Finding>> {
        let database = self.database.tailrace();
        let database = Database { options: database.options.username(&self.name), ..database };
        let mut session = database.unchecked(Access::ReadOnly).await?;
        let held = privileges(&mut session, "public").await?;
        close(session).await;
        Ok(rights::findings(&held, "public"))
    }

    pub fn url(&self) -> String {
        self.database.url().replace("//postgres@", &format!("//{}@", self.name))
    }

    pub async fn end(self) -> Result<()> {
        self.sql(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name)).await
    }
}

pub fn told(findings: &[Finding]) -> Vec<(Level, &str, Vec<&str>)> {
    let with_statements = findings.iter().map(|finding| {
        let statements = finding.statements.iter().map(String::as_str).collect();
        (finding.level, finding.what.as_str(), statements)
    });
    with_statements.collect()
}

#[tokio::test]
async fn with_exactly_the_rights_of_the_list_there_is_nothing_to_say() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let role = Role::new(&database).await?;

    let said = database.doctor_with(&[("TAILRACE__DATABASE__URL", &role.url())]).await?;

    let what = format!("the role {} has what it needs and no more", role.name);
    assert_eq!(said.of("rights"), [("ok", what.as_str())]);
    // Nothing went unlooked at: the one thing to tell is the catalog's retention.
    assert_eq!((said.code, said.told()), (0, vec![("retention", "warning")]));
    role.end().await
}

#[tokio::test]
async fn each_right_that_is_missing_is_told_with_its_grant() -> Result<()> {
    let database = TestDatabase::new().await?;
    let role = Role::new(&database).await?;
    for right in needed() {
        role.revoke(&right).await?;
        let grant = right.grant("public", &role.name);
        let level = match right.purpose {
            Purpose::Passes | Purpose::Evidence => Level::Problem,
            _ => Level::Note,
        };
        let lacks = format!(
            "the role {} lacks 1 of the rights for {}",
            role.name,
            right.purpose.describe()
        );
        let findings = role.findings().await?;
        assert_eq!(told(&findings), [(level, lacks.as_str(), vec![grant.as_str()])]);
        role.sql(&grant).await?;
    }
    assert_eq!(role.findings().await?[0].level, Level::Ok);
    role.end().await
}

#[tokio::test]
async fn a_role_without_any_right_is_told_all_of_them() -> Result<()> {
    let database = TestDatabase::new().await?;
    let role = Role::new(&database).await?;
    role.sql(&format!("DROP OWNED BY {}", role.name)).await?;
    let said = database.doctor_with(&[("TAILRACE__DATABASE__URL", &role.url())]).await?;
    assert_eq!(said.code, 3);
    let mut printed: Vec<_> = said.statements("rights");
    let mut all: Vec<_> = needed().iter().map(|right| right.grant("public", &role.name)).collect();
    printed.sort_unstable();
    all.sort_unstable();
    assert_eq!(printed, all);
    // What is printed is all that has to be done.
    for grant in &all {
        role.sql(grant).await?;
    }
    assert_eq!(role.findings().await?[0].level, Level::Ok);
    role.end().await
}

#[tokio::test]
async fn what_is_too_much_is_told_with_its_revoke() -> Result<()> {
    let database = TestDatabase::new().await?;
    let role = Role::new(&database).await?;
    for (more, privilege, on) in [
        ("DELETE ON hog_data_file", "delete", "hog_data_file"),
        ("UPDATE ON hog_data_file", "update", "hog_data_file"),
        ("UPDATE (path) ON hog_data_file", "update (path)", "hog_data_file"),
        ("INSERT ON hog_file_removal", "insert", "hog_file_removal"),
        ("SELECT ON hog_maintenance_run", "select", "hog_maintenance_run"),
        ("TRUNCATE ON tailrace.policy", "truncate", "policy"),
    ] {
        role.sql(&format!("GRANT {more} TO {}", role.name)).await?;
        let schema = if on == "policy" { "tailrace" } else { "public" };
        let mut statements =
            vec![format!("revoke {privilege} on {schema}.{on} from {};", role.name)];
        if privilege == "update" {
            // To revoke it of the whole revokes it of the column that is needed.
            let back = "grant update (end_snapshot) on public.hog_data_file to";
            statements.push(format!("{back} {};", role.name));
        }
        let what =
            format!("the role {} has more rights than it needs: {privilege} on {on}", role.name);
        let findings = role.findings().await?;
        let expected = statements.iter().map(String::as_str).collect();
        assert_eq!(told(&findings), [(Level::Warning, what.as_str(), expected)]);
        assert!(findings[0].to_do.starts_with("if nothing but tailrace uses the role, revoke it"));
        for statement in &statements {
            role.sql(statement).await?;
        }
        assert_eq!(role.findings().await?[0].level, Level::Ok, "{statements:?}");
    }
    role.end().await
}

/// An owner of our own tables has every right on them, as a role that migrates has.
#[tokio::test]
async fn the_owner_of_our_schema_needs_no_grants_in_it() -> Result<()> {
    let database = TestDatabase::new().await?;
    let role = Role::new(&database).await?;
    role.sql(&format!(
        "REVOKE ALL ON ALL TABLES IN SCHEMA tailrace FROM {0};
         DO $$ DECLARE name text; BEGIN
           FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'tailrace' LOOP
             EXECUTE format('ALTER TABLE tailrace.%I OWNER TO {0}', name);
           END LOOP;
         END $$",
        role.name
    ))
    .await?;
    assert_eq!(role.findings().await?[0].level, Level::Ok);
    role.end().await
}
