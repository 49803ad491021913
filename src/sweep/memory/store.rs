//! Where it is stored: `tailrace.table_state`. It is written only in the session that holds the catalog's
//! lease, after the work that it records was committed. If the process dies in between, the older memory
//! stays, and the next pass looks at more than it must.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{BookDigest, FullScanProgress, Memory};
use crate::catalog::session::Session;
use crate::catalog::tables::{FileWatermark, TableIdentity};
use crate::rules::blast_radius::RuleChange;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::KeptCounts;

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loaded {
    pub memory: Memory,
    /// The policy's revision when a pass last looked at everything that was due.
    pub policy_revision: Option<i64>,
    /// The guard revision then.
    pub guard_revision: i64,
}

/// Reads what is remembered of a table for a policy on this column; `None` where nothing is, or of another
/// column.
pub async fn load(
    connection: &mut Session,
    table: &TableIdentity,
    source_field_id: i64,
) -> sqlx::Result<Option<Loaded>> {
    // Times that no pass can have written are none: an infinite one has no value here.
    let row = sqlx::query!(
        r#"select policy_revision, guard_revision, through_snapshot, files_below, book, day_specs, unknown_specs, owes_full_pass,
                  case when full_pass_at between '0001-01-01'::timestamptz
                                             and '9999-12-31'::timestamptz
                    then full_pass_at end as full_pass_at,
                  reading, census,
                  case when census_at between '0001-01-01'::timestamptz
                                          and '9999-12-31'::timestamptz
                    then census_at end as census_at,
                  rule_change
           from tailrace.table_state
           where catalog_id = $1 and table_uuid = $2 and source_field_id = $3"#,
        table.catalog_id,
        table.table_uuid,
        source_field_id
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| {
        let is_unreadable =
            |full_scan: &Option<FullScanProgress>| row.reading.is_some() && full_scan.is_none();
        let full_scan = row.reading.clone().and_then(readable::<FullScanProgress>);
        let memory = Memory {
            watermark: FileWatermark {
                files_below: row.files_below,
                through_snapshot: row.through_snapshot,
            },
            book: BookDigest::of_bytes(&row.book),
            days: row.day_specs.into_iter().collect(),
            unknown_specs: row.unknown_specs.into_iter().collect(),
            full_pass_at: row.full_pass_at.map(UtcInstant::from),
            owes_full_pass: row.owes_full_pass || is_unreadable(&full_scan),
            full_scan,
            kept_counts: row
                .census
                .and_then(readable::<KeptCounts>)
                .zip(row.census_at.map(UtcInstant::from)),
            rule_change: row.rule_change.and_then(readable::<RuleChange>),
        };
        Loaded { memory, policy_revision: row.policy_revision, guard_revision: row.guard_revision }
    }))
}

/// Forgets all of it.
pub async fn forget(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<()> {
    sqlx::query!(
        "delete from tailrace.table_state where catalog_id = $1 and table_uuid = $2",
        table.catalog_id,
        table.table_uuid
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// What the last finished full scan of the table counted for this column, and when.
pub async fn kept_counts(
    connection: &mut Session,
    table: &TableIdentity,
    source_field_id: i64,
) -> sqlx::Result<Option<(KeptCounts, UtcInstant)>> {
    Ok(load(connection, table, source_field_id).await?.and_then(|loaded| loaded.memory.kept_counts))
}

/// What cannot be read is as good as not there.
fn readable<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// Remembers all of it, in place of what was remembered of the table before.
pub async fn save(
    connection: &mut Session,
    table: &TableIdentity,
    source_field_id: i64,
    memory: &Memory,
) -> sqlx::Result<()> {
    let stored = |at: UtcInstant| at.is_representable().then(|| at.to_chrono()).flatten();
    let json = |value: Result<Value, serde_json::Error>| value.ok();
    let (kept_counts, counted_at): (Option<Value>, Option<DateTime<Utc>>) =
        match &memory.kept_counts {
            Some((kept_counts, at)) => (json(serde_json::to_value(kept_counts)), stored(*at)),
            None => (None, None),
        };
    let list = |specs: &BTreeSet<i64>| specs.iter().copied().collect::<Vec<i64>>();
    sqlx::query!(
        r#"insert into tailrace.table_state as s (catalog_id, table_uuid, table_id,
               source_field_id, through_snapshot, files_below, book, day_specs, unknown_specs,
               full_pass_at, owes_full_pass, reading, census, census_at, rule_change)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
           on conflict (catalog_id, table_uuid) do update
           set table_id = excluded.table_id, source_field_id = excluded.source_field_id,
               through_snapshot = excluded.through_snapshot, files_below = excluded.files_below,
               book = excluded.book, day_specs = excluded.day_specs,
               unknown_specs = excluded.unknown_specs, full_pass_at = excluded.full_pass_at,
               owes_full_pass = excluded.owes_full_pass, reading = excluded.reading,
               census = excluded.census, census_at = excluded.census_at,
               rule_change = excluded.rule_change"#,
        table.catalog_id,
        table.table_uuid,
        table.table_id,
        source_field_id,
        memory.watermark.through_snapshot,
        memory.watermark.files_below,
        memory.book.to_bytes(),
        &list(&memory.days),
        &list(&memory.unknown_specs),
        memory.full_pass_at.and_then(stored),
        memory.owes_full_pass,
        memory.full_scan.as_ref().and_then(|full_scan| json(serde_json::to_value(full_scan))),
        kept_counts,
        counted_at,
        memory.rule_change.as_ref().and_then(|change| json(serde_json::to_value(change)))
    )
    .execute(connection)
    .await?;
    Ok(())
}
