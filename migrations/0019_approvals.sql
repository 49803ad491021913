-- Approvals of partitions that are held for their number (src/guards/approval.rs). A drop that ends an approved
-- partition deletes its row in its own transaction.
create table tailrace.approval (
  approval_id bigint generated always as identity primary key,
  catalog_id bigint not null,
  table_id bigint not null,
  table_uuid uuid not null,
  catalog_name text not null,
  namespace_name text not null,
  table_name text not null,
  -- The rule and the policy's revision that the approver saw: under others it says nothing.
  rule text not null,
  policy_revision bigint not null,
  digest text not null,
  reason text,
  approved_by text not null,
  approved_at timestamptz not null default pg_catalog.clock_timestamp(),
  until timestamptz not null
);
create index approval_of_table on tailrace.approval (catalog_id, table_uuid);

create table tailrace.approved_partition (
  approval_id bigint not null,
  -- The SHA-256 of spec and values: a value may be longer than an index takes.
  partition_hash bytea not null,
  spec_id bigint not null,
  partition_values jsonb not null,
  -- How many files it had.
  files bigint not null,
  primary key (approval_id, partition_hash)
);
