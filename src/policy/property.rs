//! The table property `partition_retention`: a second, read-only source of policies.
//!
//! Its value is JSON text, an object: `{"field": "day(timestamp)", "keep": "7d"}`, optionally with
//! `"keep_last"` (a number), `"mode"` and `"fence"`. A property with any other key is refused, because somebody may rely on what the key
//! means.

use serde::Deserialize;
use serde_json::Value;

use super::field::FieldExpression;
use super::grace::PolicyLimits;
use super::present::PolicyField;
use super::row::PolicyRow;
use super::{Mode, Policy, Source, keep_last};
use crate::catalog::specs::TableShape;
use crate::guards::Guards;
use crate::rules::keep::Keep;
use crate::rules::object::Object;

/// The name of the table property.
pub const PROPERTY: &str = "partition_retention";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PropertyText {
    field: String,
    keep: String,
    #[serde(default)]
    keep_last: Option<i64>,
    #[serde(default)]
    mode: Option<Mode>,
    #[serde(default)]
    fence: bool,
}

/// What the property means for a table now, given the mirror that an earlier pass left.
///
/// The field is bound to the column that it meant when it was first seen: the same field text
/// follows that column through renames and spec changes, and is refused once it names another.
/// A mode that the text leaves out is the mirror's, as it is for a stored policy, so that a change of
/// `keep` alone arms nothing; without a mirror it enforces. A change by which partitions may go earlier waits
/// ([`super::grace`]).
/// The revision is the mirror's, 0 where the mirror says something else.
///
/// # Errors
/// A sentence that says why the property is not followed.
pub fn read(
    value: &Value,
    mirror: Option<&PolicyRow>,
    shape: &TableShape,
    limits: PolicyLimits,
) -> Result<Policy, String> {
    let refused = |reason: String| format!("table property {PROPERTY} is not followed: {reason}");
    let Value::String(text) = value else {
        return Err(refused("its value is not JSON text".to_owned()));
    };
    let Object(parsed) = serde_json::from_str::<Object<PropertyText>>(text)
        .map_err(|error| refused(format!("{error}, in {}", shortened(text))))?;
    let keep = Keep::parse(&parsed.keep)
        .and_then(|keep| keep.at_least(limits.min_keep))
        .map_err(|error| refused(error.to_string()))?;
    let keep_last = keep_last::read(parsed.keep_last).map_err(&refused)?;
    let expression =
        FieldExpression::parse(&parsed.field).map_err(|error| refused(error.to_string()))?;
    let bound = mirror.filter(|row| row.field == parsed.field);
    let source_field_id = match bound {
        None => expression.resolve(shape).map_err(|error| refused(error.to_string()))?,
        Some(row) => match expression.column_id(shape) {
            Some(other) if other != row.source_field_id => {
                let first = row.source_field_id;
                let called = match shape.live_path(first) {
                    Some(path) => format!("called {:?} now", shortened(&path)),
                    None => "which is gone".to_owned(),
                };
                return Err(refused(format!(
                    "field {:?} now names another column (field id {other}) than when it was first seen \
                     (field id {first}, {called}): set a policy with `tailrace policy set`, or remove the \
                     property for one pass",
                    parsed.field
                )));
            }
            _ => row.source_field_id,
        },
    };
    let before = mirror.map(|row| row.policy(shape)).transpose().map_err(&refused)?;
    let mode = match (parsed.mode, &before) {
        (Some(mode), _) => mode,
        (None, Some(before)) => before.clone().asked().mode,
        (None, None) => Mode::Enforce,
    };
    let unchanged = mirror.filter(|row| {
        row.property_text.as_deref() == Some(text)
            && row.is_followed()
            && row.source_field_id == source_field_id
    });
    let asked = Policy {
        source: Source::Property,
        field: PolicyField::of(&parsed.field, source_field_id, shape),
        source_field_id,
        keep,
        keep_last,
        mode,
        fence: parsed.fence,
        is_confirmed: unchanged.is_some_and(|row| row.is_confirmed),
        revision: unchanged.map_or(0, |row| row.revision),
        property_text: Some(text.clone()),
        pending: None,
        guards: Guards::default(),
    };
    Ok(match (unchanged, before) {
        // What its mirror says of what is in force by now counts.
        (Some(_), Some(Policy { keep, keep_last, mode, pending, .. })) => {
            Policy { keep, keep_last, mode, pending, ..asked }
        }
        // What was not followed dropped nothing.
        (_, before) => {
            let is_followed = mirror.is_some_and(PolicyRow::is_followed);
            asked.after(before.filter(|_| is_followed).as_ref(), limits)
        }
    })
}

/// The mode that the text of a property asks for, whether or not it is followed; `None` where that cannot be
/// read.
pub fn mode_of_text(value: &Value) -> Option<Mode> {
    let text: Value = serde_json::from_str(value.as_str()?).ok()?;
    text.get("mode")?.as_str()?.parse().ok()
}

fn shortened(text: &str) -> String {
    const SHOWN: usize = 200;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
