-- The newest so many distinct time values that have a live file stay whatever their age.
alter table tailrace.policy add column keep_last integer check (keep_last > 0);

-- Whether the policy of a table that is in force keeps its newest values. Which these are, no statement of the window
-- tells: nothing of such a table is in it.
create function tailrace.keeps_newest(catalog_id bigint, table_id bigint, table_uuid uuid)
returns boolean
language sql stable parallel safe set search_path = pg_catalog, pg_temp as $$
  select exists (
    select from tailrace.policy p
    where p.catalog_id = $1 and p.table_id = $2 and p.table_uuid = $3 and p.keep_last is not null
      and (p.source = 'stored' or not exists (
             select from tailrace.policy o
             where o.catalog_id = $1 and o.table_id = $2 and o.table_uuid = $3
               and o.source = 'stored')))
$$;

-- As in 0004, texts of functions alone know the server's tables.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident((
    select n.nspname::text from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'hog_catalog'::pg_catalog.regclass::pg_catalog.oid)) || '.'::text;
begin

-- As 0016 has it, without tables whose policies keep the newest values.
execute pg_catalog.replace($create$
create or replace function tailrace.in_drop_window(
  catalog_id bigint, table_id bigint, spec_id bigint, partition_values text[],
  at timestamptz default clock_timestamp())
returns boolean
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  if not tailrace.in_window_of_policy($1, $2, $3, $4, $5) then
    return false;
  end if;
  return not exists (
    select from hoglake.hog_table t
    where t.catalog_id = $1 and t.table_id = $2
      and (tailrace.is_paused($1, $2, t.table_uuid) or tailrace.is_held($1, t.table_uuid, $3, $4)
           or tailrace.keeps_newest($1, $2, t.table_uuid)));
end
$$
$create$::text, 'hoglake.'::text, hoglake);

end
$migration$;

-- As 0016 has it, without tables whose policies keep the newest values.
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
  -- A tuple of no spec is held by those alone.
  where not tailrace.is_held(p.catalog_id, p.table_uuid, null, null)
    and not tailrace.keeps_newest(p.catalog_id, p.table_id, p.table_uuid)
$$;
