//! Where policies are kept: `tailrace.policy`.
//!
//! A writer first locks the table's rows, the property's mirror among them, then writes. A drop
//! in its commit holds them `FOR SHARE`, so a policy that has been changed, paused or unset when
//! its writer returns is not acted upon by any commit after that; and a drop that meets a
//! writer at work gives up at once (`policy_changed`). Writers never take the commit lock.
//!
//! A row is of one table, by its UUID. Where that is gone the row stays for a while as a tombstone
//! (see [`super::tombstones`]).

use uuid::Uuid;

use super::history::{self, Changer, PolicyTerms};
use super::present::PolicyField;
use super::{Policy, Source};
use crate::catalog::session::Session;
use crate::catalog::specs::TableShape;
use crate::catalog::tables::TableIdentity;
use crate::guards::Guards;
use crate::rules::keep::Keep;

/// A row of `tailrace.policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRow {
    /// `stored` or `property`.
    pub source: String,
    /// The UUID of the table that it is for.
    pub table_uuid: Uuid,
    /// As written.
    pub field: String,
    /// The column that it means.
    pub source_field_id: i64,
    /// As written.
    pub keep: String,
    /// The same in seconds.
    pub keep_seconds: i64,
    /// So many of the newest time values stay whatever their age.
    pub keep_last: Option<i32>,
    /// `enforce`, `observe` or `paused`.
    pub mode: String,
    /// Whether its drops are fenced.
    pub fence: bool,
    /// Whether whoever set it was shown what the policy drops, and confirmed that.
    pub is_confirmed: bool,
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
    /// Where it comes from.
    pub fn source(&self) -> Source {
        if self.source == "stored" { Source::Stored } else { Source::Property }
    }

    /// The row as a policy, of a table with these columns.
    ///
    /// # Errors
    /// A mode that this version does not know.
    pub fn policy(&self, shape: &TableShape) -> Result<Policy, String> {
        Ok(Policy {
            source: self.source(),
            field: PolicyField::of(&self.field, self.source_field_id, shape),
            source_field_id: self.source_field_id,
            keep: Keep::from_stored(self.keep.clone(), self.keep_seconds),
            keep_last: self.keep_last,
            mode: self.mode.parse()?,
            fence: self.fence,
            is_confirmed: self.is_confirmed,
            revision: self.revision,
            property_text: self.property_text.clone(),
            guards: Guards::default(),
        })
    }
}

impl From<&PolicyRow> for PolicyTerms {
    fn from(row: &PolicyRow) -> Self {
        PolicyTerms {
            field: row.field.clone(),
            source_field_id: row.source_field_id,
            keep: row.keep.clone(),
            keep_last: row.keep_last,
            mode: row.mode.clone(),
            fence: row.fence,
            problem: row.problem.clone(),
        }
    }
}

/// The rows of one table: the stored policy and the property's mirror.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRows {
    /// The row of source `stored`.
    pub stored: Option<PolicyRow>,
    /// The row of source `property`: the mirror of the table's property.
    pub mirror: Option<PolicyRow>,
}

impl PolicyRows {
    /// The row of a source.
    fn of(&self, source: Source) -> Option<&PolicyRow> {
        match source {
            Source::Stored => self.stored.as_ref(),
            Source::Property => self.mirror.as_ref(),
        }
    }
}

/// Reads the rows of a table, by its UUID.
pub async fn rows(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<PolicyRows> {
    let rows = sqlx::query_as!(
        PolicyRow,
        r#"select source, table_uuid, field, source_field_id, keep, keep_seconds, keep_last, mode,
                  fence, is_confirmed, property_text, problem, revision, updated_at, updated_by
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

/// Writes the policy that is made of the table's rows (stored or mirrored, by its source), and returns
/// those, and it with its new revision; or why none can be made of them, which changes nothing.
///
/// What is kept of a policy is so kept of the one that is there when the new one is written: nobody
/// pauses it in between and finds it armed.
///
/// Waits for a drop that is in its commit, as long as the session's `lock_timeout` allows.
pub async fn put(
    connection: &mut Session,
    table: &TableIdentity,
    changer: Changer<'_>,
    made_of: impl FnOnce(&PolicyRows) -> Result<Policy, String>,
) -> sqlx::Result<Result<(PolicyRows, Policy), String>> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let before = rows(&mut transaction, table).await?;
    let mut policy = match made_of(&before) {
        Ok(policy) => policy,
        Err(why) => {
            transaction.rollback().await?;
            return Ok(Err(why));
        }
    };
    // One that has its revision is one of the rows.
    if policy.revision == 0 {
        policy.revision = write(&mut transaction, table, &policy, changer.name).await?;
        let replaced = before.of(policy.source).map(PolicyTerms::from);
        let terms = (replaced, Some(PolicyTerms::from(&policy)));
        history::note(&mut transaction, table, policy.source, terms, changer).await?;
    }
    transaction.commit().await?;
    Ok(Ok((before, policy)))
}

async fn write(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    by: &str,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"insert into tailrace.policy as before (catalog_id, table_id, source, table_uuid, field,
               source_field_id, keep, keep_seconds, mode, fence, property_text, revision, updated_by,
               catalog_name, namespace_name, table_name, is_confirmed, keep_last)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11,
               pg_catalog.nextval('tailrace.policy_revision'), $12, $13, $14, $15, $16, $17)
           on conflict (catalog_id, table_id, table_uuid, source) do update set
               field = excluded.field,
               source_field_id = excluded.source_field_id, keep = excluded.keep,
               keep_seconds = excluded.keep_seconds, mode = excluded.mode,
               keep_last = excluded.keep_last, fence = excluded.fence,
               is_confirmed = excluded.is_confirmed,
               property_text = excluded.property_text, problem = null,
               revision = excluded.revision,
               updated_at = case
                 when before.source_field_id = excluded.source_field_id
                  and before.keep_seconds = excluded.keep_seconds and before.mode = excluded.mode
                  and before.keep_last is not distinct from excluded.keep_last
                  and before.fence = excluded.fence and before.problem is null
                  and before.gone_seen_at is null
                 then before.updated_at else pg_catalog.clock_timestamp() end,
               updated_by = excluded.updated_by, gone_seen_at = null, gone_told = null,
               catalog_name = excluded.catalog_name, namespace_name = excluded.namespace_name,
               table_name = excluded.table_name
           returning revision"#,
        table.catalog_id,
        table.table_id,
        policy.source.to_string(),
        table.table_uuid,
        policy.field.text(),
        policy.source_field_id,
        policy.keep.text(),
        policy.keep.seconds(),
        policy.mode.to_string(),
        policy.fence,
        policy.property_text,
        by,
        table.catalog,
        table.namespace,
        table.table,
        policy.is_confirmed,
        policy.keep_last
    )
    .fetch_one(connection)
    .await
}

/// Notes why a mirrored property is no longer followed; its binding to a column stays. Nothing
/// happens where that is noted already, or there is no mirror.
pub async fn note_problem(
    connection: &mut Session,
    table: &TableIdentity,
    problem: &str,
) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let before = rows(&mut transaction, table).await?.mirror;
    let noted = sqlx::query!(
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
    if let (1.., Some(before)) = (noted.rows_affected(), before.as_ref().map(PolicyTerms::from)) {
        let after = PolicyTerms { problem: Some(problem.to_owned()), ..before.clone() };
        let terms = (Some(before), Some(after));
        history::note(&mut transaction, table, Source::Property, terms, Changer::PROPERTY).await?;
    }
    transaction.commit().await
}

/// Removes the stored policy or the mirror; returns whether there was one. Beside the mirror it is noted that
/// no stored policy wins over it from now on.
pub async fn remove(
    connection: &mut Session,
    table: &TableIdentity,
    source: Source,
    changer: Changer<'_>,
) -> sqlx::Result<bool> {
    let mut transaction = connection.begin().await?;
    lock_rows(&mut transaction, table).await?;
    let before = rows(&mut transaction, table).await?;
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
    if source == Source::Stored && removed.rows_affected() > 0 {
        sqlx::query!(
            r#"update tailrace.policy set took_over_at = pg_catalog.clock_timestamp()
               where catalog_id = $1 and table_id = $2 and table_uuid = $3 and source = 'property'"#,
            table.catalog_id,
            table.table_id,
            table.table_uuid
        )
        .execute(&mut *transaction)
        .await?;
    }
    if let Some(row) = before.of(source) {
        let terms = (Some(PolicyTerms::from(row)), None);
        history::note(&mut transaction, table, source, terms, changer).await?;
    }
    transaction.commit().await?;
    Ok(removed.rows_affected() > 0)
}

async fn lock_rows(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<()> {
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
