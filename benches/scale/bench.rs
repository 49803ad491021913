//! The private server of the benchmark, and the databases on which rows are measured.

use std::time::Duration;

use anyhow::{Context, Result};
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tailrace::catalog::connect::{Database, close};
use tailrace::catalog::session::Patience;
use tailrace::catalog::tables::{TableIdentity, find_table};
use tailrace_kit::lake::Lake;
use tailrace_kit::server::{PrivateServer, ServerOptions};

use super::fixture;
use super::scale::{Fixture, Scale};

/// The server's settings that differ from those of initdb. They are shown with the figures.
pub const SETTINGS: [(&str, &str); 9] = [
    ("fsync", "on"),
    ("synchronous_commit", "on"),
    // Otherwise the figures would depend on when a page was last checkpointed.
    ("full_page_writes", "off"),
    ("shared_buffers", "2GB"),
    ("maintenance_work_mem", "512MB"),
    ("max_wal_size", "6GB"),
    ("checkpoint_timeout", "1h"),
    ("autovacuum", "off"),
    // Log lines name their database, so that they can be assigned to it.
    ("log_line_prefix", "%d "),
];

/// The server and the fixtures on which the rows are measured.
pub struct Bench {
    /// The server.
    pub server: PrivateServer,
    /// The sizes of the fixtures.
    pub scale: Scale,
    built: Vec<Fixture>,
    copies: u32,
}

impl Bench {
    /// Starts the server.
    pub async fn start(scale: Scale) -> Result<Self> {
        let mut options = ServerOptions::default();
        for (name, value) in SETTINGS {
            options = options.setting(name, value);
        }
        let server = PrivateServer::start(options).await?;
        Ok(Bench { server, scale, built: Vec::new(), copies: 0 })
    }

    /// The database of a fixture itself, built at the first call. It must be given back by
    /// [`Db::leave`] before anybody copies it.
    pub async fn built(&mut self, fixture: Fixture) -> Result<Db> {
        let name = fixture.database();
        if !self.built.contains(&fixture) {
            let base = fixture.base();
            if let Some(base) = base {
                Box::pin(self.built(base)).await?.leave().await;
            }
            let clock = std::time::Instant::now();
            self.create(&name, base.map(|base| base.database()).as_deref()).await?;
            fixture::build(&self.open(&name)?, &self.scale.layout(fixture), base.is_none()).await?;
            eprintln!("  built {name} in {:.0} s", clock.elapsed().as_secs_f64());
            self.built.push(fixture);
        }
        self.open(&name)
    }

    /// A copy of a fixture, with as many of its pages in the server's memory as fit.
    pub async fn copy(&mut self, fixture: Fixture) -> Result<Db> {
        let db = self.built(fixture).await?;
        let (built, copy) = self.copy_of(db).await?;
        built.leave().await;
        copy.prewarm().await?;
        Ok(copy)
    }

    /// Copies a database, whose sessions are closed for it; returns the original and the copy.
    pub async fn copy_of(&mut self, db: Db) -> Result<(Db, Db)> {
        let original = db.name.clone();
        db.leave().await;
        self.copies += 1;
        let name = format!("copy_{}", self.copies);
        self.create(&name, Some(&original)).await?;
        Ok((self.open(&original)?, self.open(&name)?))
    }

    /// Removes a database that is not needed any more.
    pub async fn remove(&mut self, db: Db) -> Result<()> {
        let name = db.name.clone();
        db.leave().await;
        self.built.retain(|fixture| fixture.database() != name);
        self.server.drop_database(&name).await
    }

    /// A handle on an existing database.
    pub fn open(&self, name: &str) -> Result<Db> {
        let url = self.server.url(name);
        let pool = PgPoolOptions::new().max_connections(2).connect_lazy(&url)?;
        Ok(Db { name: name.to_owned(), url, pool })
    }

    /// Runs one statement as the owner of all databases.
    pub async fn administer(&self, statement: String) -> Result<()> {
        let mut connection = PgConnection::connect(&self.server.admin_url()).await?;
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }

    async fn create(&self, name: &str, template: Option<&str>) -> Result<()> {
        // Files are copied as they are, not page by page through the WAL.
        let template = template.map_or(String::new(), |template| {
            format!("template \"{template}\" strategy file_copy")
        });
        self.administer(format!("create database \"{name}\" {template}"))
            .await
            .with_context(|| format!("cannot make the database {name}"))
    }
}

/// One database.
pub struct Db {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// For queries and preparation; what is measured opens sessions of its own.
    pub pool: PgPool,
}

impl Db {
    /// The database in the form in which tailrace opens it.
    pub fn database(&self) -> Database {
        Database {
            options: self.pool.connect_options().as_ref().clone(),
            schema: "public".to_owned(),
            connect_timeout: Duration::from_secs(10),
            patience: Patience::default(),
        }
    }

    /// The lake in it.
    pub fn lake(&self) -> Lake {
        Lake::attach(&self.pool, "public")
    }

    /// One of its tables.
    pub async fn table(&self, name: &str) -> Result<TableIdentity> {
        let mut session = self.database().session().await?;
        let found = find_table(&mut session, fixture::CATALOG, fixture::NAMESPACE, name).await?;
        close(session).await;
        Ok(found.identity)
    }

    /// The ids of a table's live files with one of these partition values at key 0, in ascending order.
    pub async fn file_ids(&self, table: &TableIdentity, texts: &[String]) -> Result<Vec<i64>> {
        let query = "select f.data_file_id from hog_file_partition_value v
             join hog_data_file f using (catalog_id, data_file_id)
             where v.catalog_id = $1 and v.key_index = 0 and v.value = any($3)
               and f.table_id = $2 and f.end_snapshot is null
             order by 1";
        Ok(sqlx::query_scalar(query)
            .bind(table.catalog_id)
            .bind(table.table_id)
            .bind(texts)
            .fetch_all(&self.pool)
            .await?)
    }

    /// How many live files a table has.
    pub async fn live_files(&self, table: &TableIdentity) -> Result<i64> {
        let query = "select count(*) from hog_data_file
             where catalog_id = $1 and table_id = $2 and end_snapshot is null";
        Ok(sqlx::query_scalar(query)
            .bind(table.catalog_id)
            .bind(table.table_id)
            .fetch_one(&self.pool)
            .await?)
    }

    /// Brings every page of the files, values, vectors and statistics, and of their indexes, into the
    /// server's memory, as far as they fit.
    pub async fn prewarm(&self) -> Result<()> {
        let statement = "create extension if not exists pg_prewarm;
             select sum(pg_prewarm(c.oid)) from pg_class c
             where c.relkind in ('r', 'i') and c.relpages > 0 and (c.oid in
                 ('hog_data_file'::regclass, 'hog_file_partition_value'::regclass,
                  'hog_delete_file'::regclass, 'hog_file_column_stats'::regclass)
               or c.oid in (select indexrelid from pg_index where indrelid in
                 ('hog_data_file'::regclass, 'hog_file_partition_value'::regclass,
                  'hog_delete_file'::regclass, 'hog_file_column_stats'::regclass)))";
        sqlx::raw_sql(statement).execute(&self.pool).await.context("pg_prewarm")?;
        Ok(())
    }

    /// Closes the sessions of the pool in this database.
    pub async fn leave(self) {
        self.pool.close().await;
    }
}
