//! Arguments that several commands take.

use std::os::unix::fs::MetadataExt;

use anyhow::anyhow;

use crate::catalog::connect::{Access, Database};
use crate::catalog::session::Session;
use crate::catalog::tables::{catalogs, find_live_table};
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

    /// Why nothing was found: the catalog or table does not exist, or no table of the scope has a policy.
    pub async fn nothing_found(&self, database: &Database) -> anyhow::Error {
        match database
            .in_session(Access::ReadOnly, async |session| self.missing(session).await)
            .await
        {
            Ok(Some(missing)) => anyhow!(missing),
            Ok(None) => anyhow!(
                "no live table with a policy in {}: see `tailrace policy list`",
                self.describe()
            ),
            Err(error) => error,
        }
    }

    async fn missing(&self, session: &mut Session) -> anyhow::Result<Option<String>> {
        let (all, scope) = (catalogs(session).await?, self.scope());
        let named: Vec<_> = all.iter().filter(|catalog| scope.has_catalog(&catalog.name)).collect();
        if let (Some(name), true) = (&self.catalog, named.is_empty()) {
            let names: Vec<_> = all.iter().map(|catalog| format!("{:?}", catalog.name)).collect();
            let there_are = match names.as_slice() {
                [] => "there is none".to_owned(),
                names => format!("there are: {}", names.join(", ")),
            };
            return Ok(Some(format!("there is no catalog {name:?}; {there_are}")));
        }
        let Some(TableName { namespace, table }) = &self.table else { return Ok(None) };
        for catalog in named {
            let (id, name) = (catalog.catalog_id, catalog.name.as_str());
            if find_live_table(session, id, name, namespace, table).await?.is_some() {
                return Ok(None);
            }
        }
        let place = self.catalog.as_ref().map(|name| format!("catalog {name:?}"));
        let place = place.unwrap_or_else(|| "any catalog".to_owned());
        Ok(Some(format!("there is no live table {namespace}.{table} in {place}")))
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

/// The name of a person, at most as long as the HTTP interface accepts.
pub fn author(text: &str) -> Result<String, String> {
    fits(text, LONGEST_AUTHOR).map(|()| text.to_owned())
}

/// The message of a snapshot or a reason, at most as long as the HTTP interface accepts.
pub fn message(text: &str) -> Result<String, String> {
    fits(text, LONGEST_MESSAGE).map(|()| text.to_owned())
}

/// Reads COLUMN=VALUE.
pub fn value_of(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((column, value)) if !column.trim().is_empty() => {
            Ok((column.trim().to_owned(), value.trim().to_owned()))
        }
        _ => Err("say it as COLUMN=VALUE, such as team_id=42".to_owned()),
    }
}

/// The operating system's user who runs the command, as far as it is known.
pub fn session_user() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| {
            std::env::var(name).ok().filter(|user| !user.is_empty() && author(user).is_ok())
        })
        .unwrap_or_else(|| match std::fs::metadata("/proc/self") {
            Ok(process) => format!("uid {}", process.uid()),
            Err(_) => "unknown".to_owned(),
        })
}
