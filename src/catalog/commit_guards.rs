//! What a drop reads first under the commit lock.

use chrono::{DateTime, Utc};
use serde_json::Value;
use sqlx::{Execute, Executor};
use uuid::Uuid;

use super::restore::Head;
use super::session::Session;
use super::tuples::{TupleOfSpec, wanted};

/// The table of guard revisions, as messages of Postgres name it.
pub const GUARDS: &str = "guard_state";

/// The catalog, the table, its policies and what happened to the table, as they are under the commit
/// lock.
#[derive(Debug, Clone, PartialEq)]
pub struct UnderLock {
    /// The newest snapshot.
    pub head: i64,
    /// `hog_catalog.schema_version`.
    pub schema_version: i64,
    /// The oldest snapshot that can be read.
    pub floor: i64,
    /// Whether a receipt with the request's key is there.
    pub has_receipt: bool,
    /// The table's UUID; `None` where its row is gone.
    pub table_uuid: Option<Uuid>,
    /// The table's names; `None` where it is not live (dropped, or its namespace is).
    pub live_as: Option<(String, String)>,
    /// False for a packed table.
    pub is_parquet: bool,
    /// The property `partition_retention`.
    pub property: Option<Value>,
    /// The revisions of our policy rows, by source; `None` where no policy was asked for.
    pub stored_revision: Option<i64>,
    /// The revision of the property's mirror, `None` where there is none or it is not followed.
    pub property_revision: Option<i64>,
    /// The catalog's guard revision; `None` where none was asked for, or there is no row.
    pub guard_revision: Option<i64>,
    /// For a drop that commits: whether a pause covers the table, by the names that it has now.
    pub is_paused: bool,
    /// The plan's head is not in the catalog as it was, or the catalog's own head is not there; for a policy
    /// also the newest head that a pass noted. The catalog was restored since, and ids of files that were
    /// found before may be those of other files.
    pub is_restored: bool,
    /// Whether the table was altered, or files of it were ended by other than a compaction, after `newest_as_of`.
    pub newest_changed: bool,
    /// Whether the table was altered or dropped after `read_snapshot`.
    pub ddl_since: bool,
    /// A snapshot after `read_snapshot`, no compaction of the table, that began a file of a named
    /// tuple, whether the file lives or has ended since.
    pub files_since: Option<i64>,
}

/// Which table, in whose name, and what of it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Question<'a> {
    pub catalog_id: i64,
    pub table_id: i64,
    /// The head before the files were looked for.
    pub head: Option<Head>,
    /// `drop.max_hold` in milliseconds: what this statement takes of it, the ones after it have not.
    pub hold_ms: i64,
    /// A policy's drop: the rows of the table's policies are locked `FOR SHARE NOWAIT`, so that a writer of
    /// policies waits until our transaction ends, and one that is writing at this moment fails us with
    /// SQLSTATE 55P03.
    pub for_policy: bool,
    /// A drop that commits: the catalog's row of `tailrace.guard_state` is locked `FOR SHARE NOWAIT`, with the same
    /// effect on whoever changes a pause or a hold.
    pub for_drop: bool,
    /// The key of a request; `None` without one, and for a policy.
    pub idempotency_key: Option<Uuid>,
    /// What the caller of a request has seen.
    pub read_snapshot: Option<i64>,
    /// When the newest values of the table were looked for, where a policy keeps these.
    pub newest_as_of: Option<i64>,
    /// The named tuples; for a whole table none. Only looked at where there is a `read_snapshot`.
    pub tuples: &'a [TupleOfSpec],
    /// All tuples of the table are meant.
    pub whole_table: bool,
}

impl Question<'_> {
    /// A question about nothing, to be filled.
    pub const NOTHING: Question<'static> = Question {
        catalog_id: 0,
        table_id: 0,
        head: None,
        hold_ms: 0,
        for_policy: false,
        for_drop: false,
        idempotency_key: None,
        read_snapshot: None,
        newest_as_of: None,
        tuples: &[],
        whole_table: false,
    };
}

/// Reads all of it in one round trip; `None` if the catalog is gone. For a drop the commit lock must be
/// held; without it (a dry run, or a look before the lock is asked for) the answer is true of the moment.
///
/// Of an id that was given twice the policy rows of both tables are locked, and only those of the one
/// that is there count. Files since `read_snapshot` come from hog_data_file_changefeed, ended ones included:
/// their rows are there as long as the floor is at or below `read_snapshot`. A file that an append brought
/// and a compaction has merged since is found as the ended input that it is; the compaction's output is
/// old rows or such inputs, and is passed over.
///
/// Columns that the server may lack are read as [`super`] says.
pub async fn look(
    connection: &mut Session,
    question: &Question<'_>,
) -> sqlx::Result<Option<UnderLock>> {
    run_or_prepare(connection, question, false).await
}

/// Has the server parse the statement of [`look`], as [`super::commit_tail::prepare_write`] does. No row is
/// locked.
pub async fn prepare_look(connection: &mut Session) -> sqlx::Result<()> {
    run_or_prepare(connection, &Question::NOTHING, true).await.map(|_| ())
}

async fn run_or_prepare(
    connection: &mut Session,
    question: &Question<'_>,
    only_prepare: bool,
) -> sqlx::Result<Option<UnderLock>> {
    let since = question.read_snapshot;
    let named = if since.is_some() { question.tuples } else { &[] };
    let head_time: Option<DateTime<Utc>> = question.head.map(|head| head.snapshot_time);
    let statement = sqlx::query!(
        r#"with policies as materialized (
             select source, table_uuid, revision, problem from tailrace.policy
             where $4 and catalog_id = $1 and table_id = $2
             order by source
             for share nowait
           ), guards as materialized (
             select revision from tailrace.guard_state where $11 and catalog_id = $1
             for share nowait
           )
           select coalesce(c.last_snapshot_id) as "head!",
                  coalesce(c.schema_version) as "schema_version!",
                  coalesce(c.earliest_snapshot_id) as "floor!",
                  exists (select from tailrace.drop_receipt r
                          where r.catalog_id = $1 and r.idempotency_key = $5) as "has_receipt!",
                  coalesce(t.table_uuid) as table_uuid,
                  coalesce(n.name) as namespace, coalesce(v.name) as "table",
                  coalesce(t.file_format, 'parquet') = 'parquet' as "is_parquet!",
                  v.properties -> 'partition_retention'::text as property,
                  (select p.revision from policies p
                   where p.source = 'stored' and p.table_uuid = t.table_uuid) as stored_revision,
                  (select p.revision from policies p
                   where p.source = 'property' and p.problem is null
                     and p.table_uuid = t.table_uuid) as property_revision,
                  (select g.revision from guards g) as guard_revision,
                  -- Asked of the table only where anything is paused.
                  case when $11 and exists (select from tailrace.pause)
                    then tailrace.is_paused($1, $2, t.table_uuid) else false end as "is_paused!",
                  $4 and exists (
                    select from (select snapshot_id, snapshot_time from tailrace.noted_head
                                 where catalog_id = $1
                                 order by snapshot_id desc limit 1) as newest
                    where newest.snapshot_id >= c.earliest_snapshot_id
                      and not exists (select from hog_snapshot s
                                      where s.catalog_id = $1
                                        and s.snapshot_id = newest.snapshot_id
                                        and s.snapshot_time = newest.snapshot_time offset 0))
                  or coalesce($6 >= c.earliest_snapshot_id and not exists (
                    select from hog_snapshot s
                    where s.catalog_id = $1 and s.snapshot_id = $6 and s.snapshot_time = $7
                    offset 0), false)
                  or c.last_snapshot_id > 0::bigint and not exists (
                    select from hog_snapshot s
                    where s.catalog_id = $1 and s.snapshot_id = c.last_snapshot_id offset 0)
                    as "is_restored!",
                  -- One by one: of several kinds at once the index may be read from the table's
                  -- first change on.
                  case when $8::bigint is null then false else
                    exists (select from hog_snapshot_change d
                            where d.catalog_id = $1 and d.object_id = $2
                              and d.kind = 'table_altered' and d.snapshot_id > $8)
                    or exists (select from hog_snapshot_change d
                               where d.catalog_id = $1 and d.object_id = $2
                                 and d.kind = 'table_dropped' and d.snapshot_id > $8)
                  end as "ddl_since!",
                  case when $12::bigint is null then false else
                    exists (select from hog_snapshot_change d
                            where d.catalog_id = $1 and d.object_id = $2
                              and d.kind = 'table_deleted_from' and d.snapshot_id > $12)
                    or exists (select from hog_snapshot_change d
                               where d.catalog_id = $1 and d.object_id = $2
                                 and d.kind = 'table_altered' and d.snapshot_id > $12)
                  end as "newest_changed!",
                  case when $8 is not null then
                  (select f.begin_snapshot
                   from hog_data_file f
                   where f.catalog_id = $1 and f.table_id = $2 and f.begin_snapshot > $8
                     -- Uncorrelated, and so hashed: each file costs one look, however many tuples.
                     and ($9 or (coalesce(f.spec_id, -1), coalesce(
                         (select pg_catalog.jsonb_agg(
                                   pg_catalog.jsonb_build_array(a.key_index, a.value)
                                   order by a.key_index)
                          from hog_file_partition_value a
                          where a.catalog_id = f.catalog_id
                            and a.data_file_id = f.data_file_id), '[]')) in (
                       select (w.item ->> 'spec_id'::text)::bigint, w.item -> 'tuple'::text
                       from pg_catalog.jsonb_array_elements($10::jsonb) as w (item)))
                     and not exists (
                       select from hog_snapshot_change k
                       where k.catalog_id = f.catalog_id and k.snapshot_id = f.begin_snapshot
                         and k.object_id = f.table_id and k.kind = 'table_compacted')
                   order by f.begin_snapshot limit 1) end as files_since,
                  pg_catalog.set_config('statement_timeout', greatest($3::bigint - (1000::numeric *
                    extract(epoch from pg_catalog.clock_timestamp()
                                       - pg_catalog.statement_timestamp()))::bigint, 1)::text, true)
                    as "what_is_left"
           from hog_catalog c
           cross join (select null::text as file_format, null::jsonb as properties) as absent
           left join lateral (
             select catalog_id, table_id, table_uuid, dropped_snapshot, file_format
             from hog_table) as t
             on t.catalog_id = c.catalog_id and t.table_id = $2
           left join lateral (
             select catalog_id, table_id, namespace_id, name, end_snapshot, properties
             from hog_table_version) as v
             on v.catalog_id = t.catalog_id and v.table_id = t.table_id
            and v.end_snapshot is null and t.dropped_snapshot is null
           left join hog_namespace n
             on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
            and not n.dropped
           where c.catalog_id = $1"#,
        question.catalog_id,
        question.table_id,
        question.hold_ms,
        question.for_policy,
        question.idempotency_key,
        question.head.map(|head| head.snapshot_id),
        head_time,
        since,
        question.whole_table,
        wanted(named) as _,
        question.for_drop,
        question.newest_as_of
    );
    if only_prepare {
        connection.prepare(statement.sql()).await?;
        return Ok(None);
    }
    let row = statement.fetch_optional(connection).await?;
    Ok(row.map(|row| UnderLock {
        head: row.head,
        schema_version: row.schema_version,
        floor: row.floor,
        has_receipt: row.has_receipt,
        table_uuid: row.table_uuid,
        live_as: row.namespace.zip(row.table),
        is_parquet: row.is_parquet,
        property: row.property.filter(|value| !value.is_null()),
        stored_revision: row.stored_revision,
        property_revision: row.property_revision,
        guard_revision: row.guard_revision,
        is_paused: row.is_paused,
        is_restored: row.is_restored,
        newest_changed: row.newest_changed,
        ddl_since: row.ddl_since,
        files_since: row.files_since,
    }))
}
