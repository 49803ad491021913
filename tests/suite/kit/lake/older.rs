//! Tests that a lake of each older version lacks what the contract's last section says, and nothing
//! else.

use std::collections::BTreeSet;

use anyhow::Result;
use tailrace_kit::lake::{Field, NEWEST, NewFile};

use crate::support::TestDatabase;

/// A migration: what is not there before it, and what is there instead.
type Brought = (u32, &'static [&'static str], &'static [&'static str]);

/// In the order of the contract. V12's table of uploads is not among the tables of the kit, and what V20
/// changed besides is in [`before_v20_dropping_a_table_ends_its_files`]. Of a column, its index and its
/// CHECKs are gone too; a NOT NULL is said with the column.
const BROUGHT: [Brought; 19] = [
    (
        7,
        &[
            "table hog_commit_receipt",
            "column hog_commit_receipt.catalog_id bigint NOT NULL",
            "column hog_commit_receipt.idempotency_key uuid NOT NULL",
            "column hog_commit_receipt.request jsonb",
            "column hog_commit_receipt.schema_version bigint NOT NULL",
            "column hog_commit_receipt.snapshot_id bigint NOT NULL",
            "constraint hog_commit_receipt: FOREIGN KEY (catalog_id) REFERENCES \
             hog_catalog(catalog_id) ON DELETE CASCADE",
            "constraint hog_commit_receipt: PRIMARY KEY (catalog_id, idempotency_key)",
            "index hog_commit_receipt_pkey ON hog_commit_receipt USING btree (catalog_id, \
             idempotency_key)",
        ],
        &[],
    ),
    (
        9,
        &[
            "column hog_column.parent_field_id bigint",
            "constraint hog_column: CHECK (parent_field_id IS NULL OR parent_field_id < field_id)",
            "constraint hog_column: CHECK (col_type = ANY (ARRAY['boolean', 'int8', 'int16', 'int', \
             'long', 'uint8', 'uint16', 'uint32', 'uint64', 'float', 'double', 'decimal', 'date', \
             'time', 'timestamp_s', 'timestamp_ms', 'timestamp', 'timestamp_ns', 'timestamptz', \
             'string', 'json', 'uuid', 'binary', 'list', 'struct', 'map', 'variant']))",
            "index hog_column_live_ordinal ON hog_column USING btree (catalog_id, table_id, \
             parent_field_id, ordinal) NULLS NOT DISTINCT WHERE (end_snapshot IS NULL)",
        ],
        &[
            "constraint hog_column: CHECK (col_type = ANY (ARRAY['boolean', 'int8', 'int16', 'int', \
             'long', 'uint8', 'uint16', 'uint32', 'uint64', 'float', 'double', 'decimal', 'date', \
             'time', 'timestamp_s', 'timestamp_ms', 'timestamp', 'timestamp_ns', 'timestamptz', \
             'string', 'json', 'uuid', 'binary', 'variant']))",
            "index hog_column_live_ordinal ON hog_column USING btree (catalog_id, table_id, ordinal) \
             WHERE (end_snapshot IS NULL)",
        ],
    ),
    (
        10,
        &[
            "column hog_maintenance_summary_tier.pending_max_bytes bigint DEFAULT 0 NOT NULL",
            "index hog_data_file_maintenance_size_scan ON hog_data_file USING btree (catalog_id, \
             table_id, file_size_bytes, data_file_id)",
        ],
        &[],
    ),
    (
        11,
        &[
            "column hog_table_version.comment text",
            "column hog_table_version.properties jsonb DEFAULT '{}'::jsonb NOT NULL",
        ],
        &[],
    ),
    (
        12,
        &["constraint hog_file_removal: CHECK (reason = ANY (ARRAY['snapshot_expiry', \
             'table_drop_gc', 'compaction_staging', 'trino_upload']))"],
        &["constraint hog_file_removal: CHECK (reason = ANY (ARRAY['snapshot_expiry', \
             'table_drop_gc', 'compaction_staging']))"],
    ),
    (
        14,
        &[
            "column hog_table.replaced_table_id bigint",
            "constraint hog_table: CHECK (replaced_table_id <> table_id)",
            "index hog_table_replacement_lineage ON hog_table USING btree (catalog_id, \
             replaced_table_id) WHERE (replaced_table_id IS NOT NULL)",
        ],
        &[],
    ),
    (
        15,
        &[
            "table hog_compaction_claim",
            "column hog_compaction_claim.catalog_id bigint NOT NULL",
            "column hog_compaction_claim.claimant uuid NOT NULL",
            "column hog_compaction_claim.claimed_at timestamp with time zone DEFAULT now() NOT NULL",
            "column hog_compaction_claim.expires_at timestamp with time zone NOT NULL",
            "column hog_compaction_claim.group_key text NOT NULL",
            "column hog_compaction_claim.input_file_ids bigint[] NOT NULL",
            "column hog_compaction_claim.table_id bigint NOT NULL",
            "constraint hog_compaction_claim: FOREIGN KEY (catalog_id) REFERENCES \
             hog_catalog(catalog_id) ON DELETE CASCADE",
            "constraint hog_compaction_claim: PRIMARY KEY (catalog_id, table_id, group_key)",
            "index hog_compaction_claim_expiry ON hog_compaction_claim USING btree (catalog_id, \
             expires_at)",
            "index hog_compaction_claim_pkey ON hog_compaction_claim USING btree (catalog_id, \
             table_id, group_key)",
        ],
        &[],
    ),
    (
        16,
        &["index hog_file_removal_undrained_path ON hog_file_removal USING btree (catalog_id, \
             path) WHERE (drained_at IS NULL)"],
        &[],
    ),
    (
        17,
        &[
            "index hog_data_file_path ON hog_data_file USING btree (catalog_id, path)",
            "index hog_delete_file_path ON hog_delete_file USING btree (catalog_id, path)",
        ],
        &[],
    ),
    (18, &["column hog_data_file.split_offsets bigint[]"], &[]),
    (
        19,
        &[
            "index hog_data_file_ended ON hog_data_file USING btree (catalog_id, end_snapshot) WHERE \
             (end_snapshot IS NOT NULL)",
        ],
        &[],
    ),
    (20, &["column hog_table.retirement_eligible_at timestamp with time zone"], &[]),
    (
        21,
        &[
            "column hog_file_removal.claimed_at timestamp with time zone",
            "column hog_file_removal.claimed_by text",
        ],
        &[],
    ),
    (
        22,
        &[
            "column hog_maintenance_summary.measures_generation bigint DEFAULT '-1'::integer NOT NULL",
            "column hog_maintenance_summary_tier.newest_begin_snapshot bigint",
            "column hog_maintenance_summary_tier.record_count bigint DEFAULT 0 NOT NULL",
            "index hog_maintenance_summary_tier_table ON hog_maintenance_summary_tier USING btree \
             (catalog_id, generation, table_id)",
        ],
        &[],
    ),
    (
        23,
        &["index hog_file_partition_value_lookup ON hog_file_partition_value USING btree \
             (catalog_id, key_index, value, data_file_id)"],
        &[],
    ),
    (
        24,
        &[
            "column hog_commit_receipt.created_at timestamp with time zone DEFAULT now() NOT NULL",
            "column hog_commit_receipt.fingerprint bytea",
            "column hog_commit_receipt.request jsonb",
            "index hog_commit_receipt_created ON hog_commit_receipt USING btree (catalog_id, \
             created_at)",
        ],
        &["column hog_commit_receipt.request jsonb NOT NULL"],
    ),
    (
        25,
        &["constraint hog_maintenance_run: CHECK (task = ANY (ARRAY['hydrator', 'expiry', \
             'cleanup', 'compaction', 'verify', 'retirement', 'reindex']))"],
        &["constraint hog_maintenance_run: CHECK (task = ANY (ARRAY['hydrator', 'expiry', \
             'cleanup', 'compaction', 'verify', 'retirement']))"],
    ),
    (
        26,
        &[
            "index hog_data_file_failed ON hog_data_file USING btree (catalog_id, table_id) WHERE \
             (stats_state = 'failed' AND end_snapshot IS NULL)",
            "index hog_data_file_missing_field_ids ON hog_data_file USING btree (catalog_id, \
             table_id) WHERE (missing_field_ids AND (end_snapshot IS NULL))",
            "index hog_data_file_pending ON hog_data_file USING btree (catalog_id, data_file_id) \
             INCLUDE (table_id) WHERE (stats_state = 'pending' AND end_snapshot IS NULL)",
        ],
        &["index hog_data_file_pending ON hog_data_file USING btree (catalog_id, data_file_id) \
             INCLUDE (table_id) WHERE (stats_state = 'pending')"],
    ),
    (
        27,
        &[
            "column hog_maintenance_summary.live_as_of timestamp with time zone",
            "column hog_maintenance_summary.live_bytes bigint",
            "column hog_maintenance_summary.live_files bigint",
            "column hog_maintenance_summary.live_generation bigint",
            "column hog_maintenance_summary.live_rows bigint",
            "column hog_maintenance_summary.published_snapshot bigint",
        ],
        &[],
    ),
];

/// Every table, column, constraint and index of the server's, a line each; parentheses that Postgres
/// sets around each term and casts of literals are left out, for servers differ in them.
async fn objects(database: &TestDatabase) -> Result<BTreeSet<String>> {
    let rows: Vec<String> = sqlx::query_scalar(
        r"WITH plain AS (
            SELECT 'table ' || relname AS line FROM pg_class
             WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
            UNION ALL
            SELECT 'column ' || c.relname || '.' || a.attname || ' '
                   || format_type(a.atttypid, a.atttypmod)
                   || coalesce(' DEFAULT ' || pg_get_expr(d.adbin, d.adrelid), '')
                   || CASE WHEN a.attnotnull THEN ' NOT NULL' ELSE '' END
              FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
              LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
             WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r'
               AND a.attnum > 0 AND NOT a.attisdropped
            UNION ALL
            -- From Postgres 18 on a NOT NULL is a constraint too.
            SELECT 'constraint ' || conrelid::regclass || ': ' || pg_get_constraintdef(oid, true)
              FROM pg_constraint
             WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
            UNION ALL
            SELECT 'index ' || replace(regexp_replace(pg_get_indexdef(indexrelid),
                                                      '^CREATE (UNIQUE )?INDEX ', ''),
                                       'public.', '')
              FROM pg_index
             WHERE indrelid IN (SELECT oid FROM pg_class
                                 WHERE relnamespace = 'public'::regnamespace))
          SELECT regexp_replace(regexp_replace(line, '''::text', '''', 'g'),
                                '\(([^()]*)\) AND \(([^()]*)\)', '\1 AND \2') FROM plain",
    )
    .fetch_all(&database.pool)
    .await?;
    Ok(rows.into_iter().collect())
}

#[tokio::test]
async fn each_version_differs_from_the_newest_as_the_contract_says() -> Result<()> {
    let newest = objects(&TestDatabase::in_schema("public").await?).await?;
    for version in 6..=NEWEST {
        let (mut gone, mut instead) = (BTreeSet::new(), BTreeSet::new());
        // The newest first: what is instead of something may be gone before an older one.
        for (_, brought, before) in BROUGHT.iter().rev().filter(|(by, ..)| version < *by) {
            for line in *brought {
                if !instead.remove(line) {
                    gone.insert(*line);
                }
            }
            instead.extend(before.iter().copied());
        }
        // A receipt that is gone takes what V24 put in its place along.
        if version < 7 {
            instead.remove("column hog_commit_receipt.request jsonb NOT NULL");
        }
        let database = TestDatabase::in_schema("public").await?;
        database.lake.downgrade(version).await?;
        let found = objects(&database).await?;
        let lacks: BTreeSet<&str> = newest.difference(&found).map(String::as_str).collect();
        let has: BTreeSet<&str> = found.difference(&newest).map(String::as_str).collect();
        assert_eq!(lacks, gone, "V{version} lacks");
        assert_eq!(has, instead, "V{version} has instead");
        // A second time changes nothing.
        database.lake.downgrade(version).await?;
        assert_eq!(objects(&database).await?, found, "V{version}");
    }
    Ok(())
}

#[tokio::test]
async fn before_v20_dropping_a_table_ends_its_files() -> Result<()> {
    for (version, ended) in [(19, true), (20, false)] {
        let database = TestDatabase::in_schema("public").await?;
        database.lake.downgrade(version).await?;
        let catalog = database.catalog("c").await?;
        let table = database.table(&catalog, "t", &[Field::day("at")]).await?;
        let file = table.append(vec![NewFile::of(["20713"])]).await?.file_ids[0];
        table.register_vector(file, 1, None).await?;
        let snapshot = table.drop_table().await?;
        let expected = ended.then_some(snapshot);
        assert_eq!(table.all_files().await?[0].end_snapshot, expected, "V{version}");
        assert_eq!(table.all_vectors().await?[0].end_snapshot, expected, "V{version}");
    }
    Ok(())
}
