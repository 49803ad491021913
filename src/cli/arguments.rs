//! Arguments that several commands take.

use crate::explicit::validate::{LONGEST_AUTHOR, LONGEST_MESSAGE, fits};
use crate::sweep::Scope;

#[derive(Debug, clap::Args)]
pub struct ScopeArgs {
    /// Only this catalog.
    #[arg(long, value_name = "CATALOG")]
    catalog: Option<String>,
    /// Only this table.
    #[arg(long, value_name = "NS.TABLE", value_parser = table_name)]
    table: Option<TableName>,
}

impl ScopeArgs {
    pub fn scope(&self) -> Scope {
        let table = self.table.clone().map(|name| (name.namespace, name.table));
        Scope { catalog: self.catalog.clone(), table }
    }

    pub fn describe(&self) -> String {
        let table = self.table.as_ref().map(|name| format!("{}.{}", name.namespace, name.table));
        let parts = [
            self.catalog.as_ref().map(|catalog| format!("catalog {catalog}")),
            table.map(|table| format!("table {table}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    pub namespace: String,
    pub table: String,
}

/// Reads NAMESPACE.TABLE.
pub fn table_name(text: &str) -> Result<TableName, String> {
    match text.split_once('.') {
        Some((namespace, table))
            if !namespace.is_empty() && !table.is_empty() && !table.contains('.') =>
        {
            Ok(TableName { namespace: namespace.to_owned(), table: table.to_owned() })
        }
        _ => Err("a table is named NAMESPACE.TABLE".to_owned()),
    }
}

/// Who acts, as long as the HTTP interface takes it.
pub fn author(text: &str) -> Result<String, String> {
    fits(text, LONGEST_AUTHOR).map(|()| text.to_owned())
}

/// The message of a snapshot, or a reason, as long as the HTTP interface takes it.
pub fn message(text: &str) -> Result<String, String> {
    fits(text, LONGEST_MESSAGE).map(|()| text.to_owned())
}
