//! Whether snapshot ids are dense.

use crate::catalog::session::Session;

/// How many snapshots have an id from `from` to `through`, both included: by the primary key's index
/// alone.
pub async fn snapshots_between(
    connection: &mut Session,
    catalog_id: i64,
    from: i64,
    through: i64,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "snapshots!" from hog_snapshot
           where catalog_id = $1 and snapshot_id between $2 and $3"#,
        catalog_id,
        from,
        through
    )
    .fetch_one(connection)
    .await
}

/// The highest ids from `from` to `through` that no snapshot has, at most `most` of them, in
/// descending order. Each id costs one descent of the primary key, so the range is to be a piece.
pub async fn missing_snapshots(
    connection: &mut Session,
    catalog_id: i64,
    from: i64,
    through: i64,
    most: i64,
) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar!(
        r#"select id as "id!" from pg_catalog.generate_series($3::bigint, $2::bigint, -1) as id
           where not exists (select from hog_snapshot
                             where catalog_id = $1 and snapshot_id = id)
           limit $4"#,
        catalog_id,
        from,
        through,
        most
    )
    .fetch_all(connection)
    .await
}

/// Snapshots above the head, at most `most` of them.
pub async fn snapshots_above(
    connection: &mut Session,
    catalog_id: i64,
    head: i64,
    most: i64,
) -> sqlx::Result<Vec<i64>> {
    sqlx::query_scalar!(
        r#"select snapshot_id from hog_snapshot
           where catalog_id = $1 and snapshot_id > $2 order by snapshot_id limit $3"#,
        catalog_id,
        head,
        most
    )
    .fetch_all(connection)
    .await
}
