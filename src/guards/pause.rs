//! Pauses: `tailrace.pause`. A pause keeps every drop of ours from all catalogs, one catalog or one table, whatever
//! their policies say, until somebody resumes it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use utoipa::ToSchema;

use super::revision::{Change, raise, raise_all};
use crate::catalog::session::Session;
use crate::catalog::tables::{TableIdentity, catalogs, find_live_table};
use crate::events;
use crate::rules::instant::UtcInstant;

/// A pause, as JSON has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Pause {
    /// The catalog that is paused; null where all are.
    pub catalog: Option<String>,
    /// The table's namespace, as it was called; null where a whole catalog is paused.
    pub namespace: Option<String>,
    /// The table, as it was called; null where a whole catalog is paused.
    pub table: Option<String>,
    /// Why, as it was given.
    pub reason: String,
    /// Who paused it.
    pub paused_by: String,
    /// Since when, by the database's clock.
    pub paused_at: UtcInstant,
    /// When it ends, where somebody resumed what it covers; left out where nobody has.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub until: Option<UtcInstant>,
}

impl Pause {
    /// What is paused, in words.
    pub fn scope(&self) -> String {
        match (&self.catalog, &self.namespace, &self.table) {
            (Some(catalog), Some(namespace), Some(table)) => {
                format!("table {namespace}.{table} of catalog {catalog}")
            }
            (Some(catalog), ..) => format!("catalog {catalog}"),
            (None, ..) => "every catalog".to_owned(),
        }
    }

    /// The pause in words: what, who, since when and why.
    pub fn describe(&self) -> String {
        let Pause { paused_by, paused_at, reason, .. } = self;
        let until = self.until.map(|until| format!(" until {until}")).unwrap_or_default();
        format!("{} is paused by {paused_by} since {paused_at}{until}: {reason}", self.scope())
    }
}

/// What to pause or resume, by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PauseScope<'a> {
    /// Every catalog, those to come included.
    All,
    /// A catalog.
    Catalog(&'a str),
    /// A table: catalog, namespace, table.
    Table(&'a str, &'a str, &'a str),
}

/// Why a pause was not made.
#[derive(Debug, thiserror::Error)]
pub enum PauseError {
    /// There is no such catalog or live table.
    #[error("{0}")]
    NotFound(String),
    /// The database's.
    #[error(transparent)]
    Database(#[from] sqlx::Error),
}

/// A row of `tailrace.pause`.
pub(super) struct PauseRow {
    pub(super) catalog_id: Option<i64>,
    pub(super) catalog_name: Option<String>,
    pub(super) namespace_name: Option<String>,
    pub(super) table_name: Option<String>,
    pub(super) reason: String,
    pub(super) paused_by: String,
    pub(super) paused_at: DateTime<Utc>,
    pub(super) until: Option<DateTime<Utc>>,
}

impl From<PauseRow> for Pause {
    fn from(row: PauseRow) -> Self {
        Pause {
            catalog: row.catalog_name,
            namespace: row.namespace_name,
            table: row.table_name,
            reason: row.reason,
            paused_by: row.paused_by,
            paused_at: row.paused_at.into(),
            until: row.until.map(UtcInstant::from),
        }
    }
}

/// All pauses that are in force: the widest first, then by name.
pub async fn all(connection: &mut Session) -> sqlx::Result<Vec<Pause>> {
    let rows = sqlx::query_as!(
        PauseRow,
        r#"select catalog_id, catalog_name, namespace_name, table_name, reason, paused_by, paused_at,
                  until
           from tailrace.pause
           where until is null or until > pg_catalog.clock_timestamp()
           order by catalog_name nulls first, namespace_name nulls first, table_name, pause_id"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(Pause::from).collect())
}

/// The pause that covers a table; of several one that does not end, and of those the widest.
pub async fn covering(
    connection: &mut Session,
    table: &TableIdentity,
) -> sqlx::Result<Option<Pause>> {
    let row = sqlx::query_as!(
        PauseRow,
        r#"select p.catalog_id, p.catalog_name, p.namespace_name, p.table_name, p.reason, p.paused_by,
                  p.paused_at, p.until
           from tailrace.pauses_of($1, $2, $3) as o
           join tailrace.pause p on p.pause_id = o.pause_id
           order by p.until is not null, p.catalog_id nulls first, p.table_uuid nulls first, p.pause_id
           limit 1"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(Pause::from))
}

/// Pauses, in the name of `by`. Where the scope is paused already, that pause stays and is given back, with
/// false; one that was to end is made anew. Waits for drops in their commits, as long as the session's `lock_timeout`
/// allows: no drop of the scope commits after this has returned.
pub async fn pause(
    connection: &mut Session,
    scope: PauseScope<'_>,
    by: &str,
    reason: &str,
) -> Result<(Pause, bool), PauseError> {
    let (catalog, table) = resolved(connection, scope).await?;
    let mut transaction = connection.begin().await?;
    match &catalog {
        Some((catalog_id, _)) => raise(&mut transaction, *catalog_id, Change::Tightens).await?,
        None => raise_all(&mut transaction, Change::Tightens).await?,
    }
    let (catalog_id, catalog_name) = catalog.unzip();
    let table = table.as_ref();
    sqlx::query!(
        r#"delete from tailrace.pause
           where catalog_id is not distinct from $1 and table_uuid is not distinct from $2
             and until <= pg_catalog.clock_timestamp()"#,
        catalog_id,
        table.map(|table| table.table_uuid)
    )
    .execute(&mut *transaction)
    .await?;
    let added = sqlx::query!(
        r#"insert into tailrace.pause as pause (catalog_id, catalog_name, table_uuid, namespace_name,
               table_name, reason, paused_by)
           values ($1, $2, $3, $4, $5, $6, $7)
           -- It still covers the name that it was made for.
           on conflict (catalog_id, table_uuid) do update
           set until = null, reason = excluded.reason, paused_by = excluded.paused_by,
               paused_at = pg_catalog.clock_timestamp()
           where pause.until is not null"#,
        catalog_id,
        catalog_name.as_deref(),
        table.map(|table| table.table_uuid),
        table.map(|table| table.namespace.as_str()),
        table.map(|table| table.table.as_str()),
        reason,
        by
    )
    .execute(&mut *transaction)
    .await?;
    let row = sqlx::query_as!(
        PauseRow,
        r#"select catalog_id, catalog_name, namespace_name, table_name, reason, paused_by, paused_at,
                  until
           from tailrace.pause
           where catalog_id is not distinct from $1 and table_uuid is not distinct from $2"#,
        catalog_id,
        table.map(|table| table.table_uuid)
    )
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    let (pause, is_new) = (Pause::from(row), added.rows_affected() > 0);
    if is_new {
        let Pause { catalog, namespace, table, paused_by: by, reason, .. } = &pause;
        tracing::warn!(
            event = events::PAUSED,
            catalog,
            namespace,
            table,
            by,
            reason,
            "Drops were paused"
        );
    }
    Ok((pause, is_new))
}

pub(super) type Resolved = (Option<(i64, String)>, Option<TableIdentity>);

/// The catalog and the live table of a scope.
pub(super) async fn resolved(
    connection: &mut Session,
    scope: PauseScope<'_>,
) -> Result<Resolved, PauseError> {
    let (name, table) = match scope {
        PauseScope::All => return Ok((None, None)),
        PauseScope::Catalog(catalog) => (catalog, None),
        PauseScope::Table(catalog, namespace, table) => (catalog, Some((namespace, table))),
    };
    let all = catalogs(connection).await?;
    let found = all.into_iter().find(|catalog| catalog.name == name);
    let catalog =
        found.ok_or_else(|| PauseError::NotFound(format!("there is no catalog {name:?}")))?;
    let Some((namespace, table)) = table else {
        return Ok((Some((catalog.catalog_id, catalog.name)), None));
    };
    let live = find_live_table(connection, catalog.catalog_id, name, namespace, table).await?;
    let none = || {
        PauseError::NotFound(format!("there is no table {namespace}.{table} in catalog {name:?}"))
    };
    let identity = live.ok_or_else(none)?.identity;
    Ok((Some((catalog.catalog_id, catalog.name)), Some(identity)))
}
