//! Tests that tailrace never uses what other roles have created in the schemas that it reads.

mod attack;
mod core;
mod creators;
mod extensions;
mod hostile;
mod mask;
mod owners;
mod planted;
mod sql;
mod statements;

use anyhow::{Context, Result};
use sqlx::{AssertSqlSafe, ConnectOptions, PgConnection};

use crate::support::TestDatabase;

/// A role that may create in the catalog's schema, and nothing else. Roles are the server's, so the
/// name is the database's.
pub struct Mallory<'a> {
    pub name: String,
    database: &'a TestDatabase,
}

impl<'a> Mallory<'a> {
    pub async fn new(database: &'a TestDatabase) -> Result<Self> {
        let own = database.text("SELECT current_database()").await?.context("a name")?;
        let name = format!("mallory_{own}");
        database
            .sql(&format!(
                "DROP ROLE IF EXISTS {name}; CREATE ROLE {name} LOGIN;
                 GRANT USAGE, CREATE ON SCHEMA public TO {name}"
            ))
            .await?;
        Ok(Mallory { name, database })
    }

    pub async fn session(&self) -> Result<PgConnection> {
        let options = self.database.pool.connect_options().as_ref().clone();
        Ok(options.username(&self.name).connect().await?)
    }

    /// Runs statements as this role.
    pub async fn sql(&self, statements: &str) -> Result<()> {
        let mut session = self.session().await?;
        sqlx::raw_sql(AssertSqlSafe(statements.to_owned())).execute(&mut session).await?;
        Ok(())
    }

    /// Takes away all that the role has made, and the role.
    pub async fn end(self) -> Result<()> {
        self.database.sql(&format!("DROP OWNED BY {0} CASCADE; DROP ROLE {0}", self.name)).await
    }
}
