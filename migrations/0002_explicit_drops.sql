-- The answers of explicit drops and truncates, each written in its drop's own transaction, so that
-- a client which lost one can ask again. `request` is the list of requested tuples in order,
-- {spec_id, partition_values} each, null for a truncate; `ended` is what `drop_history.partitions` is.
-- `default_spec_id` is the live spec at the time: what a request that names no spec meant.
create table tailrace.drop_receipt (
  catalog_id bigint not null,
  idempotency_key uuid not null,
  fingerprint bytea not null,
  default_spec_id bigint,
  request jsonb,
  snapshot_id bigint not null,
  schema_version bigint not null,
  committed boolean not null,
  files_ended bigint not null,
  delete_files_ended bigint not null,
  records bigint not null,
  bytes bigint not null,
  ended jsonb not null,
  created_at timestamptz not null default clock_timestamp(),
  primary key (catalog_id, idempotency_key)
);
create index drop_receipt_by_age on tailrace.drop_receipt (created_at);

-- Whether a policy's drops also publish `table_altered`, as the server's truncate does.
alter table tailrace.policy add column fence boolean not null default false;
