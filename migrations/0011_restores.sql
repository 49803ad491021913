-- The catalog may be restored to an earlier time while this schema is not: ids of snapshots, files,
-- rows, specs and removals are then given out a second time, and must not meet what is remembered of
-- the first time (src/catalog/restore.rs).

-- Heads of a catalog as passes met them: the snapshot, its snapshot_time, and the time of the pass.
-- A drop of ours is such a fact, too: `drop_history.dropped_at` is the snapshot_time of its snapshot.
create table tailrace.noted_head (
  catalog_id bigint not null,
  snapshot_id bigint not null,
  snapshot_time timestamptz not null,
  noted_at timestamptz not null,
  primary key (catalog_id, snapshot_id)
);

-- The snapshot_time of trusted_head; null where it was accepted before this was noted.
alter table tailrace.clock_memory add column trusted_time timestamptz;

-- A drop is its drop_id: a snapshot id is given out again after a restore. Among drops that are not
-- undone each catalog has an id once, as soon as a pass has noted what a restore took back.
-- Undone wins over whatever else was noted of a drop.
alter table tailrace.drop_history
  drop constraint drop_history_pkey,
  drop constraint drop_history_drop_id_key,
  drop constraint drop_history_undone,
  add constraint drop_history_pkey primary key (drop_id);
create index drop_history_of_catalog on tailrace.drop_history (catalog_id, snapshot_id);
create index drop_history_standing on tailrace.drop_history (catalog_id, snapshot_id)
  where undone_seen_at is null;
drop index tailrace.drop_history_settled;
create index drop_history_settled on tailrace.drop_history (coalesce(undone_seen_at, gone_seen_at))
  where coalesce(undone_seen_at, gone_seen_at) is not null;
drop index tailrace.drop_history_queued;
create index drop_history_queued on tailrace.drop_history (catalog_id, last_removal_id)
  where purged_seen_at is not null and gone_seen_at is null and undone_seen_at is null;

-- The drop that a receipt is of; null where nothing was committed, or the drop was purged from the
-- history before this was noted. While a receipt names a drop, the history keeps it.
alter table tailrace.drop_receipt add column drop_id uuid;
update tailrace.drop_receipt r set drop_id = h.drop_id
  from tailrace.drop_history h
  where r.committed and h.catalog_id = r.catalog_id and h.snapshot_id = r.snapshot_id;
create index drop_receipt_of_drop on tailrace.drop_receipt (drop_id) where drop_id is not null;
