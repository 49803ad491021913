//! A lake in which every error of the contract's table can be caused, and a daemon on it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use sqlx::PgConnection;
use tailrace_kit::lake::{Catalog, CatalogOptions, Column, Field, NewFile, Table};
use tailrace_kit::simulated_loops::truncate;
use uuid::Uuid;

use crate::http::address;
use crate::http::client::Client;
use crate::http::tokens::{line, write};
use crate::support::TestDatabase;
use crate::support::gate::Gate;
use crate::support::process::Running;

/// Far longer than anybody stands in a queue here, and how long the lock is waited for in vain.
const COMMIT_WAIT: std::time::Duration = std::time::Duration::from_secs(120);

/// A key that a drop of table `raw` has used.
pub const USED_KEY: &str = "11111111-2222-4333-8444-555555555555";

pub struct Scene {
    pub database: TestDatabase,
    _daemon: Running,
    /// With an operator's token.
    pub client: Client,
    pub lake: Catalog,
    /// The tables of `lake.events`.
    pub tables: BTreeMap<&'static str, Table>,
    /// The snapshot before the first append to each.
    pub starts: BTreeMap<&'static str, i64>,
    /// The one table of the catalog `race`, for somebody to drop.
    pub race: Table,
    /// Before what happened to `raw`, `altered` and `fenced`.
    pub read_snapshot: i64,
    /// What was called `twice` before.
    pub old_uuid: Uuid,
    known: Value,
    _tokens: tempfile::TempDir,
    _busy: Gate,
    _locked: PgConnection,
}

impl Scene {
    pub async fn new() -> Result<Self> {
        let mut database = TestDatabase::new().await?;
        database.lake = database.lake.clone().with_commit_wait(COMMIT_WAIT);
        let lake = database.catalog("lake").await?;
        let mut maker = Maker { database: &database, lake: &lake, known: json!({}) };
        let mut tables = BTreeMap::new();
        let mut starts = BTreeMap::new();
        for (name, appends) in [
            ("altered", &[&[Some("1")][..]][..]),
            ("broken", &[&[Some("1")]]),
            ("dropped", &[&[Some("1"), Some("1"), None, Some("2")]]),
            ("fence", &[&[Some("1"), Some("2")]]),
            ("fenced", &[&[Some("1")]]),
            ("keyed", &[&[Some("1"), Some("2")]]),
            ("locked", &[&[Some("1")]]),
            ("page_views", &[&[Some("20713"), Some("20713"), Some("20714")]]),
            ("raw", &[&[Some("1"), Some("2")]]),
            ("shrunk", &[&[Some("1"), Some("1"), Some("2")]]),
            ("steady", &[&[Some("1"), None], &[Some("2")]]),
            ("whole", &[&[Some("1"), Some("2"), None]]),
        ] {
            starts.insert(name, lake.head().await?);
            tables.insert(name, maker.table(name, appends).await?);
        }
        let vector = |name: &str| (tables[name].clone(), maker.files(name)[0]);
        let (steady, file) = vector("steady");
        let snapshot = steady.register_vector(file, 4, None).await?;
        let (dropped, file) = vector("dropped");
        dropped.register_vector(file, 4, None).await?;
        maker.known["lake.events.steady"]["snapshots"]
            .as_array_mut()
            .context("a list")?
            .push(snapshot.into());
        let known = maker.known;

        let old = database.table(&lake, "twice", &[Field::day("at")]).await?;
        old.drop_table().await?;
        database.table(&lake, "twice", &[Field::day("at")]).await?;

        let read_snapshot = lake.head().await?;
        tables["raw"].append(vec![NewFile::of(["20720"])]).await?;
        tables["altered"].rename_column("kind", "sort").await?;
        truncate(&tables["fenced"]).await?;
        break_table(&database, &tables["broken"]).await?;
        let locked = lock_files(&database, &tables["locked"]).await?;

        let race = other_table(&database, "race").await?;
        let busy = other_table(&database, "busy").await?;
        let old_catalog = other_table(&database, "old").await?.catalog;
        database
            .sql(&format!(
                "UPDATE hog_catalog SET earliest_snapshot_id = {} WHERE catalog_id = {}",
                old_catalog.head().await?,
                old_catalog.catalog_id
            ))
            .await?;

        let folder = tempfile::tempdir()?;
        let file = folder.path().join("tokens");
        let who = line("etl", "operator", "act") + &line("dashboard", "reader", "look");
        write(&file, &who)?;
        let env = [
            ("TAILRACE__SCHEDULE__EVERY", "1d"),
            ("TAILRACE__DROP__LOCK_TIMEOUT", "2s"),
            ("TAILRACE__HTTP__TOKENS_FILE", &*file.to_string_lossy()),
        ];
        let mut daemon = database.start(&["run"], &env)?;
        let address = address(&mut daemon).await?;
        daemon.event("pass_finished", 1).await?;
        let client = Client { address, headers: Vec::new() }.token("act");
        let busy = Gate::shut(&busy.catalog).await?;
        let scene = Scene {
            database,
            _daemon: daemon,
            client,
            lake,
            tables,
            starts,
            race,
            read_snapshot,
            old_uuid: old.table_uuid,
            known,
            _tokens: folder,
            _busy: busy,
            _locked: locked,
        };
        scene.use_key().await?;
        Ok(scene)
    }

    async fn use_key(&self) -> Result<()> {
        let body = format!(
            r#"{{"idempotency_key": "{USED_KEY}", "partitions": [{{"partition_values": ["3"]}}]}}"#
        );
        let path = "/v1/catalogs/lake/namespaces/events/tables/raw/partitions/drop";
        let answer = self.client.json("POST", path, &body).await?;
        anyhow::ensure!(answer.status == 200, "{answer:?}");
        Ok(())
    }

    /// All that the checks have to know, in a file.
    pub fn scenario(&self, version: &str) -> Result<tempfile::NamedTempFile> {
        let guide = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/http.md");
        let scenario = json!({
            "url": format!("http://{}", self.client.address),
            "operator": "act",
            "reader": "look",
            "version": version,
            "guide": guide,
            "tables": self.known,
            "read_snapshot": self.read_snapshot,
            "old_uuid": self.old_uuid,
            "used_key": USED_KEY,
            "fresh_key": Uuid::new_v4(),
            "truncate_key": Uuid::new_v4(),
        });
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), scenario.to_string())?;
        Ok(file)
    }
}

/// Makes tables, and keeps what is known of them.
struct Maker<'a> {
    database: &'a TestDatabase,
    lake: &'a Catalog,
    known: Value,
}

impl Maker<'_> {
    /// A table by day, with an append for each list of days.
    async fn table(&mut self, name: &str, appends: &[&[Option<&str>]]) -> Result<Table> {
        let table = self.database.table(self.lake, name, &[Field::day("at")]).await?;
        let (mut snapshots, mut files) = (vec![self.lake.head().await?], Vec::new());
        for days in appends {
            let new = days
                .iter()
                .map(|day| NewFile::new(vec![day.map(str::to_owned)]).records(10).bytes(100));
            let committed = table.append(new.collect()).await?;
            snapshots.push(committed.snapshot_id);
            files.extend(committed.file_ids);
        }
        self.known[format!("lake.events.{name}")] = json!({
            "uuid": table.table_uuid,
            "spec_id": table.live_spec().await?,
            "snapshots": snapshots,
            "files": files,
        });
        Ok(table)
    }

    fn files(&self, name: &str) -> Vec<i64> {
        let files = self.known[format!("lake.events.{name}")]["files"].as_array();
        files.into_iter().flatten().filter_map(Value::as_i64).collect()
    }
}

/// The table `events.raw`, with one file, of a catalog of its own.
async fn other_table(database: &TestDatabase, catalog: &str) -> Result<Table> {
    let catalog = database.lake.catalog(catalog, CatalogOptions::default()).await?;
    let namespace = catalog.namespace("events").await?;
    let columns = [Column::new("at", "timestamptz")];
    let table = catalog.create_table(&namespace, "raw", &columns, &[Field::day("at")]).await?;
    table.append(vec![NewFile::of(["1"])]).await?;
    Ok(table)
}

/// The database refuses, in words of its own, to end a file of this table: some servers have such
/// a trigger.
async fn break_table(database: &TestDatabase, table: &Table) -> Result<()> {
    database
        .sql(&format!(
            "CREATE FUNCTION refuse_ends() RETURNS trigger LANGUAGE plpgsql AS
               $$ BEGIN RAISE EXCEPTION 'a secret of the database'; END $$;
             CREATE TRIGGER refuse_ends BEFORE UPDATE ON hog_data_file
               FOR EACH ROW WHEN (new.table_id = {} AND new.catalog_id = {})
               EXECUTE FUNCTION refuse_ends()",
            table.table_id, table.catalog.catalog_id
        ))
        .await
}

/// Holds the rows of the table's files, as the hydrator does, for as long as the session lives.
async fn lock_files(database: &TestDatabase, table: &Table) -> Result<PgConnection> {
    let mut session = database.connection().await?;
    let lock = format!(
        "BEGIN; SELECT FROM hog_data_file WHERE table_id = {} AND catalog_id = {} FOR UPDATE",
        table.table_id, table.catalog.catalog_id
    );
    sqlx::raw_sql(sqlx::AssertSqlSafe(lock)).execute(&mut session).await?;
    Ok(session)
}
