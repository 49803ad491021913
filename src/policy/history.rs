//! Who changed the policies of a table, when, from what to what, and why: `tailrace.policy_change`.
//!
//! Whoever changes a policy writes the row in the same transaction: there is no change without a row, and no row
//! of a change that was rolled back, or whose connection broke before its COMMIT. Changes of tables that are there
//! are made one at a time (see [`super::store`]), so that their ids ascend in the order in which they are committed,
//! and a page misses none. Nothing here takes the commit lock, and no drop reads the table. What an earlier program
//! changes beside this one has no row.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use sqlx::types::Json;
use utoipa::ToSchema;

use super::{Policy, Source};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;

/// The most changes that one page has.
pub const MOST: i64 = 1_000;

/// Who changes a policy, and why.
#[derive(Debug, Clone, Copy)]
pub struct Changer<'a> {
    pub name: &'a str,
    pub reason: Option<&'a str>,
}

impl Changer<'static> {
    /// Whoever reads the table's property: a pass, or a renewal of claims.
    pub const PROPERTY: Self = Changer { name: "table property", reason: None };
}

/// What a policy said before or after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PolicyTerms {
    /// The field as written.
    pub field: String,
    /// The id of the column that it means.
    pub source_field_id: i64,
    /// How long a partition stays after its last instant, as written.
    pub keep: String,
    /// So many of the newest time values stay whatever their age.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub keep_last: Option<i32>,
    /// `enforce`, `observe` or `paused`.
    pub mode: String,
    /// Whether its drops are fenced.
    pub fence: bool,
    /// Why a property is not followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl From<&Policy> for PolicyTerms {
    fn from(policy: &Policy) -> Self {
        let policy = policy.clone().asked();
        PolicyTerms {
            field: policy.field.text().to_owned(),
            source_field_id: policy.source_field_id,
            keep: policy.keep.text().to_owned(),
            keep_last: policy.keep_last,
            mode: policy.mode.to_string(),
            fence: policy.fence,
            problem: None,
        }
    }
}

/// A change of a policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PolicyChange {
    /// Ascends with each change.
    pub change_id: i64,
    /// When it was made.
    pub changed_at: DateTime<Utc>,
    /// By whom; `table property` where a pass read the table's property.
    pub changed_by: String,
    /// `stored`, or `property` for the table's property.
    pub source: String,
    /// What the policy said before; null where there was none.
    pub before: Option<PolicyTerms>,
    /// What it says since; null where it was taken away.
    pub after: Option<PolicyTerms>,
    /// Why, by whoever changed it.
    pub reason: Option<String>,
}

/// Changes of the policies of a table, the newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyHistory {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// At most as many as were asked for.
    pub changes: Vec<PolicyChange>,
    /// The `before` of the next page; null where there is none.
    pub next_before: Option<i64>,
}

/// Notes a change, in the transaction that makes it. A change that changes nothing is noted only where
/// somebody gave a reason for it.
pub(super) async fn note(
    transaction: &mut Session,
    table: &TableIdentity,
    source: Source,
    (before, after): (Option<PolicyTerms>, Option<PolicyTerms>),
    changer: Changer<'_>,
) -> sqlx::Result<()> {
    let reason = changer.reason.filter(|reason| !reason.trim().is_empty());
    if before == after && reason.is_none() {
        return Ok(());
    }
    sqlx::query!(
        r#"insert into tailrace.policy_change (catalog_id, table_id, table_uuid, catalog_name,
               namespace_name, table_name, source, before, after, changed_by, reason)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid,
        table.catalog,
        table.namespace,
        table.table,
        source.to_string(),
        before.map(Json) as _,
        after.map(Json) as _,
        changer.name,
        reason
    )
    .execute(transaction)
    .await?;
    Ok(())
}

/// The table that had this name when a policy of it was changed last: where no live table has it, its history
/// is found by that.
pub async fn last_of_name(
    connection: &mut Session,
    catalog: &str,
    namespace: &str,
    table: &str,
) -> sqlx::Result<Option<TableIdentity>> {
    sqlx::query_as!(
        TableIdentity,
        r#"select catalog_id, catalog_name as catalog, table_id, table_uuid,
                  namespace_name as namespace, table_name as "table"
           from tailrace.policy_change
           where catalog_name = $1 and namespace_name = $2 and table_name = $3
           order by change_id desc limit 1::bigint"#,
        catalog,
        namespace,
        table
    )
    .fetch_optional(connection)
    .await
}

/// The newest changes of a table's policies, at most `limit`, that are older than the change `before`.
pub async fn changes(
    connection: &mut Session,
    table: &TableIdentity,
    before: i64,
    limit: i64,
) -> sqlx::Result<PolicyHistory> {
    let mut changes = sqlx::query_as!(
        PolicyChangeRow,
        r#"select change_id, changed_at, changed_by, source, reason,
                  before as "before: Json<PolicyTerms>", after as "after: Json<PolicyTerms>"
           from tailrace.policy_change
           where catalog_id = $1 and table_uuid = $2 and change_id < $3
           order by change_id desc limit $4 + 1::bigint"#,
        table.catalog_id,
        table.table_uuid,
        before,
        limit
    )
    .fetch_all(connection)
    .await?;
    let has_more = changes.len() as i64 > limit;
    changes.truncate(usize::try_from(limit).unwrap_or_default());
    let TableIdentity { catalog, namespace, table, .. } = table.clone();
    let next_before = changes.last().map(|last| last.change_id).filter(|_| has_more);
    let changes = changes.into_iter().map(PolicyChange::from).collect();
    Ok(PolicyHistory { catalog, namespace, table, changes, next_before })
}

/// A row as it is stored.
struct PolicyChangeRow {
    change_id: i64,
    changed_at: DateTime<Utc>,
    changed_by: String,
    source: String,
    reason: Option<String>,
    before: Option<Json<PolicyTerms>>,
    after: Option<Json<PolicyTerms>>,
}

impl From<PolicyChangeRow> for PolicyChange {
    fn from(row: PolicyChangeRow) -> Self {
        let rule = |stored: Option<Json<PolicyTerms>>| stored.map(|Json(rule)| rule);
        PolicyChange {
            change_id: row.change_id,
            changed_at: row.changed_at,
            changed_by: row.changed_by,
            source: row.source,
            before: rule(row.before),
            after: rule(row.after),
            reason: row.reason,
        }
    }
}

/// Deletes changes that are older than `keep` before `now`, of all catalogs but these. The newest of each table
/// stays as long as the table has a policy.
pub async fn purge(
    connection: &mut Session,
    now: DateTime<Utc>,
    keep: Duration,
    but: &[i64],
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"delete from tailrace.policy_change c
           where c.changed_at < $1::timestamptz - pg_catalog.make_interval(secs => $2)
             and c.catalog_id <> all ($3::bigint[])
             and (not exists (
                    select from tailrace.policy p
                    where p.catalog_id = c.catalog_id and p.table_uuid = c.table_uuid)
                  or exists (
                    select from tailrace.policy_change o
                    where o.catalog_id = c.catalog_id and o.table_uuid = c.table_uuid
                      and o.change_id > c.change_id))"#,
        now,
        keep.as_secs_f64(),
        but
    )
    .execute(connection)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of before are read, and a policy that keeps by age alone is written as before.
    #[test]
    fn terms_without_a_number_are_read_and_written_as_before() {
        let text =
            r#"{"field":"at","source_field_id":1,"keep":"7d","mode":"enforce","fence":false}"#;
        let mut terms: PolicyTerms = serde_json::from_str(text).expect("it is read");
        assert_eq!(terms.keep_last, None);
        assert_eq!(serde_json::to_string(&terms).expect("it is written"), text);
        terms.keep_last = Some(3);
        let again: PolicyTerms = serde_json::to_value(&terms)
            .and_then(serde_json::from_value)
            .expect("it is read again");
        assert_eq!(again, terms);
    }
}
