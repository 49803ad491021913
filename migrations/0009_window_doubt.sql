-- The drop window by the rules of src/window as the passes have them now: another reading is put
-- aside only if it starts more than 366 days ahead, and a value that may be none of the policy's
-- column is in no window (src/window/spec_judge.rs).

-- Rules kept under the earlier rules are never used again: the next renewal keeps new ones, and until
-- then they are worked out. `earlier_domains` is, for each time field, what earlier specs can have
-- stored in its place, as tailrace.may_have_stored reads it; empty where no value is doubtful.
delete from tailrace.window_rule;
alter table tailrace.window_rule
  drop column buckets,
  add column earlier_domains text[] not null,
  add column is_trusted boolean not null;

-- What a field of a spec can have stored (src/window/domain.rs): a list of `any`, of ranges of
-- integers as FIRST..LAST, and of types of ISO texts as tailrace.partition_range reads them. `types`
-- are the types that its column was seen to have. With `beside_times`, what is read as a time of the
-- field's own column is left out. No partition value with a range of time is a time of day.
create function tailrace.domains_of_field(
  transform text, transform_param bigint, types text[], beside_times boolean)
returns text[]
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  if transform in ('year', 'month', 'day', 'hour') then
    return case when beside_times then '{}'::text[]
                else array['-9223372036854775808..9223372036854775807'] end;
  elsif transform = 'bucket' and transform_param is not null then
    return array['0..'::text || (transform_param - 1)::text];
  elsif transform <> 'identity' or coalesce(cardinality(types), 0) = 0 then
    return array['any'];
  end if;
  return array(
    select case t.col_type
             when 'int8' then '-128..127'
             when 'int16' then '-32768..32767'
             when 'int' then '-2147483648..2147483647'
             when 'long' then '-9223372036854775808..9223372036854775807'
             when 'timestamp_ns' then '-9223372036854775808..9223372036854775807'
             when 'uint8' then '0..255'
             when 'uint16' then '0..65535'
             when 'uint32' then '0..4294967295'
             -- Beyond 63 bits no integer has a range of time.
             when 'uint64' then '0..9223372036854775807'
             when 'date' then 'date'
             when 'timestamp_s' then 'timestamp'
             when 'timestamp_ms' then 'timestamp'
             when 'timestamp' then 'timestamp'
             when 'timestamptz' then 'timestamptz'
             else 'any'
           end
    from unnest(types) as t (col_type)
    where t.col_type <> 'time'
      and not (beside_times and t.col_type in (
        'date', 'timestamp_s', 'timestamp_ms', 'timestamp', 'timestamptz', 'timestamp_ns')));
end
$$;

-- Whether a text that has a range of time may be one of `domains`, the elements of
-- tailrace.domains_of_field with commas between them.
create function tailrace.may_have_stored(domains text, value text) returns boolean
language plpgsql immutable strict parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  domain text;
begin
  foreach domain in array string_to_array(domains, ',') loop
    if domain = 'any' then
      return true;
    elsif domain in ('date', 'timestamp', 'timestamptz') then
      if tailrace.partition_range(domain, value) is not null then
        return true;
      end if;
    elsif value collate "C" ~ '^(0|-?[1-9][0-9]{0,18})$' then
      if value::numeric between split_part(domain, '..', 1)::numeric
                            and split_part(domain, '..', 2)::numeric then
        return true;
      end if;
    end if;
  end loop;
  return false;
end
$$;

-- It returns other columns than before, so it cannot be replaced.
drop function tailrace.window_rules(bigint, bigint, bigint);

-- As in 0004, texts of functions alone know the server's tables.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident((
    select n.nspname::text from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'hog_catalog'::pg_catalog.regclass::pg_catalog.oid)) || '.'::text;
begin

-- How the tuples of a table read under a policy on one of its columns, by everything known of its
-- specs: what the catalog has, and our copies of what it deleted. One row per spec id; an id with
-- several definitions, or that was given to two specs, is as good as unknown, and has no time field, as one of another column has.
--
-- `own_kinds` are those of the field itself, `other_kinds` the further ones that the place ever had
-- (a stale writer stores values of another transform under the live spec's id), each a list with
-- commas. `earlier_domains` is what other definitions of the place can have stored beside times of the
-- policy's column: those of earlier specs, and those of an id with several, for nobody knows what was
-- before. It is `any` where a predecessor of the spec is not known (a spec that did not begin with
-- its table, the id before which nobody knows), and empty for a spec that an operator vouched for.
--
-- With a search_path of its own it is no part of the plan of a query that asks it, so it keeps a plan
-- itself, and the same for all tables: making one takes several times as long as running it.
execute pg_catalog.replace($create$
create function tailrace.window_rules(catalog_id bigint, table_id bigint, source_field_id bigint)
returns table (
  spec_id bigint, arity int, positions int[], key_indexes int[], transforms text[],
  own_kinds text[], other_kinds text[], earlier_domains text[], is_trusted boolean)
language plpgsql stable parallel safe
set search_path = pg_catalog, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  return query
  with seen as (
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
  ),
  known as (
    select s.spec_id, min(jsonb_array_length(s.fields)) as arity,
           count(distinct s.fields) > 1 or count(distinct s.begin_snapshot) > 1
             or bool_or(s.is_reused) as is_disputed,
           bool_or(s.is_trusted) as is_trusted,
           coalesce(bool_or(s.begin_snapshot = (
             select t.created_snapshot from hoglake.hog_table t
             where t.catalog_id = $1 and t.table_id = $2)), false) as began_with_table,
           lag(s.spec_id) over (order by s.spec_id) as id_before
    from seen s group by s.spec_id
  ),
  spec as (
    select k.*, bool_or(not k.began_with_table
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

-- Brings the kept rules of a catalog up to date; the daemon does, at each renewal of its leases and
-- when a policy is set. `schema_version` is read before what it stands for: should that change in
-- between, the rows are of another time, and nothing worse.
--
-- What changes the rules without DDL is noticed here alone: a spec that was trusted, and a copy that
-- was told its begin_snapshot. Both only take doubt away, so a rule that is older says no more often.
execute pg_catalog.replace($create$
create or replace function tailrace.keep_window_rules(catalog_id bigint) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $$
  delete from tailrace.window_rule r
  where r.catalog_id = $1 and not exists (
    select from tailrace.enforcing_policies() p
    where p.catalog_id = r.catalog_id and p.table_id = r.table_id);
  insert into tailrace.window_rule as kept (
    catalog_id, table_id, spec_id, table_uuid, schema_version, source_field_id, lead_ms,
    min_keep_seconds, arity, positions, own_kinds, other_kinds, earlier_domains, is_trusted)
  select p.catalog_id, p.table_id, r.spec_id, p.table_uuid, c.schema_version, p.source_field_id,
         p.lead_ms, p.min_keep_seconds, r.arity, r.positions, r.own_kinds, r.other_kinds,
         r.earlier_domains, r.is_trusted
  from tailrace.enforcing_policies() p
  join hoglake.hog_catalog c on c.catalog_id = p.catalog_id
  cross join lateral tailrace.window_rules(p.catalog_id, p.table_id, p.source_field_id) as r
  where p.catalog_id = $1
  on conflict (catalog_id, table_id, spec_id) do update
  set table_uuid = excluded.table_uuid, schema_version = excluded.schema_version,
      source_field_id = excluded.source_field_id, lead_ms = excluded.lead_ms,
      min_keep_seconds = excluded.min_keep_seconds, arity = excluded.arity,
      positions = excluded.positions, own_kinds = excluded.own_kinds,
      other_kinds = excluded.other_kinds, earlier_domains = excluded.earlier_domains,
      is_trusted = excluded.is_trusted
  where (kept.table_uuid, kept.schema_version, kept.source_field_id, kept.lead_ms,
         kept.min_keep_seconds, kept.arity, kept.positions, kept.own_kinds, kept.other_kinds,
         kept.earlier_domains, kept.is_trusted)
     is distinct from
        (excluded.table_uuid, excluded.schema_version, excluded.source_field_id, excluded.lead_ms,
         excluded.min_keep_seconds, excluded.arity, excluded.positions, excluded.own_kinds,
         excluded.other_kinds, excluded.earlier_domains, excluded.is_trusted);
$$
$create$::text, 'hoglake.'::text, hoglake);

-- Whether a tuple is in the drop window at a time: its range, and that of every other reading which
-- begins by 366 days later, ends at or before `window_before`. It is the decision of src/window.rs
-- at `at` plus the lead, by the same rules: doubt says no. No files are known here, so nothing that
-- they would prove is asked. `partition_values` are the stored texts in the order of key_index, null
-- for a null partition.
--
-- Asked once per file or partition of a plan, so one statement by three primary keys has to do
-- where the kept rule is of this time: whatever DDL there was since has raised schema_version. Trust
-- is taken back by no command; where somebody does by hand, a rule that was kept by it is not used.
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
         r.own_kinds, r.other_kinds, r.earlier_domains, r.is_trusted
    into rule
  from tailrace.policy p
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
      where c.catalog_id = $1 and c.table_id = $2 and c.spec_id = $3 and c.trusted_at is not null);
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
