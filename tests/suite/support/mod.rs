//! Support for the integration tests: one private server for each test process, and one database
//! for each test.

pub mod contents;
pub mod ddl;
mod emptied;
pub mod gate;
pub mod governed;
pub mod process;
pub mod program;
pub mod proxy;
pub mod restore;
mod template;
pub mod timer;
pub mod wait;

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};
use sqlx::PgPool;
use sqlx::postgres::PgPoolOptions;
use tailrace_kit::lake::{Catalog, CatalogOptions, Column, Field, Lake, Table};
use tailrace_kit::server::{PrivateServer, ServerOptions};
use tempfile::TempDir;
use tokio::sync::OnceCell;

/// The database that tests are copies of.
const TEMPLATE: &str = "lake_template";

/// The server of this process. Each test has a runtime of its own, and the server outlives
/// them all: it holds no connection. It ends with the process, through its supervisor.
static SERVER: OnceCell<PrivateServer> = OnceCell::const_new();
static NEXT: AtomicU32 = AtomicU32::new(1);

/// The shared server, with the template in it.
pub async fn server() -> Result<&'static PrivateServer> {
    SERVER
        .get_or_try_init(|| async {
            let server = PrivateServer::start(ServerOptions::for_tests()).await?;
            server.create_database(TEMPLATE, None).await?;
            let pool = lazy_pool(&server.url(TEMPLATE))?;
            Lake::install(&pool, "public").await?;
            template::prepare(&pool).await?;
            pool.close().await;
            Ok(server)
        })
        .await
}

/// A database of one test, dropped at its end.
pub struct TestDatabase {
    /// A pool as a client of the database has it.
    pub pool: PgPool,
    /// The lake in it.
    pub lake: Lake,
    name: String,
    server: &'static PrivateServer,
    // Objects go when the test ends.
    _objects: Option<TempDir>,
}

impl TestDatabase {
    /// A database with the server's tables, and ours, in their usual places.
    pub async fn new() -> Result<Self> {
        Self::copy_of(TEMPLATE).await
    }

    /// Makes a database to copy others from: one as [`new`](Self::new) gives, and what `fill` puts
    /// into it. No session may stay.
    pub async fn make_template(
        name: &str,
        fill: impl AsyncFnOnce(&Lake) -> Result<()>,
    ) -> Result<()> {
        let server = server().await?;
        server.create_database(name, Some(TEMPLATE)).await?;
        let pool = lazy_pool(&server.url(name))?;
        let filled = fill(&Lake::attach(&pool, "public")).await;
        pool.close().await;
        filled
    }

    /// A copy of another database of the server, which has the server's tables, and ours, in their
    /// usual places.
    pub async fn copy_of(template: &str) -> Result<Self> {
        let (server, name, pool) = create(Some(template)).await?;
        let lake = Lake::attach(&pool, "public");
        Ok(Self { pool, lake, name, server, _objects: None })
    }

    /// As [`new`](Self::new), with objects on disk.
    pub async fn with_objects() -> Result<Self> {
        let mut database = Self::new().await?;
        let folder = tempfile::tempdir()?;
        database.lake = database.lake.clone().with_objects(folder.path());
        database._objects = Some(folder);
        Ok(database)
    }

    /// A database with the server's tables in another schema, and nothing of ours.
    pub async fn in_schema(schema: &str) -> Result<Self> {
        let (server, name, pool) = create(None).await?;
        let lake = Lake::install(&pool, schema).await?;
        Ok(Self { pool, lake, name, server, _objects: None })
    }

    /// The URL of the database.
    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// A catalog with retention and consumers heeded as by default.
    pub async fn catalog(&self, name: &str) -> Result<Catalog> {
        Ok(self.lake.catalog(name, CatalogOptions::default()).await?)
    }

    /// A table `events.name` of a catalog, with the columns `at` (timestamptz) and `kind`
    /// (string), partitioned by these fields.
    pub async fn table(&self, catalog: &Catalog, name: &str, spec: &[Field]) -> Result<Table> {
        let namespace = catalog.namespace("events").await?;
        let columns = [Column::new("at", "timestamptz"), Column::new("kind", "string")];
        Ok(catalog.create_table(&namespace, name, &columns, spec).await?)
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let (server, name) = (self.server, std::mem::take(&mut self.name));
        // The test's runtime cannot wait in here; another, on a thread of its own, can. What
        // is left of a database goes with the server, so a failure changes no test.
        let dropping = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .map_err(anyhow::Error::from)
                .and_then(|runtime| runtime.block_on(server.drop_database(&name)))
        });
        if let Ok(Err(refusal)) = dropping.join() {
            eprintln!("a test's database stays: {refusal:#}");
        }
    }
}

async fn create(template: Option<&str>) -> Result<(&'static PrivateServer, String, PgPool)> {
    wait_out_midnight().await;
    let server = server().await?;
    let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
    server.create_database(&name, template).await?;
    let pool = lazy_pool(&server.url(&name))?;
    Ok((server, name, pool))
}

/// Tests count days back from now, several times each: none begins in the last two minutes of a day.
async fn wait_out_midnight() {
    let left = 86_400 - chrono::Utc::now().timestamp().rem_euclid(86_400);
    if left <= 120 {
        tokio::time::sleep(Duration::from_secs(left.unsigned_abs())).await;
    }
}

fn lazy_pool(url: &str) -> Result<PgPool> {
    PgPoolOptions::new().max_connections(16).connect_lazy(url).context("the server's own URL")
}
