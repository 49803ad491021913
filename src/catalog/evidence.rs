//! What is known of files beside their partition values: where their rows stand in the table's
//! order, and what their column statistics say.

use super::session::Session;
use crate::rules::expiry::evidence::{Bound, FileEvidence};

/// How many files one statement looks up.
pub const PIECE: usize = 8_000;

/// Whether our role may read column statistics and the tables' row-id counters. Without the first no
/// bound is known; without the second no mark is noted.
pub async fn may_read(connection: &mut Session) -> sqlx::Result<Readable> {
    sqlx::query_as!(
        Readable,
        r#"select pg_catalog.has_table_privilege('hog_file_column_stats'::regclass, 'select'::text)
                    as "column_stats!",
                  pg_catalog.has_table_privilege('hog_table_stats'::regclass, 'select'::text)
                    as "table_stats!""#
    )
    .fetch_one(connection)
    .await
}

/// Which of the tables with evidence may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Readable {
    /// `hog_file_column_stats`.
    pub column_stats: bool,
    /// `hog_table_stats`.
    pub table_stats: bool,
}

/// The evidence of live files, at most [`PIECE`] of them, by their primary keys; a file that ended
/// meanwhile is not among them. Takes no lock.
///
/// `field_id` is the column whose statistics are looked up; `None` looks up none.
pub async fn evidence_of(
    connection: &mut Session,
    catalog_id: i64,
    file_ids: &[i64],
    field_id: Option<i64>,
) -> sqlx::Result<Vec<FileEvidence>> {
    match field_id {
        Some(field_id) => with_bounds(connection, catalog_id, file_ids, field_id).await,
        None => without_bounds(connection, catalog_id, file_ids).await,
    }
}

/// Each file and its statistics are found by their own keys, whatever the planner believes of the
/// tables.
async fn with_bounds(
    connection: &mut Session,
    catalog_id: i64,
    file_ids: &[i64],
    field_id: i64,
) -> sqlx::Result<Vec<FileEvidence>> {
    let rows = sqlx::query!(
        r#"select f.data_file_id, f.row_id_start, f.begin_snapshot, f.explicit_row_ids,
                  f.stats_state = 'provided'::text as "is_provided!",
                  s.null_count as "null_count?", s.upper_bound as "upper_bound?"
           from pg_catalog.unnest($2::bigint[]) as i (id)
           cross join lateral (
             select data_file_id, row_id_start, begin_snapshot, explicit_row_ids, stats_state,
                    end_snapshot
             from hog_data_file
             where catalog_id = $1 and data_file_id = i.id offset 0) as f
           left join lateral (
             select null_count, upper_bound from hog_file_column_stats
             where catalog_id = $1 and data_file_id = i.id and field_id = $3 offset 0) as s on true
           where f.end_snapshot is null"#,
        catalog_id,
        file_ids,
        field_id
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| FileEvidence {
            data_file_id: row.data_file_id,
            row_id_start: row.row_id_start,
            begin_snapshot: row.begin_snapshot,
            is_compacted: row.explicit_row_ids,
            upper: row.upper_bound.as_deref().and_then(Bound::of_bytes),
            is_bound_of_all: row.is_provided && row.null_count == Some(0),
        })
        .collect())
}

async fn without_bounds(
    connection: &mut Session,
    catalog_id: i64,
    file_ids: &[i64],
) -> sqlx::Result<Vec<FileEvidence>> {
    let rows = sqlx::query!(
        r#"select f.data_file_id, f.row_id_start, f.begin_snapshot, f.explicit_row_ids
           from pg_catalog.unnest($2::bigint[]) as i (id)
           cross join lateral (
             select data_file_id, row_id_start, begin_snapshot, explicit_row_ids, end_snapshot
             from hog_data_file
             where catalog_id = $1 and data_file_id = i.id offset 0) as f
           where f.end_snapshot is null"#,
        catalog_id,
        file_ids
    )
    .fetch_all(connection)
    .await?;
    Ok(rows
        .into_iter()
        .map(|row| FileEvidence {
            data_file_id: row.data_file_id,
            row_id_start: row.row_id_start,
            begin_snapshot: row.begin_snapshot,
            is_compacted: row.explicit_row_ids,
            upper: None,
            is_bound_of_all: false,
        })
        .collect())
}
