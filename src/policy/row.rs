//! A row of `tailrace.policy`, and the policy that it says.

use chrono::{DateTime, Utc};
use sqlx::types::Json;
use uuid::Uuid;

use super::grace::{Pending, PendingTerms};
use super::history::PolicyTerms;
use super::present::PolicyField;
use super::{Policy, Source};
use crate::catalog::specs::TableShape;
use crate::guards::Guards;
use crate::rules::instant::UtcInstant;
use crate::rules::keep::Keep;

/// A row of `tailrace.policy`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRow {
    /// `stored` or `property`.
    pub source: String,
    /// The UUID of the table that it is for.
    pub table_uuid: Uuid,
    /// As written.
    pub field: String,
    /// The column that it means.
    pub source_field_id: i64,
    /// As written.
    pub keep: String,
    /// The same in seconds.
    pub keep_seconds: i64,
    /// So many of the newest time values stay whatever their age.
    pub keep_last: Option<i32>,
    /// `enforce`, `observe` or `paused`.
    pub mode: String,
    /// Whether its drops are fenced.
    pub fence: bool,
    /// Whether whoever set it was shown what the policy drops, and confirmed that.
    pub is_confirmed: bool,
    /// The property's text that a mirror was read from.
    pub property_text: Option<String>,
    /// Why a mirror is not followed.
    pub problem: Option<String>,
    /// Never used twice.
    pub revision: i64,
    /// When it was last changed.
    pub updated_at: DateTime<Utc>,
    /// By whom.
    pub updated_by: String,
    /// What comes into force later: a pass brings it in.
    pub pending: Option<Json<PendingTerms>>,
    /// When.
    pub pending_until: Option<DateTime<Utc>>,
}

impl PolicyRow {
    /// Where it comes from.
    pub fn source(&self) -> Source {
        if self.source == "stored" { Source::Stored } else { Source::Property }
    }

    /// Whether it is followed: a mirror may say why not.
    pub fn is_followed(&self) -> bool {
        self.problem.is_none()
    }

    /// The row as a policy, of a table with these columns.
    ///
    /// # Errors
    /// A mode that this version does not know.
    pub fn policy(&self, shape: &TableShape) -> Result<Policy, String> {
        let pending = self
            .pending
            .clone()
            .map(|Json(terms)| Pending { until: self.pending_until.map(UtcInstant::from), terms });
        Ok(Policy {
            source: self.source(),
            field: PolicyField::of(&self.field, self.source_field_id, shape),
            source_field_id: self.source_field_id,
            keep: Keep::from_stored(self.keep.clone(), self.keep_seconds),
            keep_last: self.keep_last,
            mode: self.mode.parse()?,
            fence: self.fence,
            is_confirmed: self.is_confirmed,
            revision: self.revision,
            property_text: self.property_text.clone(),
            pending,
            guards: Guards::default(),
        })
    }
}

impl From<&PolicyRow> for PolicyTerms {
    fn from(row: &PolicyRow) -> Self {
        let (keep, keep_last, mode) = match &row.pending {
            Some(Json(terms)) => (terms.keep.clone(), terms.keep_last, terms.mode.to_string()),
            None => (row.keep.clone(), row.keep_last, row.mode.clone()),
        };
        PolicyTerms {
            field: row.field.clone(),
            source_field_id: row.source_field_id,
            keep,
            keep_last,
            mode,
            fence: row.fence,
            problem: row.problem.clone(),
        }
    }
}

/// The rows of one table: the stored policy and the property's mirror.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRows {
    /// The row of source `stored`.
    pub stored: Option<PolicyRow>,
    /// The row of source `property`: the mirror of the table's property.
    pub mirror: Option<PolicyRow>,
}

impl PolicyRows {
    /// The row of a source.
    pub(super) fn of(&self, source: Source) -> Option<&PolicyRow> {
        match source {
            Source::Stored => self.stored.as_ref(),
            Source::Property => self.mirror.as_ref(),
        }
    }
}
