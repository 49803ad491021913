-- A policy under which drops were made, before a policy could be confirmed, counts as confirmed: somebody could see what
-- it drops.
update tailrace.policy p set is_confirmed = true
where p.mode = 'enforce'::text and exists (
  select from tailrace.drop_history h
  where h.catalog_id = p.catalog_id and h.table_uuid = p.table_uuid
    and h.policy_revision is not null and h.dropped_at >= p.updated_at);
