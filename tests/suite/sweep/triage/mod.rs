//! Tests of how a pass begins: it finds the tables that have work, and leaves out the others.

mod catalogs;
mod left_out;
mod reasons;
mod statements;
mod wakes;

use std::sync::{Mutex, PoisonError};

use anyhow::Result;
use tailrace::catalog::connect::{Database, close};
use tailrace::catalog::triage::shapes::shapes;
use tailrace::sweep::report::PassReport;
use tailrace::sweep::{Progress, Scope, Settings, run_pass};
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};
use tokio_util::sync::CancellationToken;

use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

/// The catalog `lake` with the tables `events.other` and `events.raw` by day, which keep seven.
struct Scene {
    database: TestDatabase,
    catalog: Catalog,
    raw: Table,
    other: Table,
}

impl Scene {
    /// One in which no table has work.
    async fn settled() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let raw = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let other = database.table(&catalog, "other", &[Field::day("at")]).await?;
        for table in [&raw, &other] {
            table.append(vec![NewFile::of([days_ago(0)])]).await?;
            database.govern(table, "at", "7d").await?;
        }
        let scene = Scene { database, catalog, raw, other };
        scene.database.sweep().await?;
        scene.settle().await?;
        assert_eq!(scene.worked_on().await?, Vec::<String>::new());
        Ok(scene)
    }

    /// Has it noted of each governed table that all was looked at.
    async fn settle(&self) -> Result<()> {
        settle(&self.database).await
    }

    /// The tables that a pass works on.
    async fn worked_on(&self) -> Result<Vec<String>> {
        Ok(self.pass(&settings(), &Scope::default()).await?.0)
    }

    /// The tables that a pass works on, and its report.
    async fn pass(&self, settings: &Settings, scope: &Scope) -> Result<(Vec<String>, PassReport)> {
        pass(&self.database.tailrace(), settings, scope).await
    }
}

async fn pass(
    database: &Database,
    settings: &Settings,
    scope: &Scope,
) -> Result<(Vec<String>, PassReport)> {
    let worked = Mutex::new(Vec::new());
    let note = |progress: Progress<'_>| {
        if let Progress::Table(table) = progress {
            worked.lock().unwrap_or_else(PoisonError::into_inner).push(table.table.clone());
        }
    };
    let stop = CancellationToken::new();
    let report = run_pass(database, settings, scope, &stop, &note).await?;
    Ok((worked.into_inner().unwrap_or_else(PoisonError::into_inner), report))
}

/// Writes what a pass leaves of each governed table that it was through with.
pub async fn settle(database: &TestDatabase) -> Result<()> {
    database
        .sql(
            "DELETE FROM tailrace.calendar;
             INSERT INTO tailrace.table_state (catalog_id, table_uuid, table_id, source_field_id,
               through_snapshot, files_below, book, full_pass_at, looked_through, policy_revision,
               schema_version, outcome)
             SELECT c.catalog_id, p.table_uuid, p.table_id, p.source_field_id, c.last_snapshot_id,
                    c.next_file_id, decode(repeat('00', 64) || '03', 'hex'), now(), now() - interval '7 days', p.revision,
                    c.schema_version, 'nothing_to_do'
             FROM tailrace.policy p JOIN hog_catalog c USING (catalog_id)
             ON CONFLICT (catalog_id, table_uuid) DO UPDATE
             SET source_field_id = excluded.source_field_id,
                 through_snapshot = excluded.through_snapshot,
                 files_below = excluded.files_below, full_pass_at = excluded.full_pass_at,
                 owes_full_pass = false, reading = null,
                 policy_revision = excluded.policy_revision,
                 schema_version = excluded.schema_version, outcome = excluded.outcome,
                 error = null, unlooked = 0, quiet_until = null",
        )
        .await?;
    let mut session = database.tailrace().session().await?;
    let keys: Vec<(i64, uuid::Uuid)> =
        sqlx::query_as("SELECT catalog_id, table_uuid FROM tailrace.table_state")
            .fetch_all(&database.pool)
            .await?;
    let shapes = shapes(&mut session, &keys).await?;
    close(session).await;
    for (catalog_id, table_uuid) in keys {
        // Of a table that is gone there is none.
        let Some(shape) = shapes.get(&(catalog_id, table_uuid)) else { continue };
        sqlx::query(
            "UPDATE tailrace.table_state SET shape = $3
             WHERE catalog_id = $1 AND table_uuid = $2",
        )
        .bind(catalog_id)
        .bind(table_uuid)
        .bind(shape)
        .execute(&database.pool)
        .await?;
    }
    Ok(())
}
