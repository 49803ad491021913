//! What the program stores in the schema `tailrace`: rows as a version wrote them, over a lake that is beside
//! them in the file. The program of today writes rows of the same shape, reads these, and goes on with them.
//!
//! `TAILRACE_BLESS=rows` writes the file anew, and `TAILRACE_BLESS=1` afterwards what is told of them. That
//! is for what is written beyond these: what no longer reads these does not read those of its users, either.

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

/// The shape of the rows of each table of ours.
async fn shapes(database: &TestDatabase) -> Result<String> {
    let mut told = Told::default();
    for table in tables(database).await?.iter().filter(|table| table.starts_with("tailrace.")) {
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
    let shapes = (shapes(&today).await?, shapes(&pinned().await?).await?);
    let differ = shapes.0.lines().zip(shapes.1.lines()).find(|(today, pinned)| today != pinned);
    assert_eq!(differ, None, "the first line that differs, as written today and as pinned");
    assert_eq!(shapes.0, shapes.1);
    Ok(())
}
