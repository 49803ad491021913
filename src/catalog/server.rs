//! Which columns the server's tables have: whether what we need is there, and whether a new row of ours
//! would be one that this server takes.
//!
//! A server is known by what its migrations left, for the contract names no table that tells its version.
//! It is refused where a column is missing that passes and drops need, and where a table to which a commit
//! adds rows has a column that we do not know and that each row must fill: the commit would fail under the
//! lock, again and again. Columns that we do not know and need not fill are told and change nothing.

mod tables;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use sqlx::Row;
use sqlx::postgres::PgRow;
use sqlx::types::Json;

use super::pooler::ask;
use super::session::Session;
use tables::{TABLES, Table};

/// The tables to which a commit adds rows.
const FILLED: [&str; 2] = ["hog_snapshot", "hog_snapshot_change"];

/// The table of claims, to which `claims` alone adds rows.
pub const CLAIMS: &str = "hog_compaction_claim";

/// The name of the first column of what [`QUESTION`] gives.
pub const FIRST_COLUMN: &str = "server_table";

/// For each table of the contract that the session finds, its name and the names of its columns, each with
/// whether every new row must be given a value for it. Two columns, a row for each table. Reads only `pg_catalog`,
/// which any role may.
pub static QUESTION: LazyLock<String> = LazyLock::new(|| {
    let names = TABLES.map(|table| format!("'{}'", table.name)).join(", ");
    format!(
        "select t.name as {FIRST_COLUMN}, \
                pg_catalog.jsonb_object_agg(a.attname::text, \
                  (a.attnotnull or y.typnotnull) and not a.atthasdef and a.attidentity = '' \
                  and y.typdefault is null) as server_columns \
         from pg_catalog.unnest(array[{names}]) as t (name) \
         join pg_catalog.pg_attribute a \
           on a.attrelid = pg_catalog.to_regclass(t.name)::pg_catalog.oid \
          and a.attnum > 0 and not a.attisdropped \
         join pg_catalog.pg_type y on y.oid = a.atttypid \
         group by t.name"
    )
});

/// Why this program cannot work with the server's tables.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It is unknown in which struct a column is.
    #[error(
        "the hoglake server of this database is older than V9 (hog_column has no parent_field_id), and \
         tailrace needs V9 or newer: upgrade the hoglake server"
    )]
    BeforeV9,
    /// Something is not there that servers have from V9 on.
    #[error(
        "the hoglake server of this database has no {0}, which tailrace needs, and servers from V9 to V27 \
         have: if the server is newer, upgrade tailrace"
    )]
    Missing(String),
    /// A new row of a commit would lack a value.
    #[error(
        "the hoglake server of this database is newer than this tailrace knows (V27): each row must fill \
         {}, and tailrace would not; upgrade tailrace",
        .0.join(", ")
    )]
    MustFill(Vec<String>),
}

/// The columns of the server's tables as a session finds them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerTables(BTreeMap<String, BTreeMap<String, bool>>);

impl ServerTables {
    /// Takes up a row of [`QUESTION`].
    pub fn add(&mut self, row: &PgRow) -> sqlx::Result<()> {
        let Json(columns) = row.try_get("server_columns")?;
        self.0.insert(row.try_get(FIRST_COLUMN)?, columns);
        Ok(())
    }

    /// Whether passes and drops can work on these tables. Where none is found nothing can be said: the
    /// role may not use the schema, or it is not that of a server, and the work itself says which.
    ///
    /// # Errors
    /// [`Misfit`].
    pub fn fits(&self) -> Result<(), Misfit> {
        if self.0.is_empty() {
            return Ok(());
        }
        for Table { name, needed, .. } in TABLES {
            let mut needed = needed.split_whitespace().peekable();
            let Some(found) = self.0.get(name) else {
                match needed.peek() {
                    Some(_) => return Err(Misfit::Missing(format!("table {name}"))),
                    None => continue,
                }
            };
            match needed.find(|column| !found.contains_key(*column)) {
                Some("parent_field_id") => return Err(Misfit::BeforeV9),
                Some(column) => return Err(Misfit::Missing(format!("column {name}.{column}"))),
                None => {}
            }
        }
        match FILLED.iter().flat_map(|table| self.must_fill(table)).collect::<Vec<_>>() {
            columns if columns.is_empty() => Ok(()),
            columns => Err(Misfit::MustFill(columns)),
        }
    }

    /// The columns of a table that we do not know, and that each new row must fill.
    pub fn must_fill(&self, table: &str) -> Vec<String> {
        self.unknown_of(table, true)
    }

    /// All columns that we do not know, as `table.column`.
    pub fn unknown(&self) -> Vec<String> {
        TABLES.iter().flat_map(|table| self.unknown_of(table.name, false)).collect()
    }

    fn unknown_of(&self, table: &str, to_be_filled_only: bool) -> Vec<String> {
        let known = TABLES.iter().find(|known| known.name == table);
        let known = known.map(|Table { needed, others, .. }| {
            needed.split_whitespace().chain(others.split_whitespace()).collect::<BTreeSet<_>>()
        });
        let (known, found) = (known.unwrap_or_default(), self.0.get(table));
        found
            .into_iter()
            .flatten()
            .filter(|(name, must)| !known.contains(name.as_str()) && (**must || !to_be_filled_only))
            // Whoever owns the table gives the names.
            .map(|(name, _)| format!("{table}.{}", name.escape_debug()))
            .collect()
    }
}

/// The columns as this session finds them.
///
/// # Errors
/// As those of [`ask`].
pub async fn server_tables(connection: &mut Session) -> anyhow::Result<ServerTables> {
    let mut tables = ServerTables::default();
    for row in ask(connection, &QUESTION).await? {
        tables.add(&row)?;
    }
    Ok(tables)
}

/// What Postgres says of its version, the system that it runs on with it.
///
/// # Errors
/// As those of [`ask`].
pub async fn postgres_version(connection: &mut Session) -> anyhow::Result<String> {
    let rows = ask(connection, "select pg_catalog.version()").await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    Ok(row.try_get(0)?)
}
