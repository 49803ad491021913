//! Tests of `tailrace init`: from a catalog without tailrace to a role that works.

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tailrace::installation::version;
use tailrace_kit::lake::Field;

use crate::support::TestDatabase;
use crate::support::governed::Ran;

/// A lake without the schema tailrace, and the URL of a role that is not there.
struct Bare {
    database: TestDatabase,
    role: String,
    url: String,
}

impl Bare {
    async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let name = database.text("SELECT current_database()").await?.context("a name")?;
        let role = format!("first_{name}");
        let clean = format!(
            "DROP SCHEMA tailrace CASCADE; DROP ROLE IF EXISTS {role}; DROP ROLE IF EXISTS {role}_poor;
             REVOKE ALL ON SCHEMA public FROM PUBLIC"
        );
        database.sql(&clean).await?;
        let url = database.url().replace("//postgres@", &format!("//{role}:s3cret@"));
        Ok(Bare { database, role, url })
    }

    async fn ran(&self, args: &[&str]) -> Result<Ran> {
        let args = [&["init"], args].concat();
        self.database.ran_with(&args, &[("TAILRACE__DATABASE__URL", &self.url)]).await
    }

    /// Whether the role and the schema tailrace are there.
    async fn is_there(&self) -> Result<[bool; 2]> {
        let role = format!("SELECT count(*) FROM pg_roles WHERE rolname = '{}'", self.role);
        let schema = "SELECT count(*) FROM pg_namespace WHERE nspname = 'tailrace'";
        let is = async |query: &str| -> Result<bool> {
            Ok(self.database.text(query).await?.as_deref() == Some("1"))
        };
        Ok([is(&role).await?, is(schema).await?])
    }

    /// Before the database is removed: what the role may in it would keep the role.
    async fn end(self) -> Result<()> {
        self.database.sql(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.role)).await
    }
}

#[tokio::test]
async fn an_owner_sets_all_up_and_the_file_works() -> Result<()> {
    let bare = Bare::new().await?;
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("first.toml");
    let file = file.to_str().context("a name")?;
    let owner = bare.database.url();
    let args = ["--owner-url", &owner, "--yes", "--write", file];

    let ran = bare.ran(&args).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let lines: Vec<&str> = ran.out.lines().collect();
    let (role, version) = (&bare.role, version());
    assert_eq!(lines[0], format!("role      {role} was created; it has no password yet"));
    assert_eq!(
        lines[1],
        format!("schema    tailrace is at version {version}, {version} migrations applied")
    );
    assert!(lines[2].starts_with("rights    ") && lines[2].ends_with(" grants run"), "{ran:?}");
    assert!(lines[3].starts_with("doctor    0 problems, "), "{ran:?}");
    assert_eq!(lines[4], format!("settings  written to {file}"));
    assert_eq!(
        lines[6],
        format!("Next: `tailrace --config {file} plan`, then a policy that only observes:")
    );
    let written = std::fs::read_to_string(file)?;
    let url = bare.url.replace(":s3cret", "");
    assert_eq!(
        written.lines().skip(2).collect::<Vec<_>>(),
        ["", "[database]", &format!("url = \"{url}\"")]
    );
    let config = ["config", "--config", file];
    let shown = bare.database.ran_with(&config, &[("TAILRACE__DATABASE__URL", "")]).await?;
    assert!(shown.out.contains(&format!("# - {file} (--config)\n")), "{shown:?}");
    let plan = bare.database.ran_with(&["plan"], &[("TAILRACE__DATABASE__URL", &url)]).await?;
    assert_eq!(plan.code, 0, "{plan:?}");

    // Again: the file is not overwritten, and what is there stays.
    let again = bare.ran(&args).await?;
    assert_eq!((again.code, again.out.as_str()), (2, ""), "{again:?}");
    assert!(
        again.err.contains(&format!("cannot write the configuration file {file}: it exists")),
        "{again:?}"
    );
    let again = bare.ran(&args[..3]).await?;
    assert_eq!(again.code, 0, "{again:?}");
    let lines: Vec<&str> = again.out.lines().collect();
    assert_eq!(lines[0], format!("role      {role} was there"));
    assert_eq!(
        lines[1],
        format!("schema    tailrace is at version {version}, 0 migrations applied")
    );
    bare.end().await
}

#[tokio::test]
async fn without_an_owner_or_a_yes_nothing_is_changed() -> Result<()> {
    let bare = Bare::new().await?;
    let create = format!("create role {} login;", bare.role);
    let grant = format!("grant usage on schema public to {};", bare.role);

    let ran = bare.ran(&[]).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.out.contains(&create) && ran.out.contains(&grant), "{ran:?}");
    assert!(ran.out.contains("doctor    could not look: "), "{ran:?}");
    assert_eq!(bare.is_there().await?, [false, false]);

    let owner = bare.database.url();
    let ran = bare.ran(&["--owner-url", &owner]).await?;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    assert!(ran.err.contains(&create) && ran.err.contains(&grant), "{ran:?}");
    assert!(ran.err.ends_with("nothing was changed; there is no terminal to ask on: say --yes\n"));
    assert_eq!(bare.is_there().await?, [false, false]);

    let json = bare.ran(&["--owner-url", &owner, "--yes", "--output", "json"]).await?;
    assert_eq!(json.code, 0, "{json:?}");
    let answer: Value = serde_json::from_str(&json.out)?;
    assert_eq!(
        (&answer["role"], &answer["schema"], &answer["to_run"], &answer["set_up"]["role_created"]),
        (&json!(bare.role), &json!("public"), &json!([]), &json!(true))
    );
    assert_eq!(bare.is_there().await?, [true, true]);
    bare.end().await
}

/// Whoever may not create a role is told who can, and a catalog that is not there is named.
#[tokio::test]
async fn an_owner_who_may_not_is_told_what_to_do() -> Result<()> {
    let bare = Bare::new().await?;
    let poor = format!("{}_poor", bare.role);
    bare.database
        .sql(&format!("CREATE ROLE {poor} LOGIN; GRANT USAGE ON SCHEMA public TO {poor}"))
        .await?;
    let url = bare.database.url().replace("//postgres@", &format!("//{poor}@"));
    let why = async |expected: &str| -> Result<()> {
        let ran = bare.ran(&["--owner-url", &url, "--yes"]).await?;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains(expected), "{ran:?}");
        Ok(())
    };
    why(&format!("the role {poor} does not own hoglake's tables: name their owner, postgres, in"))
        .await?;
    bare.database.sql(&format!("ALTER TABLE hog_catalog OWNER TO {poor}")).await?;
    let create = format!("create role {} login;", bare.role);
    why(&format!(
        "the role {} could not be set up: as a role that has CREATEROLE run {create:?}, then run this again",
        bare.role
    ))
    .await?;
    assert_eq!(bare.is_there().await?, [false, false]);
    // The role can be created, and the schema cannot.
    bare.database.sql(&format!("ALTER ROLE {poor} CREATEROLE")).await?;
    why(&format!("{create:?} was run, and a later step failed: repair it, then run this again: "))
        .await?;
    assert_eq!(bare.is_there().await?, [true, false]);
    let back = "ALTER TABLE hog_catalog OWNER TO postgres";
    bare.database.sql(&format!("{back}; DROP OWNED BY {poor}; DROP ROLE {poor}")).await?;
    bare.end().await
}

/// A role that cannot log in, another database than that of the role, and a file that cannot be written.
#[tokio::test]
async fn what_cannot_work_is_refused_before_anything_is_changed() -> Result<()> {
    let bare = Bare::new().await?;
    let owner = bare.database.url();
    let name = bare.database.text("SELECT current_database()").await?.context("a name")?;
    let elsewhere = owner.replace(&name, "postgres");
    let ran = bare.ran(&["--owner-url", &elsewhere, "--yes"]).await?;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("--owner-url leads to database \"postgres\" at "), "{ran:?}");
    assert!(ran.err.ends_with(": name the same host, port and database\n"), "{ran:?}");

    let file = ["--owner-url", &owner, "--yes", "--write", "/nonexistent/first.toml"];
    let ran = bare.ran(&file).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    let why = "tailrace: cannot write the configuration file /nonexistent/first.toml: there is no folder /nonexistent\n";
    assert_eq!(ran.err, why);

    let long = bare.url.replace(&bare.role, &"a".repeat(64));
    let ran = bare.database.ran_with(&["init"], &[("TAILRACE__DATABASE__URL", &long)]).await?;
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("name one of at most 63 bytes"), "{ran:?}");
    assert_eq!(bare.is_there().await?, [false, false]);

    bare.database.sql(&format!("CREATE ROLE {}", bare.role)).await?;
    let ran = bare.ran(&["--owner-url", &owner]).await?;
    assert!(ran.err.contains(&format!("  alter role {} login;\n", bare.role)), "{ran:?}");
    let ran = bare.ran(&["--owner-url", &owner, "--yes"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    bare.end().await
}

/// Where the server cannot be reached nothing is known of the role, and no password is asked for.
#[tokio::test]
async fn a_server_that_is_away_gets_no_advice_about_roles() -> Result<()> {
    let bare = Bare::new().await?;
    let away = [("TAILRACE__DATABASE__URL", "postgres://tailrace@127.0.0.1:1/lake")];
    let ran = bare.database.ran_with(&["init"], &away).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(!ran.out.contains("create role") && !ran.out.contains("password"), "{ran:?}");
    assert!(ran.out.ends_with("Next: repair that, then run `tailrace doctor`\n"), "{ran:?}");
    Ok(())
}
