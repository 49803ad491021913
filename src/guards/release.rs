//! How holds end: somebody releases them, and they end at once or after `guard.policy_grace`; or their time is over.

use std::time::Duration;

use sqlx::types::Json;

use super::hold::{Hold, hold_of_row};
use super::revision::{Change, raise};
use crate::catalog::session::Session;
use crate::events;
use crate::rules::hold::{HeldPartition, HoldScope};
use crate::rules::instant::UtcInstant;

/// Releases a hold, in `grace` or at once where that is zero; gives it back, or `None` where there is none with this id.
pub async fn release(
    connection: &mut Session,
    hold_id: i64,
    by: &str,
    grace: Duration,
) -> sqlx::Result<Option<Hold>> {
    if !grace.is_zero() {
        return end_in(connection, hold_id, by, grace).await;
    }
    let mut transaction = connection.begin().await?;
    let rows = sqlx::query!(
        r#"delete from tailrace.hold
           where hold_id = $1
           returning catalog_id, table_id, hold_id, catalog_name, namespace_name, table_name, table_uuid,
                     partitions as "partitions: Json<Vec<HeldPartition>>", source_field_id, column_name,
                     value, reason, held_by, held_at, until"#,
        hold_id
    )
    .fetch_all(&mut *transaction)
    .await?;
    let mut released = None;
    for row in rows {
        raise(&mut transaction, row.catalog_id, Change::Loosens).await?;
        released = Some(hold_of_row!(row));
    }
    transaction.commit().await?;
    if let Some(hold) = &released {
        let Hold { hold_id, catalog, namespace, table, held_by, held_at, until, .. } = hold;
        tracing::info!(
            event = events::HOLD_RELEASED,
            catalog,
            namespace,
            table,
            hold_id,
            holds = hold.what(),
            by,
            held_by,
            %held_at,
            until = until.map(tracing::field::display),
            "A hold is over"
        );
    }
    Ok(released)
}

/// Has a hold end in `grace`, or when it was to end before, if that is earlier. It keeps what it keeps until then.
async fn end_in(
    connection: &mut Session,
    hold_id: i64,
    by: &str,
    grace: Duration,
) -> sqlx::Result<Option<Hold>> {
    let row = sqlx::query!(
        r#"update tailrace.hold
           set until = least(until, pg_catalog.clock_timestamp()
                                    + pg_catalog.make_interval(secs => $2::double precision))
           where hold_id = $1
           returning catalog_id, table_id, hold_id, catalog_name, namespace_name, table_name, table_uuid,
                     partitions as "partitions: Json<Vec<HeldPartition>>", source_field_id, column_name,
                     value, reason, held_by, held_at, until"#,
        hold_id,
        grace.as_secs_f64()
    )
    .fetch_optional(connection)
    .await?;
    let held = row.map(|row| hold_of_row!(row));
    if let Some(hold) = &held {
        let Hold { hold_id, catalog, namespace, table, held_by, held_at, until, .. } = hold;
        tracing::info!(
            event = events::HOLD_RELEASE_WAITS,
            catalog,
            namespace,
            table,
            hold_id,
            holds = hold.what(),
            by,
            held_by,
            %held_at,
            until = until.map(tracing::field::display),
            "A hold was released, and ends later"
        );
    }
    Ok(held)
}
