-- Our own objects; the hog_* tables are hoglake's and get no key, trigger or reference of ours.
-- Rows that name a table or catalog which is gone mean nothing and are purged by each pass.

-- One row: which schema the hog_* tables were found in when this was first set up.
create table tailrace.installation (
  only_row boolean primary key default true check (only_row),
  catalog_schema text not null,
  created_at timestamptz not null default clock_timestamp()
);

-- Revisions are never used twice, so that "unset, then set again" is a change too.
create sequence tailrace.policy_revision;

-- At most one stored policy and one mirror of the table's property per table; the stored wins.
-- `property_text` is what the mirror was read from; `problem` says why it is not followed, and
-- the row stays then, for it remembers which column the field meant when it was first seen.
create table tailrace.policy (
  catalog_id bigint not null,
  table_id bigint not null,
  source text not null check (source in ('stored', 'property')),
  table_uuid uuid not null,
  field text not null,
  source_field_id bigint not null,
  keep text not null,
  keep_seconds bigint not null check (keep_seconds > 0),
  mode text not null check (mode in ('enforce', 'observe', 'paused')),
  property_text text check ((source = 'property') = (property_text is not null)),
  problem text check (source = 'property' or problem is null),
  revision bigint not null,
  updated_at timestamptz not null default clock_timestamp(),
  updated_by text not null,
  primary key (catalog_id, table_id, source)
);

-- What each partition spec said, kept because expiry deletes specs that live files still name.
-- `fields` is an array of {key_index, source_field_id, transform, transform_param} by key index.
-- It is part of the key: should a server give the id of a deleted spec to another one, both stay
-- known, and the files of that id are kept.
create table tailrace.spec_copy (
  catalog_id bigint not null,
  table_id bigint not null,
  spec_id bigint not null,
  fields jsonb not null,
  copied_at timestamptz not null default clock_timestamp(),
  primary key (catalog_id, table_id, spec_id, fields)
);

-- Every type that the source column of a spec was seen to have: it decides how identity texts read.
create table tailrace.source_column_type (
  catalog_id bigint not null,
  table_id bigint not null,
  field_id bigint not null,
  col_type text not null,
  copied_at timestamptz not null default clock_timestamp(),
  primary key (catalog_id, table_id, field_id, col_type)
);

-- One row per snapshot of ours, written in the drop's own transaction: the only proof of what
-- a drop did when the answer to its COMMIT was lost. `partitions` is an array of
-- {spec_id, tuple: [[key_index, value], ...], files, delete_files, records, bytes}.
create table tailrace.drop_history (
  catalog_id bigint not null,
  snapshot_id bigint not null,
  drop_id uuid not null unique,
  table_id bigint not null,
  table_uuid uuid not null,
  policy_revision bigint,
  dropped_at timestamptz not null,
  files_ended bigint not null,
  delete_files_ended bigint not null,
  records bigint not null,
  bytes bigint not null,
  partitions jsonb not null,
  primary key (catalog_id, snapshot_id)
);
create index drop_history_by_age on tailrace.drop_history (dropped_at);
