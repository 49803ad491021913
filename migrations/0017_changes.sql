-- What a change of a policy lets go, and who was shown it.

alter table tailrace.policy
  -- The newest so many distinct time values that have a live file stay whatever their age.
  add column keep_last integer check (keep_last > 0),
  -- Why it was set so, by whoever set it.
  add column reason text,
  -- Whether whoever set it was shown what goes, and confirmed that.
  add column is_confirmed boolean not null default false;
