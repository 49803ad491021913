-- Copies an existing empty table several times, with the table ids after its own; see filling.rs.

begin;
set local session_replication_role = replica;

insert into hog_table (catalog_id, table_id, created_snapshot, next_field_id)
select t.catalog_id, t.table_id + n, t.created_snapshot, t.next_field_id
from hog_table t, generate_series(1, :times - 1) n
where t.catalog_id = :catalog_id and t.table_id = :table_id;

insert into hog_table_version (catalog_id, table_id, begin_snapshot, namespace_id, name)
select v.catalog_id, v.table_id + n, v.begin_snapshot, v.namespace_id, v.name || '_' || (n + 1)
from hog_table_version v, generate_series(1, :times - 1) n
where v.catalog_id = :catalog_id and v.table_id = :table_id;

insert into hog_table_stats (catalog_id, table_id)
select :catalog_id, :table_id + n from generate_series(1, :times - 1) n;

insert into hog_column (catalog_id, table_id, field_id, begin_snapshot, name, col_type, nullable, ordinal)
select c.catalog_id, c.table_id + n, c.field_id, c.begin_snapshot, c.name, c.col_type, c.nullable,
       c.ordinal
from hog_column c, generate_series(1, :times - 1) n
where c.catalog_id = :catalog_id and c.table_id = :table_id;

insert into hog_partition_spec (catalog_id, table_id, spec_id, begin_snapshot)
select s.catalog_id, s.table_id + n, s.spec_id, s.begin_snapshot
from hog_partition_spec s, generate_series(1, :times - 1) n
where s.catalog_id = :catalog_id and s.table_id = :table_id;

insert into hog_partition_field (catalog_id, table_id, spec_id, key_index, source_field_id, transform,
                                 transform_param)
select f.catalog_id, f.table_id + n, f.spec_id, f.key_index, f.source_field_id, f.transform,
       f.transform_param
from hog_partition_field f, generate_series(1, :times - 1) n
where f.catalog_id = :catalog_id and f.table_id = :table_id;

insert into hog_snapshot_change (catalog_id, snapshot_id, kind, object_id)
select c.catalog_id, c.snapshot_id, c.kind, c.object_id + n
from hog_snapshot_change c, generate_series(1, :times - 1) n
where c.catalog_id = :catalog_id and c.object_id = :table_id and c.kind = 'table_created';

update hog_catalog set next_table_id = next_table_id + :times - 1 where catalog_id = :catalog_id;

commit;
