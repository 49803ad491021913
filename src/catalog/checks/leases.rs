//! The leases of tailrace in the server's table of compaction claims.

use chrono::{DateTime, Utc};
use sqlx::AssertSqlSafe;

use crate::catalog::compaction_claims::has_claims;
use crate::catalog::session::Session;

/// What there can be of leases.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTables {
    /// Whether the server has hog_compaction_claim, which came with V15.
    pub claims: bool,
    /// Whether our schema has a claimant of each catalog.
    pub claimants: bool,
}

/// Which of the two tables are there.
pub async fn lease_tables(connection: &mut Session) -> sqlx::Result<LeaseTables> {
    let claims = has_claims(&mut *connection).await?;
    let claimants = sqlx::query_scalar!(
        r#"select pg_catalog.to_regclass('tailrace.claimant') is not null as "there!""#
    )
    .fetch_one(connection)
    .await?;
    Ok(LeaseTables { claims, claimants })
}

/// A lease of ours.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Lease {
    /// The table whose files it names.
    pub table_id: i64,
    pub group_key: String,
    /// How many files it names.
    pub files: i32,
    /// When it ends: so long after it was taken, or last renewed, as a lease holds.
    pub expires_at: DateTime<Utc>,
}

/// The next `most` leases of our claimant in a catalog after one, in the order of the primary key.
pub async fn leases(
    connection: &mut Session,
    catalog_id: i64,
    after: (i64, &str),
    most: i64,
) -> sqlx::Result<Vec<Lease>> {
    // Not checked at compile time: older servers, and older schemas of ours, lack a table.
    let statement = "select c.table_id, c.group_key, \
               pg_catalog.cardinality(c.input_file_ids) as files, \
               greatest(least(c.expires_at, '9999-12-31'), '0001-01-01') as expires_at \
        from hog_compaction_claim c \
        where c.catalog_id = $1 and (c.table_id, c.group_key) > ($2, $3) \
          and c.claimant = (select claimant from tailrace.claimant \
                            where catalog_id = $1) \
        order by c.table_id, c.group_key limit $4";
    sqlx::query_as(AssertSqlSafe(statement))
        .bind(catalog_id)
        .bind(after.0)
        .bind(after.1)
        .bind(most)
        .fetch_all(connection)
        .await
}
