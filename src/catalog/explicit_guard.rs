//! What an explicit drop looks at first under the commit lock.

use uuid::Uuid;

use super::discovery::{TupleOfSpec, wanted};
use super::guard::HoldBounds;
use super::restore::Head;
use super::session::Session;

/// The catalog and the table as they are under the commit lock, and what happened to the table
/// since the request's `read_snapshot`.
#[derive(Debug, Clone, PartialEq)]
pub struct ExplicitState {
    /// The newest snapshot.
    pub head: i64,
    /// The catalog's schema version.
    pub schema_version: i64,
    /// The oldest snapshot that can be read.
    pub floor: i64,
    /// Whether a receipt with the request's key is there.
    pub has_receipt: bool,
    /// The table's incarnation; `None` where its row is gone.
    pub table_uuid: Option<Uuid>,
    /// The table's names; `None` where it is not live (dropped, or its namespace is).
    pub live_as: Option<(String, String)>,
    /// False for a packed table.
    pub is_parquet: bool,
    /// Whether the table was altered or dropped after `read_snapshot`.
    pub ddl_since: bool,
    /// The catalog was restored to an earlier time since the request's files were looked for: their ids
    /// may be those of other files now.
    pub is_restored: bool,
    /// A snapshot after `read_snapshot`, no compaction of the table, that began a file of a named
    /// tuple, whether the file lives or has ended since.
    pub files_since: Option<i64>,
}

/// Which table, which request, and what of it is looked at.
#[derive(Debug, Clone, Copy)]
pub struct ExplicitQuestion<'a> {
    /// The catalog.
    pub catalog_id: i64,
    /// The table.
    pub table_id: i64,
    /// The request's key.
    pub idempotency_key: Option<Uuid>,
    /// The named tuples; for a whole table none.
    pub tuples: &'a [TupleOfSpec],
    /// All tuples of the table are meant.
    pub whole_table: bool,
    /// What the caller has seen.
    pub read_snapshot: Option<i64>,
    /// The head before the files were looked for.
    pub head: Option<Head>,
}

/// Reads all of it in one round trip and sets the bounds for the statements that follow. `None` if
/// the catalog is gone. For a drop the commit lock must be held; without it (a dry run) the answer
/// is true of the moment.
///
/// Files since `read_snapshot` come from hog_data_file_changefeed, ended ones included: their rows
/// are there as long as the floor is at or below `read_snapshot`. A file that an append brought and
/// a compaction has merged since is found as the ended input that it is; the compaction's output is
/// old rows or such inputs, and is passed over.
///
/// A column that the server may lack is read as [`super`] says.
pub async fn look(
    connection: &mut Session,
    question: &ExplicitQuestion<'_>,
    bounds: HoldBounds,
) -> sqlx::Result<Option<ExplicitState>> {
    let row = sqlx::query!(
        r#"select c.last_snapshot_id as head, c.schema_version, c.earliest_snapshot_id as floor,
                  exists (select from tailrace.drop_receipt r
                          where r.catalog_id = $1 and r.idempotency_key = $3) as "has_receipt!",
                  t.table_uuid as "table_uuid?", n.name as "namespace?", v.name as "table?",
                  coalesce(t.file_format, 'parquet') = 'parquet' as "is_parquet!",
                  -- One by one: of several kinds at once the index may be read from the table's
                  -- first change on.
                  exists (select from hog_snapshot_change d
                          where d.catalog_id = $1 and d.object_id = $2
                            and d.kind = 'table_altered' and d.snapshot_id > $4)
                  or exists (select from hog_snapshot_change d
                          where d.catalog_id = $1 and d.object_id = $2
                            and d.kind = 'table_dropped' and d.snapshot_id > $4) as "ddl_since!",
                  coalesce($9 >= c.earliest_snapshot_id and not exists (
                    select from hog_snapshot s
                    where s.catalog_id = $1 and s.snapshot_id = $9 and s.snapshot_time = $10
                    offset 0), false)
                  or c.last_snapshot_id > 0::bigint and not exists (
                    select from hog_snapshot s
                    where s.catalog_id = $1 and s.snapshot_id = c.last_snapshot_id offset 0)
                    as "is_restored!",
                  (select f.begin_snapshot
                   from hog_data_file f
                   where f.catalog_id = $1 and f.table_id = $2 and f.begin_snapshot > $4
                     -- Uncorrelated, and so hashed: each file costs one look, however many tuples.
                     and ($5 or (coalesce(f.spec_id, -1), coalesce(
                         (select pg_catalog.jsonb_agg(
                                   pg_catalog.jsonb_build_array(a.key_index, a.value)
                                   order by a.key_index)
                          from hog_file_partition_value a
                          where a.catalog_id = f.catalog_id
                            and a.data_file_id = f.data_file_id), '[]')) in (
                       select (w.item ->> 'spec_id'::text)::bigint, w.item -> 'tuple'::text
                       from pg_catalog.jsonb_array_elements($6::jsonb) as w (item)))
                     and not exists (
                       select from hog_snapshot_change k
                       where k.catalog_id = f.catalog_id and k.snapshot_id = f.begin_snapshot
                         and k.object_id = f.table_id and k.kind = 'table_compacted')
                   order by f.begin_snapshot limit 1) as files_since,
                  pg_catalog.set_config('lock_timeout', $7::bigint::text, true) as "lock_timeout",
                  pg_catalog.set_config('statement_timeout', $8::bigint::text, true)
                    as "statement_timeout"
           from hog_catalog c
           cross join (select null::text as file_format) as absent
           left join lateral (
             select catalog_id, table_id, table_uuid, dropped_snapshot, file_format
             from hog_table) as t
             on t.catalog_id = c.catalog_id and t.table_id = $2
           left join hog_table_version v
             on v.catalog_id = t.catalog_id and v.table_id = t.table_id
            and v.end_snapshot is null and t.dropped_snapshot is null
           left join hog_namespace n
             on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
            and not n.dropped
           where c.catalog_id = $1"#,
        question.catalog_id,
        question.table_id,
        question.idempotency_key,
        question.read_snapshot,
        question.whole_table,
        wanted(question.tuples) as _,
        bounds.row_lock_ms,
        bounds.hold_ms,
        question.head.map(|head| head.snapshot_id),
        question.head.map(|head| head.snapshot_time)
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| ExplicitState {
        head: row.head,
        schema_version: row.schema_version,
        floor: row.floor,
        has_receipt: row.has_receipt,
        table_uuid: row.table_uuid,
        live_as: row.namespace.zip(row.table),
        is_parquet: row.is_parquet,
        ddl_since: row.ddl_since,
        is_restored: row.is_restored,
        files_since: row.files_since,
    }))
}
