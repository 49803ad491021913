//! The commit tail of a partition drop: the writes of the contract ("The commit tail"), and
//! nothing else, in one statement under the commit lock.

use sqlx::{Execute, Executor};
use uuid::Uuid;

use super::drop_write::{DropWrite, LateBound};
use super::live_file::Counts;
use super::restore::Outset;
use super::session::Session;
use super::tuples::wanted;

/// What the statement wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    /// The snapshot that it made.
    pub snapshot_id: i64,
    /// The catalog's schema version in it.
    pub schema_version: i64,
    /// The sums over all tuples.
    pub counts: Counts,
    /// How many live files and vectors were to end and did not, for the server skipped their rows without
    /// an error, as where a trigger says so. Then all of it has to be rolled back.
    pub kept: i64,
}

/// Ends the files and their live vectors in a new snapshot; `None` if no file of the tuples is
/// live, and then nothing at all was written.
///
/// The commit lock must be held, in a READ COMMITTED transaction. Every writer of file rows
/// holds that lock, so what this statement's snapshot shows as live stays so; only the
/// hydrator updates rows without it, and such a row is waited for up to the transaction's
/// `lock_timeout` (SQLSTATE 55P03 then), its newest version is re-read, and ended.
///
/// The candidates are the planned files, which cannot have changed their tuple, and the files of the
/// same tuples that came after planning: these all have ids from the outset's counter on, so the primary
/// key finds them whatever the size of the table. A late file that nobody has examined is ended only as
/// far as `without_late` and `late_bound` say. With vectors it is the same: their ids come from the
/// same counter, a planned file has the planned vector or one with an id from it on, and
/// no file is asked for its vector under the lock but a late one.
///
/// The answer is one short row: a client that stops reading cannot hold the lock by it. What each tuple
/// gave is counted from the rows as they were ended, and is in the drop history, to be read after COMMIT.
pub async fn write_drop(
    connection: &mut Session,
    write: &DropWrite<'_>,
) -> sqlx::Result<Option<Written>> {
    run_or_prepare(connection, write, false).await
}

/// Has the server parse the statement of [`write_drop`], so that the first write of a session is
/// one round trip under the lock and not two. Asks for nothing where that was done before.
pub async fn prepare_write(connection: &mut Session) -> sqlx::Result<()> {
    let outset = Outset { counter: 0, head: None };
    let nothing = DropWrite::of_nothing((0, 0, Uuid::nil()), outset);
    run_or_prepare(connection, &nothing, true).await.map(|_| ())
}

async fn run_or_prepare(
    connection: &mut Session,
    write: &DropWrite<'_>,
    only_prepare: bool,
) -> sqlx::Result<Option<Written>> {
    let (ids, tuple_numbers): (Vec<i64>, Vec<i32>) = write.files.iter().copied().unzip();
    let late_from = if write.is_piece { i64::MAX } else { write.outset.counter };
    let vector_ids: Vec<i64> = write.vectors.iter().map(|vector| vector.delete_file_id).collect();
    let vector_files: Vec<i64> = write.vectors.iter().map(|vector| vector.data_file_id).collect();
    let vector_tuples: Vec<i32> = write.vectors.iter().map(|vector| vector.tuple_no).collect();
    // The planned files are not read before they are written. That the snapshot is made only if something
    // ends is decided by a look that stops at the first live candidate (`bumped`); the update (`ended`) repeats
    // the condition for each. Both see the same: they are parts of one statement and so of one state,
    // `end_snapshot` is written under the commit lock alone, and of a row that the hydrator has changed
    // since, the newest version is looked at, whose `end_snapshot` is the same.
    //
    // Each file and vector is found by its own key, whatever the planner believes of the tables. With no or
    // old statistics it would rather read all live files of the table and compare each with each candidate,
    // which at 10,000 of both takes a minute under the lock. So no condition but the key leads to a row, and
    // none makes the planner expect few of them:
    // - `table_id + 0` is no column of an index, so that no index of the table's files can be used;
    // - `= c.live`, which is always true, and `c.table_id` come from the list, as no constants: `end_snapshot is
    //   null` by itself would lead to the index of live rows, and so it stands in `coalesce` where there is no list;
    // - `offset 0` keeps a look-up by key from being made a join.
    // For the same reason no two lists are joined: the tuple of a late file is looked up in one object of all
    // the wanted ones (`numbers`), the file of a new vector in the ordered list of the planned ones, by halving
    // (`width_bucket`).
    let statement = sqlx::query!(
        r#"with numbers as materialized (
             select pg_catalog.jsonb_object_agg(
                      (item ->> 'spec_id'::text) || ' '::text || (item -> 'tuple'::text)::text,
                      ordinal - 1) as by_tuple
             from pg_catalog.jsonb_array_elements($5::jsonb) with ordinality as w (item, ordinal)
             where not (ordinal - 1)::int = any($18::int[])
           ),
           late as materialized (
             select f.data_file_id, k.tuple_no::int as tuple_no
             from hog_data_file f
             cross join lateral (
               select (select by_tuple from numbers) ->> (f.spec_id::text || ' '::text ||
                 (select pg_catalog.jsonb_agg(pg_catalog.jsonb_build_array(v.key_index, v.value)
                                              order by v.key_index)
                  from hog_file_partition_value v
                  where v.catalog_id = f.catalog_id and v.data_file_id = f.data_file_id)::text)
                 as tuple_no offset 0) as k
             where f.catalog_id = $1 and f.data_file_id >= $6 and f.table_id + 0 = $2
               and coalesce(f.end_snapshot, -1) = -1 and f.file_format = 'parquet'
               -- Statistics are looked up for files of the tuples alone.
               and case when k.tuple_no is null then false
                        when $19::bigint is null then true
                        else coalesce(tailrace.latest_row(f.catalog_id, f.data_file_id, $19,
                                                          $20, $21) <= $22, true) end
           ),
           candidates as materialized (
             select $1::bigint as catalog_id, $2::bigint as table_id, true as live,
                    data_file_id, tuple_no
             from (select data_file_id, tuple_no
                   from unnest($3::bigint[], $4::int[]) as p (data_file_id, tuple_no)
                   -- Those that planning met later are asked once more: they may have got statistics.
                   where case when data_file_id < $23 or $19::bigint is null then true
                              else coalesce(tailrace.latest_row($1, data_file_id, $19, $20, $21)
                                            <= $22, true) end
                   union all
                   select data_file_id, tuple_no from late
                   union all
                   select data_file_id, null from hog_data_file
                   where $12 and catalog_id = $1 and table_id = $2 and end_snapshot is null
                     and file_format = 'parquet') as all_of_them
           ),
           bumped as (
             update hog_catalog
             set last_snapshot_id = last_snapshot_id + 1,
                 schema_version = schema_version + case when $13 then 1 else 0 end
             where catalog_id = $1 and exists (
               select from candidates c
               cross join lateral (
                 select table_id, end_snapshot from hog_data_file
                 where catalog_id = c.catalog_id and data_file_id = c.data_file_id offset 0) as f
               where f.table_id = c.table_id and f.end_snapshot is null)
             returning last_snapshot_id as snapshot_id, schema_version
           ),
           snapshot as (
             insert into hog_snapshot (catalog_id, snapshot_id, snapshot_time, schema_version,
                                       author, commit_message)
             select $1, snapshot_id, pg_catalog.clock_timestamp(), schema_version, $7, $8
             from bumped
             returning snapshot_id, snapshot_time, schema_version
           ),
           change as (
             insert into hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
             select $1, snapshot_id, kind, $2 from snapshot,
               pg_catalog.unnest(case when $13 then array['table_deleted_from', 'table_altered']
                           else array['table_deleted_from'] end) as kind
           ),
           -- The snapshot is asked for by itself: joined, it would be copied for every file.
           ended as (
             update hog_data_file f set end_snapshot = (select snapshot_id from bumped)
             from candidates c
             where exists (select from bumped)
               and f.catalog_id = c.catalog_id and f.data_file_id = c.data_file_id
               and f.table_id + 0 = c.table_id and (f.end_snapshot is null) = c.live
             returning c.tuple_no, f.record_count, f.file_size_bytes, f.data_file_id
           ),
           vectors as materialized (
             select $1::bigint as catalog_id, true as live, v.delete_file_id, v.tuple_no
             from (select delete_file_id, data_file_id, tuple_no
                   from unnest($14::bigint[], $15::bigint[], $16::int[])
                     as p (delete_file_id, data_file_id, tuple_no)
                   union all
                   select d.delete_file_id, d.data_file_id,
                          ($4::int[])[pg_catalog.width_bucket(d.data_file_id, $3::bigint[])]
                   from hog_delete_file d
                   where d.catalog_id = $1 and d.delete_file_id >= $17
                     and coalesce(d.end_snapshot, -1) = -1
                     and ($3::bigint[])[pg_catalog.width_bucket(d.data_file_id, $3::bigint[])]
                         = d.data_file_id
                   union all
                   select d.delete_file_id, l.data_file_id, l.tuple_no
                   from late l
                   cross join lateral (
                     select delete_file_id, end_snapshot from hog_delete_file
                     where catalog_id = $1 and data_file_id = l.data_file_id offset 0) as d
                   where d.end_snapshot is null
                   union all
                   select delete_file_id, data_file_id, null from hog_delete_file
                   where $12 and catalog_id = $1 and table_id = $2 and end_snapshot is null) as v
             cross join lateral (
               select table_id, end_snapshot from hog_data_file
               where catalog_id = $1 and data_file_id = v.data_file_id offset 0) as f
             where f.table_id = $2 and f.end_snapshot is null
               and case when v.data_file_id < $23 or $19::bigint is null then true
                        else coalesce(tailrace.latest_row($1, v.data_file_id, $19, $20, $21)
                                      <= $22, true) end
           ),
           ended_vectors as (
             update hog_delete_file d set end_snapshot = (select snapshot_id from bumped)
             from vectors v
             where exists (select from bumped)
               and d.catalog_id = v.catalog_id and d.delete_file_id = v.delete_file_id
               and (d.end_snapshot is null) = v.live
             returning v.tuple_no, d.delete_file_id
           ),
           -- What ended is uncorrelated, and so hashed: only what did not is looked up, which is nothing,
           -- or what others ended since it was planned.
           kept as (
             select (
               select pg_catalog.count(*) from candidates c
               cross join lateral (
                 select table_id, end_snapshot from hog_data_file
                 where catalog_id = c.catalog_id and data_file_id = c.data_file_id offset 0) as f
               where c.data_file_id not in (select data_file_id from ended)
                 and f.table_id = c.table_id and f.end_snapshot is null
             ) + (
               select pg_catalog.count(*) from vectors v
               cross join lateral (
                 select end_snapshot from hog_delete_file
                 where catalog_id = v.catalog_id and delete_file_id = v.delete_file_id offset 0) as d
               where v.delete_file_id not in (select delete_file_id from ended_vectors)
                 and d.end_snapshot is null
             ) as number
           ),
           per_tuple as (
             select tuple_no, pg_catalog.sum(files)::bigint as files,
                    pg_catalog.sum(delete_files)::bigint as delete_files,
                    least(pg_catalog.sum(records), 9223372036854775807)::bigint as records,
                    least(pg_catalog.sum(bytes), 9223372036854775807)::bigint as bytes
             from (select tuple_no, pg_catalog.count(*) as files, 0 as delete_files,
                          pg_catalog.sum(record_count) as records,
                          pg_catalog.sum(file_size_bytes) as bytes
                   from ended group by tuple_no
                   union all
                   select tuple_no, 0, pg_catalog.count(*), 0, 0 from ended_vectors
                   group by tuple_no) as parts
             group by tuple_no
           ),
           totals as (
             select coalesce(pg_catalog.sum(files), 0)::bigint as files,
                    coalesce(pg_catalog.sum(delete_files), 0)::bigint as delete_files,
                    least(coalesce(pg_catalog.sum(records), 0), 9223372036854775807)::bigint as records,
                    least(coalesce(pg_catalog.sum(bytes), 0), 9223372036854775807)::bigint as bytes,
                    coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                      'spec_id', $5::jsonb -> p.tuple_no -> 'spec_id'::text,
                      'tuple', $5::jsonb -> p.tuple_no -> 'tuple'::text, 'files', p.files,
                      'delete_files', p.delete_files, 'records', p.records, 'bytes', p.bytes)
                      order by p.tuple_no), '[]') as partitions
             from per_tuple p
           ),
           history as (
             insert into tailrace.drop_history (catalog_id, snapshot_id, drop_id, table_id,
                 table_uuid, policy_revision, dropped_at, files_ended, delete_files_ended,
                 records, bytes, partitions)
             select $1, s.snapshot_id, $9, $2, $10, $11, s.snapshot_time, t.files,
                    t.delete_files, t.records, t.bytes, t.partitions
             from snapshot s, totals t
           )
           select coalesce(s.snapshot_id) as "snapshot_id!",
                  coalesce(s.schema_version) as "schema_version!", t.files as "files!",
                  t.delete_files as "delete_files!", t.records as "records!", t.bytes as "bytes!",
                  k.number as "kept!"
           from snapshot s, totals t, kept k"#,
        write.catalog_id,
        write.table_id,
        &ids,
        &tuple_numbers,
        wanted(&write.tuples) as _,
        late_from,
        write.author,
        write.message,
        write.drop_id,
        write.table_uuid,
        write.policy_revision,
        write.whole_table,
        write.fence,
        &vector_ids,
        &vector_files,
        &vector_tuples,
        write.outset.counter,
        &write.without_late,
        write.late_bound.map(|bound| bound.field_id),
        write.late_bound.is_some_and(|bound| bound.units.micros),
        write.late_bound.is_some_and(|bound| bound.units.nanos),
        write.late_bound.map_or(i64::MAX, LateBound::cutoff_micros),
        write.examined_below
    );
    if only_prepare {
        connection.prepare(statement.sql()).await?;
        return Ok(None);
    }
    let row = statement.fetch_optional(connection).await?;
    Ok(row.map(|row| Written {
        snapshot_id: row.snapshot_id,
        schema_version: row.schema_version,
        counts: Counts {
            files: row.files,
            delete_files: row.delete_files,
            records: row.records,
            bytes: row.bytes,
        },
        kept: row.kept,
    }))
}
