//! Holds on demand: makes one of a request, and says what holds keep.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::call::{PartitionItem, TableRef};
use super::problem::Problem;
use super::validate::{self, LONGEST_AUTHOR, LONGEST_MESSAGE, Resolved, fits};
use super::{catalog_id, internal, live_table};
use crate::catalog::clock;
use crate::catalog::session::Session;
use crate::catalog::specs::{copy_specs, spec_book, table_shape};
use crate::catalog::tables::{Catalog, TableIdentity, live_tables_among};
use crate::guards::held::{DroppedBefore, Keeps, KeptPartition, dropped_before, kept_by, sum};
use crate::guards::hold::{self, Hold, NewHold};
use crate::rules::hold::{HeldPartition, HoldScope};
use crate::rules::instant::UtcInstant;
use crate::rules::transform::canonical_integer;

/// The body that makes a hold: of the listed partitions, of those with a value in a column, or of all of the table
/// where it names neither.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HoldBody {
    /// 1 to 10,000 partitions, each once.
    #[serde(default)]
    pub partitions: Option<Vec<PartitionItem>>,
    /// The column of a value, by its path (`team_id`, `meta.team`).
    #[serde(default)]
    pub column: Option<String>,
    /// The value, as partition values of the column are stored.
    #[serde(default)]
    pub value: Option<String>,
    /// Why, at most 8,192 bytes of UTF-8.
    pub reason: String,
    /// When the hold ends by itself (RFC 3339); null where somebody has to release it.
    #[serde(default)]
    pub until: Option<String>,
}

/// A hold that was made.
#[derive(Debug, Serialize, ToSchema)]
pub struct HoldAnswer {
    /// The hold.
    #[serde(flatten)]
    pub hold: Hold,
    /// What it keeps.
    pub keeps: Keeps,
    /// The first of the partitions that it keeps and that have live files, at most 1,000.
    pub kept: Vec<KeptPartition>,
    /// The partitions that it would have kept, and that drops of tailrace ended within the hour before it.
    pub dropped_before: Vec<DroppedBefore>,
}

/// Holds, as JSON has them.
#[derive(Debug, Serialize, ToSchema)]
pub struct HoldsAnswer {
    /// By id.
    pub holds: Vec<ListedHold>,
}

/// A hold with what it keeps.
#[derive(Debug, Serialize, ToSchema)]
pub struct ListedHold {
    #[serde(flatten)]
    pub hold: Hold,
    /// What it keeps; null where the table is gone.
    pub keeps: Option<Keeps>,
}

/// So many partitions are listed in an answer.
const LISTED: usize = 1_000;

/// Makes a hold, and says after its commit what it keeps, as far as it is found in `limit`, and which of that was
/// dropped just before. From the commit on no drop of tailrace ends what it keeps.
pub async fn add(
    connection: &mut Session,
    table: &TableRef,
    body: &HoldBody,
    by: &str,
    limit: Duration,
) -> Result<HoldAnswer, Problem> {
    let catalog_id = catalog_id(connection, table).await?;
    let given = |text: &Option<String>| text.clone().unwrap_or_default();
    for (name, text, longest) in [
        ("by", by, LONGEST_AUTHOR),
        ("reason", &body.reason, LONGEST_MESSAGE),
        ("column", &given(&body.column), LONGEST_MESSAGE),
        ("value", &given(&body.value), LONGEST_MESSAGE),
    ] {
        refuse_nul(name, text)?;
        fits(text, longest).map_err(|why| Problem::Validation(format!("{name} {why}")))?;
    }
    if body.reason.trim().is_empty() {
        return Err(Problem::Validation("reason is empty".to_owned()));
    }
    let until = until(connection, body).await?;
    let identity = live_table(connection, catalog_id, table).await?;
    let scope = scope(connection, &identity, body).await?;
    // What its specs say is known as long as it holds.
    copy_specs(connection, catalog_id, None).await.map_err(internal)?;
    let column = body.column.as_deref();
    let new = NewHold { scope, column, reason: &body.reason, by, until };
    let hold = hold::add(connection, &identity, new).await.map_err(internal)?;
    let (mut kept, complete) = kept_by(connection, &hold, limit).await.map_err(internal)?;
    let keeps = sum(&kept, complete);
    let dropped_before = dropped_before(connection, &hold).await.map_err(internal)?;
    kept.truncate(LISTED);
    Ok(HoldAnswer { hold, keeps, kept, dropped_before })
}

/// All holds, or those of one table, each with what it keeps as far as that is found in `limit`.
pub async fn list(
    connection: &mut Session,
    table: Option<&TableRef>,
    limit: Duration,
) -> Result<HoldsAnswer, Problem> {
    let holds = match table {
        None => hold::all(connection).await.map_err(internal)?,
        Some(table) => {
            let catalog_id = catalog_id(connection, table).await?;
            let identity = live_table(connection, catalog_id, table).await?;
            let mut holds = hold::all(connection).await.map_err(internal)?;
            holds.retain(|hold| hold.table_uuid == identity.table_uuid);
            holds
        }
    };
    let mut listed = Vec::with_capacity(holds.len());
    for hold in holds {
        let keeps = match is_live(connection, &hold).await.map_err(internal)? {
            false => None,
            true => {
                let (kept, complete) = kept_by(connection, &hold, limit).await.map_err(internal)?;
                Some(sum(&kept, complete))
            }
        };
        listed.push(ListedHold { hold, keeps });
    }
    Ok(HoldsAnswer { holds: listed })
}

/// Whether the table of a hold is still there, whatever its name is now.
async fn is_live(connection: &mut Session, hold: &Hold) -> sqlx::Result<bool> {
    let catalog = Catalog { catalog_id: hold.catalog_id, name: hold.catalog.clone() };
    let live = live_tables_among(connection, &catalog, false, Some(&[hold.table_id])).await?;
    Ok(live.iter().any(|table| table.identity.table_uuid == hold.table_uuid))
}

/// What the body names, checked against the table.
async fn scope(
    connection: &mut Session,
    identity: &TableIdentity,
    body: &HoldBody,
) -> Result<HoldScope, Problem> {
    let TableIdentity { catalog_id, table_id, .. } = *identity;
    let refuse = |text: String| Err(Problem::Validation(text));
    let shape = table_shape(connection, catalog_id, table_id).await.map_err(internal)?;
    match (&body.partitions, &body.column, &body.value) {
        (None, None, None) => Ok(HoldScope::Table),
        (Some(items), None, None) => {
            let default_spec_id = shape.live_spec.as_ref().map(|(spec_id, _)| *spec_id);
            validate::check_list(items, default_spec_id)?;
            let book = spec_book(connection, catalog_id, table_id).await.map_err(internal)?;
            let resolved = validate::resolve(items, default_spec_id, &book)?;
            let partition = |resolved: Resolved| HeldPartition {
                spec_id: resolved.tuple.spec_id,
                values: resolved.tuple.tuple.values,
            };
            Ok(HoldScope::Partitions(resolved.into_iter().map(partition).collect()))
        }
        (None, Some(path), Some(value)) => {
            refuse_nul("value", value)?;
            let Some(column) = shape.leaf_by_path(path) else {
                return refuse(format!("the table has no column {path:?}"));
            };
            let is_integer = matches!(column.col_type.as_str(), "int8" | "int16" | "int" | "long");
            if is_integer && canonical_integer(value).is_err() {
                return refuse(format!(
                    "{value:?} is no value of {path}, whose type is {}: say it as 42 or -42",
                    column.col_type
                ));
            }
            Ok(HoldScope::Value { source_field_id: column.field_id, value: value.clone() })
        }
        _ => refuse(
            "a hold names partitions, or a column with a value, or neither for all of the table"
                .to_owned(),
        ),
    }
}

/// The time at which the hold ends, which must lie ahead by the database's clock.
async fn until(
    connection: &mut Session,
    body: &HoldBody,
) -> Result<Option<DateTime<Utc>>, Problem> {
    let Some(text) = &body.until else { return Ok(None) };
    let until: UtcInstant =
        text.parse().map_err(|error| Problem::Validation(format!("until: {error}")))?;
    let now = clock::now(connection).await.map_err(internal)?;
    if until <= now {
        return Err(Problem::Validation(format!(
            "until is {until}, which has passed: it is {now}"
        )));
    }
    let too_late = || Problem::Validation(format!("until is {until}, which is too far ahead"));
    until.to_chrono().map(Some).ok_or_else(too_late)
}

fn refuse_nul(name: &str, text: &str) -> Result<(), Problem> {
    match text.contains('\0') {
        true => Err(Problem::Validation(format!("{name} has a NUL, which no text can have"))),
        false => Ok(()),
    }
}
