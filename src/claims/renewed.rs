//! The result of a renewal.

use std::time::Duration;

use crate::catalog::errors::describe;
use crate::catalog::tables::TableIdentity;

/// What a renewal came to.
#[derive(Debug, Default)]
pub struct Renewed {
    /// Tables with claimed files.
    pub tables: usize,
    /// Files that are claimed now.
    pub files: usize,
    /// Rows that name them.
    pub rows: usize,
    /// What could not be dealt with: its claims are as they were, and lapse unless a later renewal
    /// gets through.
    pub failed: Vec<Failed>,
    /// How long it took.
    pub took: Duration,
}

/// A catalog, or a table, that could not be dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// Its name.
    pub catalog: String,
    /// `namespace.table`, if it is about one.
    pub table: Option<String>,
    /// The error, in words.
    pub error: String,
}

impl Failed {
    /// A table.
    pub(super) fn of_table(identity: &TableIdentity, error: &anyhow::Error) -> Self {
        Failed {
            catalog: identity.catalog.clone(),
            table: Some(format!("{}.{}", identity.namespace, identity.table)),
            error: describe(error),
        }
    }
}
