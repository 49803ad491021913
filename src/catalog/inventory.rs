//! What of the server's tables is there, for `tailrace doctor`: relations, columns, indexes,
//! checks and rights from `pg_catalog`, and the maintenance state of a catalog.
//!
//! Everything of `pg_catalog` may be read by anybody, so a role without any right gets an answer.

pub mod consumers;
pub mod creators;
pub mod maintenance_state;
pub mod owners;
pub mod privileges;

use std::collections::{BTreeMap, BTreeSet};

use super::session::Session;

/// The `hog_*` objects of a schema.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Objects {
    /// The names of the columns, by table.
    pub tables: BTreeMap<String, BTreeSet<String>>,
    /// By name.
    pub indexes: BTreeMap<String, Index>,
    /// The definitions of each table's CHECK constraints.
    pub checks: BTreeMap<String, Vec<String>>,
}

/// An index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Index {
    /// As `pg_get_indexdef` has it.
    pub definition: String,
    /// Whether queries use it: a concurrent build that failed leaves one that is only written.
    pub is_valid: bool,
}

/// Reads them. By the primary and name indexes of `pg_catalog`; no table of the server is touched.
pub async fn objects(connection: &mut Session, schema: &str) -> sqlx::Result<Objects> {
    let mut objects = Objects::default();
    let tables = sqlx::query!(
        r#"select c.relname::text as "name!",
                  array(select a.attname::text from pg_catalog.pg_attribute a
                        where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                  ) as "columns!: Vec<String>"
           from pg_catalog.pg_class c
           join pg_catalog.pg_namespace n on n.oid = c.relnamespace
           where n.nspname = $1 and c.relname like 'hog\_%'::text and c.relkind in ('r', 'p')"#,
        schema
    )
    .fetch_all(&mut *connection)
    .await?;
    for table in tables {
        objects.tables.insert(table.name, table.columns.into_iter().collect());
    }
    let indexes = sqlx::query!(
        r#"select c.relname::text as "name!", i.indisvalid and i.indisready as "is_valid!",
                  pg_catalog.pg_get_indexdef(c.oid) as "definition!"
           from pg_catalog.pg_index i
           join pg_catalog.pg_class c on c.oid = i.indexrelid
           join pg_catalog.pg_namespace n on n.oid = c.relnamespace
           where n.nspname = $1 and c.relname like 'hog\_%'::text"#,
        schema
    )
    .fetch_all(&mut *connection)
    .await?;
    for index in indexes {
        let found = Index { definition: index.definition, is_valid: index.is_valid };
        objects.indexes.insert(index.name, found);
    }
    let checks = sqlx::query!(
        r#"select c.relname::text as "name!",
                  pg_catalog.pg_get_constraintdef(k.oid) as "definition!"
           from pg_catalog.pg_constraint k
           join pg_catalog.pg_class c on c.oid = k.conrelid
           join pg_catalog.pg_namespace n on n.oid = c.relnamespace
           where n.nspname = $1 and c.relname like 'hog\_%'::text and k.contype = 'c'"#,
        schema
    )
    .fetch_all(connection)
    .await?;
    for check in checks {
        objects.checks.entry(check.name).or_default().push(check.definition);
    }
    Ok(objects)
}
