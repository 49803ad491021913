//! What `tailrace.in_drop_window` goes by: the setting, and the rules that are kept so that it is quick.

use std::time::Duration;

use super::session::Session;

/// Notes what of the configuration the drop window in SQL is made of.
pub async fn note_window_setting(
    connection: &mut Session,
    lead: Duration,
    min_keep: Duration,
) -> sqlx::Result<()> {
    sqlx::query!(
        r#"update tailrace.window_setting set lead_ms = $1, min_keep_seconds = $2
           where (lead_ms, min_keep_seconds) is distinct from ($1, $2)"#,
        i64::try_from(lead.as_millis()).unwrap_or(i64::MAX),
        i64::try_from(min_keep.as_secs()).unwrap_or(i64::MAX)
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// Brings the rules up to date by which `tailrace.in_drop_window` is quick. Of what changes them
/// without DDL (a spec is trusted, a copy is told its beginning) the function knows only from here.
pub async fn keep_window_rules(connection: &mut Session, catalog_id: i64) -> sqlx::Result<()> {
    sqlx::query!(r#"select tailrace.keep_window_rules($1) as "kept!: ()""#, catalog_id)
        .fetch_one(connection)
        .await?;
    Ok(())
}
