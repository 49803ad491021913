-- What has expired in a table and stays all the same (src/sweep/waiting.rs). Unlike the rest of the
-- row it counts for this incarnation of the table under any policy and any rules.
--
-- An object: `tuples`, an array of at most 1,000 objects {spec_id, tuple, display, reason, since,
-- seen_at, next_look, tries, error, files, range_end}, and `more`, by reason how many further ones
-- there were. Null where nothing was ever noted.
alter table tailrace.sweep_state add column waiting jsonb;
