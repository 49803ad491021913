//! Pins the rows that the program stores in the schema `tailrace`. A file has rows as a version
//! wrote them, with the lake that they are about. The present program must write rows of the same
//! shape, read the rows of the file, and continue with them.
//!
//! `TAILRACE_BLESS=rows` writes the file again. `TAILRACE_BLESS=1` then writes again what is
//! reported of the rows. Do this only where the program writes more than these rows have: a program
//! that cannot read these rows cannot read those of its users either.

mod file;
mod pass;
mod read;
mod written;

use anyhow::Result;
use serde_json::Value;

use super::golden;
use super::told::Told;
use crate::support::TestDatabase;
use file::{FILE, loaded, statements, tables};
use written::written;

/// A fresh installation with the pinned rows in it.
async fn pinned() -> Result<TestDatabase> {
    loaded(&golden::read(FILE)).await
}

/// The tables of ours with pinned rows.
async fn pinned_tables(pinned: &TestDatabase) -> Result<Vec<String>> {
    let mut of_rows = Vec::new();
    for table in tables(pinned).await? {
        let has_rows = pinned.text(&format!("SELECT EXISTS (SELECT FROM {table})")).await?;
        if table.starts_with("tailrace.") && has_rows.as_deref() == Some("true") {
            of_rows.push(table);
        }
    }
    Ok(of_rows)
}

/// The shape of the rows of each of some tables.
async fn shapes(database: &TestDatabase, tables: &[String]) -> Result<String> {
    let mut told = Told::default();
    for table in tables {
        for row in database.rows(&format!("SELECT * FROM {table}")).await? {
            told.value(table, &serde_json::from_str::<Value>(&row)?);
        }
    }
    Ok(told.text())
}

#[tokio::test]
async fn the_program_writes_rows_of_this_shape() -> Result<()> {
    let today = written().await?;
    if golden::is_blessing("rows") {
        std::fs::write(golden::path(FILE), statements(&today).await?)?;
    }
    let pinned = pinned().await?;
    let mut tables = pinned_tables(&pinned).await?;
    // Cursors of before the calendar are left in place, and nobody writes them any more.
    tables.retain(|table| {
        !["tailrace.sweep_cursor", "tailrace.sweep_state"].contains(&table.as_str())
    });
    let shapes = (shapes(&today, &tables).await?, shapes(&pinned, &tables).await?);
    let differ = shapes.0.lines().zip(shapes.1.lines()).find(|(today, pinned)| today != pinned);
    assert_eq!(differ, None, "the first line that differs, as written today and as pinned");
    assert_eq!(shapes.0, shapes.1);
    Ok(())
}
