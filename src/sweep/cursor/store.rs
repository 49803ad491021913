//! Where it is remembered: `tailrace.sweep_state` and `tailrace.sweep_cursor`.
//!
//! Written by the one who has the catalog's lease, after what it tells of was committed. Whoever
//! dies in between leaves the older memory, and the next pass looks at more than it must.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Basis, Cursor, Memory, Reading, Texts};
use crate::catalog::session::Session;
use crate::catalog::tables::{Marks, TableIdentity};
use crate::instant::UtcInstant;
use crate::sweep::census::Census;
use crate::sweep::waiting::Remembered;

/// Reads what is remembered for a basis, and what waits in the table, which needs none. A cursor counts only if there is one for each of the
/// specs; of several, what holds for all.
pub async fn load(
    connection: &mut Session,
    table: &TableIdentity,
    basis: &Basis,
    specs: &BTreeSet<i64>,
) -> sqlx::Result<Memory> {
    // Times that no pass can have written are none: an infinite one has no value here.
    let row = sqlx::query!(
        r#"select s.policy_revision = $4 and s.rules = $5 as "is_of_basis!", s.waiting,
                  case when s.full_pass_at between '0001-01-01' and '9999-12-31'
                    then s.full_pass_at end as full_pass_at,
                  s.reading, s.census,
                  case when s.census_at between '0001-01-01' and '9999-12-31'
                    then s.census_at end as census_at,
                  c.specs as "specs: Vec<i64>", c.files_below, c.through_snapshot,
                  case when c.expired_through between '0001-01-01' and '9999-12-31'
                    then c.expired_through end as expired_through,
                  c.skipped
           from tailrace.sweep_state s
           cross join lateral (
             select pg_catalog.array_agg(spec_id order by spec_id) as specs,
                    pg_catalog.min(files_below) as files_below,
                    pg_catalog.min(through_snapshot) as through_snapshot,
                    pg_catalog.min(expired_through) as expired_through,
                    pg_catalog.jsonb_agg(skipped) as skipped
             from tailrace.sweep_cursor c
             where c.catalog_id = s.catalog_id and c.table_id = s.table_id) as c
           where s.catalog_id = $1 and s.table_id = $2 and s.table_uuid = $3"#,
        table.catalog_id,
        table.table_id,
        basis.table_uuid,
        basis.policy_revision,
        &basis.rules
    )
    .fetch_optional(connection)
    .await?;
    let Some(row) = row else { return Ok(Memory::default()) };
    let waiting = row.waiting.and_then(readable::<Remembered>).unwrap_or_default();
    if !row.is_of_basis {
        return Ok(Memory { waiting, ..Memory::default() });
    }
    let covered = row.specs.unwrap_or_default();
    let marks = row
        .files_below
        .zip(row.through_snapshot)
        .map(|(files_below, through_snapshot)| Marks { files_below, through_snapshot });
    let skipped = row.skipped.and_then(readable::<Vec<Texts>>);
    let cursor = match (marks, row.expired_through, skipped) {
        (Some(marks), Some(through), Some(skipped)) if covered.iter().eq(specs) => {
            let mut all = Texts::new();
            for (key_index, texts) in skipped.into_iter().flatten() {
                all.entry(key_index).or_default().extend(texts);
            }
            Some(Cursor { marks, expired_through: through.into(), skipped: all })
        }
        _ => None,
    };
    Ok(Memory {
        cursor,
        full_pass_at: row.full_pass_at.map(UtcInstant::from),
        reading: row.reading.and_then(readable::<Reading>),
        census: row.census.and_then(readable::<Census>).zip(row.census_at.map(UtcInstant::from)),
        waiting,
    })
}

/// What waits in a table as passes remember it; `None` where no pass has remembered anything of it.
pub async fn waiting(
    connection: &mut Session,
    table: &TableIdentity,
) -> sqlx::Result<Option<Remembered>> {
    let row = sqlx::query_scalar!(
        r#"select waiting from tailrace.sweep_state
           where catalog_id = $1 and table_id = $2 and table_uuid = $3"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.flatten().and_then(readable::<Remembered>))
}

/// What the last finished reading of the table counted under this policy, and when.
pub async fn census(
    connection: &mut Session,
    table: &TableIdentity,
    policy_revision: i64,
) -> sqlx::Result<Option<(Census, UtcInstant)>> {
    let row = sqlx::query!(
        r#"select census, case when census_at between '0001-01-01' and '9999-12-31'
                            then census_at end as census_at
           from tailrace.sweep_state
           where catalog_id = $1 and table_id = $2 and table_uuid = $3 and policy_revision = $4"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid,
        policy_revision
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.and_then(|row| {
        row.census.and_then(readable::<Census>).zip(row.census_at.map(UtcInstant::from))
    }))
}

/// What cannot be read is as good as not there.
fn readable<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// Remembers all of it, in place of what was remembered of the table before. A cursor that no
/// timestamptz can hold is not kept.
pub async fn save(
    connection: &mut Session,
    table: &TableIdentity,
    basis: &Basis,
    specs: &BTreeSet<i64>,
    memory: &Memory,
) -> sqlx::Result<()> {
    let stored = |at: UtcInstant| at.is_representable().then(|| at.to_chrono()).flatten();
    let cursor =
        memory.cursor.as_ref().and_then(|cursor| Some((cursor, stored(cursor.expired_through)?)));
    let specs: Vec<i64> = match cursor {
        Some(_) => specs.iter().copied().collect(),
        None => Vec::new(),
    };
    let json = |value: Result<Value, serde_json::Error>| value.ok();
    let (census, census_at): (Option<Value>, Option<DateTime<Utc>>) = match &memory.census {
        Some((census, at)) => (json(serde_json::to_value(census)), stored(*at)),
        None => (None, None),
    };
    sqlx::query!(
        r#"with state as (
             insert into tailrace.sweep_state as s (catalog_id, table_id, table_uuid,
                 policy_revision, rules, full_pass_at, reading, census, census_at, waiting)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $15)
             on conflict (catalog_id, table_id) do update
             set table_uuid = excluded.table_uuid, policy_revision = excluded.policy_revision,
                 rules = excluded.rules, full_pass_at = excluded.full_pass_at,
                 reading = excluded.reading, census = excluded.census,
                 census_at = excluded.census_at, waiting = excluded.waiting
           ),
           others as (
             delete from tailrace.sweep_cursor
             where catalog_id = $1 and table_id = $2 and not spec_id = any($10::bigint[])
           )
           insert into tailrace.sweep_cursor (catalog_id, table_id, spec_id, files_below,
               through_snapshot, expired_through, skipped)
           select $1, $2, spec_id, $11, $12, $13, $14
           from pg_catalog.unnest($10::bigint[]) as spec_id
           on conflict (catalog_id, table_id, spec_id) do update
           set files_below = excluded.files_below, through_snapshot = excluded.through_snapshot,
               expired_through = excluded.expired_through, skipped = excluded.skipped"#,
        table.catalog_id,
        table.table_id,
        basis.table_uuid,
        basis.policy_revision,
        &basis.rules,
        memory.full_pass_at.and_then(stored),
        memory.reading.as_ref().and_then(|reading| json(serde_json::to_value(reading))),
        census,
        census_at,
        &specs,
        cursor.map(|(cursor, _)| cursor.marks.files_below),
        cursor.map(|(cursor, _)| cursor.marks.through_snapshot),
        cursor.map(|(_, through)| through),
        cursor.and_then(|(cursor, _)| json(serde_json::to_value(&cursor.skipped))),
        json(serde_json::to_value(&memory.waiting)),
    )
    .execute(connection)
    .await?;
    Ok(())
}
