//! Dumps all rows of the catalog's tables, so that a test can compare them before and after.

use std::collections::BTreeMap;

use sqlx::AssertSqlSafe;

use super::Lake;
use super::error::Result;

/// Each `hog_*` table with all of its rows as JSON, sorted.
pub type Dump = BTreeMap<String, Vec<String>>;

/// What of a table's rows is in one dump only.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Rows that were there before and are no more.
    pub gone: Vec<String>,
    /// Rows that were not there before.
    pub new: Vec<String>,
}

impl Lake {
    /// Reads every row of every `hog_*` table of the lake's schema, in one snapshot of the
    /// database.
    pub async fn dump(&self) -> Result<Dump> {
        let mut tx =
            self.pool.begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY").await?;
        let tables: Vec<String> = sqlx::query_scalar(
            "SELECT relname::text FROM pg_class
              WHERE relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
                AND relkind IN ('r', 'p') AND relname LIKE 'hog\\_%'",
        )
        .fetch_all(&mut *tx)
        .await?;
        let mut dump = Dump::new();
        for table in tables {
            let statement = format!("SELECT to_jsonb(t)::text FROM {} t", super::quoted(&table));
            let mut rows: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(statement)).fetch_all(&mut *tx).await?;
            rows.sort_unstable();
            dump.insert(table, rows);
        }
        tx.commit().await?;
        Ok(dump)
    }
}

/// The tables whose rows differ, and how.
pub fn differences(before: &Dump, after: &Dump) -> BTreeMap<String, Difference> {
    let empty = Vec::new();
    let tables: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    tables
        .into_iter()
        .map(|table| {
            let old = before.get(table).unwrap_or(&empty);
            let new = after.get(table).unwrap_or(&empty);
            let difference = Difference { gone: without(old, new), new: without(new, old) };
            (table.clone(), difference)
        })
        .filter(|(_, difference)| *difference != Difference::default())
        .collect()
}

/// The rows of one sorted list that the other lacks, a row that is there twice counting twice.
fn without(rows: &[String], others: &[String]) -> Vec<String> {
    let mut others = others.iter().peekable();
    let mut left = Vec::new();
    for row in rows {
        while others.next_if(|other| *other < row).is_some() {}
        if others.next_if(|other| *other == row).is_none() {
            left.push(row.clone());
        }
    }
    left
}
