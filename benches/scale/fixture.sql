-- Fills the tables of a catalog, or adds further files to them; see filling.rs.

begin;

set local work_mem = '1GB';
set local synchronous_commit = off;
-- No look-up for each reference: what is written here fits together.
set local session_replication_role = replica;
select setseed(0.27);

create temporary table tuple (table_id bigint, arrival float8, tuple_values text[], files int,
                              upper_bound bytea)
  on commit drop;
-- The newest row is of the last microsecond of the first hour; eight bytes, the lowest first.
insert into tuple (table_id, arrival, tuple_values, files, upper_bound)
select t.table_id, t.arrival, t.tuple_values, t.files,
       decode(regexp_replace(h.digits, '(..)(..)(..)(..)(..)(..)(..)(..)', '\8\7\6\5\4\3\2\1'),
              'hex')
from (:tuples) as t (table_id, arrival, tuple_values, files)
cross join lateral (
  select lpad(to_hex((t.arrival * 86400000000)::bigint + 3599999999), 16, '0')) as h (digits);

create temporary table incoming on commit drop as
select c.next_file_id - 1 + a.n as data_file_id,
       c.last_snapshot_id + 1 + (a.n - 1) / :files_of_a_snapshot as snapshot_id,
       a.table_id, a.tuple_values, a.upper_bound, a.records, a.bytes, a.has_vector,
       s.next_row_id + sum(a.records) over (partition by a.table_id order by a.n) - a.records
         as row_id_start
from (select row_number() over (order by t.arrival + :disorder * random()
               + case when random() < 0.02 then 3 * random() else 0 end) as n,
             t.table_id, t.tuple_values, t.upper_bound, 1000 + (random() * 100000)::bigint as records,
             100000 + (random() * 500000000)::bigint as bytes, random() < 0.01 as has_vector
      from tuple t, generate_series(1, t.files)) a
join hog_catalog c on c.catalog_id = :catalog_id
join hog_table_stats s on s.catalog_id = c.catalog_id and s.table_id = a.table_id;

-- Indexes are made afterwards, for it takes a tenth of the time; primary keys are filled in order.
create temporary table later on commit drop as
select i.indexrelid::regclass::text as name, pg_get_indexdef(i.indexrelid) as definition
from pg_index i
where i.indrelid in ('hog_data_file'::regclass, 'hog_file_partition_value'::regclass)
  and not i.indisprimary
  and (select last_snapshot_id < 100 from hog_catalog where catalog_id = :catalog_id);
do $$ declare dropped text; begin
  for dropped in select name from later loop execute 'drop index ' || dropped; end loop;
end $$;

insert into hog_snapshot (catalog_id, snapshot_id, snapshot_time, schema_version, author)
select :catalog_id, s.snapshot_id,
       now() - interval ':span' * ((s.last - s.snapshot_id + 1)::float8 / (s.last - s.first + 2)),
       c.schema_version, 'fixture'
from (select snapshot_id, min(snapshot_id) over () as first, max(snapshot_id) over () as last
      from (select distinct snapshot_id from incoming) d) s,
     hog_catalog c
where c.catalog_id = :catalog_id;

insert into hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
select distinct :catalog_id, snapshot_id, 'table_inserted_into', table_id from incoming;

insert into hog_data_file (catalog_id, data_file_id, table_id, begin_snapshot, path, record_count,
                           file_size_bytes, footer_size, row_id_start, spec_id)
select :catalog_id, i.data_file_id, i.table_id, i.snapshot_id,
       's3://lake/lake/' || t.table_uuid || '/' || gen_random_uuid() || '.parquet',
       i.records, i.bytes, 8192, i.row_id_start, 1
from incoming i
join hog_table t on t.catalog_id = :catalog_id and t.table_id = i.table_id
order by i.data_file_id;

insert into hog_file_partition_value (catalog_id, data_file_id, key_index, value)
select :catalog_id, i.data_file_id, v.place - 1, v.value
from incoming i, unnest(i.tuple_values) with ordinality as v (value, place)
order by i.data_file_id, v.place;

-- Statistics of the one column whose time counts.
insert into hog_file_column_stats (catalog_id, data_file_id, field_id, value_count, null_count,
                                   upper_bound)
select :catalog_id, i.data_file_id, c.field_id, i.records, 0, i.upper_bound
from incoming i
join hog_column c on c.catalog_id = :catalog_id and c.table_id = i.table_id and c.name = ':column'
order by i.data_file_id;

do $$ declare made text; begin
  for made in select definition from later loop execute made; end loop;
end $$;

update hog_table_stats s
set record_count = s.record_count + i.records, next_row_id = s.next_row_id + i.records,
    file_size_bytes = s.file_size_bytes + i.bytes
from (select table_id, sum(records) as records, sum(bytes) as bytes from incoming group by 1) i
where s.catalog_id = :catalog_id and s.table_id = i.table_id;

update hog_catalog c
set next_file_id = i.file_id + 1, last_snapshot_id = i.snapshot_id
from (select max(data_file_id) as file_id, max(snapshot_id) as snapshot_id from incoming) i
where c.catalog_id = :catalog_id;

-- One commit with all the vectors.
insert into hog_snapshot (catalog_id, snapshot_id, snapshot_time, schema_version, author)
select catalog_id, last_snapshot_id + 1, now(), schema_version, 'fixture'
from hog_catalog where catalog_id = :catalog_id;

insert into hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
select distinct :catalog_id, c.last_snapshot_id + 1, 'table_deleted_from', i.table_id
from incoming i, hog_catalog c
where c.catalog_id = :catalog_id and i.has_vector;

insert into hog_delete_file (catalog_id, delete_file_id, table_id, data_file_id, begin_snapshot,
                             path, delete_count, file_size_bytes)
select :catalog_id, c.next_file_id - 1 + row_number() over (order by i.data_file_id),
       i.table_id, i.data_file_id, c.last_snapshot_id + 1,
       's3://lake/lake/' || t.table_uuid || '/' || gen_random_uuid() || '.puffin', 10, 256
from incoming i
join hog_catalog c on c.catalog_id = :catalog_id
join hog_table t on t.catalog_id = c.catalog_id and t.table_id = i.table_id
where i.has_vector;

update hog_catalog c
set next_file_id = c.next_file_id + (select count(*) from incoming where has_vector),
    last_snapshot_id = c.last_snapshot_id + 1
where c.catalog_id = :catalog_id;

commit;
