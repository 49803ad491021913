-- What the clocks said when passes last acted by them, one row per catalog. Written by whoever has the
-- catalog's lease, and by `tailrace clock accept`.
create table tailrace.clock_memory (
  catalog_id bigint primary key,
  -- The last accepted pass: the database's time, the host's, and CLOCK_BOOTTIME in milliseconds, which
  -- is only compared within the one process whose random id is beside it. The host's time and
  -- boot_ms are null where host and database disagreed and a person accepted that.
  accepted_now timestamptz,
  accepted_host timestamptz,
  boot_ms bigint,
  process uuid,
  -- Goes up when a pass is accepted after refused ones, or after the clock was set back: what was
  -- noted in an older epoch is dated by a clock that turned out to be wrong, or may have been.
  epoch bigint not null default 0,
  -- The database's time of the first accepted pass of this epoch.
  epoch_began timestamptz,
  -- Since when passes are refused, and why the last one was; null where the last one was accepted.
  refused_at timestamptz,
  refusal text,
  -- Whether CLOCK_BOOTTIME was the reason: another process cannot ask it again, and refuses too.
  refused_by_boot boolean not null default false,
  -- The last `tailrace clock accept`: it lets one pass through, whatever the clocks say, and takes the
  -- snapshots up to trusted_head out of what the present must not lie behind.
  accepted_by text,
  accept_reason text,
  accept_at timestamptz,
  is_accepted_once boolean not null default false,
  trusted_head bigint,
  constraint clock_memory_refused check ((refused_at is null) = (refusal is null)),
  constraint clock_memory_boot check ((boot_ms is null) = (process is null))
);
