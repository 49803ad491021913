-- Copies an existing catalog with all its contents several times; see filling.rs.

begin;
set local synchronous_commit = off;
set local session_replication_role = replica;

insert into hog_catalog (name, data_path, last_snapshot_id, schema_version, next_table_id, next_file_id,
                         next_namespace_id)
select c.name || '-' || n, c.data_path || '-' || n, c.last_snapshot_id, c.schema_version,
       c.next_table_id, c.next_file_id, c.next_namespace_id
from hog_catalog c, generate_series(2, :times) n
where c.catalog_id = :catalog_id
order by n;

-- Column by column as they are, but for the catalog, and for what tells one table from every other.
do $$ declare
  copied text;
  columns text;
  selected text;
begin
  foreach copied in array array[
    'hog_snapshot', 'hog_snapshot_change', 'hog_namespace', 'hog_table', 'hog_table_version', 'hog_column',
    'hog_table_stats', 'hog_partition_spec', 'hog_partition_field', 'hog_data_file',
    'hog_file_partition_value', 'hog_file_column_stats', 'hog_delete_file']
  loop
    select string_agg(quote_ident(attname), ', ' order by attnum),
           string_agg(case attname when 'catalog_id' then 'n.catalog_id'
                                   when 'table_uuid' then 'gen_random_uuid()'
                                   else 'r.' || quote_ident(attname) end, ', ' order by attnum)
      into columns, selected
    from pg_attribute
    where attrelid = copied::regclass and attnum > 0 and not attisdropped;
    execute format(
      'insert into %s (%s) select %s from hog_catalog n cross join %s r
       where r.catalog_id = :catalog_id and n.catalog_id <> r.catalog_id order by n.catalog_id',
      copied, columns, selected, copied);
  end loop;
end $$;

commit;
