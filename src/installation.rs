//! The schema `tailrace`: creates its objects, and checks that they are up to date.
//!
//! Migrations go forward only. Each is applied in a transaction with its entry in the ledger
//! (`tailrace.schema_migration`), under the migrator's advisory lock, so where several replicas
//! start at once each migration is applied once. A database that is up to date is only read, so a
//! role without the right to create objects can start the daemon.

pub mod first;
pub mod foreign;
pub mod rights;
mod session;

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::ensure;
use serde::Serialize;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::{AssertSqlSafe, PgConnection};

use crate::catalog::connect::{Access, Database, close, migrations_search_path, search_path};
use crate::catalog::server::server_tables;
use crate::catalog::session::Session;
use crate::events;
use foreign::{refuse_foreign_owner, refuse_overloads};
use session::same_schema;
pub use session::{Unfit, check, check_ours};

/// The longest that all migrations may take.
const MIGRATION: Duration = Duration::from_secs(600);
const LEDGER: &str = "tailrace.schema_migration";

const NEEDS_CREATE: &str = "the schema tailrace could not be brought up to date (its role needs \
    CREATE on the database, or on the schema tailrace)";

fn migrator() -> Migrator {
    let mut migrator = sqlx::migrate!();
    migrator.dangerous_set_table_name(LEDGER);
    migrator
}

/// The newest migration that this program knows.
pub fn version() -> i64 {
    migrator().iter().map(|migration| migration.version).max().unwrap_or(0)
}

/// What [`migrate`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Migrated {
    /// Migrations applied now; 0 where everything was there already.
    pub applied: usize,
    /// The newest migration.
    pub version: i64,
}

/// Migrates the schema `tailrace`. At the first time it also records in which schema the `hog_*`
/// tables are.
///
/// Waits for another replica that migrates. Changes nothing of hoglake's.
///
/// # Errors
/// No hoglake catalog in the configured schema, a server that cannot be worked with, another schema than
/// the recorded one, a ledger that is newer than this program or differs from it, a schema `tailrace` that
/// somebody else owns, or a role that may not create.
pub async fn migrate(database: &Database) -> anyhow::Result<Migrated> {
    let mut connection = database.unchecked(Access::ReadWrite).await?;
    let result = migrate_in(&mut connection, &database.schema).await;
    close(connection).await;
    result
}

async fn migrate_in(connection: &mut Session, schema: &str) -> anyhow::Result<Migrated> {
    ensure_catalog(connection, schema).await?;
    server_tables(connection).await?.fits().map_err(Unfit::Server)?;
    refuse_foreign_owner(connection, schema).await?;
    let migrator = migrator();
    let version = version();
    let before = applied(connection).await?;
    // Before anything is changed: a migration binds what it creates to the schema of the catalog.
    if let Some(recorded) = recorded_already(connection, &before).await? {
        same_schema(Some(&recorded), schema)?;
    }
    let pending = migrator.iter().map(|migration| migration.version);
    let first_pending = pending.filter(|version| !before.contains_key(version)).min();
    if first_pending.is_some() || !same_checksums(&migrator, &before) {
        if !schema_exists(connection).await? {
            create_schema(connection).await?;
            refuse_foreign_owner(connection, schema).await?;
        }
        if let Some(first) = first_pending {
            refuse_overloads(connection, schema, first).await?;
        }
        apply(connection, schema, &migrator).await?;
    }
    record_schema(connection, schema).await?;
    let applied_now = applied(connection).await?.len().saturating_sub(before.len());
    if applied_now > 0 {
        tracing::info!(
            event = events::MIGRATED,
            applied = applied_now,
            version,
            "The schema tailrace was brought up to date"
        );
    }
    Ok(Migrated { applied: applied_now, version })
}

/// Another replica may make it at the same moment: that is as good.
async fn create_schema(connection: &mut Session) -> anyhow::Result<()> {
    let created = sqlx::raw_sql("create schema tailrace").execute(connection).await;
    match created {
        Err(sqlx::Error::Database(error))
            if matches!(error.code().as_deref(), Some("42P06" | "23505")) =>
        {
            Ok(())
        }
        Err(error) => Err(anyhow::Error::new(error).context(NEEDS_CREATE)),
        Ok(_) => Ok(()),
    }
}

async fn apply(connection: &mut Session, schema: &str, migrator: &Migrator) -> anyhow::Result<()> {
    // Another replica may be at work; a migration itself may take its time; that the ledger is there
    // already is no news. What a function's text calls is looked up when it runs, by a path of its
    // own: looked up now it might be somebody else's.
    let setup = format!(
        "set lock_timeout = '60s'; set statement_timeout = '10min'; \
         set client_min_messages = 'warning'; set check_function_bodies = off; \
         set search_path = {}",
        migrations_search_path(schema)
    );
    let back = format!(
        "reset client_min_messages; reset check_function_bodies; set search_path = {}",
        search_path(schema)
    );
    // The schema's name is quoted as an identifier; everything else is constant.
    connection.statements_take(MIGRATION);
    sqlx::raw_sql(AssertSqlSafe(setup)).execute(&mut *connection).await?;
    let run = async |driver: &mut PgConnection| migrator.run_direct(None, driver, false).await;
    connection.whole(run).await?.map_err(explain)?;
    sqlx::raw_sql(AssertSqlSafe(back)).execute(connection).await?;
    Ok(())
}

async fn ensure_catalog(connection: &mut Session, schema: &str) -> anyhow::Result<()> {
    let found = sqlx::query_scalar!(
        r#"select exists (select from pg_catalog.pg_class c
                          join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                          where n.nspname = $1 and c.relname = 'hog_catalog') as "found!""#,
        schema
    )
    .fetch_one(connection)
    .await?;
    ensure!(
        found,
        "there is no hoglake catalog (table hog_catalog) in schema {schema:?} of this database: \
         check database.url and database.schema"
    );
    Ok(())
}

async fn schema_exists(connection: &mut Session) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select exists (select from pg_catalog.pg_namespace where nspname = 'tailrace') as "exists!""#
    )
    .fetch_one(connection)
    .await
}

/// The ledger: checksums by version; empty where there is none yet.
async fn applied(connection: &mut Session) -> sqlx::Result<BTreeMap<i64, Vec<u8>>> {
    let has_ledger = sqlx::query_scalar!(
        r#"select exists (select from pg_catalog.pg_class c
                          join pg_catalog.pg_namespace n on n.oid = c.relnamespace
                          where n.nspname = 'tailrace' and c.relname = 'schema_migration') as "exists!""#
    )
    .fetch_one(&mut *connection)
    .await?;
    if !has_ledger {
        return Ok(BTreeMap::new());
    }
    let statement = format!("select version, checksum from {LEDGER} where success");
    let rows: Vec<(i64, Vec<u8>)> =
        sqlx::query_as(AssertSqlSafe(statement)).fetch_all(connection).await?;
    Ok(rows.into_iter().collect())
}

/// The newest migration that was applied; `None` where there is no ledger, or nothing in it.
///
/// # Errors
/// As the driver reports them: the role may not read the ledger, or the session is lost.
pub async fn applied_version(connection: &mut Session) -> sqlx::Result<Option<i64>> {
    Ok(applied(connection).await?.into_keys().max())
}

fn same_checksums(migrator: &Migrator, applied: &BTreeMap<i64, Vec<u8>>) -> bool {
    applied.len() == migrator.iter().count()
        && migrator.iter().all(|migration| {
            applied.get(&migration.version).is_some_and(|sum| *sum == *migration.checksum)
        })
}

fn explain(error: MigrateError) -> anyhow::Error {
    match error {
        MigrateError::VersionMissing(version) => Unfit::Newer(version).into(),
        MigrateError::VersionMismatch(version) => Unfit::OtherBuild(version).into(),
        other => anyhow::Error::new(other).context(NEEDS_CREATE),
    }
}

async fn record_schema(connection: &mut Session, schema: &str) -> anyhow::Result<()> {
    let recorded = recorded_schema(connection).await?;
    if recorded.is_none() {
        sqlx::query!(
            "insert into tailrace.installation (catalog_schema) values ($1) on conflict do nothing",
            schema
        )
        .execute(&mut *connection)
        .await?;
    }
    let recorded = recorded_schema(connection).await?;
    Ok(same_schema(recorded.as_deref(), schema)?)
}

/// The recorded schema, where the first migration has made the place for it.
async fn recorded_already(
    connection: &mut Session,
    applied: &BTreeMap<i64, Vec<u8>>,
) -> sqlx::Result<Option<String>> {
    match applied.is_empty() {
        true => Ok(None),
        false => recorded_schema(connection).await,
    }
}

async fn recorded_schema(connection: &mut Session) -> sqlx::Result<Option<String>> {
    sqlx::query_scalar!("select catalog_schema from tailrace.installation")
        .fetch_optional(connection)
        .await
}
