//! Tests of the simulated server loops against the catalog's contract.

mod compaction;
mod expiry;
mod others;

use std::time::Duration;

use anyhow::Result;
use tailrace_kit::lake::{Catalog, CatalogOptions, NewFile};

use crate::support::TestDatabase;

pub async fn catalog_with(database: &TestDatabase, retention: Option<Duration>) -> Result<Catalog> {
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    Ok(database.lake.catalog("c", options).await?)
}

pub fn one(value: &str) -> Vec<NewFile> {
    vec![NewFile::of([value])]
}
