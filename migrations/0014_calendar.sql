-- The calendar: what falls due in each table, and when. It says where to look and never that a file may
-- go: each file is judged by its own spec, values and evidence when it is looked at, so a row that is
-- wrong or missing costs time until the next full pass, and nothing else.
--
-- Calendar, watermarks and what waits are written only in the session that holds the catalog's lease.
-- sweep_state and sweep_cursor are left in place, unread.

-- One row per spec and value of its first field on the policy's column, as live files were seen with it;
-- or, where those are too many to be told one by one, per spec and UTC day of ends.
create table tailrace.calendar (
  catalog_id bigint not null,
  table_uuid uuid not null,
  spec_id bigint not null,
  -- Whether it stands for all values whose ranges end after the beginning of the day `value`, and not
  -- after the beginning of the next one.
  is_day boolean not null,
  -- The stored value; the day as an ISO date.
  value text not null,
  -- When the range of the value ends; of a day the earliest of those that were seen.
  range_end timestamptz not null,
  -- When the last of its interpretations that count ends; of several files the earliest such end. With the
  -- policy's keep it is when the row falls due.
  last_end timestamptz not null,
  -- How long the range of one value is.
  span_seconds bigint not null,
  -- What is left of it waits: not before then is it looked at again.
  next_look timestamptz,
  primary key (catalog_id, table_uuid, spec_id, is_day, value)
);
create index calendar_due on tailrace.calendar (catalog_id, table_uuid, last_end)
  where next_look is null;
create index calendar_paused on tailrace.calendar (catalog_id, table_uuid, next_look)
  where next_look is not null;

-- One row per table that passes have looked at, of this incarnation.
create table tailrace.table_state (
  catalog_id bigint not null,
  table_uuid uuid not null,
  table_id bigint not null,
  -- The column whose times the calendar has.
  source_field_id bigint not null,
  -- The watermark: the values of all files that began up to `through_snapshot`, and of those of later
  -- snapshots with ids below `files_below`, are in the calendar, but for what a first reading under way
  -- has not come to.
  through_snapshot bigint not null,
  files_below bigint not null,
  -- A digest of all that is known of the table's specs and column types, by which the rows were judged,
  -- and of the rules of the program.
  book bytea not null,
  -- Specs whose rows stand for days of ends.
  day_specs bigint[] not null default '{}',
  -- Specs of files that were met and could not be dated, for what they mean was not known.
  unknown_specs bigint[] not null default '{}',
  -- The time by which the last full pass that came to its end decided, and whether another one is owed.
  full_pass_at timestamptz,
  owes_full_pass boolean not null default false,
  -- How far a reading of all of the table's live files has come; null where none is under way.
  reading jsonb,
  -- What stays of the table and why, as the last finished reading counted it, and when.
  census jsonb,
  census_at timestamptz,
  -- Of the last pass that looked at everything that was due: its cutoff, the policy's revision, and the
  -- revision of guards.
  looked_through timestamptz,
  policy_revision bigint,
  guard_revision bigint not null default 0,
  -- What that pass met of the table: the catalog's schema_version, what of names, specs and columns it moves
  -- with, and the text of the table's property.
  schema_version bigint,
  shape text,
  property text,
  -- How the last pass over the table ended, with what it said; null where it was not through.
  outcome text,
  error text,
  -- Files of which nobody can tell when they expire, and of no spec with a time field, as last counted.
  undatable_files bigint,
  uncovered_files bigint,
  -- By reason, how many tuples wait beside those of tailrace.waiting; and what was refused together.
  waiting_more jsonb not null default '{}',
  waiting_parts jsonb not null default '[]',
  -- How often in a row what was due was not looked at, and the time before which that wakes nobody.
  unlooked integer not null default 0,
  quiet_until timestamptz,
  -- When a pass first saw that the table is gone.
  gone_seen_at timestamptz,
  primary key (catalog_id, table_uuid)
);

-- What has expired in a table and stays all the same (src/sweep/waiting.rs), for this incarnation of the
-- table under any policy and any rules.
create table tailrace.waiting (
  catalog_id bigint not null,
  table_uuid uuid not null,
  -- The SHA-256 of spec and tuple: a value may be longer than an index takes.
  tuple_hash bytea not null,
  spec_id bigint not null,
  -- {keys, values}, as the files have them.
  tuple jsonb not null,
  display text not null,
  reason text not null,
  since timestamptz not null,
  attempts integer not null,
  last_look timestamptz not null,
  next_look timestamptz,
  said text,
  error text,
  files bigint not null,
  range_end timestamptz not null,
  primary key (catalog_id, table_uuid, tuple_hash)
);

-- One row per catalog: what passes noted of it as a whole.
create table tailrace.catalog_state (
  catalog_id bigint primary key,
  -- The catalog's schema_version when its specs were copied last.
  specs_copied_at_version bigint,
  -- The newest snapshot_time of all snapshots up to this one.
  newest_through bigint,
  newest_time timestamptz
);
