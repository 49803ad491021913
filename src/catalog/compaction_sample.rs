//! The sample that the server publishes of its live files (`hog_maintenance_summary_tier`): old,
//! sometimes never there, good for showing and never for deciding.
//!
//! Only the generation that is published counts: a sampler at work writes the next one beside it.

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::session::Session;
use crate::catalog::inventory::owners::server_has_table;

/// A published generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Generation {
    pub number: i64,
    /// When the sample was taken, where the server says so.
    pub sampled_at: Option<DateTime<Utc>>,
    /// Whether `record_count` is of this generation too (servers since V22).
    pub has_measures: bool,
}

/// What a part of the sample amounts to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Sampled {
    /// Live files.
    pub files: i64,
    /// Those below the compactor's target size.
    pub small_files: i64,
    /// Those that the compactor would take: the debt.
    pub selected: i64,
    /// The bytes of all files.
    pub bytes: i64,
    /// The bytes of the selected ones, estimated: see [`tuples`].
    pub selected_bytes: i64,
    /// Rows; `None` where the generation has no measures.
    pub records: Option<i64>,
}

impl std::ops::AddAssign for Sampled {
    fn add_assign(&mut self, other: Self) {
        self.files = self.files.saturating_add(other.files);
        self.small_files = self.small_files.saturating_add(other.small_files);
        self.selected = self.selected.saturating_add(other.selected);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.selected_bytes = self.selected_bytes.saturating_add(other.selected_bytes);
        self.records = self.records.zip(other.records).map(|(a, b)| a.saturating_add(b));
    }
}

impl Sampled {
    /// Nothing, of a generation with or without measures.
    pub fn nothing(has_measures: bool) -> Self {
        Sampled { records: has_measures.then_some(0), ..Sampled::default() }
    }
}

/// A partition tuple of a table in the sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SampledTuple {
    /// Null for files without a spec.
    pub spec_id: Option<i64>,
    /// The values by key index, null for files without a spec.
    pub values: Option<Vec<Option<String>>>,
    /// All of its size tiers.
    pub amount: Sampled,
}

/// The published generation; `None` where the server has no sampler, or it never published.
///
/// Servers before V22 lack `measures_generation`: it is read as [`super`] says.
pub async fn published(
    connection: &mut Session,
    catalog_id: i64,
) -> sqlx::Result<Option<Generation>> {
    for table in ["hog_maintenance_summary", "hog_maintenance_summary_tier"] {
        if !server_has_table(connection, table).await? {
            return Ok(None);
        }
    }
    let row = sqlx::query!(
        r#"select published_generation, sampled_at,
                  coalesce(s.measures_generation = published_generation, false)
                    as "has_measures!"
           from (select null::bigint as measures_generation) as absent
           cross join lateral (
             select catalog_id, published_generation, sampled_at, measures_generation
             from hog_maintenance_summary) as s
           where catalog_id = $1 and published_generation > 0"#,
        catalog_id
    )
    .fetch_optional(connection)
    .await?;
    Ok(row.map(|row| Generation {
        number: row.published_generation,
        sampled_at: row.sampled_at,
        has_measures: row.has_measures,
    }))
}

/// What the sample has of each table, by id; tables without a row have no live file in it.
///
/// Sums are cut at the largest bigint, for the counts are the server's word. Servers before V22 lack
/// the rows' number: it is read as [`super`] says, and only of a generation that has it.
///
/// The bytes of selected files are an estimate, for the sample counts them and does not add up
/// them: all bytes of a size tier of which every file is selected; else, as only small files are,
/// the mean of the tier's small files times their number. A tier is of files of like size.
pub async fn tables(
    connection: &mut Session,
    catalog_id: i64,
    generation: Generation,
) -> sqlx::Result<Vec<(i64, Sampled)>> {
    // By hog_maintenance_summary_tier_table: the rows of one generation, in the order of tables.
    let rows = sqlx::query!(
        r#"select table_id,
                  least(pg_catalog.sum(file_count), 9223372036854775807)::bigint as "files!",
                  least(pg_catalog.sum(small_count), 9223372036854775807)::bigint as "small_files!",
                  least(pg_catalog.sum(selected), 9223372036854775807)::bigint as "selected!",
                  least(pg_catalog.sum(total_bytes), 9223372036854775807)::bigint as "bytes!",
                  least(pg_catalog.sum(case
                    when selected >= file_count then total_bytes
                    when small_count > 0
                      then pg_catalog.round(small_bytes::numeric
                             * least(selected, small_count)::numeric / small_count::numeric)
                    else pg_catalog.round(
                           total_bytes::numeric * selected::numeric / file_count::numeric)
                  end), 9223372036854775807)::bigint as "selected_bytes!",
                  case when $3 then
                    least(pg_catalog.sum(case when $3 then t.record_count end),
                          9223372036854775807)::bigint
                  end as records
           from (select null::bigint as record_count) as absent
           cross join lateral (
             select catalog_id, generation, table_id, file_count, small_count, selected,
                    total_bytes, small_bytes, record_count
             from hog_maintenance_summary_tier) as t
           where catalog_id = $1 and generation = $2
           group by table_id order by table_id"#,
        catalog_id,
        generation.number,
        generation.has_measures
    )
    .fetch_all(connection)
    .await?;
    let sampled = rows.into_iter().map(|row| {
        let amount = Sampled {
            files: row.files,
            small_files: row.small_files,
            selected: row.selected,
            bytes: row.bytes,
            selected_bytes: row.selected_bytes,
            records: row.records,
        };
        (row.table_id, amount)
    });
    Ok(sampled.collect())
}

/// What the sample has of each partition of a table; amounts as [`tables`] has them.
pub async fn tuples(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    generation: Generation,
) -> sqlx::Result<Vec<SampledTuple>> {
    // By hog_maintenance_summary_tier_table: this table's rows alone.
    let rows = sqlx::query!(
        r#"select spec_id, partition_values as "values: Vec<Option<String>>",
                  least(pg_catalog.sum(file_count), 9223372036854775807)::bigint as "files!",
                  least(pg_catalog.sum(small_count), 9223372036854775807)::bigint as "small_files!",
                  least(pg_catalog.sum(selected), 9223372036854775807)::bigint as "selected!",
                  least(pg_catalog.sum(total_bytes), 9223372036854775807)::bigint as "bytes!",
                  least(pg_catalog.sum(case
                    when selected >= file_count then total_bytes
                    when small_count > 0
                      then pg_catalog.round(small_bytes::numeric
                             * least(selected, small_count)::numeric / small_count::numeric)
                    else pg_catalog.round(
                           total_bytes::numeric * selected::numeric / file_count::numeric)
                  end), 9223372036854775807)::bigint as "selected_bytes!",
                  case when $4 then
                    least(pg_catalog.sum(case when $4 then t.record_count end),
                          9223372036854775807)::bigint
                  end as records
           from (select null::bigint as record_count) as absent
           cross join lateral (
             select catalog_id, generation, table_id, spec_id, partition_values, file_count,
                    small_count, selected, total_bytes, small_bytes, record_count
             from hog_maintenance_summary_tier) as t
           where catalog_id = $1 and table_id = $2 and generation = $3
           group by spec_id, partition_values"#,
        catalog_id,
        table_id,
        generation.number,
        generation.has_measures
    )
    .fetch_all(connection)
    .await?;
    let sampled = rows.into_iter().map(|row| SampledTuple {
        spec_id: row.spec_id,
        values: row.values,
        amount: Sampled {
            files: row.files,
            small_files: row.small_files,
            selected: row.selected,
            bytes: row.bytes,
            selected_bytes: row.selected_bytes,
            records: row.records,
        },
    });
    Ok(sampled.collect())
}
