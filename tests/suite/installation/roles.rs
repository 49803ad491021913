//! Tests of the rights that a role needs: they are enough, and none can be left out.

use anyhow::{Context, Result};
use tailrace::catalog::connect::Database;
use tailrace::claims::renew;
use tailrace::installation::rights::{Purpose, Right, needed};
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Scope, Settings, run_pass};
use tailrace_kit::lake::{Field, NewFile, Table};
use tokio_util::sync::CancellationToken;

use crate::support::TestDatabase;
use crate::support::governed::Ran;
use crate::support::program::settings;

/// The rights of the role that runs the daemon and its commands, after another has migrated: what
/// passes and policies need, and nothing more.
fn runtime() -> impl Iterator<Item = Right> {
    needed().into_iter().filter(|right| right.purpose == Purpose::Passes)
}

/// What some other purpose needs beside them.
fn beside(purpose: Purpose) -> impl Iterator<Item = Right> {
    needed().into_iter().filter(move |right| right.purpose == purpose)
}

/// A role that may log in and nothing else; roles are the server's, so the name is the test's.
struct Role<'a> {
    name: String,
    database: &'a TestDatabase,
}

impl<'a> Role<'a> {
    async fn new(database: &'a TestDatabase) -> Result<Self> {
        let own = database.text("SELECT current_database()").await?.context("a name")?;
        let name = format!("runtime_{own}");
        database
            .sql(&format!(
                "DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN;
                 REVOKE ALL ON SCHEMA public FROM PUBLIC"
            ))
            .await?;
        Ok(Role { name, database })
    }

    async fn grant(&self, right: &Right) -> Result<()> {
        self.database.sql(&right.grant("public", &self.name)).await
    }

    async fn revoke(&self, right: &Right) -> Result<()> {
        let (privilege, object) = (right.privilege_in_sql(), right.object.in_sql("public"));
        self.database.sql(&format!("REVOKE {privilege} ON {object} FROM {}", self.name)).await
    }

    async fn grant_all(&self) -> Result<()> {
        for right in runtime() {
            self.grant(&right).await?;
        }
        Ok(())
    }

    fn session(&self) -> Database {
        let database = self.database.tailrace();
        Database { options: database.options.username(&self.name), ..database }
    }

    async fn ran(&self, args: &[&str]) -> Result<Ran> {
        let url = self.database.url().replace("//postgres@", &format!("//{}@", self.name));
        self.database.ran_with(args, &[("TAILRACE__DATABASE__URL", &url)]).await
    }

    /// Before the database goes: what the role may in it would keep the role.
    async fn end(self) -> Result<()> {
        self.database.sql(&format!("DROP OWNED BY {0}; DROP ROLE {0}", self.name)).await
    }
}

async fn a_table(database: &TestDatabase) -> Result<Table> {
    let catalog = database.catalog("lake").await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let ids = table.append(vec![NewFile::of(["18000"]), NewFile::of(["99999"])]).await?.file_ids;
    table.register_vector(ids[0], 1, None).await?;
    Ok(table)
}

#[tokio::test]
async fn these_grants_are_enough_for_every_command() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    table.set_property("partition_retention", Some(r#"{"field":"at","keep":"30000d"}"#)).await?;
    let role = Role::new(&database).await?;
    role.grant_all().await?;
    for right in beside(Purpose::Inspection).chain(beside(Purpose::CompactionClaims)) {
        role.grant(&right).await?;
    }
    for (args, code) in [
        (vec!["migrate"], 0),
        (vec!["sweep"], 0),
        (vec!["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"], 0),
        (vec!["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "8d"], 0),
        (vec!["policy", "list"], 0),
        (vec!["policy", "get", "lake", "events.raw"], 0),
        (vec!["plan"], 0),
        (vec!["sweep", "--output", "json"], 0),
        (vec!["trace", "lake", "events.raw"], 0),
        (vec!["spec", "list", "lake", "events.raw"], 0),
        (vec!["spec", "trust", "lake", "events.raw", "1", "--reason", "x", "--yes"], 0),
        (vec!["policy", "unset", "lake", "events.raw"], 1),
        (vec!["policy", "unset", "lake", "events.raw", "--yes"], 0),
    ] {
        let ran = role.ran(&args).await?;
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
    }
    let ended = table.all_files().await?;
    assert_eq!(ended.iter().filter(|file| file.end_snapshot.is_some()).count(), 1);
    let vectors = table.all_vectors().await?;
    assert_eq!(vectors[0].end_snapshot, ended[0].end_snapshot);
    // The property's end and the notes on a bad one are written too.
    table.set_property("partition_retention", Some("{")).await?;
    assert_eq!(role.ran(&["sweep"]).await?.code, 3);
    table.set_property("partition_retention", None).await?;
    assert_eq!(role.ran(&["sweep"]).await?.code, 0);
    let rows = database.text("SELECT count(*) FROM tailrace.policy").await?;
    assert_eq!(rows.as_deref(), Some("0"));
    role.end().await
}

/// A tuple with a row that somebody else has locked is looked at with `FOR NO KEY UPDATE`.
#[tokio::test]
async fn they_are_enough_past_locked_rows() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    let busy = table.append(vec![NewFile::of(["18001"])]).await?.file_ids[0];
    database.govern(&table, "at", "7d").await?;
    let role = Role::new(&database).await?;
    role.grant_all().await?;
    let mut hydrator = database.pool.begin().await?;
    sqlx::query("SELECT FROM hog_data_file WHERE data_file_id = $1 FOR UPDATE")
        .bind(busy)
        .execute(&mut *hydrator)
        .await?;
    let mut quick = settings();
    quick.limits.row_lock_timeout = std::time::Duration::from_millis(20);
    let stop = CancellationToken::new();
    let report = run_pass(&role.session(), &quick, &Scope::default(), &stop, &|_| {}).await?;
    hydrator.rollback().await?;
    let table = &report.tables[0];
    assert_eq!((table.outcome, table.counts().files), (Outcome::Busy, 1), "{table:?}");
    role.end().await
}

/// The first pass after a restore forgets rows of every table of ours.
#[tokio::test]
async fn they_are_enough_after_a_restore() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    database.govern(&table, "at", "7d").await?;
    let role = Role::new(&database).await?;
    role.grant_all().await?;
    let backup = database.back_up("before").await?;
    table.evolve_spec(&[Field::month("at")]).await?;
    assert_eq!(role.ran(&["sweep"]).await?.code, 0);
    database.restore(&backup).await?;
    table.append(vec![NewFile::of(["99999"])]).await?;
    table.evolve_spec(&[Field::hour("at")]).await?;
    let ran = role.ran(&["sweep"]).await?;
    assert_eq!((ran.code, ran.events("catalog_restored").len()), (0, 1), "{ran:?}");
    assert_eq!(table.live_files().await?.len(), 2);
    let specs = "SELECT string_agg(spec_id::text, ' ' ORDER BY spec_id) FROM tailrace.spec_copy";
    assert_eq!(database.text(specs).await?.as_deref(), Some("-2 1 2"));
    role.end().await
}

/// Each of them is needed: without it a pass that has something to do, or a policy that is set,
/// fails, and the words say what is missing.
#[tokio::test]
async fn none_of_the_grants_can_be_left_out() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    let role = Role::new(&database).await?;
    role.grant_all().await?;
    let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
    assert_eq!(role.ran(&set).await?.code, 0);
    let stop = CancellationToken::new();
    // One that is too large waits.
    table.append(vec![NewFile::of(["18001"]); 101]).await?;
    let mut skipping = settings();
    skipping.heeds_pauses = false;
    (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (100, 100);
    skipping.batch.split_oversize = false;
    for right in runtime() {
        // Something to do each time: a new spec to copy, a file and its vector to end, a
        // row to purge.
        let day = Field::day("at");
        table.evolve_spec(&[day]).await?;
        table.append(vec![NewFile::of(["18000"])]).await?;
        role.revoke(&right).await?;
        let swept = run_pass(&role.session(), &skipping, &Scope::default(), &stop, &|_| {}).await;
        let mut words = match swept {
            Err(error) => format!("{error:#}"),
            Ok(report) => serde_json::to_string(&report)?,
        };
        if !words.contains("permission denied for") {
            words.push_str(&role.ran(&set).await?.err);
        }
        // Who accepts a clock has what waits looked at.
        if !words.contains("permission denied for") {
            let accept = ["clock", "accept", "lake", "--reason", "x", "--yes"];
            words.push_str(&role.ran(&accept).await?.err);
        }
        // What cannot be purged is told in the log alone.
        if !words.contains("permission denied for") {
            words.push_str(&role.ran(&["sweep"]).await?.err);
        }
        assert!(
            words.contains("permission denied for")
                || words.contains("does not exist")
                || words.contains("there is no")
                || words.contains("run `tailrace migrate`"),
            "without {right:?}: {words:?}"
        );
        role.grant(&right).await?;
    }
    // What waits by the passes above is looked at.
    let last = Settings { heeds_pauses: false, ..settings() };
    let report = run_pass(&role.session(), &last, &Scope::default(), &stop, &|_| {}).await?;
    assert_eq!(report.failures(), 0, "{report:?}");
    role.end().await
}

/// With these compaction claims work, and without any of them a renewal says what is missing; passes go on.
#[tokio::test]
async fn compaction_claims_need_each_of_its_grants() -> Result<()> {
    let database = TestDatabase::new().await?;
    let table = a_table(&database).await?;
    database.govern(&table, "at", "7d").await?;
    let role = Role::new(&database).await?;
    role.grant_all().await?;
    for right in beside(Purpose::CompactionClaims) {
        role.grant(&right).await?;
    }
    let settings = crate::claims::settings();
    let renewed = renew(&role.session(), &settings, None).await?;
    assert_eq!((renewed.files, renewed.failed), (1, vec![]));
    for right in beside(Purpose::CompactionClaims) {
        // Everything is to be written anew.
        let written = "DELETE FROM hog_compaction_claim; DELETE FROM tailrace.claimant;
                       DELETE FROM tailrace.window_rule";
        database.sql(written).await?;
        role.revoke(&right).await?;
        let words = match renew(&role.session(), &settings, None).await {
            Err(error) => format!("{error:#}"),
            Ok(renewed) => format!("{:?}", renewed.failed),
        };
        assert!(words.contains("permission denied for"), "without {right:?}: {words}");
        role.grant(&right).await?;
    }
    assert_eq!(renew(&role.session(), &settings, None).await?.failed, []);
    role.end().await
}

/// A role without CREATE may start everything where there is nothing to create, and is informed
/// where there is.
#[tokio::test]
async fn a_role_without_create_migrates_what_is_up_to_date() -> Result<()> {
    let database = TestDatabase::new().await?;
    let role = Role::new(&database).await?;
    role.grant_all().await?;
    let ran = role.ran(&["migrate"]).await?;
    assert_eq!(
        (ran.code, ran.out.as_str()),
        (0, "The schema tailrace is up to date (version 22)\n")
    );
    role.end().await?;

    let database = TestDatabase::in_schema("public").await?;
    let role = Role::new(&database).await?;
    database.sql(&format!("GRANT USAGE ON SCHEMA public TO {}", role.name)).await?;
    let ran = role.ran(&["migrate"]).await?;
    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(
        ran.err.starts_with(
            "tailrace: the schema tailrace could not be brought up to date (its role needs CREATE \
             on the database, or on the schema tailrace)"
        ) && ran.err.contains("permission denied"),
        "{}",
        ran.err
    );
    // Somebody made the schema for it: no right on the database is needed then.
    database.sql(&format!("CREATE SCHEMA tailrace AUTHORIZATION {}", role.name)).await?;
    let ran = role.ran(&["migrate"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    role.end().await
}
