//! The policies of a table as they are shown.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;
use sqlx::types::Json;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Source;
use super::grace::Pending;
use super::present::PolicyField;
use super::row::{PolicyRow, PolicyRows};
use super::store;
use super::tombstones::Tombstone;
use crate::catalog::session::Session;
use crate::catalog::specs::live_columns;
use crate::catalog::tables::{LiveTable, TableIdentity};
use crate::guards::pause::{Pause, covering};
use crate::rules::instant::UtcInstant;

/// Policies, as JSON has them: those of a table, the stored one and the property's, or of several.
#[derive(Debug, Serialize, ToSchema)]
pub struct PoliciesAnswer {
    /// The one that counts has `in_force`.
    pub policies: Vec<ListedPolicy>,
}

/// A policy row with its table, as JSON has it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedPolicy {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// The table's UUID.
    pub table_uuid: Uuid,
    /// Stored, or the table's property as a pass last saw it.
    pub source: Source,
    /// Whether it is the one that counts.
    pub in_force: bool,
    /// The field as written.
    pub field: String,
    /// The column that it means, as it is called now; null where that, or the table, is gone.
    pub column: Option<String>,
    /// The field for people.
    #[serde(skip)]
    pub shown_field: String,
    /// The id of the column.
    pub source_field_id: i64,
    /// How long a partition stays after its last instant, as written.
    pub keep: String,
    /// The same in seconds.
    pub keep_seconds: i64,
    /// So many of the newest distinct time values that have a live file stay whatever their age.
    pub keep_last: Option<i32>,
    /// `enforce`, `observe` or `paused`.
    pub mode: String,
    /// Whether its drops are fenced.
    pub fence: bool,
    /// What comes into force later in the place of `keep`, `keep_last` and `mode`; left out where nothing does.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub pending: Option<Pending>,
    /// The pause that covers the table; left out where there is none. Nothing is dropped then, whatever the mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(required = false)]
    pub pause: Option<Pause>,
    /// Never used twice.
    pub revision: i64,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// By whom.
    pub updated_by: String,
    /// Why a property is not followed.
    pub problem: Option<String>,
    /// Only where the table is gone: then the names are those that it had, and the policy is in force
    /// again when the same table (by UUID) is back.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    /// Since when a pass has seen that, if one has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gone_since: Option<DateTime<Utc>>,
}

impl ListedPolicy {
    /// A policy of a table that is gone.
    pub fn gone(tombstone: Tombstone) -> Self {
        let (namespace, table) = tombstone.names();
        let gone_since = tombstone.gone_since();
        let row = tombstone.kept.row;
        let source = row.source();
        let names = [tombstone.catalog, namespace, table];
        ListedPolicy { gone: true, gone_since, ..Self::of(names, row, source, false) }
    }

    fn of(names: [String; 3], row: PolicyRow, source: Source, in_force: bool) -> Self {
        let [catalog, namespace, table] = names;
        ListedPolicy {
            catalog,
            namespace,
            table,
            table_uuid: row.table_uuid,
            source,
            in_force,
            column: None,
            shown_field: row.field.clone(),
            field: row.field,
            source_field_id: row.source_field_id,
            keep: row.keep,
            keep_seconds: row.keep_seconds,
            keep_last: row.keep_last,
            mode: row.mode,
            fence: row.fence,
            pending: row.pending.map(|Json(terms)| Pending {
                until: row.pending_until.map(UtcInstant::from),
                terms,
            }),
            pause: None,
            revision: row.revision,
            updated_at: row.updated_at,
            updated_by: row.updated_by,
            problem: row.problem,
            gone: false,
            gone_since: None,
        }
    }
}

/// The stored policy of a table and the mirror of its property, as far as there are any.
pub async fn listed(
    connection: &mut Session,
    table: &LiveTable,
) -> sqlx::Result<Vec<ListedPolicy>> {
    let rows = store::rows(connection, &table.identity).await?;
    if rows == PolicyRows::default() {
        return Ok(Vec::new());
    }
    let stored_wins = rows.stored.is_some();
    let property = table.property.as_ref().and_then(Value::as_str);
    // Of a text that is not the table's any more, or not yet, nothing is dropped.
    let is_followed =
        |row: &PolicyRow| row.problem.is_none() && row.property_text.as_deref() == property;
    let pause = covering(connection, &table.identity).await?;
    let TableIdentity { catalog_id, catalog, table_id, namespace, table, .. } = &table.identity;
    let shape = live_columns(connection, *catalog_id, *table_id).await?;
    let entry = |row: PolicyRow, source: Source| {
        let in_force = source == Source::Stored || (!stored_wins && is_followed(&row));
        let names = [catalog, namespace, table].map(String::clone);
        let field = PolicyField::of(&row.field, row.source_field_id, &shape);
        ListedPolicy {
            column: field.column().map(str::to_owned),
            shown_field: field.to_string(),
            pause: pause.clone().filter(|_| in_force),
            ..ListedPolicy::of(names, row, source, in_force)
        }
    };
    let stored = rows.stored.map(|row| entry(row, Source::Stored));
    let mirror = rows.mirror.map(|row| entry(row, Source::Property));
    Ok(stored.into_iter().chain(mirror).collect())
}
