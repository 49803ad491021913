//! The partition specs of a table one by one, and who vouched for the values of their files.

use super::session::Session;
use super::specs::FieldRow;
use super::tables::TableIdentity;
use crate::rules::expiry::SpecField;
use crate::rules::instant::UtcInstant;

/// One definition of a spec, as the catalog or our copies know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownSpec {
    /// Its id. Two definitions may have the same.
    pub spec_id: i64,
    /// Its fields by key index.
    pub fields: Vec<SpecField>,
    /// Whether the server still has it.
    pub state: SpecState,
    /// When we first saw it; `None` where we have no copy yet.
    pub seen_at: Option<UtcInstant>,
    /// Whether it began in the snapshot that created its table; `None` where that is not known.
    pub began_with_table: Option<bool>,
    /// From which row of the table on, and since when, every writer should know it.
    pub mark: Option<NotedMark>,
    /// When that is noted, where it is not and we have a copy.
    pub mark_due: Option<UtcInstant>,
    /// Who vouched for it; `None` while nobody does.
    pub trusted: Option<Trust>,
}

/// Where a spec is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SpecState {
    /// New files are written under it.
    Live,
    /// The table has another one, or none, since.
    Ended,
    /// The server has deleted it; our copy is left.
    CopyOnly,
}

/// A mark as it was noted (see [`super::marks`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct NotedMark {
    /// Rows from this id on were appended since.
    pub row_id: i64,
    pub noted_at: Option<UtcInstant>,
}

/// That somebody vouched for the values of a spec's files.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
pub struct Trust {
    /// When, by the database's clock.
    pub at: UtcInstant,
    /// The name that was given, or the user of the session.
    pub by: String,
    /// As it was given.
    pub reason: String,
}

/// Every definition of every spec of a table that the catalog or our copies know, by id. `window`
/// is `guard.stale_writer_window`.
pub async fn known_specs(
    connection: &mut Session,
    table: &TableIdentity,
    window: std::time::Duration,
) -> sqlx::Result<Vec<KnownSpec>> {
    let rows = sqlx::query!(
        r#"select coalesce(s.spec_id, c.spec_id) as "spec_id!",
                  coalesce(s.fields, c.fields) as "fields!: sqlx::types::Json<Vec<FieldRow>>",
                  s.is_live as "is_live?", c.copied_at as "copied_at?",
                  coalesce(s.begin_snapshot, c.begin_snapshot)
                    = (select t.created_snapshot from hog_table t
                       where t.catalog_id = $1 and t.table_id = $2) as began_with_table,
                  c.mark_row_id as "mark_row_id?", c.marked_at as "marked_at?",
                  case when c.mark_row_id is null then coalesce(c.mark_due, c.copied_at
                    + pg_catalog.make_interval(secs => $3::double precision)) end as mark_due,
                  c.trusted_at as "trusted_at?", c.trusted_by as "trusted_by?",
                  c.trust_reason as "trust_reason?"
           from (select p.spec_id, p.begin_snapshot, p.end_snapshot is null as is_live,
                        coalesce(pg_catalog.jsonb_agg(pg_catalog.jsonb_build_object(
                            'key_index', f.key_index, 'source_field_id', f.source_field_id,
                            'transform', f.transform, 'transform_param', f.transform_param)
                          order by f.key_index) filter (where f.key_index is not null), '[]')
                          as fields
                 from hog_partition_spec p
                 left join hog_partition_field f
                   on f.catalog_id = p.catalog_id and f.table_id = p.table_id
                  and f.spec_id = p.spec_id
                 where p.catalog_id = $1 and p.table_id = $2
                 group by p.spec_id, p.begin_snapshot, p.end_snapshot) as s
           full join (select spec_id, fields, begin_snapshot, copied_at, mark_row_id, marked_at,
                             mark_due, trusted_at, trusted_by, trust_reason
                      from tailrace.spec_copy
                      where catalog_id = $1 and table_id = $2 and table_uuid = $4) as c
             on c.spec_id = s.spec_id and c.fields = s.fields
           order by 1, c.copied_at"#,
        table.catalog_id,
        table.table_id,
        window.as_secs_f64(),
        table.table_uuid
    )
    .fetch_all(connection)
    .await?;
    let specs = rows.into_iter().map(|row| KnownSpec {
        spec_id: row.spec_id,
        fields: row.fields.0.into_iter().map(SpecField::from).collect(),
        state: match row.is_live {
            Some(true) => SpecState::Live,
            Some(false) => SpecState::Ended,
            None => SpecState::CopyOnly,
        },
        seen_at: row.copied_at.map(UtcInstant::from),
        began_with_table: row.began_with_table,
        mark: row
            .mark_row_id
            .map(|row_id| NotedMark { row_id, noted_at: row.marked_at.map(UtcInstant::from) }),
        mark_due: row.mark_due.map(UtcInstant::from),
        trusted: row
            .trusted_at
            .zip(row.trusted_by)
            .zip(row.trust_reason)
            .map(|((at, by), reason)| Trust { at: at.into(), by, reason }),
    });
    Ok(specs.collect())
}

/// Records that `by` vouches for the values of all files of a spec, at the database's time of this
/// moment, and has what waits for evidence in the table looked at by the next pass. False where nothing was recorded: we have no copy of the spec, or several definitions, or
/// somebody has vouched for it before, and that record stays.
pub async fn record_trust(
    connection: &mut Session,
    table: &TableIdentity,
    spec_id: i64,
    by: &str,
    reason: &str,
) -> sqlx::Result<bool> {
    let is_recorded = sqlx::query_scalar!(
        r#"with recorded as (
             update tailrace.spec_copy c
             set trusted_at = pg_catalog.clock_timestamp(), trusted_by = $4, trust_reason = $5
             where c.catalog_id = $1 and c.table_id = $2 and c.table_uuid = $6 and c.spec_id = $3
               and c.trusted_at is null
               and not exists (select from tailrace.spec_copy o
                               where o.catalog_id = c.catalog_id and o.table_id = c.table_id
                                 and o.table_uuid = c.table_uuid and o.spec_id = c.spec_id
                                 and o.fields <> c.fields)
             returning c.spec_id
           ),
           tuples as (
             update tailrace.waiting set next_look = null
             where catalog_id = $1 and table_uuid = $6 and next_look is not null
               and reason in ('ambiguous_spec', 'newer_rows_than_partition')
               and exists (select from recorded)
           ),
           due as (
             update tailrace.calendar set next_look = null
             where catalog_id = $1 and table_uuid = $6 and next_look is not null
               and exists (select from recorded)
           )
           select exists (select from recorded) as "is_recorded!""#,
        table.catalog_id,
        table.table_id,
        spec_id,
        by,
        reason,
        table.table_uuid
    )
    .fetch_one(connection)
    .await?;
    Ok(is_recorded)
}
