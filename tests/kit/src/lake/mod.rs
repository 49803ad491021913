//! A hoglake catalog for tests: the server's tables, and writers that commit as the server does,
//! through real commit tails.
//!
//! ```no_run
//! # async fn example(pool: sqlx::PgPool) -> tailrace_kit::lake::Result<()> {
//! use tailrace_kit::lake::{CatalogOptions, Column, Field, Lake, NewFile};
//!
//! let lake = Lake::install(&pool, "public").await?;
//! let catalog = lake.catalog("demo", CatalogOptions::default()).await?;
//! let events = catalog.namespace("events").await?;
//! let columns = [Column::new("at", "timestamptz"), Column::new("name", "string")];
//! let clicks = catalog
//!     .create_table(&events, "clicks", &columns, &[Field::day("at")])
//!     .await?;
//! clicks.append(vec![NewFile::of(["20713"]).records(10)]).await?;
//! # Ok(())
//! # }
//! ```

mod append;
mod catalog;
mod columns;
mod commit;
mod create;
mod ddl;
mod dump;
mod error;
mod history;
mod mutation;
mod objects;
mod older;
mod packed;
mod read;
mod shape;
mod table;
mod vector;

use std::path::{Path, PathBuf};
use std::time::Duration;

use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

pub use append::{Committed, NewFile, NewStats, StatsState};
pub use catalog::{Catalog, CatalogOptions, Namespace};
pub use commit::{COMMIT_LOCK_CLASS, Commit};
pub use dump::{Difference, Dump, differences};
pub use error::{LakeError, Result};
pub use older::{ENV_VERSION, NEWEST};
pub use read::{Changes, FileRow, VectorRow};
pub use shape::{Column, Field};
pub use table::Table;

pub(crate) use commit::{TAKE_LOCK, kind};
pub(crate) use objects::{contains, local_folder, remove_object, write_object};

/// The catalog's tables as a deployed server at migration V27 leaves them.
pub const SCHEMA: &str = include_str!("../hoglake-v27.sql");

/// A database schema that holds the server's tables.
///
/// Every statement finds them through `search_path`, as the server's own do; the pool in
/// here sets it on each connection.
#[derive(Clone, Debug)]
pub struct Lake {
    pool: PgPool,
    schema: String,
    objects: Option<PathBuf>,
    commit_wait: Duration,
}

impl Lake {
    /// Makes the server's tables in a schema of the pool's database, which is made too if
    /// it is not there, as the server of [`ENV_VERSION`] has them. The lake has a pool of its own, with that schema first.
    pub async fn install(pool: &PgPool, schema: &str) -> Result<Self> {
        let lake = Self::attach(pool, schema);
        // Not through a pool: a database that becomes a template may have no session left.
        let mut connection = PgConnection::connect_with(&lake.pool.connect_options()).await?;
        let create = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema));
        sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut connection).await?;
        sqlx::raw_sql(SCHEMA).execute(&mut connection).await?;
        older::take_away(&mut connection, older::version()?).await?;
        connection.close().await?;
        Ok(lake)
    }

    /// A lake that is installed already.
    pub fn attach(pool: &PgPool, schema: &str) -> Self {
        let options = pool.connect_options().as_ref().clone();
        let options = options.options([("search_path", quoted(schema))]);
        Self {
            pool: PgPoolOptions::new().max_connections(16).connect_lazy_with(options),
            schema: schema.to_owned(),
            objects: None,
            commit_wait: Duration::from_secs(30),
        }
    }

    /// Writes an object on disk for each file and vector, in a folder per catalog below this
    /// one. The objects have the size that the catalog says, and placeholder bytes: they can
    /// be counted and deleted, but they are no parquet that a query engine could read.
    #[must_use]
    pub fn with_objects(mut self, folder: &Path) -> Self {
        self.objects = Some(folder.to_owned());
        self
    }

    /// How long a writer waits for the commit lock, or for a row lock under it, before it
    /// gives up; 30 seconds unless told otherwise, as a foreground commit of the server.
    #[must_use]
    pub fn with_commit_wait(mut self, wait: Duration) -> Self {
        self.commit_wait = wait;
        self
    }

    /// The pool, whose connections see the server's tables first.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The name of the schema.
    pub fn schema(&self) -> &str {
        &self.schema
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
