-- A mirror of a table's property is a policy for as long as the table has that very text.

-- When the last stored policy that won over a mirror was taken away; null where there was none. `updated_at`
-- says when the mirror was read, which may be before or after the property was in force.
alter table tailrace.policy
  add column took_over_at timestamptz,
  add constraint policy_took_over check (source = 'property' or took_over_at is null);

-- Where the property was removed or says something else by now, a mirror is in no window, and what it says
-- anew is in none before a pass or a renewal has read it: doubt says no. Servers before V11 have no
-- `properties`: in a sub-select of its table alone, beside a relation that has a null of that name, the name
-- means the one outside where the table has no such column.
--
-- As in 0004, texts of functions alone know the server's tables.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident((
    select n.nspname::text from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'hog_catalog'::pg_catalog.regclass::pg_catalog.oid)) || '.'::text;
begin

-- The policies that drop, as 0006 has them. It stays a part of the plan of a query that asks it.
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
$$
$create$::text, 'hoglake.'::text, hoglake);

-- The window of 0012. One more key is looked up for a mirror, and none for a stored policy.
execute pg_catalog.replace($create$
create or replace function tailrace.in_drop_window(
  catalog_id bigint, table_id bigint, spec_id bigint, partition_values text[],
  at timestamptz default clock_timestamp())
returns boolean
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  rule record;
  is_kept boolean;
  value text;
  kind text;
  range bigint[];
  first int;
  moment numeric;
  window_before bigint;
begin
  if $3 is null or $5 is null or array_ndims($4) is distinct from 1 then
    return false;
  end if;
  select p.mode, p.keep_seconds, p.problem, r.lead_ms, r.min_keep_seconds, r.arity, r.positions,
         r.own_kinds, r.other_kinds, r.earlier_domains, r.is_trusted, p.table_uuid,
         p.source = 'stored' or exists (
           select from (select null::jsonb as properties) as absent
           cross join lateral (
             select v.catalog_id, v.table_id, v.end_snapshot, properties
             from hoglake.hog_table_version v) as v
           where v.catalog_id = $1 and v.table_id = $2 and v.end_snapshot is null
             and v.properties -> 'partition_retention' = to_jsonb(p.property_text)) as is_present
    into rule
  from tailrace.policy p
  join hoglake.hog_table t on t.catalog_id = p.catalog_id and t.table_id = p.table_id
                          and t.table_uuid = p.table_uuid and t.dropped_snapshot is null
  left join (
    tailrace.window_rule r
    join hoglake.hog_catalog c on c.catalog_id = r.catalog_id
                              and c.schema_version = r.schema_version)
    on r.catalog_id = p.catalog_id and r.table_id = p.table_id and r.spec_id = $3
   and r.table_uuid = p.table_uuid and r.source_field_id = p.source_field_id
  where p.catalog_id = $1 and p.table_id = $2
  order by p.source desc limit 1;
  if not found or not rule.is_present then
    return false;
  end if;
  is_kept := rule.arity is not null;
  if rule.is_trusted then
    is_kept := exists (
      select from tailrace.spec_copy c
      where c.catalog_id = $1 and c.table_id = $2 and c.table_uuid = rule.table_uuid
        and c.spec_id = $3 and c.trusted_at is not null);
  end if;
  if not is_kept then
    select 'enforce' as mode, p.keep_seconds, null as problem, p.lead_ms, p.min_keep_seconds,
           r.arity, r.positions, r.own_kinds, r.other_kinds, r.earlier_domains
      into rule
    from tailrace.enforcing_policies() p
    cross join lateral tailrace.window_rules(p.catalog_id, p.table_id, p.source_field_id) as r
    where p.catalog_id = $1 and p.table_id = $2 and r.spec_id = $3;
    if not found then
      return false;
    end if;
  end if;
  if rule.mode <> 'enforce' or rule.problem is not null
     or rule.keep_seconds < rule.min_keep_seconds
     or rule.arity <> cardinality($4) or rule.positions = '{}' then
    return false;
  end if;

  -- Beyond what 64 bits hold of microseconds no range ends, nor does one begin.
  moment := extract(epoch from $5) * 1000000 + rule.lead_ms * 1000;
  window_before := least(greatest(moment - rule.keep_seconds * 1000000, -9223372036854775808),
                         9223372036854775807);
  first := array_lower($4, 1) - 1;
  for field in 1 .. cardinality(rule.positions) loop
    value := $4[first + rule.positions[field]];
    -- No text reads by two of the kinds that one field can have.
    range := null;
    foreach kind in array string_to_array(rule.own_kinds[field], ',') loop
      range := coalesce(range, tailrace.partition_range(kind, value));
    end loop;
    if range is null or range[2] > window_before then
      return false;
    end if;
    if rule.other_kinds[field] <> '' then
      foreach kind in array string_to_array(rule.other_kinds[field], ',') loop
        range := tailrace.partition_range(kind, value);
        -- 366 days of microseconds.
        if range[2] > window_before and range[1] <= moment + 31622400000000 then
          return false;
        end if;
      end loop;
    end if;
    if rule.earlier_domains[field] <> ''
       and tailrace.may_have_stored(rule.earlier_domains[field], value) then
      return false;
    end if;
  end loop;
  return true;
end
$$
$create$::text, 'hoglake.'::text, hoglake);

end
$migration$;
