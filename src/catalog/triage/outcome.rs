//! What a pass notes of a table that it worked on.

use uuid::Uuid;

use crate::catalog::session::Session;
use crate::rules::instant::UtcInstant;

/// How a pass over a table ended that looked at everything that was due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Through<'a> {
    /// The outcome, as JSON has it; `None` where another pass is to look all the same.
    pub outcome: Option<&'a str>,
    /// What it said.
    pub error: Option<&'a str>,
    /// What had ended by then was looked at.
    pub cutoff: Option<UtcInstant>,
    /// The revision of the policy by which it went.
    pub policy_revision: i64,
    /// The guard revision by which it went.
    pub guard_revision: i64,
    /// The catalog's `schema_version`, read before anything else of the table was.
    pub schema_version: i64,
    /// The table's shape, read after that and before the rest.
    pub shape: Option<&'a str>,
    /// The text of its property then.
    pub property: Option<&'a str>,
    /// Files whose time is unknown, and of no spec with a time field, where they were counted.
    pub counted: Option<(i64, i64)>,
}

/// Notes it; nothing where the pass left no memory of the table. For whoever has the catalog's lease, as all
/// here.
pub async fn note_through(
    connection: &mut Session,
    catalog_id: i64,
    table_uuid: Uuid,
    through: &Through<'_>,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.table_state
           set outcome = $3, error = $4, looked_through = $5, policy_revision = $6, guard_revision = $12,
               schema_version = $7, shape = $8, property = $9,
               undatable_files = coalesce($10, undatable_files),
               uncovered_files = coalesce($11, uncovered_files),
               unlooked = 0, quiet_until = null
           where catalog_id = $1 and table_uuid = $2"#,
        catalog_id,
        table_uuid,
        through.outcome,
        through.error,
        through.cutoff.and_then(UtcInstant::to_chrono),
        through.policy_revision,
        through.schema_version,
        through.shape,
        through.property,
        through.counted.map(|counted| counted.0),
        through.counted.map(|counted| counted.1),
        through.guard_revision
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes the same of a pass that was woken for what was due, and looked at nothing else: what a regular pass
/// has left undone it has not done.
pub async fn note_woken(
    connection: &mut Session,
    catalog_id: i64,
    table_uuid: Uuid,
    through: &Through<'_>,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.table_state
           set outcome = case when outcome is not null then $3 end,
               error = case when outcome is not null then $4 end,
               looked_through = case when policy_revision = $6 then $5 else looked_through end,
               unlooked = 0, quiet_until = null
           where catalog_id = $1 and table_uuid = $2"#,
        catalog_id,
        table_uuid,
        through.outcome,
        through.error,
        through.cutoff.and_then(UtcInstant::to_chrono),
        through.policy_revision
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Notes that what was due was not looked at, or not all of it, for so many times in a row, and that it wakes
/// nobody before `quiet_until`.
pub async fn note_unlooked(
    connection: &mut Session,
    catalog_id: i64,
    table_uuid: Uuid,
    times: u32,
    quiet_until: UtcInstant,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.table_state
           set outcome = null, error = null, unlooked = $3, quiet_until = $4
           where catalog_id = $1 and table_uuid = $2"#,
        catalog_id,
        table_uuid,
        i32::try_from(times).unwrap_or(i32::MAX),
        quiet_until.to_chrono()
    )
    .execute(connection)
    .await?;
    Ok(())
}
