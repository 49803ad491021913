//! Which live files a list of tuples has, and what they amount to.
//!
//! A file is matched by its spec and its whole tuple, as [`super::discovery`] says.

use sqlx::PgConnection;

use super::discovery::{Counts, TupleOfSpec, wanted};

/// The live files of the tuples with ids from `from_id` on, as (file id, index into `tuples`),
/// oldest id first; at most `limit` of them.
///
/// The lookup index finds the files by the value at `lead`, a position in each tuple (null or
/// not). Each file's whole tuple is put together once and looked up among the wanted ones, so that
/// the work is that of the files and not of files times tuples: thousands of tuples may share a day.
pub async fn files_of(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
    tuples: &[TupleOfSpec],
    lead: &[usize],
    from_id: i64,
    limit: i64,
) -> sqlx::Result<Vec<(i64, i32)>> {
    let lead_of = |wanted: &TupleOfSpec, position: usize| {
        let tuple = &wanted.tuple;
        (tuple.keys.get(position).copied(), tuple.values.get(position).cloned().flatten())
    };
    let (lead_keys, lead_values): (Vec<Option<i32>>, Vec<Option<String>>) =
        tuples.iter().zip(lead).map(|(tuple, position)| lead_of(tuple, *position)).unzip();
    let rows = sqlx::query!(
        r#"with leads as materialized (
             select distinct lead_key, lead_value
             from unnest($4::int[], $5::text[]) as l (lead_key, lead_value)
           ),
           hits as materialized (
             select v.data_file_id from leads l
             join hog_file_partition_value v
               on v.catalog_id = $1 and v.key_index = l.lead_key and v.value = l.lead_value
              and v.data_file_id >= $7
             union
             select v.data_file_id from leads l
             join hog_file_partition_value v
               on v.catalog_id = $1 and v.key_index = l.lead_key and v.value is null
              and v.data_file_id >= $7
             where l.lead_value is null
           ),
           numbers as materialized (
             select jsonb_object_agg((item ->> 'spec_id') || ' ' || (item -> 'tuple'), ordinal - 1)
                    as by_tuple
             from jsonb_array_elements($3) with ordinality as w (item, ordinal)
           ),
           files as materialized (
             select f.data_file_id,
                    (select by_tuple from numbers) ->> (f.spec_id || ' ' ||
                      (select jsonb_agg(jsonb_build_array(a.key_index, a.value) order by a.key_index)
                       from hog_file_partition_value a
                       where a.catalog_id = f.catalog_id and a.data_file_id = f.data_file_id))
                    as tuple_no
             from hits h
             -- Each by its key: joined, all live files of the table might be read instead.
             cross join lateral (
               select catalog_id, data_file_id, table_id, spec_id, end_snapshot
               from hog_data_file
               where catalog_id = $1 and data_file_id = h.data_file_id offset 0) as f
             where f.table_id = $2 and f.end_snapshot is null
           )
           select data_file_id, tuple_no::int as "tuple_no!" from files
           where tuple_no is not null
           order by data_file_id
           limit $6"#,
        catalog_id,
        table_id,
        wanted(tuples) as _,
        &lead_keys as &[Option<i32>],
        &lead_values as &[Option<String>],
        limit,
        from_id
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| (row.data_file_id, row.tuple_no)).collect())
}

/// What each tuple's live files amount to, as (index into `tuples`, counts); tuples without any are
/// left out. Found as by [`files_of`].
pub async fn count_files(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
    tuples: &[TupleOfSpec],
    lead: &[usize],
) -> sqlx::Result<Vec<(i32, Counts)>> {
    let files = files_of(connection, catalog_id, table_id, tuples, lead, 0, i64::MAX).await?;
    let (ids, numbers): (Vec<i64>, Vec<i32>) = files.into_iter().unzip();
    let rows = sqlx::query!(
        r#"select p.tuple_no as "tuple_no!", count(*) as "files!",
                  count(d.delete_file_id) as "delete_files!",
                  sum(f.record_count)::bigint as "records!",
                  sum(f.file_size_bytes)::bigint as "bytes!"
           from unnest($2::bigint[], $3::int[]) as p (data_file_id, tuple_no)
           cross join lateral (
             select record_count, file_size_bytes, end_snapshot from hog_data_file
             where catalog_id = $1 and data_file_id = p.data_file_id offset 0) as f
           left join lateral (
             select delete_file_id, end_snapshot from hog_delete_file
             where catalog_id = $1 and data_file_id = p.data_file_id offset 0) as d
             on d.end_snapshot is null
           where f.end_snapshot is null
           group by p.tuple_no order by p.tuple_no"#,
        catalog_id,
        &ids,
        &numbers
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| {
            let counts = Counts {
                files: row.files,
                delete_files: row.delete_files,
                records: row.records,
                bytes: row.bytes,
            };
            (row.tuple_no, counts)
        })
        .collect())
}

/// How many live files the table has, of every spec and of none.
pub async fn count_live(
    connection: &mut PgConnection,
    catalog_id: i64,
    table_id: i64,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select count(*) as "files!" from hog_data_file
           where catalog_id = $1 and table_id = $2 and end_snapshot is null"#,
        catalog_id,
        table_id
    )
    .fetch_one(connection)
    .await
}
