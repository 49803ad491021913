//! Where it is remembered: `tailrace.waiting`, and `waiting_more` and `waiting_parts` of
//! `tailrace.table_state`.
//!
//! Written only in the session that holds the catalog's lease, after what it records was committed, and
//! after the pass has written the table's row of `table_state`. Whoever vouches for a spec or accepts a
//! clock without the lease takes away the next look of what waits for evidence, and nothing else: twice is
//! as good as once, and a pass that puts it back costs one pause.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Remembered, Waiting, order};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::catalog::tuples::TupleOfSpec;
use crate::rules::instant::UtcInstant;

/// So many entries are written by one statement.
const PIECE: usize = 1_000;

/// What waits in a table, as passes remember it; nothing where none has remembered anything.
pub async fn load(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<Remembered> {
    // Times that no pass can have written are none: an infinite one has no value here.
    let rows = sqlx::query!(
        r#"select spec_id, tuple, display, reason, since, attempts, last_look,
                  case when next_look between '0001-01-01' and '9999-12-31'
                    then next_look end as next_look,
                  said, error, files, range_end
           from tailrace.waiting
           where catalog_id = $1 and table_uuid = $2
             and since between '0001-01-01' and '9999-12-31'
             and last_look between '0001-01-01' and '9999-12-31'
             and range_end between '4713-01-01 BC' and '9999-12-31'"#,
        table.catalog_id,
        table.table_uuid
    )
    .fetch_all(&mut *connection)
    .await?;
    let entries = rows.into_iter().filter_map(|row| {
        Some(Waiting {
            spec_id: row.spec_id,
            tuple: readable(row.tuple)?,
            display: row.display,
            reason: readable(row.reason.into())?,
            since: row.since.into(),
            seen_at: row.last_look.into(),
            next_look: row.next_look.map(UtcInstant::from),
            tries: u32::try_from(row.attempts).unwrap_or_default(),
            said: row.said,
            error: row.error,
            files: row.files,
            range_end: row.range_end.into(),
        })
    });
    let mut tuples: Vec<Waiting> = entries.collect();
    tuples.sort_by(order);
    let beside = sqlx::query!(
        r#"select waiting_more, waiting_parts from tailrace.table_state
           where catalog_id = $1 and table_uuid = $2"#,
        table.catalog_id,
        table.table_uuid
    )
    .fetch_optional(connection)
    .await?;
    let (more, parts) = beside
        .map_or((None, None), |row| (readable(row.waiting_more), readable(row.waiting_parts)));
    Ok(Remembered { tuples, more: more.unwrap_or_default(), parts: parts.unwrap_or_default() })
}

/// What cannot be read is as good as not there.
fn readable<T: DeserializeOwned>(value: Value) -> Option<T> {
    serde_json::from_value(value).ok()
}

/// Remembers `after` where `before` was loaded: what is the same is not written.
pub async fn save(
    connection: &mut Session,
    table: &TableIdentity,
    before: &Remembered,
    after: &Remembered,
) -> sqlx::Result<()> {
    let entries = |remembered: &Remembered| -> HashMap<TupleOfSpec, Entry> {
        let of = remembered.tuples.iter();
        of.filter_map(|waiting| Some((waiting.key(), Entry::of(waiting)?))).collect()
    };
    let (mut was, is) = (entries(before), entries(after));
    let mut changed = Vec::new();
    for (key, entry) in is {
        if was.remove(&key).as_ref() != Some(&entry) {
            changed.push(entry);
        }
    }
    let gone: Vec<Entry> = was.into_values().collect();
    for gone in gone.chunks(PIECE) {
        delete(connection, table, gone).await?;
    }
    for changed in changed.chunks(PIECE) {
        upsert(connection, table, changed).await?;
    }
    if (&before.more, &before.parts) != (&after.more, &after.parts) {
        sqlx::query!(
            r#"update tailrace.table_state set waiting_more = $3, waiting_parts = $4
               where catalog_id = $1 and table_uuid = $2"#,
            table.catalog_id,
            table.table_uuid,
            json!(after.more),
            json!(after.parts)
        )
        .execute(connection)
        .await?;
    }
    Ok(())
}

/// A tuple as it is stored: to the microsecond, a look not before its time.
#[derive(Debug, PartialEq)]
struct Entry {
    spec_id: i64,
    tuple: Value,
    display: String,
    reason: &'static str,
    since: DateTime<Utc>,
    attempts: i32,
    last_look: DateTime<Utc>,
    next_look: Option<DateTime<Utc>>,
    said: Option<String>,
    error: Option<String>,
    files: i64,
    range_end: DateTime<Utc>,
}

impl Entry {
    /// `None` where no timestamptz can hold one of its times.
    fn of(waiting: &Waiting) -> Option<Self> {
        let floored = |at: UtcInstant| at.is_representable().then(|| at.to_chrono()).flatten();
        Some(Entry {
            spec_id: waiting.spec_id,
            tuple: json!(waiting.tuple),
            display: waiting.display.clone(),
            reason: waiting.reason.name(),
            since: floored(waiting.since)?,
            attempts: i32::try_from(waiting.tries).unwrap_or(i32::MAX),
            last_look: floored(waiting.seen_at)?,
            next_look: waiting.next_look.and_then(|next| floored(next.plus_nanos(999))),
            said: waiting.said.clone(),
            error: waiting.error.clone(),
            files: waiting.files,
            range_end: floored(waiting.range_end)?,
        })
    }
}

/// The hash is of the text that the database makes of spec and tuple: it writes each jsonb in one way only.
/// The migration that copied what was remembered before makes it so, too.
async fn upsert(
    connection: &mut Session,
    table: &TableIdentity,
    entries: &[Entry],
) -> sqlx::Result<()> {
    // Somebody may have vouched for the spec since the pass read what is known of it: then the next pass
    // looks, as it does for what was noted before.
    sqlx::query!(
        r#"insert into tailrace.waiting (catalog_id, table_uuid, tuple_hash, spec_id, tuple, display,
               reason, since, attempts, last_look, next_look, said, error, files, range_end)
           select $1, $2,
                  pg_catalog.sha256(pg_catalog.convert_to(
                    e.spec_id::text || ' '::text || e.tuple::text, 'UTF8')),
                  e.spec_id, e.tuple, e.display, e.reason, e.since, e.attempts, e.last_look,
                  case when e.reason = 'ambiguous_spec'::text and exists (
                         select from tailrace.spec_copy c
                         where c.catalog_id = $1 and c.table_id = $15 and c.table_uuid = $2
                           and c.spec_id = e.spec_id and c.trusted_at >= e.last_look)
                    then null else e.next_look end,
                  e.said, e.error, e.files, e.range_end
           from unnest($3::bigint[], $4::jsonb[], $5::text[], $6::text[], $7::timestamptz[],
                       $8::integer[], $9::timestamptz[], $10::timestamptz[], $11::text[],
                       $12::text[], $13::bigint[], $14::timestamptz[])
             as e (spec_id, tuple, display, reason, since, attempts, last_look, next_look, said, error,
                   files, range_end)
           on conflict (catalog_id, table_uuid, tuple_hash) do update
           set display = excluded.display, reason = excluded.reason, since = excluded.since,
               attempts = excluded.attempts, last_look = excluded.last_look,
               next_look = excluded.next_look, said = excluded.said, error = excluded.error,
               files = excluded.files, range_end = excluded.range_end"#,
        table.catalog_id,
        table.table_uuid,
        &of(entries, |entry| entry.spec_id),
        &of(entries, |entry| entry.tuple.clone()),
        &of(entries, |entry| entry.display.clone()),
        &of(entries, |entry| entry.reason.to_owned()),
        &of(entries, |entry| entry.since),
        &of(entries, |entry| entry.attempts),
        &of(entries, |entry| entry.last_look),
        &of(entries, |entry| entry.next_look) as &[Option<DateTime<Utc>>],
        &of(entries, |entry| entry.said.clone()) as &[Option<String>],
        &of(entries, |entry| entry.error.clone()) as &[Option<String>],
        &of(entries, |entry| entry.files),
        &of(entries, |entry| entry.range_end),
        table.table_id
    )
    .execute(connection)
    .await?;
    Ok(())
}

async fn delete(
    connection: &mut Session,
    table: &TableIdentity,
    entries: &[Entry],
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"delete from tailrace.waiting w
           using unnest($3::bigint[], $4::jsonb[]) as e (spec_id, tuple)
           where w.catalog_id = $1 and w.table_uuid = $2
             and w.tuple_hash = pg_catalog.sha256(pg_catalog.convert_to(
                   e.spec_id::text || ' '::text || e.tuple::text, 'UTF8'))"#,
        table.catalog_id,
        table.table_uuid,
        &of(entries, |entry| entry.spec_id),
        &of(entries, |entry| entry.tuple.clone())
    )
    .execute(connection)
    .await?;
    Ok(())
}

fn of<T>(entries: &[Entry], field: impl FnMut(&Entry) -> T) -> Vec<T> {
    entries.iter().map(field).collect()
}
