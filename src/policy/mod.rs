//! What a policy is ([`Policy`]), how its parts are read ([`keep`](crate::rules::keep), [`keep_last`], [`field`],
//! [`property`]), what its field is called by now ([`present`]), how one is stored on demand ([`set`]) and taken
//! away ([`mod@unset`]) and where it is kept ([`store`], [`row`]), also when its table is gone ([`tombstones`]); who changed
//! one ([`history`]), since when one is in force ([`governed`]), and how long a change waits ([`grace`], [`coming`]).

pub mod coming;
pub mod command;
pub(crate) mod effective;
pub mod field;
pub mod governed;
pub mod grace;
pub mod history;
pub mod keep_last;
pub mod kept_rows;
pub mod listing;
pub mod present;
pub mod property;
pub mod row;
pub mod set;
pub mod store;
pub mod tombstones;
pub mod unset;

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error, Visitor};

use crate::guards::Guards;
use crate::rules::keep::Keep;
use grace::Pending;
use present::PolicyField;

/// What a policy does.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, clap::ValueEnum, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Expired partitions are dropped.
    Enforce,
    /// What would be dropped is logged.
    Observe,
    /// Nothing is looked at.
    Paused,
}

/// Where a policy comes from. A stored one wins over a property.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// `tailrace policy set`.
    Stored,
    /// The table property `partition_retention`.
    Property,
}

/// A policy in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// Where it comes from.
    pub source: Source,
    /// The field as written, and what its column is called now.
    pub field: PolicyField,
    /// The column that it means.
    pub source_field_id: i64,
    /// How long a partition stays after its last instant.
    pub keep: Keep,
    /// So many of the newest distinct time values that have a live file stay whatever their age.
    pub keep_last: Option<i32>,
    pub mode: Mode,
    /// Whether its drops are fenced: consumers of the server's own feed are told to reconcile, at
    /// the price that every append prepared before conflicts once.
    pub fence: bool,
    /// Changes with every change of the policy, and is never used again. 0 for a property that
    /// no pass has mirrored yet.
    pub revision: i64,
    /// The text of the property that it was read from.
    pub property_text: Option<String>,
    /// Whether whoever set it was shown what the policy drops, and confirmed that.
    pub is_confirmed: bool,
    /// What comes into force later in the place of `keep`, `keep_last` and `mode`.
    pub pending: Option<Pending>,
    /// What guards its table; nothing where the policy was read by itself.
    pub guards: Guards,
}

impl Policy {
    /// The policy as it is in force under these guards: a pause takes the place of its mode.
    #[must_use]
    pub fn under(self, guards: Guards) -> Self {
        let mode = if guards.pause.is_some() { Mode::Paused } else { self.mode };
        Policy { mode, guards, ..self }
    }
}

/// A mode is a text. Serde's own way would take `{"enforce": null}` in the place of one.
impl<'de> Deserialize<'de> for Mode {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(ModeText)
    }
}

struct ModeText;

impl Visitor<'_> for ModeText {
    type Value = Mode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Mode, E> {
        text.parse().map_err(|_| E::unknown_variant(text, &["enforce", "observe", "paused"]))
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Enforce => "enforce",
            Self::Observe => "observe",
            Self::Paused => "paused",
        })
    }
}

impl FromStr for Mode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "enforce" => Ok(Self::Enforce),
            "observe" => Ok(Self::Observe),
            "paused" => Ok(Self::Paused),
            other => Err(format!("mode {other:?} is not one of enforce, observe, paused")),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stored => "stored",
            Self::Property => "property",
        })
    }
}
