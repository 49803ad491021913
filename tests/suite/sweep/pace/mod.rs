//! Tests of the pace, the duration and the order of a pass, and of several catalogs at the same
//! time.
//!
//! Time is an argument in these tests: see [`crate::support::timer`].

mod budget;
mod cancelled;
mod catalogs;
mod lock_tries;
mod removals;
mod share;

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

/// A governed table `events.name` that keeps 7 days, with one file for each of these ages.
async fn governed(
    database: &TestDatabase,
    catalog: &Catalog,
    name: &str,
    ages: impl IntoIterator<Item = i64>,
) -> Result<Table> {
    let table = database.table(catalog, name, &[Field::day("at")]).await?;
    let files = ages.into_iter().map(|age| NewFile::of([days_ago(age)]));
    table.append(files.collect()).await?;
    database.govern(&table, "day(at)", "7d").await?;
    Ok(table)
}

/// One file a commit, without rests, and without a limit that a slow machine could meet.
fn one_by_one() -> Settings {
    let mut settings = settings();
    settings.batch.files_per_commit = 1;
    settings.lock_duty = 1.0;
    settings.limits.lock_timeout = std::time::Duration::from_secs(60);
    settings.limits.max_hold = std::time::Duration::from_secs(60);
    settings
}
