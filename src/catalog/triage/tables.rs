//! The governed tables of all catalogs, each with its policy and with what was noted of it.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;

/// A governed table beside what was noted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableLook {
    pub identity: TableIdentity,
    /// False for packed tables, which are left alone.
    pub is_parquet: bool,
    /// Whether the property is set, to whatever.
    pub has_property: bool,
    /// Its text, where it is one.
    pub property: Option<String>,
    /// The catalog's guard revision.
    pub guard_revision: i64,
    /// Our row of source `stored`.
    pub stored: Option<PolicyLook>,
    /// Our row of source `property`.
    pub mirror: Option<PolicyLook>,
    /// What passes noted of the table with this UUID.
    pub state: Option<StateLook>,
}

impl TableLook {
    /// The row of the policy that is in force, if it is followed.
    pub fn policy(&self) -> Option<&PolicyLook> {
        self.stored.as_ref().or(self.mirror.as_ref())
    }
}

/// A row of `tailrace.policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyLook {
    /// Never used twice.
    pub revision: i64,
    /// `enforce`, `observe` or `paused`; paused also where a pause covers the table.
    pub mode: String,
    /// As written.
    pub field: String,
    /// The column that it means.
    pub source_field_id: i64,
    /// How long a partition stays, as written.
    pub keep: String,
    /// The same in seconds.
    pub keep_seconds: i64,
    /// The text that a mirror was read from.
    pub property_text: Option<String>,
    /// Why a mirror is not followed.
    pub problem: Option<String>,
}

/// What is noted of a table, as far as it tells whether there is work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateLook {
    /// The column whose times the calendar has.
    pub source_field_id: i64,
    /// The watermark's snapshot.
    pub through_snapshot: i64,
    /// When the last full pass decided.
    pub full_pass_at: Option<DateTime<Utc>>,
    /// Whether another one is owed.
    pub owes_full_pass: bool,
    /// Whether a full scan is under way.
    pub is_reading: bool,
    /// The number of the rules by which the program dated values that noted it.
    pub rules: Option<i32>,
    /// The policy's revision in the last pass that looked at everything due.
    pub policy_revision: Option<i64>,
    /// The guard revision by which that pass went.
    pub guard_revision: i64,
    /// What that pass met: the catalog's `schema_version`.
    pub schema_version: Option<i64>,
    /// The table's [shape](super::shapes::shapes).
    pub shape: Option<String>,
    /// The text of its property.
    pub property: Option<String>,
    /// How the last pass over it ended.
    pub outcome: Option<String>,
    /// What that said.
    pub error: Option<String>,
    /// Files that the policy does not reach, as last counted, and when.
    pub counted: Option<(i64, i64, DateTime<Utc>)>,
    /// How often in a row what was due was not looked at.
    pub unlooked: u32,
    /// The time before which what is due wakes nobody.
    pub quiet_until: Option<DateTime<Utc>>,
}

/// Every live governed table of all catalogs, by catalog, namespace and name. Which are governed, and how
/// older servers are read, is as [`live_tables`](crate::catalog::tables::live_tables()) has it. Each table is
/// looked up by its key: without statistics the planner would rather compare each with each of its catalog.
pub async fn look_at_tables(connection: &mut Session) -> sqlx::Result<Vec<TableLook>> {
    let rows = sqlx::query!(
        r#"select c.catalog_id, c.name as catalog, t.table_id, t.table_uuid, n.name as namespace,
                  v.name as "table", coalesce(t.file_format, 'parquet') = 'parquet' as "is_parquet!",
                  coalesce(pg_catalog.jsonb_typeof(v.properties -> 'partition_retention'::text)
                           <> 'null'::text, false) as "has_property!",
                  case when pg_catalog.jsonb_typeof(v.properties -> 'partition_retention'::text)
                            = 'string'::text
                    then v.properties ->> 'partition_retention'::text end as property,
                  coalesce((select g.revision from tailrace.guard_state g
                            where g.catalog_id = c.catalog_id), 0) as "guard_revision!",
                  -- The first part is asked once: most often nothing is paused.
                  exists (select from tailrace.pause)
                    and tailrace.is_paused(t.catalog_id, t.table_id, t.table_uuid) as "is_paused!",
                  p.revision as "stored_revision?", p.mode as "stored_mode?",
                  p.field as "stored_field?", p.source_field_id as "stored_source?",
                  p.keep as "stored_keep?", p.keep_seconds as "stored_seconds?",
                  q.revision as "mirror_revision?", q.mode as "mirror_mode?",
                  q.field as "mirror_field?", q.source_field_id as "mirror_source?",
                  q.keep as "mirror_keep?", q.keep_seconds as "mirror_seconds?",
                  q.property_text as "mirror_text?", q.problem as "mirror_problem?",
                  s.source_field_id as "source_field_id?", s.through_snapshot as "through_snapshot?",
                  case when s.full_pass_at between '0001-01-01'::timestamptz
                                               and '9999-12-31'::timestamptz
                    then s.full_pass_at end as full_pass_at,
                  coalesce(s.owes_full_pass, false) as "owes_full_pass!",
                  s.reading is not null as "is_reading!",
                  case when pg_catalog.octet_length(s.book) > 64
                    then pg_catalog.get_byte(s.book, 64) end as "rules?",
                  s.policy_revision as "policy_revision?",
                  coalesce(s.guard_revision, 0) as "noted_guard_revision!",
                  s.schema_version as "schema_version?", s.shape as "shape?",
                  s.property as "noted_property?", s.outcome as "outcome?", s.error as "error?",
                  s.undatable_files as "undatable_files?", s.uncovered_files as "uncovered_files?",
                  case when s.census_at between '0001-01-01'::timestamptz
                                            and '9999-12-31'::timestamptz
                    then s.census_at end as census_at,
                  s.unlooked as "unlooked?",
                  case when s.quiet_until between '0001-01-01'::timestamptz
                                              and '9999-12-31'::timestamptz
                    then s.quiet_until end as quiet_until
           from (select null::text as file_format, null::jsonb as properties) as absent
           cross join lateral (
             select catalog_id, table_id, namespace_id, name, end_snapshot, properties
             from hog_table_version) as v
           cross join lateral (
             select catalog_id, table_id, table_uuid, dropped_snapshot, file_format
             from hog_table
             where catalog_id = v.catalog_id and table_id = v.table_id offset 0) as t
           cross join lateral (
             select name, dropped from hog_namespace
             where catalog_id = v.catalog_id and namespace_id = v.namespace_id offset 0) as n
           cross join lateral (
             select catalog_id, name from hog_catalog
             where catalog_id = v.catalog_id offset 0) as c
           left join lateral (
             select table_id, revision, mode, field, source_field_id, keep, keep_seconds
             from tailrace.policy
             where catalog_id = t.catalog_id and table_id = t.table_id
               and table_uuid = t.table_uuid and source = 'stored' offset 0) as p on true
           left join lateral (
             select table_id, revision, mode, field, source_field_id, keep, keep_seconds,
                    property_text, problem
             from tailrace.policy
             where catalog_id = t.catalog_id and table_id = t.table_id
               and table_uuid = t.table_uuid and source = 'property' offset 0) as q on true
           left join lateral (
             select source_field_id, through_snapshot, full_pass_at, owes_full_pass, reading, book,
                    policy_revision, guard_revision, schema_version, shape, property, outcome, error,
                    undatable_files, uncovered_files, census_at, unlooked, quiet_until
             from tailrace.table_state
             where catalog_id = t.catalog_id and table_uuid = t.table_uuid
               and table_id = t.table_id offset 0) as s on true
           where v.end_snapshot is null and t.dropped_snapshot is null and not n.dropped
             and (v.properties ? 'partition_retention'::text or p.table_id is not null
                  or q.table_id is not null)
           order by c.name, n.name, v.name"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| TableLook {
            identity: TableIdentity {
                catalog_id: row.catalog_id,
                catalog: row.catalog,
                table_id: row.table_id,
                table_uuid: row.table_uuid,
                namespace: row.namespace,
                table: row.table,
            },
            is_parquet: row.is_parquet,
            has_property: row.has_property,
            property: row.property,
            guard_revision: row.guard_revision,
            stored: row.stored_revision.map(|revision| PolicyLook {
                revision,
                mode: mode_under(row.is_paused, row.stored_mode),
                field: row.stored_field.unwrap_or_default(),
                source_field_id: row.stored_source.unwrap_or_default(),
                keep: row.stored_keep.unwrap_or_default(),
                keep_seconds: row.stored_seconds.unwrap_or_default(),
                property_text: None,
                problem: None,
            }),
            mirror: row.mirror_revision.map(|revision| PolicyLook {
                revision,
                mode: mode_under(row.is_paused, row.mirror_mode),
                field: row.mirror_field.unwrap_or_default(),
                source_field_id: row.mirror_source.unwrap_or_default(),
                keep: row.mirror_keep.unwrap_or_default(),
                keep_seconds: row.mirror_seconds.unwrap_or_default(),
                property_text: row.mirror_text,
                problem: row.mirror_problem,
            }),
            state: row.source_field_id.zip(row.through_snapshot).map(
                |(source_field_id, through_snapshot)| StateLook {
                    source_field_id,
                    through_snapshot,
                    full_pass_at: row.full_pass_at,
                    owes_full_pass: row.owes_full_pass,
                    is_reading: row.is_reading,
                    rules: row.rules,
                    policy_revision: row.policy_revision,
                    guard_revision: row.noted_guard_revision,
                    schema_version: row.schema_version,
                    shape: row.shape,
                    property: row.noted_property,
                    outcome: row.outcome,
                    error: row.error,
                    counted: match (row.undatable_files, row.uncovered_files, row.census_at) {
                        (Some(undatable), Some(uncovered), Some(at)) => {
                            Some((undatable, uncovered, at))
                        }
                        _ => None,
                    },
                    unlooked: row
                        .unlooked
                        .and_then(|times| u32::try_from(times).ok())
                        .unwrap_or_default(),
                    quiet_until: row.quiet_until,
                },
            ),
        })
        .collect())
}

fn mode_under(is_paused: bool, mode: Option<String>) -> String {
    if is_paused { "paused".to_owned() } else { mode.unwrap_or_default() }
}

/// The dotted paths of the live columns that policies mean, by catalog, table and field.
pub async fn columns_of_policies(
    connection: &mut Session,
) -> sqlx::Result<HashMap<(i64, i64, i64), String>> {
    // As deep as a column can be nested in rows that are not damaged, and to an end in those that are.
    let rows = sqlx::query!(
        r#"with recursive path as (
             select c.catalog_id, c.table_id, c.field_id, c.parent_field_id, c.name, 1 as depth
             from (select distinct catalog_id, table_id, source_field_id from tailrace.policy) as p
             cross join lateral (
               select catalog_id, table_id, field_id, parent_field_id, name from hog_column
               where catalog_id = p.catalog_id and table_id = p.table_id
                 and field_id = p.source_field_id and end_snapshot is null offset 0) as c
             union all
             select p.catalog_id, p.table_id, p.field_id, c.parent_field_id,
                    c.name || '.'::text || p.name, p.depth + 1
             from path p
             cross join lateral (
               select parent_field_id, name from hog_column
               where catalog_id = p.catalog_id and table_id = p.table_id
                 and field_id = p.parent_field_id and end_snapshot is null offset 0) as c
             where p.depth < 1000
           )
           select catalog_id as "catalog_id!", table_id as "table_id!", field_id as "field_id!",
                  name as "name!"
           from path where parent_field_id is null"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| ((row.catalog_id, row.table_id, row.field_id), row.name))
        .collect())
}

/// A table by its catalog and UUID.
pub type TableKey = (i64, Uuid);
