-- What waits by what earlier programs remembered of it (tailrace.sweep_state.waiting), with its reason and
-- since when. What was only counted, and what was refused together, is found again by the next pass.
--
-- Whatever is stored there, this ends well: a tuple that cannot be read is passed over, and is found again
-- too. Done twice it changes nothing.
do $migration$
declare
  old record;
begin
  for old in
    select s.catalog_id, s.table_uuid, e.entry
    from tailrace.sweep_state s
    cross join lateral pg_catalog.jsonb_array_elements(
      case when pg_catalog.jsonb_typeof(s.waiting -> 'tuples'::text) = 'array'::text
        then s.waiting -> 'tuples'::text else '[]'::jsonb end) as e (entry)
    where pg_catalog.jsonb_typeof(s.waiting -> 'tuples'::text) = 'array'::text
  loop
    begin
      insert into tailrace.waiting (catalog_id, table_uuid, tuple_hash, spec_id, tuple, display, reason,
          since, attempts, last_look, next_look, said, error, files, range_end)
      select old.catalog_id, old.table_uuid,
             pg_catalog.sha256(pg_catalog.convert_to(
               t.spec_id::text || ' '::text || t.tuple::text, 'UTF8')),
             t.spec_id, t.tuple, t.entry ->> 'display'::text, t.entry ->> 'reason'::text,
             (t.entry ->> 'since'::text)::timestamptz,
             coalesce((t.entry ->> 'tries'::text)::integer, 0),
             (t.entry ->> 'seen_at'::text)::timestamptz,
             (t.entry ->> 'next_look'::text)::timestamptz,
             t.entry ->> 'said'::text, t.entry ->> 'error'::text,
             (t.entry ->> 'files'::text)::bigint, (t.entry ->> 'range_end'::text)::timestamptz
      from (
        select o.entry, (o.entry ->> 'spec_id'::text)::bigint as spec_id,
               pg_catalog.jsonb_build_object(
                 'keys', o.entry -> 'tuple'::text -> 'keys'::text,
                 'values', o.entry -> 'tuple'::text -> 'values'::text) as tuple
        from (select old.entry as entry) as o) as t
      where t.entry ->> 'reason'::text in ('poisoned', 'oversize', 'busy', 'ambiguous_spec',
                                           'newer_rows_than_partition')
        and not exists (
          select from pg_catalog.jsonb_array_elements(t.tuple -> 'keys'::text) as k (key)
          where pg_catalog.jsonb_typeof(k.key) <> 'number'::text)
        and not exists (
          select from pg_catalog.jsonb_array_elements(t.tuple -> 'values'::text) as v (value)
          where pg_catalog.jsonb_typeof(v.value) not in ('string', 'null'))
      on conflict (catalog_id, table_uuid, tuple_hash) do nothing;
    exception when others then
      null;
    end;
  end loop;
end
$migration$;
