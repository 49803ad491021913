//! Settling a restore: all that was learned after the newest fact that agrees is forgotten, once, by
//! the pass that has the catalog's lease. What that means of each table of ours, [`settle`] says.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;

use super::specs::{forget_specs, revoke_marks_since};
use super::{Restored, Since, compared_after};
use crate::catalog::session::Session;
use crate::rules::instant::UtcInstant;

/// A pass stamps what it notes with the time at which it began, and may have looked so much later: what
/// bears a stamp of so long before a fact may have been learned after it. Twice as long as a pass may
/// take to note what became of drops and to look at a catalog.
const STAMPS_ARE_EARLY: Duration = Duration::from_secs(600);

/// Takes the acceptance of snapshots' times back to what is agreed, unless it was given after the
/// restore: then the catalog has the snapshot of it. Before the clock is judged, and whatever that
/// comes to: it only has more snapshots count.
pub async fn lower_trusted_head(
    connection: &mut Session,
    catalog_id: i64,
    restored: &Restored,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.clock_memory m set trusted_head = $3, trusted_time = null
           where m.catalog_id = $1 and m.trusted_head > $2
             and not exists (select from hog_snapshot s
                             where s.catalog_id = $1 and s.snapshot_id = m.trusted_head
                               and s.snapshot_time = m.trusted_time)"#,
        catalog_id,
        compared_after(Some(restored)),
        restored.agreed.map(|agreed| agreed.snapshot_id)
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// What settling a restore did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// How many drops it noted as undone.
    pub undone: u64,
    /// The UUIDs of the tables of which such drops were.
    pub undone_tables: BTreeSet<Uuid>,
    /// The stored policies that it paused.
    pub paused: Vec<PausedPolicy>,
    /// The specs whose trust it took back.
    pub untrusted: Vec<Untrusted>,
}

/// A spec whose values nobody vouches for any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untrusted {
    /// NAMESPACE.TABLE.
    pub table: Option<String>,
    pub spec_id: i64,
}

/// A stored policy whose column may be another one by now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PausedPolicy {
    /// The table's name when the policy was set, or a pass saw it last.
    pub namespace: Option<String>,
    /// The same.
    pub table: Option<String>,
    /// As written.
    pub field: String,
    /// How long a partition stayed, as written.
    pub keep: String,
}

/// Settles the restore of a catalog, in one transaction.
/// Whoever calls it has the catalog's lease. Marks are noted anew `window` after `now`.
///
/// What a table of ours holds of a catalog is treated by the functions below, but for these:
/// - `clock_memory.trusted_head`: [`lower_trusted_head`] has treated it before. The rest is of clocks, not of
///   catalogs.
/// - `waiting` stays. Each look confirms it or forgets it.
/// - `drop_receipt` stays: a receipt is of its drop, and a replay asks what became of that.
/// - `source_column_type` stays. A type too many is one more way to read a value, and keeps.
/// - `claimant`, `window_setting`, `installation` know no ids of a catalog's.
pub async fn settle(
    connection: &mut Session,
    catalog_id: i64,
    restored: &Restored,
    now: UtcInstant,
    window: Duration,
) -> sqlx::Result<Settled> {
    let noted_at = restored.agreed.map(|agreed| agreed.noted_at.minus(STAMPS_ARE_EARLY));
    let since = Since {
        catalog_id,
        snapshot_id: compared_after(Some(restored)),
        noted_at: noted_at.and_then(UtcInstant::to_chrono),
    };
    let mut transaction = connection.begin().await?;
    let undone = note_undone(&mut transaction, since, now).await?;
    forget_ends(&mut transaction, since).await?;
    forget_sweeps(&mut transaction, since).await?;
    let undone_tables = recall_values(&mut transaction, catalog_id, now).await?;
    let tables = forget_specs(&mut transaction, since).await?;
    revoke_marks_since(&mut transaction, since, &tables, now, window).await?;
    let untrusted = withdraw_trust(&mut transaction, since, &tables).await?;
    let paused = pause_policies(&mut transaction, since).await?;
    forget_heads(&mut transaction, since).await?;
    transaction.commit().await?;
    Ok(Settled { undone, undone_tables, paused, untrusted })
}

/// Drops that the catalog does not know are noted undone, for good: those of which [`super::undone()`] says so.
async fn note_undone(connection: &mut Session, since: Since, now: UtcInstant) -> sqlx::Result<u64> {
    let noted = sqlx::query!(
        r#"update tailrace.drop_history h set undone_seen_at = $3
           where h.catalog_id = $1 and h.undone_seen_at is null and h.snapshot_id > $2
             and not exists (
               select from hog_snapshot s
               where s.catalog_id = $1 and s.snapshot_id = h.snapshot_id
                 and s.snapshot_time = h.dropped_at
                 and s.snapshot_id <= (select last_snapshot_id from hog_catalog
                                       where catalog_id = $1))"#,
        since.catalog_id,
        since.snapshot_id,
        now.to_chrono()
    )
    .execute(connection)
    .await?;
    Ok(noted.rows_affected())
}

/// Takes back that rows or objects of drops were seen to be gone since: rows may be there again, and ids of the
/// removal queue are given out again.
async fn forget_ends(connection: &mut Session, since: Since) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.drop_history
           set gone_seen_at = null,
               last_removal_id = case
                 when purged_seen_at < coalesce($2, '-infinity'::timestamptz)
                 then last_removal_id end,
               purged_seen_at = case
                 when purged_seen_at < coalesce($2, '-infinity'::timestamptz)
                 then purged_seen_at end
           where catalog_id = $1 and undone_seen_at is null
             and (purged_seen_at >= coalesce($2, '-infinity'::timestamptz)
                  or gone_seen_at >= coalesce($2, '-infinity'::timestamptz))"#,
        since.catalog_id,
        since.noted_at
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Takes the watermarks of `table_state` back to what is agreed, and has each table read anew: scans and counts
/// are forgotten, and it owes a full pass at once. What ids of files were given out since is not known of what is
/// agreed: late are all files that began after it, whatever their ids.
///
/// No policy is confirmed any more: nobody was shown what is there again.
///
/// All of the catalog goes from `catalog_state`, which knows snapshots and schema versions, and from `window_rule`,
/// which is kept by `schema_version`: both are given out again.
async fn forget_sweeps(connection: &mut Session, since: Since) -> sqlx::Result<()> {
    sqlx::query!(
        r#"with rules as (
             delete from tailrace.window_rule where catalog_id = $1
           ),
           noted as (
             delete from tailrace.catalog_state where catalog_id = $1
           ),
           confirmed as (
             update tailrace.policy set is_confirmed = false
             where catalog_id = $1 and is_confirmed
           )
           update tailrace.table_state
           set through_snapshot = least(through_snapshot, $2), files_below = 0,
               owes_full_pass = true, rule_change = null, reading = null, census = null, census_at = null,
               looked_through = null, policy_revision = null, schema_version = null, shape = null,
               outcome = null, error = null, undatable_files = null, uncovered_files = null,
               unlooked = 0, quiet_until = null
           where catalog_id = $1"#,
        since.catalog_id,
        since.snapshot_id
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Policies stay, for they say what somebody wants; but they know their column by its id, which is given out
/// again. The mirror of a property that was
/// made since is made anew, from the property. A stored policy that was set since is paused, unless its
/// column began with its table or up to what is agreed: what has the column's id now, or gets it next, is
/// not what was meant. So is one of a table that is not there, for that may come back without the column. The
/// paused ones are returned.
async fn pause_policies(connection: &mut Session, since: Since) -> sqlx::Result<Vec<PausedPolicy>> {
    sqlx::query_as!(
        PausedPolicy,
        r#"with mirrors as (
             delete from tailrace.policy m
             where m.catalog_id = $1 and m.source = 'property'
               and m.updated_at >= coalesce($2, '-infinity'::timestamptz)
               and exists (select from hog_table t
                           where t.catalog_id = $1 and t.table_id = m.table_id
                             and t.table_uuid = m.table_uuid)
           )
           update tailrace.policy p
           set mode = 'paused', revision = pg_catalog.nextval('tailrace.policy_revision'),
               updated_by = 'tailrace: the catalog was restored'
           where p.catalog_id = $1 and p.source = 'stored'
             and (p.mode <> 'paused'::text or p.pending_revision = p.revision)
             and p.updated_at >= coalesce($2, '-infinity'::timestamptz)
             and not exists (select from hog_column c
                             join hog_table t on t.catalog_id = c.catalog_id
                                             and t.table_id = c.table_id
                             where c.catalog_id = $1 and c.table_id = p.table_id
                               and c.field_id = p.source_field_id and t.table_uuid = p.table_uuid
                               and (c.begin_snapshot <= $3
                                    or c.begin_snapshot = t.created_snapshot))
           returning p.namespace_name as namespace, p.table_name as "table", p.field, p.keep"#,
        since.catalog_id,
        since.noted_at,
        since.snapshot_id
    )
    .fetch_all(connection)
    .await
}

/// Takes back what a person vouched for in tables that lost a spec: a writer may go on with that one, and
/// store its values under a spec whose values were vouched for. Returns table and spec.
async fn withdraw_trust(
    connection: &mut Session,
    since: Since,
    tables: &[i64],
) -> sqlx::Result<Vec<Untrusted>> {
    sqlx::query_as!(
        Untrusted,
        r#"update tailrace.spec_copy k
           set trusted_at = null, trusted_by = null, trust_reason = null
           from hog_table t
           where k.catalog_id = $1 and k.table_id = any ($2) and k.trusted_at is not null
             and t.catalog_id = $1 and t.table_id = k.table_id and t.table_uuid = k.table_uuid
           returning k.spec_id, (
             select n.name || '.'::text || v.name
             from hog_table_version v
             join hog_namespace n on n.catalog_id = v.catalog_id
                                 and n.namespace_id = v.namespace_id
             where v.catalog_id = $1 and v.table_id = k.table_id
             order by v.begin_snapshot desc limit 1) as "table""#,
        since.catalog_id,
        tables
    )
    .fetch_all(connection)
    .await
}

/// Puts the values of the drops that were just noted as undone into the calendar again, as due: their files may be
/// back. What else the calendar has stays, for it only says where to look. Each value of a tuple is put in, for the
/// history does not tell by which the files are found; those that are no lookup values of their specs leave with the
/// look that finds nothing. Returns the tables.
async fn recall_values(
    connection: &mut Session,
    catalog_id: i64,
    now: UtcInstant,
) -> sqlx::Result<BTreeSet<Uuid>> {
    let put = sqlx::query_scalar!(
        r#"insert into tailrace.calendar as c (catalog_id, table_uuid, spec_id, is_day, value,
               range_end, last_end, span_seconds)
           select distinct $1::bigint, h.table_uuid, p.spec_id, false, v.value,
                  '0001-01-01 00:00:00+00'::timestamptz, '0001-01-01 00:00:00+00'::timestamptz,
                  0::bigint
           from tailrace.drop_history h
           cross join lateral pg_catalog.jsonb_to_recordset(h.partitions)
                                as p (spec_id bigint, tuple jsonb)
           cross join lateral pg_catalog.jsonb_array_elements(p.tuple) as pair (element)
           cross join lateral (select pair.element ->> 1::int as value) as v
           join tailrace.table_state s
             on s.catalog_id = $1 and s.table_uuid = h.table_uuid
           where h.catalog_id = $1 and h.undone_seen_at = $2 and v.value is not null
             and pg_catalog.length(v.value) < 100::int
           on conflict (catalog_id, table_uuid, spec_id, is_day, value) do update
           set last_end = excluded.last_end, next_look = null
           returning table_uuid"#,
        catalog_id,
        now.to_chrono()
    )
    .fetch_all(connection)
    .await?;
    Ok(put.into_iter().collect())
}

/// Facts that do not agree go from `noted_head`; those that agree stay.
async fn forget_heads(connection: &mut Session, since: Since) -> sqlx::Result<()> {
    sqlx::query!(
        r#"delete from tailrace.noted_head h
           where h.catalog_id = $1 and h.snapshot_id > $2
             and not exists (select from hog_snapshot s
                             where s.catalog_id = $1 and s.snapshot_id = h.snapshot_id
                               and s.snapshot_time = h.snapshot_time
                               and s.snapshot_id <= (select last_snapshot_id from hog_catalog
                                                     where catalog_id = $1))"#,
        since.catalog_id,
        since.snapshot_id
    )
    .execute(connection)
    .await?;
    Ok(())
}
