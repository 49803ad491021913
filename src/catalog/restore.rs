//! Whether a catalog was restored to an earlier time while the schema `tailrace` was not, and which of
//! our drops that took back.
//!
//! Each pass notes the catalog's head with its `snapshot_time` ([`note_head`]); each drop of ours notes
//! its snapshot in the same way, for `drop_history.dropped_at` is that snapshot's time, written in one
//! statement with it. These are the **facts**; [`restored_among`] compares them with the catalog.
//!
//! What is not found: a restore after which the floor passed every fact before a pass or a drop of ours
//! looked. Nothing in the catalog shows it then.

pub mod settle;
mod specs;

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::session::Session;
use super::tables::FileWatermark;
use crate::rules::instant::UtcInstant;

/// How many heads of a catalog are kept, and how many of its newest drops are looked at beside.
pub const FACTS: i64 = 1_000;

/// The newest fact that agrees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    pub snapshot_id: i64,
    /// When it was first noted as the head: what was learned before that was learned of the catalog up
    /// to this snapshot.
    pub noted_at: UtcInstant,
}

/// A catalog that was restored, of which no pass has noted that yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// The newest snapshot.
    pub head: i64,
    /// `None` where no fact agrees.
    pub agreed: Option<Agreed>,
}

/// What is to be compared, as all statements of [`settle`] take it.
#[derive(Clone, Copy)]
struct Since {
    catalog_id: i64,
    /// Drops above it are compared with the catalog.
    snapshot_id: i64,
    /// What was noted from then on is forgotten; `None` for all.
    noted_at: Option<DateTime<Utc>>,
}

/// The snapshot after which drops are to be compared with the catalog: none are where it was not
/// restored.
pub fn compared_after(restored: Option<&Restored>) -> i64 {
    match restored {
        None => i64::MAX,
        Some(Restored { agreed, .. }) => agreed.map_or(i64::MIN, |agreed| agreed.snapshot_id),
    }
}

/// What a plan begins with, all of one moment: whatever has an id below the counter was committed up to
/// the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outset {
    /// The id counter: files and vectors committed later have ids from it on.
    pub counter: i64,
    /// Where it is not in the catalog later on, with its time, the catalog was restored in between. `None`
    /// where there is no snapshot yet.
    pub head: Option<Head>,
}

/// The newest snapshot of a catalog, and when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub snapshot_id: i64,
    /// `hog_snapshot.snapshot_time`, as the database has it.
    pub snapshot_time: DateTime<Utc>,
}

/// Reads it; `None` if the catalog is gone.
pub async fn outset(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Option<Outset>> {
    let row = sqlx::query!(
        r#"select coalesce(c.next_file_id) as "counter!", s.snapshot_id as "snapshot_id?",
                  s.snapshot_time as "snapshot_time?"
           from hog_catalog c
           left join lateral (
             select snapshot_id, snapshot_time from hog_snapshot
             where catalog_id = $1 and snapshot_id = c.last_snapshot_id offset 0) as s on true
           where c.catalog_id = $1"#,
        catalog_id
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Outset {
        counter: row.counter,
        head: row
            .snapshot_id
            .zip(row.snapshot_time)
            .map(|(snapshot_id, snapshot_time)| Head { snapshot_id, snapshot_time }),
    }))
}

/// Whether a catalog has the row of its newest snapshot, columns and versions where it has tables, and
/// fields where it has partition specs. The first is written in one transaction with the counter, and expiry
/// never deletes it; so a catalog that lacks one of these is being loaded, or is damaged: what it lacks may
/// come, and no pass does anything in it. True of one that has no snapshot yet, or is gone.
pub async fn is_whole(connection: &mut Session, catalog_id: i64) -> sqlx::Result<bool> {
    sqlx::query_scalar!(
        r#"select not exists (
             select from hog_catalog c
             where c.catalog_id = $1
               and (c.last_snapshot_id > 0::bigint
                    and not exists (select from hog_snapshot s
                                    where s.catalog_id = $1
                                      and s.snapshot_id = c.last_snapshot_id offset 0)
                    or exists (select from hog_table t
                               where t.catalog_id = $1 and t.dropped_snapshot is null offset 0)
                       and not (exists (select from hog_table_version v
                                        where v.catalog_id = $1 offset 0)
                                and exists (select from hog_column k
                                            where k.catalog_id = $1 offset 0))
                    or exists (select from hog_partition_spec p where p.catalog_id = $1 offset 0)
                       and not exists (select from hog_partition_field f
                                       where f.catalog_id = $1 offset 0))) as "is_whole!""#,
        catalog_id
    )
    .fetch_one(connection)
    .await
}

/// Compares what is noted with the catalog; `None` where it was not restored since that was noted last, or
/// is not whole.
/// Only reads: one statement, which looks up at most twice [`FACTS`] snapshots, each by its key.
pub async fn restored(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Option<Restored>> {
    Ok(restored_among(connection, &[catalog_id]).await?.remove(&catalog_id))
}

/// Which of these catalogs were restored, and how: as [`restored`], of each of them.
///
/// Ids are dense and in the order of the commits, so a restore to the head R leaves every fact up to R as it
/// was and none above it: such a snapshot is missing, or its id was given out again at a later time. (Two times
/// are the same only if the database's clock was set back to the microsecond.) So
/// - a fact **agrees** where the catalog has that snapshot with that time, and disagrees where it has not.
///   Below the expiry floor it is unknown: the server deletes snapshots there, and no others;
/// - **any** fact that disagrees means restored, not only the newest one: what was dropped by request after the
///   restore, and before a pass looked, agrees, with an id above the older facts that do not;
/// - `agreed` is the newest fact that agrees, below the oldest that disagrees, and was noted before any that
///   does: one that was noted after the restore is of the catalog as it is now. What was learned up to it is
///   true of the restored catalog; what was learned after it may not be. Where no fact that can be checked
///   agrees, nothing counts as agreed.
///
/// Where it is the newest snapshot that has no row ([`is_whole()`]), the catalog counts as not restored, and no
/// commit goes through.
pub async fn restored_among(
    connection: &mut Session,
    catalogs: &[i64],
) -> sqlx::Result<BTreeMap<i64, Restored>> {
    let rows = sqlx::query!(
        r#"with facts as materialized (
             select c.catalog_id, c.last_snapshot_id, f.snapshot_id, f.snapshot_time, f.noted_at
             from hog_catalog c
             cross join lateral (
               (select snapshot_id, snapshot_time, noted_at from tailrace.noted_head
                where catalog_id = c.catalog_id order by snapshot_id desc limit $2)
               union all
               (select snapshot_id, dropped_at, dropped_at from tailrace.drop_history
                where catalog_id = c.catalog_id and undone_seen_at is null
                order by snapshot_id desc limit $2)) as f
             where c.catalog_id = any ($1) and f.snapshot_id >= c.earliest_snapshot_id
           ),
           compared as materialized (
             select f.catalog_id, f.snapshot_id, f.noted_at,
                    f.snapshot_id <= f.last_snapshot_id and s.is_there is not null as agrees
             from facts f
             left join lateral (
               select true as is_there from hog_snapshot
               where catalog_id = f.catalog_id and snapshot_id = f.snapshot_id
                 and snapshot_time = f.snapshot_time offset 0) as s on true
           )
           select c.catalog_id, c.last_snapshot_id as head, a.snapshot_id as "snapshot_id?",
                  a.noted_at as "noted_at?"
           from (select catalog_id, pg_catalog.min(snapshot_id) as snapshot_id,
                        pg_catalog.min(noted_at) as noted_at
                 from compared where not agrees group by catalog_id) as lost
           join hog_catalog c on c.catalog_id = lost.catalog_id
           left join lateral (
             select snapshot_id, noted_at from compared
             where catalog_id = lost.catalog_id and agrees and snapshot_id < lost.snapshot_id
               and noted_at <= lost.noted_at
             order by snapshot_id desc, noted_at limit 1) as a on true
           where exists (select from hog_snapshot s
                         where s.catalog_id = c.catalog_id
                           and s.snapshot_id = c.last_snapshot_id offset 0)"#,
        catalogs,
        FACTS
    )
    .fetch_all(connection)
    .await?;
    let restored = |head, snapshot_id: Option<i64>, noted_at: Option<DateTime<Utc>>| Restored {
        head,
        agreed: snapshot_id
            .zip(noted_at)
            .map(|(snapshot_id, noted_at)| Agreed { snapshot_id, noted_at: noted_at.into() }),
    };
    Ok(rows
        .into_iter()
        .map(|row| (row.catalog_id, restored(row.head, row.snapshot_id, row.noted_at)))
        .collect())
}

/// Which of these drops of a catalog are undone: that was noted of it, or it came after what is agreed and the
/// catalog has not its snapshot with its time. Below the floor that is the side of doubt: nobody can prove the
/// opposite. `restored` is what [`restored()`] said.
pub async fn undone(
    connection: &mut Session,
    catalog_id: i64,
    restored: Option<&Restored>,
    drop_ids: &[Uuid],
) -> sqlx::Result<BTreeSet<Uuid>> {
    let undone = sqlx::query_scalar!(
        r#"select h.drop_id from tailrace.drop_history h
           where h.drop_id = any ($2) and h.catalog_id = $1
             and (h.undone_seen_at is not null
                  or h.snapshot_id > $3 and not exists (
                    select from hog_snapshot s
                    where s.catalog_id = $1 and s.snapshot_id = h.snapshot_id
                      and s.snapshot_time = h.dropped_at
                      and s.snapshot_id <= (select last_snapshot_id from hog_catalog
                                            where catalog_id = $1)))"#,
        catalog_id,
        drop_ids,
        compared_after(restored)
    )
    .fetch_all(connection)
    .await?;
    Ok(undone.into_iter().collect())
}

/// Where a catalog's files end, and whether that may be relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotedHead {
    /// Of this moment.
    pub watermark: FileWatermark,
    /// The newest head that was noted before is not in the catalog as it was: nothing was noted now.
    pub is_restored: bool,
}

/// Reads where the catalog's files end, and notes its head as a fact, both of one moment; `None` if the
/// catalog is gone. `now` is the time of the pass, or of the command: not later than anything that it learns.
///
/// A head is noted once: what was learned of it before it was the head must not count as older. Nothing is
/// noted where the newest one does not agree: a head of the restored catalog beside it could hide that.
pub async fn note_head(
    connection: &mut Session,
    catalog_id: i64,
    now: UtcInstant,
) -> sqlx::Result<Option<NotedHead>> {
    let row = sqlx::query!(
        r#"with head as materialized (
             select c.next_file_id, c.last_snapshot_id, exists (
                      select from (select snapshot_id, snapshot_time from tailrace.noted_head
                                   where catalog_id = $1
                                   order by snapshot_id desc limit 1) as newest
                      where newest.snapshot_id >= c.earliest_snapshot_id
                        and not exists (select from hog_snapshot s
                                        where s.catalog_id = $1
                                          and s.snapshot_id = newest.snapshot_id
                                          and s.snapshot_time = newest.snapshot_time offset 0))
                      as is_restored
             from hog_catalog c where c.catalog_id = $1
           ),
           noted as (
             insert into tailrace.noted_head (catalog_id, snapshot_id, snapshot_time, noted_at)
             select $1, s.snapshot_id, s.snapshot_time, $2
             from head h
             cross join lateral (
               select snapshot_id, snapshot_time from hog_snapshot
               where catalog_id = $1 and snapshot_id = h.last_snapshot_id offset 0) as s
             where $2::timestamptz is not null and not h.is_restored
             on conflict (catalog_id, snapshot_id) do nothing
           )
           select next_file_id as "files_below!", last_snapshot_id as "through_snapshot!",
                  is_restored as "is_restored!"
           from head"#,
        catalog_id,
        now.to_chrono()
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| NotedHead {
        watermark: FileWatermark {
            files_below: row.files_below,
            through_snapshot: row.through_snapshot,
        },
        is_restored: row.is_restored,
    }))
}

/// Forgets heads that say no more than others: of each pass but its newest, and of those beyond the newest
/// half of [`FACTS`] all but the first of each day. For a pass that begins, after it found that all agree: a
/// restore to before one of these is told by the newer ones.
pub async fn thin_heads(connection: &mut Session, catalogs: &[i64]) -> sqlx::Result<()> {
    sqlx::query!(
        r#"delete from tailrace.noted_head n
           using (
             select catalog_id, snapshot_id from (
               select catalog_id, snapshot_id,
                      pg_catalog.row_number() over (
                        partition by catalog_id order by snapshot_id desc) as place,
                      pg_catalog.lead(noted_at) over (
                        partition by catalog_id order by snapshot_id) = noted_at as is_followed,
                      pg_catalog.row_number() over (
                        partition by catalog_id,
                                     pg_catalog.date_trunc('day'::text, noted_at, 'UTC'::text)
                        order by snapshot_id) as place_in_day
               from tailrace.noted_head where catalog_id = any ($1)) as heads
             where place > $2 and place_in_day > 1::bigint or is_followed) as more
           where n.catalog_id = more.catalog_id and n.snapshot_id = more.snapshot_id"#,
        catalogs,
        FACTS / 2
    )
    .execute(connection)
    .await?;
    Ok(())
}
