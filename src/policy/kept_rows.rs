//! Rows of `tailrace.policy` with their tables, whether or not these exist: for listings, and for a person
//! who settles the policies of tables that are gone (see [`super::tombstones`]).

use sqlx::types::Json;

use super::grace::PendingTerms;
use super::row::PolicyRow;
use crate::catalog::session::Session;

/// A row with its table, whether or not that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRow {
    pub catalog_id: i64,
    /// The table's key; another table than the row's may have it.
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
pub async fn all_rows(connection: &mut Session) -> sqlx::Result<Vec<KeptRow>> {
    let rows = sqlx::query!(
        r#"select catalog_id, table_id, catalog_name, namespace_name, table_name, gone_seen_at,
                  source, table_uuid, field, source_field_id, keep, keep_seconds, keep_last, mode,
                  fence, is_confirmed, property_text, problem, revision, updated_at, updated_by,
                  case when pending_revision = revision then pending end
                    as "pending: Json<PendingTerms>",
                  pending_until
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
            keep_last: row.keep_last,
            mode: row.mode,
            fence: row.fence,
            is_confirmed: row.is_confirmed,
            property_text: row.property_text,
            problem: row.problem,
            revision: row.revision,
            updated_at: row.updated_at,
            updated_by: row.updated_by,
            pending: row.pending,
            pending_until: row.pending_until,
        },
    });
    Ok(kept.collect())
}

/// Notes beside a row that a person said that no other table in the place of its own needs a policy. What it
/// is for its own table stays.
pub async fn settle_row(
    connection: &mut Session,
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

/// Removes one row as it was read, and returns whether it did: nothing happens where it was set anew since. Waits for
/// a drop that is in its commit, should the table be back.
pub async fn remove_row(
    connection: &mut Session,
    (catalog_id, table_id): (i64, i64),
    row: &PolicyRow,
) -> sqlx::Result<bool> {
    let removed = sqlx::query!(
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
    Ok(removed.rows_affected() > 0)
}
