-- The rights that tailrace needs, one statement for each object. Printed by
-- `tailrace doctor --grants`; run as the owner of the objects, after `tailrace migrate`.

-- For policies and passes.
-- None of these can be left out.
grant usage on schema public to tailrace;
grant usage on schema tailrace to tailrace;
grant select on public.hog_namespace to tailrace;
grant select on public.hog_table to tailrace;
grant select on public.hog_table_version to tailrace;
grant select on public.hog_column to tailrace;
grant select on public.hog_partition_spec to tailrace;
grant select on public.hog_partition_field to tailrace;
grant select on public.hog_file_partition_value to tailrace;
grant select, update (last_snapshot_id, schema_version) on public.hog_catalog to tailrace;
grant select, update (end_snapshot) on public.hog_data_file to tailrace;
grant select, update (end_snapshot) on public.hog_delete_file to tailrace;
grant select, insert on public.hog_snapshot to tailrace;
grant select, insert on public.hog_snapshot_change to tailrace;
grant select on public.hog_file_removal to tailrace;
grant select on tailrace.schema_migration to tailrace;
grant select on tailrace.installation to tailrace;
grant select, insert, update, delete on tailrace.policy to tailrace;
grant select, insert, update, delete on tailrace.guard_state to tailrace;
grant select, insert, update, delete on tailrace.pause to tailrace;
grant select, insert, update, delete on tailrace.hold to tailrace;
grant select, insert, update, delete on tailrace.calendar to tailrace;
grant select, insert, update, delete on tailrace.table_state to tailrace;
grant select, insert, update, delete on tailrace.waiting to tailrace;
grant select, insert, update, delete on tailrace.catalog_state to tailrace;
grant select, insert, delete on tailrace.approval to tailrace;
grant select, insert, delete on tailrace.approved_partition to tailrace;
grant select, insert, delete on tailrace.policy_change to tailrace;
grant usage on sequence tailrace.policy_revision to tailrace;
grant select, insert, update (spec_id, begin_snapshot, is_reused, copied_at, clock_epoch, mark_row_id, mark_snapshot, mark_due, marked_at, watched_from, trusted_at, trusted_by, trust_reason, gone_seen_at), delete on tailrace.spec_copy to tailrace;
grant select, insert, update (gone_seen_at), delete on tailrace.source_column_type to tailrace;
grant select, insert, update (table_name, purged_seen_at, last_removal_id, gone_seen_at, undone_seen_at), delete on tailrace.drop_history to tailrace;
grant select, delete on tailrace.drop_receipt to tailrace;
grant select, delete on tailrace.window_rule to tailrace;
grant select, insert, delete on tailrace.noted_head to tailrace;
grant select, insert, update on tailrace.clock_memory to tailrace;

-- For checking partition values by column statistics and row order.
-- Without them a pass drops by partition values alone and keeps the files whose value is
-- ambiguous, and `tailrace doctor` calls that a problem.
grant select on public.hog_file_column_stats to tailrace;
grant select on public.hog_table_stats to tailrace;

-- For compaction.claims.
-- A server before V15 has no hog_compaction_claim: that statement fails there, and the
-- others go through.
grant select, insert, update, delete on public.hog_compaction_claim to tailrace;
grant insert, update on tailrace.window_rule to tailrace;
grant select, insert, delete on tailrace.claimant to tailrace;
grant select, update on tailrace.window_setting to tailrace;

-- For explicit drops and the feed of changes.
-- Nothing else needs them.
grant select on public.hog_commit_receipt to tailrace;
grant insert on tailrace.drop_receipt to tailrace;

-- For trace, doctor and debt.
-- Nothing else needs them.
grant select on public.hog_consumer_offset to tailrace;
grant select on public.hog_maintenance_summary to tailrace;
grant select on public.hog_maintenance_summary_tier to tailrace;
