-- Who changed the policies of a table, when, from what to what, and why. A row is written in the transaction that
-- changes the policy.
create table tailrace.policy_change (
  change_id bigint generated always as identity primary key,
  catalog_id bigint not null,
  table_id bigint not null,
  table_uuid uuid not null,
  catalog_name text not null,
  namespace_name text not null,
  table_name text not null,
  source text not null,
  -- The policy as {field, source_field_id, keep, mode, fence, problem}; null where there was none, or is none any more.
  before jsonb,
  after jsonb,
  changed_by text not null,
  changed_at timestamptz not null default pg_catalog.clock_timestamp(),
  reason text
);
create index policy_change_of_table on tailrace.policy_change (catalog_id, table_uuid, change_id);
