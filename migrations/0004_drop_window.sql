-- The drop window as data, for whoever plans or samples files: what policies have dropped or are
-- about to drop. Whoever asks needs the rights of docs/integration.md; nothing here runs with its
-- owner's.

-- One row, written by the daemon when it leases files: what of its configuration the window is
-- made of. A policy that keeps less than `min_keep_seconds` is not in force.
create table tailrace.window_setting (
  only_row boolean primary key default true check (only_row),
  lead_ms bigint not null default 86400000 check (lead_ms >= 0),
  min_keep_seconds bigint not null default 3600 check (min_keep_seconds >= 0)
);
insert into tailrace.window_setting default values;

-- What window_rules says of each spec, as of a schema_version of the catalog, kept because working
-- it out takes longer than a question may. A row that is missing or of another time is no error:
-- it is worked out anew then. The arrays have one element per time field of the policy's column.
create table tailrace.window_rule (
  catalog_id bigint not null,
  table_id bigint not null,
  spec_id bigint not null,
  table_uuid uuid not null,
  schema_version bigint not null,
  source_field_id bigint not null,
  lead_ms bigint not null,
  min_keep_seconds bigint not null,
  arity int not null,
  positions int[] not null,
  own_kinds text[] not null,
  other_kinds text[] not null,
  buckets bigint[] not null,
  primary key (catalog_id, table_id, spec_id)
);

-- By whom the files of a catalog's window are leased in hog_compaction_claim: one id per catalog,
-- the same for every daemon, so that any of them renews and releases what another one left.
create table tailrace.claimant (
  catalog_id bigint primary key,
  claimant uuid not null unique default gen_random_uuid()
);

-- The range of a stored text as {start, end}, in microseconds since 1970 (a nanosecond more is
-- rounded up to the next one, for both are only compared with instants of whole microseconds);
-- null where it has none. `kind` is year, month, day, hour, or the type of an identity field's
-- column: date, timestamp (timestamp_s and timestamp_ms are read alike), timestamptz, timestamp_ns.
--
-- The rules are those of src/transform.rs. Every text may occur, so nothing is cast before its
-- form is known, and nothing here raises.
create function tailrace.partition_range(kind text, value text) returns bigint[]
language plpgsql immutable strict parallel safe as $$
declare
  number bigint;
  months int;
  day int;
  micros bigint;
  fraction int;
begin
  if kind in ('day', 'hour', 'month', 'year') then
    -- No range that a timestamptz holds has an ordinal of more digits.
    if not value collate "C" ~ '^(0|-?[1-9][0-9]{0,9})$' then
      return null;
    end if;
    number := value::bigint;
    if kind = 'day' then
      if number between -2440588 and 106751990 then
        return array[number * 86400000000, (number + 1) * 86400000000];
      end if;
    elsif kind = 'hour' then
      if number between -58574112 and 2562047787 then
        return array[number * 3600000000, (number + 1) * 3600000000];
      end if;
    else
      months := case kind when 'year' then 12 else 1 end;
      number := number * months;
      if number between -80185 and 3507324 - months then
        return array[
          (extract(epoch from timestamp '1970-01-01'
             + make_interval(months => number::int)) * 1000000)::bigint,
          (extract(epoch from timestamp '1970-01-01'
             + make_interval(months => number::int + months)) * 1000000)::bigint];
      end if;
    end if;
    return null;
  end if;
  if kind = 'timestamp_ns' then
    if not value collate "C" ~ '^(0|-?[1-9][0-9]{0,18})$'
       or not value::numeric between -9223372036854775808 and 9223372036854775807 then
      return null;
    end if;
    number := value::bigint;
    -- Division cuts towards zero, which is up for what is negative.
    micros := number / 1000 + (number % 1000 > 0)::int;
    return array[micros, micros];
  end if;
  if kind = 'date' then
    if not value collate "C" ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$' then
      return null;
    end if;
  elsif kind = 'timestamp' then
    if not value collate "C" ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?$' then
      return null;
    end if;
  elsif kind = 'timestamptz' then
    if not value collate "C" ~ '^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$' then
      return null;
    end if;
  else
    return null;
  end if;
  -- A year 0, or a day that its month does not have, is no date.
  if left(value, 4) = '0000' then
    return null;
  end if;
  day := substr(value, 9, 2);
  if day > 28 and day > extract(day from
       make_date(left(value, 4)::int, substr(value, 6, 2)::int, 1) + interval '1 month - 1 day') then
    return null;
  end if;
  if kind = 'date' then
    micros := (left(value, 10)::date - date '1970-01-01') * 86400000000;
    return array[micros, micros + 86400000000];
  end if;
  micros := extract(epoch from left(value, 19)::timestamp) * 1000000;
  if substr(value, 20, 1) = '.' then
    fraction := rpad(substring(value collate "C" from '[.]([0-9]+)'), 9, '0');
    micros := micros + fraction / 1000 + (fraction % 1000 > 0)::int;
  end if;
  if kind = 'timestamptz' and right(value, 1) <> 'Z' and right(value, 5) <> '00:00' then
    number := substr(right(value, 5), 1, 2)::bigint * 3600 + right(value, 2)::int * 60;
    if substr(right(value, 6), 1, 1) = '-' then
      number := -number;
    end if;
    micros := micros - number * 1000000;
  end if;
  return array[micros, micros];
end
$$;

-- The kinds of a field, as partition_range reads them; none for one that says nothing of time.
-- `types` are the types that its column was seen to have, which decide how identity texts read; the
-- order is that of src/transform.rs.
create function tailrace.kinds_of_field(transform text, types text[]) returns text[]
language plpgsql immutable parallel safe as $$
begin
  if transform in ('year', 'month', 'day', 'hour') then
    return array[transform];
  end if;
  if transform <> 'identity' then
    return '{}';
  end if;
  return case when 'date' = any(types) then array['date'] else '{}' end
      || case when types && array['timestamp', 'timestamp_s', 'timestamp_ms']
           then array['timestamp'] else '{}' end
      || case when 'timestamptz' = any(types) then array['timestamptz'] else '{}' end
      || case when 'timestamp_ns' = any(types) then array['timestamp_ns'] else '{}' end;
end
$$;

-- What follows reads hog_* tables, by the name of the schema that they are in now: hence the
-- replaced `hoglake.`. It is all in texts of functions, and the view stands on a function, for a
-- relation that Postgres knew to depend on a hog_* table would keep the server from altering it.
do $migration$
declare
  hoglake constant text := quote_ident(current_schema()) || '.';
begin

-- Every type that a column was seen to have.
execute replace($create$
create function tailrace.column_types(catalog_id bigint, table_id bigint, field_id bigint)
returns text[]
language plpgsql stable parallel safe as $$
begin
  return array(
    select c.col_type from hoglake.hog_column c
    where c.catalog_id = $1 and c.table_id = $2 and c.field_id = $3
    union
    select t.col_type from tailrace.source_column_type t
    where t.catalog_id = $1 and t.table_id = $2 and t.field_id = $3);
end
$$
$create$, 'hoglake.', hoglake);

-- How the tuples of a table read under a policy on one of its columns, by everything known of its
-- specs: what the catalog has, and our copies of what it deleted. One row per spec id; an id with
-- several definitions is as good as unknown, and has no time field, as one of another column has.
--
-- `own_kinds` are those of the field itself, `other_kinds` the further ones that the place ever had
-- (a stale writer stores values of another transform under the live spec's id), each a list with
-- commas; a text that is a number below `buckets` may be one of an older spec's buckets.
execute replace($create$
create function tailrace.window_rules(catalog_id bigint, table_id bigint, source_field_id bigint)
returns table (
  spec_id bigint, arity int, positions int[], key_indexes int[], transforms text[],
  own_kinds text[], other_kinds text[], buckets bigint[])
language sql stable parallel safe as $$
  with definition as (
    select s.spec_id, (
      select coalesce(jsonb_agg(jsonb_build_object(
                 'key_index', f.key_index, 'source_field_id', f.source_field_id,
                 'transform', f.transform, 'transform_param', f.transform_param)
               order by f.key_index), '[]')
      from hoglake.hog_partition_field f
      where f.catalog_id = s.catalog_id and f.table_id = s.table_id
        and f.spec_id = s.spec_id) as fields
    from hoglake.hog_partition_spec s
    where s.catalog_id = $1 and s.table_id = $2
    union
    select c.spec_id, c.fields from tailrace.spec_copy c
    where c.catalog_id = $1 and c.table_id = $2
  ),
  spec as (
    select d.spec_id, min(jsonb_array_length(d.fields)) as arity, count(*) > 1 as is_disputed
    from definition d group by d.spec_id
  ),
  field as (
    select d.spec_id, s.is_disputed, jsonb_array_length(d.fields) as arity, e.position::int,
           (e.field ->> 'key_index')::int as key_index,
           (e.field ->> 'source_field_id')::bigint = $3 as is_source,
           e.field ->> 'transform' as transform,
           (e.field ->> 'transform_param')::bigint as transform_param,
           tailrace.kinds_of_field(e.field ->> 'transform', t.types) as kinds
    from definition d
    join spec s on s.spec_id = d.spec_id
    cross join lateral (
      select case when d.fields @> '[{"transform": "identity"}]'
               then tailrace.column_types($1, $2, $3) end as types offset 0) as t
    cross join lateral jsonb_array_elements(d.fields) with ordinality as e (field, position)
  ),
  time_field as (
    select f.*, (
             select coalesce(string_agg(distinct k.kind, ','), '')
             from field o cross join lateral unnest(o.kinds) as k (kind)
             where o.is_source and o.arity = f.arity and o.key_index = f.key_index
               and not k.kind = any(f.kinds)) as other_kinds, (
             -- A writer is stale by a spec that was there before, or one of which nobody can tell.
             select coalesce(max(o.transform_param), 0) from field o
             where o.transform = 'bucket' and o.arity = f.arity and o.key_index = f.key_index
               and (o.is_disputed or o.spec_id < f.spec_id)) as buckets
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
         coalesce(array_agg(f.buckets order by f.position) filter (where f.spec_id is not null), '{}')
  from spec s left join time_field f on f.spec_id = s.spec_id
  group by s.spec_id, s.arity
$$
$create$, 'hoglake.', hoglake);

-- The policies that drop: of a stored one and the table's property the stored one counts, whatever
-- it says.
execute replace($create$
create function tailrace.enforcing_policies()
returns table (
  catalog_id bigint, table_id bigint, table_uuid uuid, source_field_id bigint, keep_seconds bigint,
  lead_ms bigint, min_keep_seconds bigint)
language sql stable parallel safe as $$
  select p.catalog_id, p.table_id, p.table_uuid, p.source_field_id, p.keep_seconds, s.lead_ms,
         s.min_keep_seconds
  from tailrace.policy p
  join hoglake.hog_table t on t.catalog_id = p.catalog_id and t.table_id = p.table_id
                          and t.table_uuid = p.table_uuid and t.dropped_snapshot is null
  cross join tailrace.window_setting s
  where p.mode = 'enforce' and p.problem is null and p.keep_seconds >= s.min_keep_seconds
    and (p.source = 'stored' or not exists (
           select from tailrace.policy o
           where o.catalog_id = p.catalog_id and o.table_id = p.table_id and o.source = 'stored'
             and o.table_uuid = p.table_uuid))
    and exists (
      select from hoglake.hog_table_version v
      join hoglake.hog_namespace n
        on n.catalog_id = v.catalog_id and n.namespace_id = v.namespace_id
      where v.catalog_id = p.catalog_id and v.table_id = p.table_id and v.end_snapshot is null
        and not n.dropped)
$$
$create$, 'hoglake.', hoglake);

-- Brings the kept rules of a catalog up to date; the daemon does, at each renewal of its leases and
-- when a policy is set. `schema_version` is read before what it stands for: should that change in
-- between, the rows are of another time, and nothing worse.
execute replace($create$
create function tailrace.keep_window_rules(catalog_id bigint) returns void
language sql volatile as $$
  delete from tailrace.window_rule r
  where r.catalog_id = $1 and not exists (
    select from tailrace.enforcing_policies() p
    where p.catalog_id = r.catalog_id and p.table_id = r.table_id);
  insert into tailrace.window_rule as kept (
    catalog_id, table_id, spec_id, table_uuid, schema_version, source_field_id, lead_ms,
    min_keep_seconds, arity, positions, own_kinds, other_kinds, buckets)
  select p.catalog_id, p.table_id, r.spec_id, p.table_uuid, c.schema_version, p.source_field_id,
         p.lead_ms, p.min_keep_seconds, r.arity, r.positions, r.own_kinds, r.other_kinds, r.buckets
  from tailrace.enforcing_policies() p
  join hoglake.hog_catalog c on c.catalog_id = p.catalog_id
  cross join lateral tailrace.window_rules(p.catalog_id, p.table_id, p.source_field_id) as r
  where p.catalog_id = $1
  on conflict (catalog_id, table_id, spec_id) do update
  set table_uuid = excluded.table_uuid, schema_version = excluded.schema_version,
      source_field_id = excluded.source_field_id, lead_ms = excluded.lead_ms,
      min_keep_seconds = excluded.min_keep_seconds, arity = excluded.arity,
      positions = excluded.positions, own_kinds = excluded.own_kinds,
      other_kinds = excluded.other_kinds, buckets = excluded.buckets
  where (kept.table_uuid, kept.schema_version, kept.source_field_id, kept.lead_ms,
         kept.min_keep_seconds, kept.arity, kept.positions, kept.own_kinds, kept.other_kinds,
         kept.buckets)
     is distinct from
        (excluded.table_uuid, excluded.schema_version, excluded.source_field_id, excluded.lead_ms,
         excluded.min_keep_seconds, excluded.arity, excluded.positions, excluded.own_kinds,
         excluded.other_kinds, excluded.buckets);
$$
$create$, 'hoglake.', hoglake);

-- Whether a tuple is in the drop window at a time: its range, and that of every other reading which
-- begins by then, ends at or before `window_before`. It is the decision of src/window.rs at `at`
-- plus the lead, by the same rules: doubt says no. `partition_values` are the stored texts in the
-- order of key_index, null for a null partition.
--
-- Asked once per file or partition of a plan, so one statement by three primary keys has to do
-- where the kept rule is of this time: whatever DDL there was since has raised schema_version.
execute replace($create$
create function tailrace.in_drop_window(
  catalog_id bigint, table_id bigint, spec_id bigint, partition_values text[],
  at timestamptz default clock_timestamp())
returns boolean
language plpgsql stable parallel safe as $$
declare
  rule record;
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
         r.own_kinds, r.other_kinds, r.buckets
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
  if rule.arity is null then
    select 'enforce' as mode, p.keep_seconds, null as problem, p.lead_ms, p.min_keep_seconds,
           r.arity, r.positions, r.own_kinds, r.other_kinds, r.buckets
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
        if range[2] > window_before and range[1] <= moment then
          return false;
        end if;
      end loop;
    end if;
    if rule.buckets[field] > 0 and value collate "C" ~ '^(0|[1-9][0-9]{0,9})$'
       and value::bigint < rule.buckets[field] then
      return false;
    end if;
  end loop;
  return true;
end
$$
$create$, 'hoglake.', hoglake);

end
$migration$;

-- What the window is at a time: for each time field of each known spec of a table with an enforcing
-- policy, before which instants its partitions are dropped, and will be within the lead. A
-- partition is in the window if that holds for all time fields of its spec. What a text may mean
-- beside that, in_drop_window knows.
create function tailrace.drop_window_at(at timestamptz)
returns table (
  catalog_id bigint, table_id bigint, spec_id bigint, key_index int, transform text,
  source_field_id bigint, expired_before timestamptz, window_before timestamptz)
language sql stable parallel safe as $$
  select p.catalog_id, p.table_id, r.spec_id, f.key_index, f.transform, p.source_field_id,
         at - make_interval(secs => p.keep_seconds),
         at - make_interval(secs => p.keep_seconds) + make_interval(secs => p.lead_ms / 1000.0)
  from tailrace.enforcing_policies() p
  cross join lateral tailrace.window_rules(p.catalog_id, p.table_id, p.source_field_id) as r
  cross join lateral unnest(r.key_indexes, r.transforms) as f (key_index, transform)
$$;

create view tailrace.drop_window as
select w.* from tailrace.drop_window_at(clock_timestamp()) as w;
