-- A change by which partitions may be dropped earlier than before waits for guard.policy_grace.

-- Of a policy it waits until `pending_until`. The row has the terms that are in force until then; `pending` has those
-- that come, {keep, keep_seconds, keep_last, mode}. They are of the row with the revision `pending_revision` alone:
-- whatever else changes the row voids them.
alter table tailrace.policy
  add column pending jsonb,
  add column pending_until timestamptz,
  add column pending_revision bigint;
create index policy_pending on tailrace.policy (pending_until) where pending_until is not null;

-- When a pause that somebody resumed ends; null while nobody has.
alter table tailrace.pause add column until timestamptz;

-- As in 0004, texts of functions alone know the server's tables.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident((
    select n.nspname::text from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'hog_catalog'::pg_catalog.regclass::pg_catalog.oid)) || '.'::text;
begin

-- As 0016 has it, without pauses that are over.
execute pg_catalog.replace($create$
create or replace function tailrace.pauses_of(bigint, bigint, uuid)
returns table (
  pause_id bigint, catalog_id bigint, catalog_name text, table_uuid uuid, namespace_name text,
  table_name text, reason text, paused_by text, paused_at timestamptz)
language sql stable parallel safe set search_path = pg_catalog, pg_temp as $$
  select p.pause_id, p.catalog_id, p.catalog_name, p.table_uuid, p.namespace_name, p.table_name,
         p.reason, p.paused_by, p.paused_at
  from tailrace.pause p
  where (p.until is null or p.until > clock_timestamp())
    and (p.catalog_id is null or p.catalog_id = $1 or exists (
           select from hoglake.hog_catalog c
           where c.catalog_id = $1 and c.name = p.catalog_name))
    and (p.table_uuid is null or p.table_uuid = $3 or exists (
           select from hoglake.hog_table_version v
           join hoglake.hog_namespace n
             on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
           where v.catalog_id = $1 and v.table_id = $2 and v.end_snapshot is null and not n.dropped
             and n.name = p.namespace_name and v.name = p.table_name))
$$
$create$::text, 'hoglake.'::text, hoglake);

end
$migration$;
