-- How far the sweeps of each table have come. These rows only ever save time: whatever they say,
-- a file goes only if its own spec and values say so when it is looked at, so a wrong row can
-- make a pass overlook what is expired, until the next full pass, and nothing else.

-- One row per table that a policy enforces. It counts for this incarnation, this revision of the
-- policy and these rules alone (`rules` is a digest of all that is known of the table's specs and
-- column types); under any other the next pass is a full one.
create table tailrace.sweep_state (
  catalog_id bigint not null,
  table_id bigint not null,
  table_uuid uuid not null,
  policy_revision bigint not null,
  rules bytea not null,
  -- The time by which the last full pass that came to its end decided.
  full_pass_at timestamptz,
  -- How far a reading of all of the table's live files has come; null where none is under way.
  reading jsonb,
  -- What stays of the table and why, as the last finished reading counted it, and when.
  census jsonb,
  census_at timestamptz,
  primary key (catalog_id, table_id)
);

-- One row per spec: every file of the table with an id below `files_below`, or in a snapshot up to
-- `through_snapshot` (both were read at one moment), in a partition that had expired by the cutoff
-- `expired_through`, was dealt with. `skipped` is an object of arrays: by key_index, the values of
-- partitions that had expired and stayed.
create table tailrace.sweep_cursor (
  catalog_id bigint not null,
  table_id bigint not null,
  spec_id bigint not null,
  files_below bigint not null,
  through_snapshot bigint not null,
  expired_through timestamptz not null,
  skipped jsonb not null default '{}',
  primary key (catalog_id, table_id, spec_id)
);
