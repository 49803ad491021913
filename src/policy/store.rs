//! Where policies are kept: `tailrace.policy`.
//!
//! A writer first locks the table's rows, the property's mirror among them, then writes. A drop
//! in its commit holds them `FOR SHARE`, so a policy that has been changed, paused or unset when
//! its writer returns is not acted upon by any commit after that; and a drop that meets a
//! writer at work gives up at once (`policy_changed`). Writers never take the commit lock.
//!
//! A row is of one incarnation of a table. Where that is gone the row stays for a while as a tombstone
//! (see [`super::tombstones`]).

use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::keep::Keep;
use super::{Policy, Source};
use crate::catalog::tables::TableIdentity;

/// A row of `tailrace.policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRow {
    /// `stored` or `property`.
    pub source: String,
    /// The incarnation that it is for.
    pub table_uuid: Uuid,
    /// As written.
    pub field: String,
    /// The column that it means.
    pub source_field_id: i64,
    /// As written.
    pub keep: String,
    /// The same in seconds.
    pub keep_seconds: i64,
    /// `enforce`, `observe` or `paused`.
    pub mode: String,
    /// Whether its drops are fenced.
    pub fence: bool,
    /// The property's text that a mirror was read from.
    pub property_text: Option<String>,
    /// Why a mirror is not followed.
    pub problem: Option<String>,
    /// Never used twice.
    pub revision: i64,
    /// When it was last changed.
    pub updated_at: chrono::DateTime<chrono::Utc>,
    /// By whom.
    pub updated_by: String,
}

impl PolicyRow {
    /// The row as a policy.
    ///
    /// # Errors
    /// A mode that this version does not know.
    pub fn policy(&self) -> Result<Policy, String> {
        Ok(Policy {
            source: if self.source == "stored" { Source::Stored } else { Source::Property },
            field: self.field.clone(),
            source_field_id: self.source_field_id,
            keep: Keep::from_stored(self.keep.clone(), self.keep_seconds),
            mode: self.mode.parse()?,
            fence: self.fence,
            revision: self.revision,
            property_text: self.property_text.clone(),
        })
    }
}

/// The rows of one table: the stored policy and the property's mirror.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRows {
    /// The stored policy.
    pub stored: Option<PolicyRow>,
    /// The mirror of the property.
    pub mirror: Option<PolicyRow>,
}

/// Reads the rows of a table, of this incarnation only.
pub async fn rows(
    connection: &mut PgConnection,
    table: &TableIdentity,
) -> sqlx::Result<PolicyRows> {
    let rows = sqlx::query_as!(
        PolicyRow,
        r#"select source, table_uuid, field, source_field_id, keep, keep_seconds, mode, fence,
                  property_text, problem, revision, updated_at, updated_by
           from tailrace.policy where catalog_id = $1 and table_id = $2 and table_uuid = $3"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_all(connection)
    .await?;
    let mut found = PolicyRows::default();
    for row in rows {
        match row.source.as_str() {
            "stored" => found.stored = Some(row),
            _ => found.mirror = Some(row),
        }
    }
    Ok(found)
}

/// A row with its table, whether or not that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRow {
    /// The catalog's key.
    pub catalog_id: i64,
    /// The table's key; another incarnation than the row's may have it.
    pub table_id: i64,
    /// The catalog's name when the table was last seen; the three names are missing only where no pass
    /// of this version has seen it.
    pub catalog: Option<String>,
    /// The namespace's name then.
    pub namespace: Option<String>,
    /// The table's name then.
    pub table: Option<String>,
    /// When a pass first saw that the table is gone.
    pub gone_seen_at: Option<chrono::DateTime<chrono::Utc>>,
    /// The rest.
    pub row: PolicyRow,
}

/// Reads every row that there is, of tables that are gone too.
pub async fn all_rows(connection: &mut PgConnection) -> sqlx::Result<Vec<KeptRow>> {
    let rows = sqlx::query!(
        r#"select catalog_id, table_id, catalog_name, namespace_name, table_name, gone_seen_at,
                  source, table_uuid, field, source_field_id, keep, keep_seconds, mode, fence,
                  property_text, problem, revision, updated_at, updated_by
           from tailrace.policy"#
    )
    .fetch_all(connection)
    .await?;
    let kept = rows.into_iter().map(|row| KeptRow {
        catalog_id: row.catalog_id,
        table_id: row.table_id,
        catalog: row.catalog_name,
        namespace: row.namespace_name,
        table: row.table_name,
        gone_seen_at: row.gone_seen_at,
        row: PolicyRow {
            source: row.source,
            table_uuid: row.table_uuid,
            field: row.field,
            source_field_id: row.source_field_id,
            keep: row.keep,
            keep_seconds: row.keep_seconds,
            mode: row.mode,
            fence: row.fence,
            property_text: row.property_text,
            problem: row.problem,
            revision: row.revision,
            updated_at: row.updated_at,
            updated_by: row.updated_by,
        },
    });
    Ok(kept.collect())
}

/// Notes beside a row that a person said that no other table in the place of its own needs a policy. What it
/// is for its own table stays.
pub async fn settle_row(
    connection: &mut PgConnection,
    (catalog_id, table_id): (i64, i64),
    row: &PolicyRow,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.policy set gone_told = 'settled'
           where catalog_id = $1 and table_id = $2 and table_uuid = $3 and source = $4
             and revision = $5"#,
        catalog_id,
        table_id,
        row.table_uuid,
        row.source,
        row.revision
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Removes one row as it was read: nothing happens where it was set anew since. Waits for a drop that is
/// in its commit, should the table be back.
pub async fn remove_row(
    connection: &mut PgConnection,
    (catalog_id, table_id): (i64, i64),
    row: &PolicyRow,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"delete from tailrace.policy
           where catalog_id = $1 and table_id = $2 and table_uuid = $3 and source = $4
             and revision = $5"#,
        catalog_id,
        table_id,
        row.table_uuid,
        row.source,
        row.revision
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Writes a policy (stored or mirrored, by its source) and returns its new revision.
///
/// Waits for a drop that is in its commit, as long as the session's `lock_timeout` allows.
pub async fn put(
    connection: &mut PgConnection,
    table: &TableIdentity,
    policy: &Policy,
    by: &str,
) -> sqlx::Result<i64> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let revision = sqlx::query_scalar!(
        r#"insert into tailrace.policy (catalog_id, table_id, source, table_uuid, field,
               source_field_id, keep, keep_seconds, mode, fence, property_text, revision, updated_by,
               catalog_name, namespace_name, table_name)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
               pg_catalog.nextval('tailrace.policy_revision'), $12, $13, $14, $15)
           on conflict (catalog_id, table_id, table_uuid, source) do update set
               field = excluded.field,
               source_field_id = excluded.source_field_id, keep = excluded.keep,
               keep_seconds = excluded.keep_seconds, mode = excluded.mode,
               fence = excluded.fence,
               property_text = excluded.property_text, problem = null,
               revision = excluded.revision, updated_at = pg_catalog.clock_timestamp(),
               updated_by = excluded.updated_by, gone_seen_at = null, gone_told = null,
               catalog_name = excluded.catalog_name, namespace_name = excluded.namespace_name,
               table_name = excluded.table_name
           returning revision"#,
        table.catalog_id,
        table.table_id,
        policy.source.to_string(),
        table.table_uuid,
        policy.field,
        policy.source_field_id,
        policy.keep.text(),
        policy.keep.seconds(),
        policy.mode.to_string(),
        policy.fence,
        policy.property_text,
        by,
        table.catalog,
        table.namespace,
        table.table
    )
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(revision)
}

/// Notes why a mirrored property is no longer followed; its binding to a column stays. Nothing
/// happens where that is noted already, or there is no mirror.
pub async fn note_problem(
    connection: &mut PgConnection,
    table: &TableIdentity,
    problem: &str,
) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    sqlx::query!(
        r#"update tailrace.policy set problem = $4,
               revision = pg_catalog.nextval('tailrace.policy_revision'),
               updated_at = pg_catalog.clock_timestamp()
           where catalog_id = $1 and table_id = $2 and table_uuid = $3
             and source = 'property' and problem is distinct from $4"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid,
        problem
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await
}

/// Removes the stored policy or the mirror; returns whether there was one.
pub async fn remove(
    connection: &mut PgConnection,
    table: &TableIdentity,
    source: Source,
) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let removed = sqlx::query!(
        r#"delete from tailrace.policy
           where catalog_id = $1 and table_id = $2 and table_uuid = $3 and source = $4"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid,
        source.to_string()
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(removed.rows_affected() > 0)
}

async fn lock_rows(connection: &mut PgConnection, table: &TableIdentity) -> sqlx::Result<()> {
    // One writer of policies at a time, in a statement of its own: a mirror that another writer has
    // just made is then among the rows that the next statement sees and locks, and a drop for that
    // mirror cannot pass by a stored policy that is being written. Readers and drops go on.
    sqlx::raw_sql("lock table tailrace.policy in share row exclusive mode")
        .execute(&mut *connection)
        .await?;
    sqlx::query!(
        r#"select source from tailrace.policy
           where catalog_id = $1 and table_id = $2 and table_uuid = $3
           order by source for update"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_all(connection)
    .await?;
    Ok(())
}
