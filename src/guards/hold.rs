//! Holds: `tailrace.hold`. A hold keeps partitions of a table, or all of it, from every drop of ours until it is
//! released or its time is over. It binds tailrace alone.

use chrono::{DateTime, Utc};
use serde::Serialize;
use sqlx::types::Json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::revision::{Change, raise};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::rules::hold::{HeldPartition, HoldScope};
use crate::rules::instant::UtcInstant;

/// A hold, as JSON has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
// Another `Hold` is in what became of drops.
#[schema(as = PartitionHold)]
pub struct Hold {
    /// Its id, by which it is released.
    pub hold_id: i64,
    /// The catalog's name.
    pub catalog: String,
    /// The namespace of the table, as it was called.
    pub namespace: String,
    /// The table, as it was called.
    pub table: String,
    /// The table's UUID.
    pub table_uuid: Uuid,
    /// The partitions that it keeps; null where it keeps those with a value, or all of the table.
    pub partitions: Option<Vec<HeldPartition>>,
    /// The column of the value; null where it keeps listed partitions, or all of the table.
    pub column: Option<String>,
    /// The value.
    pub value: Option<String>,
    /// Why, as it was given.
    pub reason: String,
    /// Who made it.
    pub held_by: String,
    /// Since when, by the database's clock.
    pub held_at: UtcInstant,
    /// When it ends by itself; null where somebody has to release it.
    pub until: Option<UtcInstant>,
    /// The ids of the catalog and the table.
    #[serde(skip)]
    pub catalog_id: i64,
    #[serde(skip)]
    pub table_id: i64,
    /// What it keeps.
    #[serde(skip)]
    pub scope: HoldScope,
}

impl Hold {
    /// What it keeps, in words.
    pub fn what(&self) -> String {
        match (&self.partitions, &self.column, &self.value) {
            (Some(partitions), ..) => match partitions.as_slice() {
                [one] => format!(
                    "partition {} of spec {}",
                    serde_json::to_string(&one.values).unwrap_or_default(),
                    one.spec_id
                ),
                several => format!("{} partitions", several.len()),
            },
            (None, Some(column), Some(value)) => {
                format!("every partition that may have {column}={value}")
            }
            _ => "all of the table".to_owned(),
        }
    }

    /// The hold in words: what, who, since when, until when and why.
    pub fn describe(&self) -> String {
        let Hold { hold_id, held_by, held_at, reason, .. } = self;
        let until = self.until.map(|until| format!(" until {until}")).unwrap_or_default();
        format!(
            "hold {hold_id} by {held_by} since {held_at}{until} keeps {}: {reason}",
            self.what()
        )
    }
}

/// A hold to be made.
#[derive(Debug, Clone)]
pub struct NewHold<'a> {
    /// What it keeps.
    pub scope: HoldScope,
    /// The column of a value, as it is called.
    pub column: Option<&'a str>,
    pub reason: &'a str,
    /// Who makes it.
    pub by: &'a str,
    /// When it ends by itself.
    pub until: Option<DateTime<Utc>>,
}

/// The row of the statements below.
macro_rules! hold_of_row {
    ($row:expr) => {{
        let partitions: Option<Vec<HeldPartition>> = $row.partitions.map(|Json(them)| them);
        let scope = match (&partitions, $row.source_field_id, &$row.value) {
            (Some(partitions), ..) => HoldScope::Partitions(partitions.clone()),
            (None, Some(source_field_id), Some(value)) => {
                HoldScope::Value { source_field_id, value: value.clone() }
            }
            _ => HoldScope::Table,
        };
        Hold {
            hold_id: $row.hold_id,
            catalog: $row.catalog_name,
            namespace: $row.namespace_name,
            table: $row.table_name,
            table_uuid: $row.table_uuid,
            partitions,
            column: $row.column_name,
            value: $row.value,
            reason: $row.reason,
            held_by: $row.held_by,
            held_at: $row.held_at.into(),
            until: $row.until.map(UtcInstant::from),
            catalog_id: $row.catalog_id,
            table_id: $row.table_id,
            scope,
        }
    }};
}

pub(super) use hold_of_row;

/// All holds, those that have ended and were not yet released included, by id.
pub async fn all(connection: &mut Session) -> sqlx::Result<Vec<Hold>> {
    let rows = sqlx::query!(
        r#"select catalog_id, table_id, hold_id, catalog_name, namespace_name, table_name, table_uuid,
                  partitions as "partitions: Json<Vec<HeldPartition>>", source_field_id, column_name,
                  value, reason, held_by, held_at, until
           from tailrace.hold order by hold_id"#
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| hold_of_row!(row)).collect())
}

/// The holds of a table that have not ended, by id.
pub async fn of_table(connection: &mut Session, table: &TableIdentity) -> sqlx::Result<Vec<Hold>> {
    let rows = sqlx::query!(
        r#"select catalog_id, table_id, hold_id, catalog_name, namespace_name, table_name, table_uuid,
                  partitions as "partitions: Json<Vec<HeldPartition>>", source_field_id, column_name,
                  value, reason, held_by, held_at, until
           from tailrace.hold
           where catalog_id = $1 and table_uuid = $2
             and (until is null or until > pg_catalog.clock_timestamp())
           order by hold_id"#,
        table.catalog_id,
        table.table_uuid
    )
    .fetch_all(connection)
    .await?;
    Ok(rows.into_iter().map(|row| hold_of_row!(row)).collect())
}

/// Makes a hold. Waits for drops in their commits, as long as the session's `lock_timeout` allows: none that
/// ends what it keeps commits after this has returned.
pub async fn add(
    connection: &mut Session,
    table: &TableIdentity,
    new: NewHold<'_>,
) -> sqlx::Result<Hold> {
    let (partitions, field_value) = match new.scope {
        HoldScope::Table => (None, None),
        HoldScope::Partitions(partitions) => (Some(Json(partitions)), None),
        HoldScope::Value { source_field_id, value } => (None, Some((source_field_id, value))),
    };
    let (source_field_id, value) = field_value.unzip();
    let mut transaction = connection.begin().await?;
    raise(&mut transaction, table.catalog_id, Change::Tightens).await?;
    let row = sqlx::query!(
        r#"insert into tailrace.hold (catalog_id, table_id, table_uuid, catalog_name, namespace_name,
               table_name, partitions, source_field_id, column_name, value, reason, held_by, until)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
           returning catalog_id, table_id, hold_id, catalog_name, namespace_name, table_name, table_uuid,
                     partitions as "partitions: Json<Vec<HeldPartition>>", source_field_id, column_name,
                     value, reason, held_by, held_at, until"#,
        table.catalog_id,
        table.table_id,
        table.table_uuid,
        table.catalog,
        table.namespace,
        table.table,
        partitions as _,
        source_field_id,
        new.column,
        value,
        new.reason,
        new.by,
        new.until
    )
    .fetch_one(&mut *transaction)
    .await?;
    transaction.commit().await?;
    let hold = hold_of_row!(row);
    let Hold { hold_id, catalog, namespace, table, held_by, reason, until, .. } = &hold;
    tracing::info!(
        event = events::HOLD_ADDED,
        catalog,
        namespace,
        table,
        hold_id,
        holds = hold.what(),
        by = held_by,
        reason,
        until = until.map(tracing::field::display),
        "Partitions are held: no drop of tailrace ends them"
    );
    Ok(hold)
}
