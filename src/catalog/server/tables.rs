//! The tables of the contract with their columns (V27, and what servers with packed tables have).

/// A table of the server's as the contract has it.
pub(super) struct Table {
    pub(super) name: &'static str,
    /// What passes and drops read and write of it.
    pub(super) needed: &'static str,
    /// What else it may have up to V27.
    pub(super) others: &'static str,
}

const fn table(name: &'static str, needed: &'static str, others: &'static str) -> Table {
    Table { name, needed, others }
}

/// All tables of the contract.
pub(super) const TABLES: [Table; 21] = [
    table(
        "hog_catalog",
        "catalog_id name last_snapshot_id schema_version next_file_id earliest_snapshot_id",
        "data_path next_table_id next_namespace_id snapshot_retention_seconds consumer_floor \
         earliest_snapshot_time next_view_id created_at",
    ),
    table(
        "hog_snapshot",
        "catalog_id snapshot_id snapshot_time schema_version author commit_message",
        "",
    ),
    table("hog_snapshot_change", "catalog_id snapshot_id kind object_id", ""),
    table("hog_namespace", "catalog_id namespace_id name dropped", "created_at"),
    table(
        "hog_table",
        "catalog_id table_id table_uuid created_snapshot dropped_snapshot",
        // The last one is that of servers that know packed tables.
        "next_field_id replaced_table_id retirement_eligible_at file_format",
    ),
    table(
        "hog_table_version",
        "catalog_id table_id begin_snapshot end_snapshot namespace_id name",
        "comment properties",
    ),
    table(
        "hog_column",
        "catalog_id table_id field_id begin_snapshot end_snapshot name col_type parent_field_id",
        "type_params nullable ordinal comment",
    ),
    table("hog_table_stats", "", "catalog_id table_id record_count file_size_bytes next_row_id"),
    table(
        "hog_data_file",
        "catalog_id data_file_id table_id begin_snapshot end_snapshot path file_format record_count \
         file_size_bytes row_id_start stats_state spec_id explicit_row_ids",
        "footer_size missing_field_ids split_offsets",
    ),
    table(
        "hog_file_column_stats",
        "",
        "catalog_id data_file_id field_id value_count null_count nan_count size_bytes lower_bound \
         upper_bound",
    ),
    table(
        "hog_consumer_offset",
        "",
        "catalog_id consumer_id table_uuid committed_snapshot updated_at",
    ),
    table("hog_partition_spec", "catalog_id table_id spec_id begin_snapshot end_snapshot", ""),
    table(
        "hog_partition_field",
        "catalog_id table_id spec_id key_index source_field_id transform transform_param",
        "",
    ),
    table("hog_file_partition_value", "catalog_id data_file_id key_index value", ""),
    table(
        "hog_delete_file",
        "catalog_id delete_file_id table_id data_file_id begin_snapshot end_snapshot path",
        "file_format delete_count file_size_bytes",
    ),
    table(
        "hog_file_removal",
        "removal_id catalog_id path drained_at",
        "file_kind reason scheduled_at attempts last_attempt_at drained_outcome claimed_at claimed_by",
    ),
    table(
        "hog_commit_receipt",
        "",
        "catalog_id idempotency_key request snapshot_id schema_version fingerprint created_at",
    ),
    table(
        "hog_compaction_claim",
        "",
        "catalog_id table_id group_key input_file_ids claimant claimed_at expires_at",
    ),
    table(
        "hog_maintenance_run",
        "",
        "run_id catalog_id task run_trigger started_at finished_at status error result",
    ),
    table(
        "hog_maintenance_summary",
        "",
        "catalog_id generation published_generation sampled_at sample scan_state next_batch_at \
         measures_generation live_files live_bytes live_rows published_snapshot live_generation \
         live_as_of",
    ),
    table(
        "hog_maintenance_summary_tier",
        "",
        "catalog_id generation bucket_key table_id spec_id partition_values quota remaining pending \
         selected file_count small_count total_bytes small_bytes dv_count pending_max_bytes \
         record_count newest_begin_snapshot",
    ),
];
