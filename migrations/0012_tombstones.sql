-- What names a table that is not there any more: the policy, the copies of its specs, the types of its
-- columns. A catalog that is being restored is empty for a moment, and one that was restored to an earlier
-- time gives table ids anew. So such a row is of one incarnation of a table, never of an id alone, and
-- where the incarnation is not in the catalog the row stays for history.keep: a tombstone, which is in
-- force again when the same incarnation is back.

-- `gone_seen_at` is when a pass first saw that the incarnation is not there, null while it is; it says
-- when the row may be deleted and nothing else. What is in force is asked of the catalog itself.
-- The names are those under which the table was last seen: they tell whose policy it was, and no policy
-- follows them. `gone_told` is what was said of it: that the table is gone, that another table of its name
-- has no policy, or by a person, who took that one's policy away, that it needs none.
alter table tailrace.policy
  add column gone_seen_at timestamptz,
  add column gone_told text,
  add column catalog_name text,
  add column namespace_name text,
  add column table_name text,
  add constraint policy_gone_told check (gone_told in ('gone', 'orphaned', 'settled'));
alter table tailrace.spec_copy
  add column table_uuid uuid,
  add column gone_seen_at timestamptz;
alter table tailrace.source_column_type
  add column table_uuid uuid,
  add column gone_seen_at timestamptz;

-- The same of a catalog, for what we remember of catalogs.
alter table tailrace.clock_memory add column gone_seen_at timestamptz;

-- The incarnation of what is there: the catalog knows it, else the policy; of the rest nobody knows of
-- which table it was. The catalog is read only where there is something to ask it.
do $migration$
begin
  if exists (select from tailrace.spec_copy) or exists (select from tailrace.source_column_type)
     or exists (select from tailrace.policy) then
    update tailrace.spec_copy c set table_uuid = t.table_uuid
    from hog_table t where t.catalog_id = c.catalog_id and t.table_id = c.table_id;
    update tailrace.source_column_type c set table_uuid = t.table_uuid
    from hog_table t where t.catalog_id = c.catalog_id and t.table_id = c.table_id;
    update tailrace.policy p
    set catalog_name = k.catalog, namespace_name = k.namespace, table_name = k.name
    from (
      select distinct on (v.catalog_id, v.table_id)
             t.catalog_id, t.table_id, t.table_uuid, c.name as catalog, n.name as namespace, v.name
      from hog_table_version v
      join hog_table t on t.catalog_id = v.catalog_id and t.table_id = v.table_id
      join hog_catalog c on c.catalog_id = v.catalog_id
      join hog_namespace n on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
      order by v.catalog_id, v.table_id, v.begin_snapshot desc) as k
    where k.catalog_id = p.catalog_id and k.table_id = p.table_id and k.table_uuid = p.table_uuid;
  end if;
end
$migration$;
update tailrace.spec_copy c set table_uuid = p.table_uuid
from tailrace.policy p
where c.table_uuid is null and p.catalog_id = c.catalog_id and p.table_id = c.table_id;
update tailrace.source_column_type c set table_uuid = p.table_uuid
from tailrace.policy p
where c.table_uuid is null and p.catalog_id = c.catalog_id and p.table_id = c.table_id;
delete from tailrace.spec_copy where table_uuid is null;
delete from tailrace.source_column_type where table_uuid is null;

alter table tailrace.policy drop constraint policy_pkey;
alter table tailrace.policy add primary key (catalog_id, table_id, table_uuid, source);
alter table tailrace.spec_copy drop constraint spec_copy_pkey;
alter table tailrace.spec_copy add primary key (catalog_id, table_id, table_uuid, spec_id, fields);
alter table tailrace.source_column_type drop constraint source_column_type_pkey;
alter table tailrace.source_column_type
  add primary key (catalog_id, table_id, table_uuid, field_id, col_type);

-- As in 0004, texts of functions alone know the server's tables.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident((
    select n.nspname::text from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'hog_catalog'::pg_catalog.regclass::pg_catalog.oid)) || '.'::text;
begin

-- Every type that a column of the present incarnation was seen to have.
execute pg_catalog.replace($create$
create or replace function tailrace.column_types(
  catalog_id bigint, table_id bigint, field_id bigint)
returns text[]
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return array(
    select c.col_type from hoglake.hog_column c
    where c.catalog_id = $1 and c.table_id = $2 and c.field_id = $3
    union
    select k.col_type from tailrace.source_column_type k
    join hoglake.hog_table t on t.catalog_id = k.catalog_id and t.table_id = k.table_id
                            and t.table_uuid = k.table_uuid
    where k.catalog_id = $1 and k.table_id = $2 and k.field_id = $3);
end
$$
$create$::text, 'hoglake.'::text, hoglake);

-- The rules of 0009, of the copies that are of the present incarnation.
execute pg_catalog.replace($create$
create or replace function tailrace.window_rules(catalog_id bigint, table_id bigint, source_field_id bigint)
returns table (
  spec_id bigint, arity int, positions int[], key_indexes int[], transforms text[],
  own_kinds text[], other_kinds text[], earlier_domains text[], is_trusted boolean)
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  return query
  with incarnation as (
    select t.table_uuid, t.created_snapshot from hoglake.hog_table t
    where t.catalog_id = $1 and t.table_id = $2
  ),
  seen as (
    select s.spec_id, (
      select coalesce(jsonb_agg(jsonb_build_object(
                 'key_index', f.key_index, 'source_field_id', f.source_field_id,
                 'transform', f.transform, 'transform_param', f.transform_param)
               order by f.key_index), '[]')
      from hoglake.hog_partition_field f
      where f.catalog_id = s.catalog_id and f.table_id = s.table_id
        and f.spec_id = s.spec_id) as fields, s.begin_snapshot, false as is_trusted,
      false as is_reused
    from hoglake.hog_partition_spec s
    where s.catalog_id = $1 and s.table_id = $2
    union all
    select c.spec_id, c.fields, c.begin_snapshot, c.trusted_at is not null, c.is_reused
    from tailrace.spec_copy c
    where c.catalog_id = $1 and c.table_id = $2
      and c.table_uuid = (select i.table_uuid from incarnation i)
  ),
  known as (
    select s.spec_id, min(jsonb_array_length(s.fields)) as arity,
           count(distinct s.fields) > 1 or count(distinct s.begin_snapshot) > 1
             or bool_or(s.is_reused) as is_disputed,
           bool_or(s.is_trusted) as is_trusted,
           coalesce(bool_or(s.begin_snapshot = (
             select i.created_snapshot from incarnation i)), false) as began_with_table,
           lag(s.spec_id) over (order by s.spec_id) as id_before
    from seen s group by s.spec_id
  ),
  spec as (
    -- An id with a minus is that of a copy which a restore took back: no file has it, and it has no
    -- predecessor.
    select k.*, bool_or(k.spec_id > 0 and not k.began_with_table
                        and k.id_before + 1 is distinct from k.spec_id)
                  over (order by k.spec_id) as lacks_predecessor
    from known k
  ),
  part as (
    select s.spec_id, s.is_disputed, s.is_trusted, s.lacks_predecessor,
           jsonb_array_length(d.fields) as arity, e.position::int,
           (e.field ->> 'key_index')::int as key_index,
           (e.field ->> 'source_field_id')::bigint as source_field_id,
           e.field ->> 'transform' as transform,
           (e.field ->> 'transform_param')::bigint as transform_param
    from (select distinct n.spec_id, n.fields from seen n) as d
    join spec s on s.spec_id = d.spec_id
    cross join lateral jsonb_array_elements(d.fields) with ordinality as e (field, position)
  ),
  source as (
    select i.source_field_id, tailrace.column_types($1, $2, i.source_field_id) as types
    from (select distinct p.source_field_id from part p where p.transform = 'identity') as i
  ),
  field as (
    select p.*, p.source_field_id = $3 as is_source,
           tailrace.kinds_of_field(p.transform, t.types) as kinds,
           tailrace.domains_of_field(p.transform, p.transform_param, t.types,
                                     p.source_field_id = $3) as domains
    from part p left join source t on t.source_field_id = p.source_field_id
  ),
  time_field as (
    select f.*, (
             select coalesce(string_agg(distinct k.kind, ','), '')
             from field o cross join lateral unnest(o.kinds) as k (kind)
             where o.is_source and o.arity = f.arity and o.key_index = f.key_index
               and not k.kind = any(f.kinds)) as other_kinds,
           case when f.is_trusted then '' when f.lacks_predecessor then 'any' else (
             select coalesce(string_agg(distinct d.domain, ','), '')
             from field o cross join lateral unnest(o.domains) as d (domain)
             where o.arity = f.arity and o.key_index = f.key_index
               and (o.is_disputed or o.spec_id < f.spec_id)
               and (o.source_field_id, o.transform, o.transform_param)
                   is distinct from (f.source_field_id, f.transform, f.transform_param))
           end as earlier_domains
    from field f
    where f.is_source and not f.is_disputed and f.kinds <> '{}'
  )
  select s.spec_id, s.arity,
         coalesce(array_agg(f.position order by f.position) filter (where f.spec_id is not null), '{}'),
         coalesce(array_agg(f.key_index order by f.position) filter (where f.spec_id is not null), '{}'),
         coalesce(array_agg(f.transform order by f.position) filter (where f.spec_id is not null), '{}'),
         coalesce(array_agg(array_to_string(f.kinds, ',') order by f.position)
           filter (where f.spec_id is not null), '{}'),
         coalesce(array_agg(f.other_kinds order by f.position) filter (where f.spec_id is not null), '{}'),
         coalesce(array_agg(f.earlier_domains order by f.position)
           filter (where f.spec_id is not null), '{}'),
         s.is_trusted
  from spec s left join time_field f on f.spec_id = s.spec_id
  group by s.spec_id, s.arity, s.is_trusted;
end
$$
$create$::text, 'hoglake.'::text, hoglake);

-- The window of 0009, by the policy of the present incarnation: of the policies of a table id that was
-- given twice, and of one whose table is not there, the others count for nothing. One key more is looked
-- up for it.
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
         r.own_kinds, r.other_kinds, r.earlier_domains, r.is_trusted, p.table_uuid
    into rule
  from tailrace.policy p
  join hoglake.hog_table t on t.catalog_id = p.catalog_id and t.table_id = p.table_id
                          and t.table_uuid = p.table_uuid
  left join (
    tailrace.window_rule r
    join hoglake.hog_catalog c on c.catalog_id = r.catalog_id
                              and c.schema_version = r.schema_version)
    on r.catalog_id = p.catalog_id and r.table_id = p.table_id and r.spec_id = $3
   and r.table_uuid = p.table_uuid and r.source_field_id = p.source_field_id
  where p.catalog_id = $1 and p.table_id = $2
  order by p.source desc limit 1;
  if not found then
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
