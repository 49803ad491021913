//! Sets policies on many tables at once, so that a few tables have a day that expires and the others have none.

use anyhow::{Result, ensure};
use sqlx::AssertSqlSafe;

use super::bench::Db;
use super::fixture::DAY_COLUMN;

/// One table in this number has a day that expires.
pub const ONE_IN: i64 = 100;

/// The condition for these tables, by the ids that the fixtures assign.
const IS_ONE_OF_THE_FEW: &str = "(v.table_id + 5 * (v.catalog_id - 1)) % 100 = 1";

/// Sets a policy on every table: with `keep` on the few, with 100 days more on the others. Returns the number of
/// all tables and of the few.
pub async fn govern_all(db: &Db, keep_days: i64) -> Result<(i64, i64)> {
    let statement = format!(
        "with numbered as (
           select v.catalog_id, v.table_id, t.table_uuid, c.name as catalog, n.name as namespace, v.name,
                  l.field_id,
                  {keep_days} + case when {IS_ONE_OF_THE_FEW} then 0 else 100 end as days
           from hog_table_version v
           join hog_table t using (catalog_id, table_id)
           join hog_catalog c using (catalog_id)
           join hog_namespace n using (catalog_id, namespace_id)
           join hog_column l on l.catalog_id = v.catalog_id and l.table_id = v.table_id
                            and l.name = '{DAY_COLUMN}'
           where v.end_snapshot is null)
         insert into tailrace.policy (catalog_id, table_id, source, table_uuid, field, source_field_id,
                                      keep, keep_seconds, mode, revision, updated_by, catalog_name,
                                      namespace_name, table_name)
         select catalog_id, table_id, 'stored', table_uuid, '{DAY_COLUMN}', field_id,
                days || 'd', days * 86400, 'enforce', nextval('tailrace.policy_revision'), 'benchmark',
                catalog, namespace, name
         from numbered"
    );
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&db.pool).await?;
    sqlx::raw_sql("vacuum (analyze) tailrace.policy").execute(&db.pool).await?;
    let few = AssertSqlSafe(format!(
        "select count(*), count(*) filter (where {IS_ONE_OF_THE_FEW}) from tailrace.policy v"
    ));
    let (all, few): (i64, i64) = sqlx::query_as(few).fetch_one(&db.pool).await?;
    ensure!(few * ONE_IN == all, "{few} of {all} tables are the few");
    Ok((all, few))
}

/// Deletes the policies of all tables but the few.
pub async fn ungovern_others(db: &Db) -> Result<()> {
    let statement = format!("delete from tailrace.policy v where not ({IS_ONE_OF_THE_FEW})");
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&db.pool).await?;
    sqlx::raw_sql("vacuum (analyze) tailrace.policy").execute(&db.pool).await?;
    Ok(())
}
