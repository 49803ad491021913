//! The live deletion vectors of files.

use super::session::Session;

/// A live deletion vector that planning found on a planned file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlannedVector {
    pub delete_file_id: i64,
    /// The file whose rows it hides.
    pub data_file_id: i64,
    /// The index of the file's tuple.
    pub tuple_no: i32,
}

/// How many files one statement asks for.
const PAGE: usize = 10_000;

/// The live vectors of these files, given with the indexes of their tuples.
///
/// By hog_delete_file_data_lookup: a file without one costs one descent and no page of the table.
/// That they are live is asked outside, or the planner, without statistics, would take the index of
/// all live vectors for it.
pub async fn live_vectors(
    connection: &mut Session,
    catalog_id: i64,
    files: &[(i64, i32)],
) -> sqlx::Result<Vec<PlannedVector>> {
    let mut vectors = Vec::new();
    for page in files.chunks(PAGE) {
        let (ids, tuple_numbers): (Vec<i64>, Vec<i32>) = page.iter().copied().unzip();
        let found = sqlx::query_as!(
            PlannedVector,
            r#"select d.delete_file_id as "delete_file_id!", p.data_file_id as "data_file_id!",
                      p.tuple_no as "tuple_no!"
               from unnest($2::bigint[], $3::int[]) as p (data_file_id, tuple_no)
               cross join lateral (
                 select delete_file_id, end_snapshot from hog_delete_file
                 where catalog_id = $1 and data_file_id = p.data_file_id offset 0) as d
               where d.end_snapshot is null"#,
            catalog_id,
            &ids,
            &tuple_numbers
        )
        .fetch_all(&mut *connection)
        .await?;
        vectors.extend(found);
    }
    Ok(vectors)
}
