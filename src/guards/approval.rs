//! Approvals: `tailrace.approval`. An approval releases partitions that are held for their number
//! ([blast radius](crate::rules::blast_radius)): those that it names, once, and under the rule that its approver saw.
//!
//! Whoever approves raises the guard revision in the same transaction, so a drop that was planned before is planned
//! anew. A drop that ends an approved partition deletes its row before it commits, in the same transaction: if the
//! drop is rolled back, the approval stands, and files that come to the partition later are not approved. Another
//! revision of the policy, or another rule, makes an approval void; it is deleted when its time is over.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::Serialize;
use sha2::{Digest, Sha256};
use sqlx::types::Json;
use utoipa::ToSchema;

use super::revision::{Change, raise};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::rules::hold::HeldPartition;
use crate::rules::instant::UtcInstant;

/// More partitions than this are not approved at once: each pass reads those of its table.
pub const MOST: usize = 100_000;

/// An approval, as JSON has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Approval {
    /// Its id.
    pub approval_id: i64,
    /// The catalog's name.
    pub catalog: String,
    /// The table's namespace, as it was called.
    pub namespace: String,
    /// The table, as it was called.
    pub table: String,
    /// The digest of what was approved.
    pub digest: String,
    /// How many partitions are left of it.
    pub partitions: i64,
    /// How many files these had.
    pub files: i64,
    /// Why, as it was given.
    pub reason: Option<String>,
    /// Who approved it.
    pub approved_by: String,
    /// When, by the database's clock.
    pub approved_at: UtcInstant,
    /// Until when it is valid.
    pub until: UtcInstant,
}

/// An approval to be made.
#[derive(Debug, Clone)]
pub struct NewApproval<'a> {
    pub table: &'a TableIdentity,
    /// The rule and the policy's revision that the approver saw.
    pub rule: &'a str,
    pub policy_revision: i64,
    pub digest: &'a str,
    /// The partitions, each with how many files it had.
    pub partitions: &'a [(HeldPartition, i64)],
    /// Who approves, and why.
    pub by: &'a str,
    pub reason: Option<&'a str>,
    /// Until when.
    pub until: DateTime<Utc>,
}

/// Adds approvals of tables of one catalog, all or none. Waits for drops in their commits, as long as the session's
/// `lock_timeout` allows.
pub async fn add(
    connection: &mut Session,
    catalog_id: i64,
    approvals: &[NewApproval<'_>],
) -> sqlx::Result<()> {
    let mut transaction = connection.begin().await?;
    raise(&mut transaction, catalog_id, Change::Loosens).await?;
    for new in approvals {
        let hashes: Vec<_> = new.partitions.iter().map(|(one, _)| hash(one)).collect();
        let specs: Vec<i64> = new.partitions.iter().map(|(one, _)| one.spec_id).collect();
        let values = new.partitions.iter().map(|(one, _)| Json(one.values.clone()));
        let values: Vec<_> = values.collect();
        let files: Vec<i64> = new.partitions.iter().map(|(_, files)| *files).collect();
        sqlx::query!(
            r#"with approved as (
                 insert into tailrace.approval (catalog_id, table_id, table_uuid, catalog_name,
                     namespace_name, table_name, rule, policy_revision, digest, reason, approved_by,
                     until)
                 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                 returning approval_id)
               insert into tailrace.approved_partition (approval_id, partition_hash, spec_id,
                   partition_values, files)
               select a.approval_id, p.hash, p.spec_id, p.partition_values, p.files
               from approved a
               cross join unnest($13::bytea[], $14::bigint[], $15::jsonb[], $16::bigint[])
                 as p (hash, spec_id, partition_values, files)"#,
            new.table.catalog_id,
            new.table.table_id,
            new.table.table_uuid,
            new.table.catalog,
            new.table.namespace,
            new.table.table,
            new.rule,
            new.policy_revision,
            new.digest,
            new.reason,
            new.by,
            new.until,
            &hashes,
            &specs,
            &values as _,
            &files
        )
        .execute(&mut *transaction)
        .await?;
    }
    transaction.commit().await
}

/// The approved partitions of a table under a rule and a revision of its policy, each with how many files it had.
pub async fn of_table(
    connection: &mut Session,
    table: &TableIdentity,
    rule: &str,
    policy_revision: i64,
) -> sqlx::Result<HashMap<HeldPartition, i64>> {
    let rows = sqlx::query!(
        r#"select p.spec_id, p.partition_values as "values: Json<Vec<Option<String>>>", p.files
           from tailrace.approval a
           join tailrace.approved_partition p on p.approval_id = a.approval_id
           where a.catalog_id = $1 and a.table_uuid = $2 and a.rule = $3 and a.policy_revision = $4
             and a.until > pg_catalog.clock_timestamp()
           order by p.files"#,
        table.catalog_id,
        table.table_uuid,
        rule,
        policy_revision
    )
    .fetch_all(connection)
    .await?;
    let approved = rows.into_iter().map(|row| {
        let Json(values) = row.values;
        (HeldPartition { spec_id: row.spec_id, values }, row.files)
    });
    Ok(approved.collect())
}

/// Deletes the rows of partitions that a drop has ended, in its transaction.
pub async fn use_up(
    transaction: &mut Session,
    (catalog_id, table_id): (i64, i64),
    ended: impl Iterator<Item = HeldPartition>,
) -> sqlx::Result<()> {
    let hashes: Vec<_> = ended.map(|partition| hash(&partition)).collect();
    sqlx::query!(
        r#"delete from tailrace.approved_partition p
           using tailrace.approval a
           where a.catalog_id = $1 and a.table_id = $2 and p.approval_id = a.approval_id
             and p.partition_hash = any ($3::bytea[])"#,
        catalog_id,
        table_id,
        &hashes
    )
    .execute(transaction)
    .await?;
    Ok(())
}

/// The valid approvals of a catalog, by its name, with what is left of them.
pub async fn of_catalog(connection: &mut Session, catalog: &str) -> sqlx::Result<Vec<Approval>> {
    let rows = sqlx::query!(
        r#"select a.approval_id, a.catalog_name, a.namespace_name, a.table_name, a.digest, a.reason,
                  a.approved_by, a.approved_at, a.until, left_of.partitions as "partitions!",
                  left_of.files as "files!"
           from tailrace.approval a
           cross join lateral (
             select pg_catalog.count(*) as partitions,
                    coalesce(pg_catalog.sum(p.files), 0)::bigint as files
             from tailrace.approved_partition p where p.approval_id = a.approval_id) as left_of
           where a.catalog_name = $1 and a.until > pg_catalog.clock_timestamp()
             and left_of.partitions > 0
           order by a.approval_id"#,
        catalog
    )
    .fetch_all(connection)
    .await?;
    let approvals = rows.into_iter().map(|row| Approval {
        approval_id: row.approval_id,
        catalog: row.catalog_name,
        namespace: row.namespace_name,
        table: row.table_name,
        digest: row.digest,
        partitions: row.partitions,
        files: row.files,
        reason: row.reason,
        approved_by: row.approved_by,
        approved_at: row.approved_at.into(),
        until: row.until.into(),
    });
    Ok(approvals.collect())
}

/// Deletes approvals whose time was over at `now`, and those of which nothing is left, of all catalogs but these.
pub async fn purge(connection: &mut Session, now: DateTime<Utc>, but: &[i64]) -> sqlx::Result<()> {
    sqlx::query!(
        r#"with gone as (
             delete from tailrace.approval a
             where a.catalog_id <> all ($2::bigint[])
               and (a.until <= $1 or not exists (
                      select from tailrace.approved_partition p
                      where p.approval_id = a.approval_id))
             returning a.approval_id)
           delete from tailrace.approved_partition p using gone
           where p.approval_id = gone.approval_id"#,
        now,
        but
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn hash(partition: &HeldPartition) -> Vec<u8> {
    // Numbers and lists of texts always serialise.
    Sha256::digest(serde_json::to_vec(partition).unwrap_or_default()).to_vec()
}
