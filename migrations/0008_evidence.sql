-- What proves that a file's partition values are what its spec says (src/window/evidence.rs).

-- `copied_at` is when a pass first saw the spec, by a clock that it acted by; null before that, where a
-- command copied it. `begin_snapshot` tells whether a spec began with its table;
-- `is_reused` that the id was given to a spec that began later, too. `mark_row_id` is the table's row-id
-- counter, and `mark_snapshot` a snapshot, once every writer should know this spec, as noted at
-- `marked_at`; `mark_due` is
-- when that will be where it is not `copied_at` and the window. A file with rows from `watched_from` on
-- that contradicts its values has the mark noted anew. `clock_epoch` is tailrace.clock_memory's as of
-- the copy. `trusted_*` say who vouched for the values of the spec's files.
alter table tailrace.spec_copy
  add column begin_snapshot bigint,
  add column is_reused boolean not null default false,
  add column clock_epoch bigint not null default 0,
  add column mark_row_id bigint,
  add column mark_snapshot bigint,
  add column mark_due timestamptz,
  add column marked_at timestamptz,
  add column watched_from bigint,
  add column trusted_at timestamptz,
  add column trusted_by text,
  add column trust_reason text,
  alter column copied_at drop not null,
  alter column copied_at drop default,
  add constraint spec_copy_mark check (mark_row_id is null or mark_due is null),
  add constraint spec_copy_trust
    check ((trusted_at is null) = (trusted_by is null) and (trusted_at is null) = (trust_reason is null));
create index spec_copy_unmarked on tailrace.spec_copy (catalog_id) where mark_row_id is null;

-- The latest instant, in microseconds since 1970, that a row at an upper bound of a column's
-- statistics may have: the end of the day for the four bytes of a date; for eight bytes the count as
-- microseconds or as nanoseconds, as the column's types say, and the later one where both may be.
-- Null for bytes of another length. What 64 bits of microseconds cannot hold is their largest.
create function tailrace.latest_of_bound(bound bytea, is_micros boolean, is_nanos boolean)
returns bigint
language plpgsql immutable parallel safe set search_path = pg_catalog, pg_temp as $$
declare
  days bigint;
  count bigint;
  micros bigint;
begin
  if length(bound) = 4 then
    days := ((get_byte(bound, 3) << 24) | (get_byte(bound, 2) << 16)
             | (get_byte(bound, 1) << 8) | get_byte(bound, 0))::bigint + 1;
    return case when days > 106751991 then 9223372036854775807
                when days < -106751991 then -9223372036854775808
                else days * 86400000000 end;
  end if;
  if bound is null or length(bound) <> 8 then
    return null;
  end if;
  count := 0;
  for at in reverse 7 .. 0 loop
    count := (count << 8) | get_byte(bound, at)::bigint;
  end loop;
  if is_nanos then
    -- Division cuts towards zero, which is up for what is negative.
    micros := count / 1000 + (count % 1000 > 0)::int;
  end if;
  if is_micros then
    micros := greatest(micros, count);
  end if;
  return micros;
end
$$;

-- The same for a file and a column, by their key; null where there is no bound. Its own function, so
-- that whoever has no right to the statistics can run a statement that does not ask for them.
do $migration$
declare
  hoglake constant text := pg_catalog.quote_ident((
    select n.nspname::text from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.oid = 'hog_file_column_stats'::pg_catalog.regclass::pg_catalog.oid)) || '.'::text;
begin
  execute pg_catalog.replace($create$
create function tailrace.latest_row(
  catalog_id bigint, data_file_id bigint, field_id bigint, is_micros boolean, is_nanos boolean)
returns bigint
language plpgsql stable parallel safe set search_path = pg_catalog, pg_temp as $$
begin
  return (select tailrace.latest_of_bound(s.upper_bound, $4, $5)
          from hoglake.hog_file_column_stats s
          where s.catalog_id = $1 and s.data_file_id = $2 and s.field_id = $3);
end
$$
$create$::text, 'hoglake.'::text, hoglake);
end
$migration$;
