//! Pauses: `tailrace.pause`. A pause keeps every drop of ours from all catalogs, one catalog or one table, whatever
//! their policies say, until somebody resumes it.

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
        format!("{} is paused by {paused_by} since {paused_at}: {reason}", self.scope())
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

/// The row of the statements below.
macro_rules! pause {
    ($row:expr) => {
        Pause {
            catalog: $row.catalog_name,
            namespace: $row.namespace_name,
            table: $row.table_name,
            reason: $row.reason,
            paused_by: $row.paused_by,
            paused_at: $row.paused_at.into(),
        }
    };
}

/// All pauses: the widest first, then by name.
pub async fn all(connection: &mut Session) -> sqlx::Result<Vec<Pause>> {
    let rows = sqlx::query!(
        r#"select catalog_name, namespace_name, table_name, reason, paused_by, paused_at
           from tailrace.pause
           order by catalog_name nulls first, namespace_name nulls first, table_name, pause_id"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| pause!(row)).collect())
}

/// The pause that covers a table; of several the widest.
pub async fn covering(
    connection: &mut Session,
    table: &TableIdentity,
) -> sqlx::Result<Option<Pause>> {
    let row = sqlx::query!(
        r#"select catalog_name, namespace_name, table_name, reason as "reason!",
                  paused_by as "paused_by!", paused_at as "paused_at!"
           from tailrace.pauses_of($1, $2, $3)
           order by catalog_id nulls first, table_uuid nulls first, pause_id limit 1"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| pause!(row)))
}

/// Pauses, in the name of `by`. Where the scope is paused already, that pause stays and is given back, with
/// false. Waits for drops in their commits, as long as the session's `lock_timeout` allows: no drop of the scope
/// commits after this has returned.
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
    let added = sqlx::query!(
        r#"insert into tailrace.pause (catalog_id, catalog_name, table_uuid, namespace_name, table_name,
               reason, paused_by)
           values ($1, $2, $3, $4, $5, $6, $7)
           on conflict (catalog_id, table_uuid) do nothing"#,
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
    let row = sqlx::query!(
        r#"select catalog_name, namespace_name, table_name, reason, paused_by, paused_at
           from tailrace.pause
           where catalog_id is not distinct from $1 and table_uuid is not distinct from $2"#,
        catalog_id,
        table.map(|table| table.table_uuid)
    )
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    let (pause, is_new) = (pause!(row), added.rows_affected() > 0);
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

/// Resumes what was paused under this name, or what bears the name now; gives those pauses back, none where
/// it was not paused. Wider and narrower pauses stay.
pub async fn resume(
    connection: &mut Session,
    scope: PauseScope<'_>,
    by: &str,
) -> sqlx::Result<Vec<Pause>> {
    let (catalog, names) = match scope {
        PauseScope::All => (None, None),
        PauseScope::Catalog(catalog) => (Some(catalog), None),
        PauseScope::Table(catalog, namespace, table) => (Some(catalog), Some((namespace, table))),
    };
    // A table that was renamed since is found by its UUID; one that is gone by its name.
    let table = match resolved(connection, scope).await {
        Ok((_, table)) => table,
        Err(PauseError::NotFound(_)) => None,
        Err(PauseError::Database(error)) => return Err(error),
    };
    let mut transaction = connection.begin().await?;
    // Before the rows, as `pause` does: two that work on one scope then wait for each other in one order.
    let raised = match catalog {
        None => {
            raise_all(&mut transaction, Change::Loosens).await?;
            Vec::new()
        }
        Some(catalog) => raise_of(&mut transaction, catalog).await?,
    };
    let rows = sqlx::query!(
        r#"delete from tailrace.pause
           where catalog_name is not distinct from $1
             and (table_name is null) = ($3::text is null)
             and ($3::text is null or table_uuid = $4 or (namespace_name, table_name) = ($2, $3))
           returning catalog_id, catalog_name, namespace_name, table_name, reason, paused_by, paused_at"#,
        catalog,
        names.map(|names| names.0),
        names.map(|names| names.1),
        table.map(|table| table.table_uuid)
    )
    .fetch_all(&mut *transaction)
    .await?;
    let mut resumed = Vec::new();
    for row in rows {
        if let Some(catalog_id) = row.catalog_id.filter(|id| !raised.contains(id)) {
            raise(&mut transaction, catalog_id, Change::Loosens).await?;
        }
        resumed.push(pause!(row));
    }
    // Where nothing was paused, nothing changes.
    match resumed.is_empty() {
        true => transaction.rollback().await?,
        false => transaction.commit().await?,
    }
    for Pause { catalog, namespace, table, paused_by, paused_at, reason } in &resumed {
        tracing::warn!(
            event = events::RESUMED,
            catalog,
            namespace,
            table,
            by,
            paused_by,
            %paused_at,
            reason,
            "Drops go on: a pause was taken away"
        );
    }
    Ok(resumed)
}

/// Raises the revisions of the catalogs of which something is paused under this name; their ids.
async fn raise_of(transaction: &mut Session, catalog: &str) -> sqlx::Result<Vec<i64>> {
    let ids = sqlx::query_scalar!(
        r#"select distinct catalog_id as "catalog_id!" from tailrace.pause
           where catalog_name = $1 order by 1"#,
        catalog
    )
    .fetch_all(&mut *transaction)
    .await?;
    for catalog_id in &ids {
        raise(transaction, *catalog_id, Change::Loosens).await?;
    }
    Ok(ids)
}

type Resolved = (Option<(i64, String)>, Option<TableIdentity>);

/// The catalog and the live table of a scope.
async fn resolved(connection: &mut Session, scope: PauseScope<'_>) -> Result<Resolved, PauseError> {
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
