-- What keeps every drop of ours from a table or a partition, whatever its policy says: pauses and holds.

-- One row for each catalog, from the first plan on. Whoever changes a pause or a hold raises the revision in
-- the same transaction. A drop is planned by a revision, reads it FOR SHARE under the commit lock, and goes on
-- only if it is still the same: a new row of the tables below can be seen in no other way.
create table tailrace.guard_state (
  catalog_id bigint primary key,
  revision bigint not null default 0,
  -- When a pause or a hold was taken away last.
  loosened_at timestamptz
);

-- A pause is of all catalogs where catalog_id is null, else of one catalog where table_uuid is null, else of
-- one table. It covers what it names by id, and also what bears the name that was paused.
create table tailrace.pause (
  pause_id bigint generated always as identity primary key,
  catalog_id bigint,
  catalog_name text,
  table_uuid uuid,
  namespace_name text,
  table_name text,
  reason text not null,
  paused_by text not null,
  paused_at timestamptz not null default pg_catalog.clock_timestamp(),
  check ((catalog_id is null) = (catalog_name is null)),
  check (catalog_id is not null or table_uuid is null),
  check ((table_uuid is null) = (namespace_name is null)
         and (table_uuid is null) = (table_name is null)),
  unique nulls not distinct (catalog_id, table_uuid)
);

-- A hold is of listed partitions, of those with a value in a column, or of a whole table where it names
-- neither. `partitions` is an array of {spec_id, values}, `until` the time at which it ends by itself.
create table tailrace.hold (
  hold_id bigint generated always as identity primary key,
  catalog_id bigint not null,
  table_id bigint not null,
  table_uuid uuid not null,
  catalog_name text not null,
  namespace_name text not null,
  table_name text not null,
  partitions jsonb,
  source_field_id bigint,
  column_name text,
  value text,
  reason text not null,
  held_by text not null,
  held_at timestamptz not null default pg_catalog.clock_timestamp(),
  until timestamptz,
  check (partitions is null or source_field_id is null),
  check ((source_field_id is null) = (column_name is null)
         and (source_field_id is null) = (value is null))
);
create index hold_of_table on tailrace.hold (catalog_id, table_uuid);

-- Whether a hold covers a tuple, as far as it can be told from spec and values alone: a hold on a column's
-- value covers all of the table here. As is_paused below it says yes or no by the rights of its owner: whoever
-- could ask in_drop_window before needs no right on the tables above.
create function tailrace.is_held(
  catalog_id bigint, table_uuid uuid, spec_id bigint, partition_values text[])
returns boolean
language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
  select exists (
    select from tailrace.hold h
    where h.catalog_id = $1 and h.table_uuid = $2
      and (h.until is null or h.until > clock_timestamp())
      and (h.partitions is null or exists (
             select from jsonb_array_elements(h.partitions) as p (item)
             where p.item = jsonb_build_object('spec_id', $3, 'values', to_jsonb($4)))))
$$;

-- As in 0004, texts of functions alone know the server's tables.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident((
    select n.nspname::text from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'hog_catalog'::pg_catalog.regclass::pg_catalog.oid)) || '.'::text;
begin

-- The pauses that cover a table, by its catalog's id, its own and its UUID.
execute pg_catalog.replace($create$
create function tailrace.pauses_of(bigint, bigint, uuid)
returns table (
  pause_id bigint, catalog_id bigint, catalog_name text, table_uuid uuid, namespace_name text,
  table_name text, reason text, paused_by text, paused_at timestamptz)
language sql stable parallel safe set search_path = pg_catalog, pg_temp as $$
  select p.pause_id, p.catalog_id, p.catalog_name, p.table_uuid, p.namespace_name, p.table_name,
         p.reason, p.paused_by, p.paused_at
  from tailrace.pause p
  where (p.catalog_id is null or p.catalog_id = $1 or exists (
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

create function tailrace.is_paused(catalog_id bigint, table_id bigint, table_uuid uuid)
returns boolean
language sql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from tailrace.pauses_of($1, $2, $3) as p)
$$;

-- The policies that drop: those of 0013 without those of paused tables.
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
      select from (select null::jsonb as properties) as absent
      cross join lateral (
        select v.catalog_id, v.table_id, v.namespace_id, v.end_snapshot, properties
        from hoglake.hog_table_version v) as v
      join hoglake.hog_namespace n
        on n.catalog_id operator(pg_catalog.=) v.catalog_id
       and n.namespace_id operator(pg_catalog.=) v.namespace_id
      where v.catalog_id operator(pg_catalog.=) p.catalog_id
        and v.table_id operator(pg_catalog.=) p.table_id and v.end_snapshot is null
        and not n.dropped
        and (p.source operator(pg_catalog.=) 'stored'::text
             or (v.properties operator(pg_catalog.->) 'partition_retention'::text)
                operator(pg_catalog.=) pg_catalog.to_jsonb(p.property_text)))
    and not tailrace.is_paused(p.catalog_id, p.table_id, p.table_uuid)
$$
$create$::text, 'hoglake.'::text, hoglake);

-- What the policy and the specs say of a tuple is asked as before; what they let go, pauses and holds may keep.
-- The function stays the object that views of others may name: what it was is made anew under another name.
execute pg_catalog.replace(
  pg_catalog.pg_get_functiondef(
    'tailrace.in_drop_window(bigint, bigint, bigint, text[], timestamptz)'::pg_catalog.regprocedure::pg_catalog.oid),
  'tailrace.in_drop_window('::text, 'tailrace.in_window_of_policy('::text);

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
      and (tailrace.is_paused($1, $2, t.table_uuid) or tailrace.is_held($1, t.table_uuid, $3, $4)));
end
$$
$create$::text, 'hoglake.'::text, hoglake);

end
$migration$;

-- As 0006 has it, without tables that a hold covers whole, or by a value of a column.
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
$$;

-- A pass of an earlier program that is under way heeds no pause and no hold: it gives up at its next commit, for it
-- finds another revision of its policy.
update tailrace.policy p set revision = r.revision
from (
  select o.catalog_id, o.table_id, o.table_uuid, o.source,
         pg_catalog.nextval('tailrace.policy_revision'::pg_catalog.regclass) as revision
  from (select * from tailrace.policy order by revision) as o) as r
where p.catalog_id = r.catalog_id and p.table_id = r.table_id and p.table_uuid = r.table_uuid
  and p.source = r.source;
