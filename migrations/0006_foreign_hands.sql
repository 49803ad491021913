-- Nobody else's functions and operators: whoever asks for the window, by whatever search_path, has
-- it worked out by those of pg_catalog alone. Each text of a function from here on keeps to that: it
-- either comes with this search_path, or names the schema of every function and operator.

alter function tailrace.partition_range(text, text) set search_path = pg_catalog, pg_temp;
alter function tailrace.kinds_of_field(text, text[]) set search_path = pg_catalog, pg_temp;
alter function tailrace.column_types(bigint, bigint, bigint) set search_path = pg_catalog, pg_temp;
alter function tailrace.window_rules(bigint, bigint, bigint) set search_path = pg_catalog, pg_temp;
alter function tailrace.keep_window_rules(bigint) set search_path = pg_catalog, pg_temp;
alter function tailrace.in_drop_window(bigint, bigint, bigint, text[], timestamptz)
  set search_path = pg_catalog, pg_temp;

-- With a search_path of its own a function is no part of the plan of a query that asks it, and of
-- these two such a query wants few rows: as it is, a question of in_drop_window to which no kept rule
-- is at hand would read all policies. So they name the schema instead.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident(
    coalesce((select i.catalog_schema from tailrace.installation i),
             pg_catalog.current_schema()::text)) || '.'::text;
begin

execute pg_catalog.replace($create$
create or replace function tailrace.enforcing_policies()
returns table (
  catalog_id bigint, table_id bigint, table_uuid uuid, source_field_id bigint, keep_seconds bigint,
  lead_ms bigint, min_keep_seconds bigint)
language sql stable parallel safe as $$
  select p.catalog_id, p.table_id, p.table_uuid, p.source_field_id, p.keep_seconds, s.lead_ms,
         s.min_keep_seconds
  from tailrace.policy p
  join hoglake.hog_table t
    on t.catalog_id operator(pg_catalog.=) p.catalog_id
   and t.table_id operator(pg_catalog.=) p.table_id
   and t.table_uuid operator(pg_catalog.=) p.table_uuid and t.dropped_snapshot is null
  cross join tailrace.window_setting s
  where p.mode operator(pg_catalog.=) 'enforce'::text and p.problem is null
    and p.keep_seconds operator(pg_catalog.>=) s.min_keep_seconds
    and (p.source operator(pg_catalog.=) 'stored'::text or not exists (
           select from tailrace.policy o
           where o.catalog_id operator(pg_catalog.=) p.catalog_id
             and o.table_id operator(pg_catalog.=) p.table_id
             and o.source operator(pg_catalog.=) 'stored'::text
             and o.table_uuid operator(pg_catalog.=) p.table_uuid))
    and exists (
      select from hoglake.hog_table_version v
      join hoglake.hog_namespace n
        on n.catalog_id operator(pg_catalog.=) v.catalog_id
       and n.namespace_id operator(pg_catalog.=) v.namespace_id
      where v.catalog_id operator(pg_catalog.=) p.catalog_id
        and v.table_id operator(pg_catalog.=) p.table_id and v.end_snapshot is null
        and not n.dropped)
$$
$create$, 'hoglake.', hoglake);

end
$migration$;

create or replace function tailrace.drop_window_at(at timestamptz)
returns table (
  catalog_id bigint, table_id bigint, spec_id bigint, key_index int, transform text,
  source_field_id bigint, expired_before timestamptz, window_before timestamptz)
language sql stable parallel safe as $$
  select p.catalog_id, p.table_id, r.spec_id, f.key_index, f.transform, p.source_field_id,
         k.expired_before,
         k.expired_before operator(pg_catalog.+) pg_catalog.make_interval(
           secs => (p.lead_ms::numeric operator(pg_catalog./) 1000.0)::double precision)
  from tailrace.enforcing_policies() p
  cross join lateral (
    select at operator(pg_catalog.-) pg_catalog.make_interval(
             secs => p.keep_seconds::double precision) as expired_before) as k
  cross join lateral tailrace.window_rules(p.catalog_id, p.table_id, p.source_field_id) as r
  cross join lateral unnest(r.key_indexes, r.transforms) as f (key_index, transform)
$$;
