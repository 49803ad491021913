//! What passes remember of the clocks, for each catalog: `tailrace.clock_memory`.
//!
//! The session that has the catalog's lease writes it, in one short statement at the beginning of a pass. A
//! refused pass writes the refusal and nothing else. `tailrace clock accept` writes the acceptance into other
//! columns, so the two may run in any order. The same holds for the note that a catalog is gone
//! ([`super::purge`]).

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::session::Session;
use crate::rules::clock_guard::{Acceptance, Accepted, Boot, Memory, RefusedSince};
use crate::rules::instant::UtcInstant;

/// A stretch of passes between which no clock was refused or set back. What was noted in an older one
/// is dated by a clock that turned out to be wrong, or may have been.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Epoch {
    /// Goes up with each; 0 is the first one.
    pub number: i64,
    /// The database's time of its first accepted pass; `None` while there was none.
    pub began: Option<UtcInstant>,
}

/// A person's acceptance of the clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByHand {
    /// The name that was given, or the user of the session.
    pub by: String,
    /// As it was given.
    pub reason: String,
    /// The database's time of it.
    pub at: UtcInstant,
}

/// The memory of a catalog.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Remembered {
    /// What passes are decided by.
    pub memory: Memory,
    pub epoch: Epoch,
    /// Why the last pass was refused; `None` where it was not.
    pub refusal: Option<String>,
    /// Snapshots up to this one are not what the present must not lie behind.
    pub trusted_head: Option<i64>,
    /// The last acceptance by a person.
    pub by_hand: Option<ByHand>,
}

/// The columns of a memory. Times that no pass can have written are none.
struct Row {
    catalog_id: i64,
    accepted_now: Option<DateTime<Utc>>,
    accepted_host: Option<DateTime<Utc>>,
    boot_ms: Option<i64>,
    process: Option<Uuid>,
    epoch: i64,
    epoch_began: Option<DateTime<Utc>>,
    refused_at: Option<DateTime<Utc>>,
    refusal: Option<String>,
    refused_by_boot: bool,
    accepted_by: Option<String>,
    accept_reason: Option<String>,
    accept_at: Option<DateTime<Utc>>,
    is_accepted_once: bool,
    trusted_head: Option<i64>,
}

impl From<Row> for Remembered {
    fn from(row: Row) -> Self {
        let instant = |time: Option<DateTime<Utc>>| time.map(UtcInstant::from);
        let accepted = instant(row.accepted_now).map(|now| Accepted {
            now,
            host: instant(row.accepted_host),
            boot: row.boot_ms.zip(row.process).map(|(millis, process)| Boot { millis, process }),
        });
        let refused =
            instant(row.refused_at).map(|at| RefusedSince { at, by_boot: row.refused_by_boot });
        let by_hand = match (row.accepted_by, row.accept_reason, instant(row.accept_at)) {
            (Some(by), Some(reason), Some(at)) => Some(ByHand { by, reason, at }),
            _ => None,
        };
        Remembered {
            memory: Memory { accepted, refused, is_accepted_once: row.is_accepted_once },
            epoch: Epoch { number: row.epoch, began: instant(row.epoch_began) },
            refusal: row.refusal,
            trusted_head: row.trusted_head,
            by_hand,
        }
    }
}

/// What is remembered of the catalogs that have passed or were refused: of one, or of all.
async fn rows(connection: &mut Session, catalog_id: Option<i64>) -> sqlx::Result<Vec<Row>> {
    sqlx::query_as!(
        Row,
        r#"select catalog_id,
                  case when accepted_now between '0001-01-01'::timestamptz
                                             and '9999-12-31'::timestamptz
                    then accepted_now end as accepted_now,
                  case when accepted_host between '0001-01-01'::timestamptz
                                              and '9999-12-31'::timestamptz
                    then accepted_host end as accepted_host,
                  boot_ms, process, epoch,
                  case when epoch_began between '0001-01-01'::timestamptz
                                            and '9999-12-31'::timestamptz
                    then epoch_began end as epoch_began,
                  case when refused_at between '0001-01-01'::timestamptz
                                           and '9999-12-31'::timestamptz
                    then refused_at end as refused_at,
                  refusal, refused_by_boot, accepted_by, accept_reason,
                  case when accept_at between '0001-01-01'::timestamptz
                                          and '9999-12-31'::timestamptz
                    then accept_at end as accept_at,
                  is_accepted_once, trusted_head
           from tailrace.clock_memory
           where catalog_id = $1 or $1 is null
           order by catalog_id"#,
        catalog_id
    )
    .fetch_all(connection)
    .await
}

/// What is remembered of a catalog; nothing where it never passed.
pub async fn remembered(connection: &mut Session, catalog_id: i64) -> sqlx::Result<Remembered> {
    Ok(rows(connection, Some(catalog_id)).await?.pop().map(Remembered::from).unwrap_or_default())
}

/// What is remembered of every catalog, those that are gone included.
pub async fn all_remembered(connection: &mut Session) -> sqlx::Result<Vec<(i64, Remembered)>> {
    Ok(rows(connection, None).await?.into_iter().map(|row| (row.catalog_id, row.into())).collect())
}

/// Notes that a pass was accepted; the epoch that it is in. What was accepted by a person for one pass
/// is used up if that was what let it through.
pub async fn note_accepted(
    connection: &mut Session,
    catalog_id: i64,
    acceptance: &Acceptance,
) -> sqlx::Result<Epoch> {
    let Accepted { now, host, boot } = acceptance.remembered;
    let row = sqlx::query!(
        r#"insert into tailrace.clock_memory as m
             (catalog_id, accepted_now, accepted_host, boot_ms, process, epoch_began)
           values ($1, $2, $3, $4, $5, $2)
           on conflict (catalog_id) do update
           set accepted_now = excluded.accepted_now, accepted_host = excluded.accepted_host,
               boot_ms = excluded.boot_ms, process = excluded.process,
               epoch = case when $6 then m.epoch + 1::bigint else m.epoch end,
               epoch_began = case when $6 or m.epoch_began is null then excluded.epoch_began
                                  else m.epoch_began end,
               refused_at = null, refusal = null, refused_by_boot = false,
               is_accepted_once = m.is_accepted_once and not $7
           returning epoch, case when epoch_began between '0001-01-01'::timestamptz
                                                      and '9999-12-31'::timestamptz
                              then epoch_began end as epoch_began"#,
        catalog_id,
        now.to_chrono(),
        host.and_then(UtcInstant::to_chrono),
        boot.map(|boot| boot.millis),
        boot.map(|boot| boot.process),
        acceptance.starts_epoch,
        acceptance.is_by_hand
    )
    .fetch_one(connection)
    .await?;
    Ok(Epoch { number: row.epoch, began: row.epoch_began.map(UtcInstant::from) })
}

/// Remembers anew that the clock is accepted, of catalogs in which nothing else is to be done and where it
/// was so before. Without their leases: nothing happens where a pass was refused or a person accepted the
/// clock meanwhile, or another one has remembered a later time.
pub async fn note_still_accepted(
    connection: &mut Session,
    catalogs: &[i64],
    accepted: &Accepted,
) -> sqlx::Result<()> {
    let Accepted { now, host, boot } = accepted;
    sqlx::query!(
        r#"update tailrace.clock_memory
           set accepted_now = $2, accepted_host = $3, boot_ms = $4, process = $5
           where catalog_id = any ($1) and accepted_now < $2 and refused_at is null
             and not is_accepted_once"#,
        catalogs,
        now.to_chrono(),
        host.and_then(UtcInstant::to_chrono),
        boot.map(|boot| boot.millis),
        boot.map(|boot| boot.process)
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes that a pass was refused: since when passes are, and why this one was. Where CLOCK_BOOTTIME of
/// this process is the reason for one, the time is the earliest at which it was.
pub async fn note_refused(
    connection: &mut Session,
    catalog_id: i64,
    now: UtcInstant,
    refusal: &str,
    by_boot: bool,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"insert into tailrace.clock_memory as m (catalog_id, refused_at, refusal, refused_by_boot)
           values ($1, coalesce($2, pg_catalog.clock_timestamp()), $3, $4)
           on conflict (catalog_id) do update
           set refused_at = case
                 when not excluded.refused_by_boot then coalesce(m.refused_at, excluded.refused_at)
                 when m.refused_by_boot then least(m.refused_at, excluded.refused_at)
                 else excluded.refused_at end,
               refusal = excluded.refusal,
               refused_by_boot = m.refused_by_boot or excluded.refused_by_boot"#,
        catalog_id,
        now.to_chrono(),
        refusal,
        by_boot
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Records that a person accepts the clock for the next pass, and what the catalog's snapshots say up
/// to its present head, and has what waits for evidence looked at by the next pass; returns that head. `None` if the catalog is gone.
pub async fn accept(
    connection: &mut Session,
    catalog_id: i64,
    by: &str,
    reason: &str,
) -> sqlx::Result<Option<i64>> {
    let head = sqlx::query_scalar!(
        r#"with accepted as (
             insert into tailrace.clock_memory as m
               (catalog_id, accepted_by, accept_reason, accept_at, is_accepted_once, trusted_head,
                trusted_time)
             select c.catalog_id, $2, $3, pg_catalog.clock_timestamp(), true, c.last_snapshot_id,
                    (select s.snapshot_time from hog_snapshot s
                     where s.catalog_id = $1 and s.snapshot_id = c.last_snapshot_id)
             from hog_catalog c where c.catalog_id = $1
             on conflict (catalog_id) do update
             set accepted_by = excluded.accepted_by, accept_reason = excluded.accept_reason,
                 accept_at = excluded.accept_at, is_accepted_once = true,
                 trusted_head = excluded.trusted_head, trusted_time = excluded.trusted_time
             returning m.trusted_head
           ),
           tuples as (
             update tailrace.waiting set next_look = null
             where catalog_id = $1 and next_look is not null
               and reason in ('ambiguous_spec', 'newer_rows_than_partition')
               and exists (select from accepted)
           ),
           due as (
             update tailrace.calendar set next_look = null
             where catalog_id = $1 and next_look is not null and exists (select from accepted)
           )
           select trusted_head from accepted"#,
        catalog_id,
        by,
        reason
    )
    .fetch_optional(connection)
    .await?;
    Ok(head.flatten())
}
