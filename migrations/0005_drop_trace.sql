-- What became of each drop, as the passes saw it: noted beside the drop, for it is kept as long.
-- `table_name` is the name that the table had when a pass first looked (NAMESPACE.TABLE): the
-- catalog forgets those of tables that are gone. `purged_seen_at` is when no row of the drop's
-- files was left, `last_removal_id` the highest undrained id in the server's queue then (0 for
-- none), `gone_seen_at` when no undrained id at or below it was left. `undone_seen_at` is when the
-- catalog was found not to know the drop: it was restored to a time before.
alter table tailrace.drop_history
  add column table_name text,
  add column purged_seen_at timestamptz,
  add column last_removal_id bigint,
  add column gone_seen_at timestamptz,
  add column undone_seen_at timestamptz,
  add constraint drop_history_purged check ((purged_seen_at is null) = (last_removal_id is null)),
  add constraint drop_history_gone check (gone_seen_at is null or purged_seen_at is not null),
  add constraint drop_history_undone check (undone_seen_at is null or purged_seen_at is null);

-- A drop stays until it is gone, however old: its age counts from then.
drop index tailrace.drop_history_by_age;
create index drop_history_settled on tailrace.drop_history (coalesce(gone_seen_at, undone_seen_at))
  where coalesce(gone_seen_at, undone_seen_at) is not null;
-- Each pass goes on with these two; a drop is in at most one of them.
create index drop_history_kept on tailrace.drop_history (catalog_id, snapshot_id)
  where purged_seen_at is null and undone_seen_at is null;
create index drop_history_queued on tailrace.drop_history (catalog_id, last_removal_id)
  where purged_seen_at is not null and gone_seen_at is null;
create index drop_history_of_table on tailrace.drop_history (catalog_id, table_uuid, snapshot_id);
create index drop_history_of_name on tailrace.drop_history (catalog_id, table_name, table_uuid);
