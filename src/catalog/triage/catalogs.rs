//! What there is to know of each catalog before a pass works on any.

use chrono::{DateTime, Utc};

use crate::catalog::clock::CLOCK_TOLERANCE;
use crate::catalog::session::Session;
use crate::catalog::tables::Catalog;
use crate::rules::instant::UtcInstant;

/// A catalog as it stands beside what was noted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogLook {
    pub catalog: Catalog,
    /// Its newest snapshot.
    pub head: i64,
    /// When that was made; `None` where it has no row.
    pub head_time: Option<DateTime<Utc>>,
    /// Goes up with each change of a table's definition.
    pub schema_version: i64,
    /// As [`is_whole`](crate::catalog::restore::is_whole()) says.
    pub is_whole: bool,
    /// All that was noted of its snapshots is there, as far as that can be found out in short: see
    /// [`look_at_catalogs`]. Else it is compared at length.
    pub agrees: bool,
    /// The newest `snapshot_time` of those that the clock must not be behind.
    pub newest_time: Option<DateTime<Utc>>,
    /// The database's clock is behind that by more than may be.
    pub is_behind: bool,
    /// The snapshot up to which [`note_catalogs`] noted that time.
    pub newest_through: Option<i64>,
    /// The `schema_version` with which its specs were copied last.
    pub specs_copied_at_version: Option<i64>,
    /// A command copied specs, and no pass has dated them.
    pub has_undated_copies: bool,
    /// What is noted of specs is of a time before the clock was refused last.
    pub has_older_epoch: bool,
}

/// Looks at all catalogs, by name.
///
/// Whether what is noted agrees with a catalog is told in short by `catalog_state.newest_through`: up to
/// that snapshot everything agreed when it was noted, and ids are given out in the order of the commits.
/// So where that snapshot is there with its time, all facts up to it agree as before, and only those after
/// it are looked at, which are few. Where the floor has passed it nothing can be told by it. (What a fact
/// is, and what it tells, is said in [`crate::catalog::restore`].)
///
/// In the same way only the snapshots since are asked for their time, the newest 1,000 of them.
///
/// What is ours is found for each catalog by its key, too: of a join the planner may believe that it has next
/// to nothing to compare, and compare each catalog with each.
pub async fn look_at_catalogs(connection: &mut Session) -> sqlx::Result<Vec<CatalogLook>> {
    let rows = sqlx::query!(
        r#"select c.catalog_id, c.name, c.last_snapshot_id as head, c.schema_version,
                  case when h.snapshot_time between '0001-01-01'::timestamptz
                                                and '9999-12-31'::timestamptz
                    then h.snapshot_time end as head_time,
                  (c.last_snapshot_id <= 0::bigint or h.snapshot_time is not null)
                    and (not exists (select from hog_table t
                                     where t.catalog_id = c.catalog_id
                                       and t.dropped_snapshot is null offset 0)
                         or exists (select from hog_table_version v
                                    where v.catalog_id = c.catalog_id offset 0)
                            and exists (select from hog_column k
                                        where k.catalog_id = c.catalog_id offset 0))
                    and (not exists (select from hog_partition_spec p
                                     where p.catalog_id = c.catalog_id offset 0)
                         or exists (select from hog_partition_field f
                                    where f.catalog_id = c.catalog_id offset 0)) as "is_whole!",
                  coalesce(s.newest_through >= c.earliest_snapshot_id
                    and s.newest_through <= c.last_snapshot_id
                    and (s.newest_through <= 0::bigint or noted.is_there)
                    and not exists (
                      select from (
                        select snapshot_id, snapshot_time from tailrace.noted_head
                        where catalog_id = c.catalog_id and snapshot_id > s.newest_through
                        union all
                        select snapshot_id, dropped_at from tailrace.drop_history
                        where catalog_id = c.catalog_id and snapshot_id > s.newest_through
                          and undone_seen_at is null) as f
                      left join lateral (
                        select true as is_there from hog_snapshot
                        where catalog_id = c.catalog_id and snapshot_id = f.snapshot_id
                          and snapshot_time = f.snapshot_time offset 0) as a on true
                      where f.snapshot_id > c.last_snapshot_id or a.is_there is null offset 0),
                    false) as "agrees!",
                  case when newest.time between '0001-01-01'::timestamptz
                                            and '9999-12-31'::timestamptz
                    then newest.time end as newest_time,
                  coalesce(newest.time > pg_catalog.clock_timestamp()
                                         + pg_catalog.make_interval(secs => $1),
                           false) as "is_behind!",
                  s.newest_through as "newest_through?",
                  s.specs_copied_at_version as "specs_copied_at_version?",
                  coalesce(copies.is_undated, false) as "has_undated_copies!",
                  coalesce(copies.is_older, false) as "has_older_epoch!"
           from hog_catalog c
           left join lateral (
             select newest_through, newest_time, specs_copied_at_version from tailrace.catalog_state
             where catalog_id = c.catalog_id offset 0) as s on true
           left join lateral (
             select epoch, epoch_began, trusted_head from tailrace.clock_memory
             where catalog_id = c.catalog_id offset 0) as m on true
           cross join lateral (
             select pg_catalog.bool_or(copied_at is null and mark_row_id is null) as is_undated,
                    pg_catalog.bool_or(clock_epoch < m.epoch and m.epoch > 0::bigint
                                       and m.epoch_began is not null) as is_older
             from tailrace.spec_copy where catalog_id = c.catalog_id) as copies
           left join lateral (
             select snapshot_time from hog_snapshot
             where catalog_id = c.catalog_id and snapshot_id = c.last_snapshot_id offset 0) as h on true
           left join lateral (
             select true as is_there
             from (select snapshot_id, snapshot_time from tailrace.noted_head
                   where catalog_id = c.catalog_id and snapshot_id = s.newest_through offset 0) as n
             join hog_snapshot p on p.catalog_id = c.catalog_id and p.snapshot_id = n.snapshot_id
                                and p.snapshot_time = n.snapshot_time offset 0) as noted on true
           cross join lateral (
             select greatest(
               case when s.newest_through > coalesce(m.trusted_head, (-1)::bigint)
                 then s.newest_time end,
               (select pg_catalog.max(snapshot_time) from (
                  select snapshot_time from hog_snapshot
                  where catalog_id = c.catalog_id
                    and snapshot_id > greatest(s.newest_through, m.trusted_head, (-1)::bigint)
                  order by snapshot_id desc limit 1000) as recent)) as time offset 0) as newest
           order by c.name"#,
        CLOCK_TOLERANCE.as_secs_f64()
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| CatalogLook {
            catalog: Catalog { catalog_id: row.catalog_id, name: row.name },
            head: row.head,
            head_time: row.head_time,
            schema_version: row.schema_version,
            is_whole: row.is_whole,
            agrees: row.agrees,
            newest_time: row.newest_time,
            is_behind: row.is_behind,
            newest_through: row.newest_through,
            specs_copied_at_version: row.specs_copied_at_version,
            has_undated_copies: row.has_undated_copies,
            has_older_epoch: row.has_older_epoch,
        })
        .collect())
}

/// Notes the heads of catalogs that were found to agree, as facts ([`crate::catalog::restore`]), and that
/// all up to them does; `now` is the time of the pass, not later than anything that it learns.
///
/// Nothing is noted where the head is not in the catalog any more as it was looked at: it was restored in
/// between, and the next pass compares it at length. Two passes that note one catalog at once may leave the
/// older of two heads behind, from which the next one compares a little more.
pub async fn note_catalogs(
    connection: &mut Session,
    looks: &[&CatalogLook],
    now: UtcInstant,
) -> sqlx::Result<()> {
    let Some(now) = now.to_chrono().filter(|_| !looks.is_empty()) else { return Ok(()) };
    let catalogs: Vec<i64> = looks.iter().map(|look| look.catalog.catalog_id).collect();
    let heads: Vec<i64> = looks.iter().map(|look| look.head).collect();
    let times: Vec<Option<DateTime<Utc>>> = looks.iter().map(|look| look.head_time).collect();
    let newest: Vec<Option<DateTime<Utc>>> = looks.iter().map(|look| look.newest_time).collect();
    sqlx::query!(
        r#"with seen as materialized (
             select g.catalog_id, g.head, g.head_time, g.newest_time
             from unnest($1::bigint[], $2::bigint[], $3::timestamptz[], $4::timestamptz[])
                    as g (catalog_id, head, head_time, newest_time)
             left join lateral (
               select snapshot_time from hog_snapshot
               where catalog_id = g.catalog_id and snapshot_id = g.head offset 0) as h on true
             left join tailrace.noted_head n on n.catalog_id = g.catalog_id and n.snapshot_id = g.head
             where (g.head <= 0::bigint or h.snapshot_time = g.head_time)
               and (n.snapshot_time is null or n.snapshot_time = g.head_time)
           ),
           noted as (
             insert into tailrace.noted_head (catalog_id, snapshot_id, snapshot_time, noted_at)
             select catalog_id, head, head_time, $5 from seen where head_time is not null
             on conflict (catalog_id, snapshot_id) do nothing
           )
           insert into tailrace.catalog_state as s (catalog_id, newest_through, newest_time)
           select catalog_id, head, newest_time from seen order by catalog_id
           on conflict (catalog_id) do update
           set newest_through = excluded.newest_through, newest_time = excluded.newest_time"#,
        &catalogs,
        &heads,
        &times as &[Option<DateTime<Utc>>],
        &newest as &[Option<DateTime<Utc>>],
        now
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes the same of one catalog, up to a head that [`note_head`](crate::catalog::restore::note_head()) has
/// just noted, after all that is noted was compared with it. For whoever has the catalog's lease.
pub async fn note_compared(
    connection: &mut Session,
    catalog_id: i64,
    head: i64,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"insert into tailrace.catalog_state as s (catalog_id, newest_through, newest_time)
           select $1, $2, (
             select pg_catalog.max(snapshot_time) from (
               select snapshot_time from hog_snapshot
               where catalog_id = $1 and snapshot_id <= $2
                 and snapshot_id > coalesce((select trusted_head from tailrace.clock_memory
                                             where catalog_id = $1), (-1)::bigint)
               order by snapshot_id desc limit 1000) as recent)
           on conflict (catalog_id) do update
           set newest_through = excluded.newest_through, newest_time = excluded.newest_time"#,
        catalog_id,
        head
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes that the specs of a catalog were copied, all that were there when its `schema_version` was this, dated
/// or not. Nothing where that is another one by now: without the catalog's lease, as in a renewal of claims, it
/// may have been restored meanwhile, and the version be given out again.
pub async fn note_copied(
    connection: &mut Session,
    catalog_id: i64,
    schema_version: i64,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"insert into tailrace.catalog_state (catalog_id, specs_copied_at_version)
           select catalog_id, schema_version from hog_catalog
           where catalog_id = $1 and schema_version = $2
           on conflict (catalog_id) do update
           set specs_copied_at_version = excluded.specs_copied_at_version"#,
        catalog_id,
        schema_version
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The catalog's `schema_version`; `None` if it is gone.
pub async fn schema_version(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Option<i64>> {
    sqlx::query_scalar!("select schema_version from hog_catalog where catalog_id = $1", catalog_id)
        .fetch_optional(connection)
        .await
}
