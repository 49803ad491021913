//! The rights that the database role needs: the one list that README, doctor and tests share.

use crate::catalog::connect::quote_identifier;

/// What a right is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Policies and passes: without it nothing works as it should.
    Passes,
    /// What proves that a file's partition values are what its spec says: without it doubtful values
    /// are kept, and the others are not compared with column statistics.
    Evidence,
    /// The explicit drop, truncate, and the feed of changes.
    ExplicitDropsAndFeed,
    /// The claims that keep compaction from files about to be dropped (`compaction.claims`).
    Shield,
    /// What only `tailrace trace`, `tailrace doctor` and `tailrace debt` read.
    Inspection,
}

impl Purpose {
    /// As a sentence goes on after "needed for".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Passes => "policies and passes",
            Self::Evidence => "checking partition values by column statistics and row order",
            Self::ExplicitDropsAndFeed => "explicit drops and the feed of changes",
            Self::Shield => "compaction.claims",
            Self::Inspection => "trace, doctor and debt",
        }
    }
}

/// What a right is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Object {
    /// The schema of the `hog_*` tables, or ours.
    Schema(Whose),
    /// A table.
    Table(Whose, &'static str),
    /// A sequence.
    Sequence(Whose, &'static str),
}

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Whose {
    /// hoglake's: in the schema that `database.schema` names.
    Hoglake,
    /// Ours: in the schema `tailrace`.
    Ours,
}

/// One right: a single privilege, on some columns where it names any.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Right {
    /// What for.
    pub purpose: Purpose,
    /// `SELECT`, `INSERT`, `UPDATE`, `DELETE` or `USAGE`.
    pub privilege: &'static str,
    /// Only these columns; all where none is named.
    pub columns: &'static [&'static str],
    /// On what.
    pub object: Object,
}

impl Object {
    /// The object as GRANT takes it, for a catalog in `schema`.
    pub fn in_sql(self, schema: &str) -> String {
        match self {
            Self::Schema(whose) => format!("schema {}", whose.schema(schema)),
            Self::Table(whose, name) => format!("{}.{name}", whose.schema(schema)),
            Self::Sequence(whose, name) => format!("sequence {}.{name}", whose.schema(schema)),
        }
    }
}

impl Whose {
    fn schema(self, catalog_schema: &str) -> String {
        match self {
            Self::Hoglake => as_identifier(catalog_schema),
            Self::Ours => "tailrace".to_owned(),
        }
    }
}

impl Right {
    /// The privilege with its columns: `UPDATE (end_snapshot)`.
    pub fn privilege_in_sql(&self) -> String {
        match self.columns {
            [] => self.privilege.to_lowercase(),
            columns => format!("{} ({})", self.privilege.to_lowercase(), columns.join(", ")),
        }
    }

    /// The statement that gives it.
    pub fn grant(&self, schema: &str, role: &str) -> String {
        format!(
            "grant {} on {} to {};",
            self.privilege_in_sql(),
            self.object.in_sql(schema),
            as_identifier(role)
        )
    }
}

/// A name as SQL takes it, in quotes only where it needs them.
pub fn as_identifier(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if plain { name.to_owned() } else { quote_identifier(name) }
}

type Listed = (Purpose, &'static [&'static str], &'static [&'static str], &'static [Object]);

/// Every right that some part needs and no more; in the order of the README.
pub fn needed() -> Vec<Right> {
    let mut rights = Vec::new();
    for (purpose, privileges, columns, objects) in LIST {
        for object in *objects {
            for privilege in *privileges {
                let columns = if *privilege == "UPDATE" { *columns } else { &[] };
                rights.push(Right { purpose: *purpose, privilege, columns, object: *object });
            }
        }
    }
    rights
}

const fn hog(table: &'static str) -> Object {
    Object::Table(Whose::Hoglake, table)
}

const fn ours(table: &'static str) -> Object {
    Object::Table(Whose::Ours, table)
}

/// Privileges, the columns that an UPDATE among them is for (none: all), and the objects.
const LIST: &[Listed] = &[
    (
        Purpose::Passes,
        &["USAGE"],
        &[],
        &[Object::Schema(Whose::Hoglake), Object::Schema(Whose::Ours)],
    ),
    (
        Purpose::Passes,
        &["SELECT"],
        &[],
        &[
            hog("hog_namespace"),
            hog("hog_table"),
            hog("hog_table_version"),
            hog("hog_column"),
            hog("hog_partition_spec"),
            hog("hog_partition_field"),
            hog("hog_file_partition_value"),
        ],
    ),
    (
        Purpose::Passes,
        &["SELECT", "UPDATE"],
        &["last_snapshot_id", "schema_version"],
        &[hog("hog_catalog")],
    ),
    (
        Purpose::Passes,
        &["SELECT", "UPDATE"],
        &["end_snapshot"],
        &[hog("hog_data_file"), hog("hog_delete_file")],
    ),
    (Purpose::Passes, &["SELECT", "INSERT"], &[], &[hog("hog_snapshot")]),
    (Purpose::Passes, &["SELECT", "INSERT"], &[], &[hog("hog_snapshot_change")]),
    (Purpose::Passes, &["SELECT"], &[], &[hog("hog_file_removal")]),
    (Purpose::Passes, &["SELECT"], &[], &[ours("schema_migration"), ours("installation")]),
    (
        Purpose::Passes,
        &["SELECT", "INSERT", "UPDATE", "DELETE"],
        &[],
        &[
            ours("policy"),
            ours("calendar"),
            ours("table_state"),
            ours("waiting"),
            ours("catalog_state"),
        ],
    ),
    (Purpose::Passes, &["USAGE"], &[], &[Object::Sequence(Whose::Ours, "policy_revision")]),
    (
        Purpose::Passes,
        &["SELECT", "INSERT", "UPDATE", "DELETE"],
        &[
            "spec_id",
            "begin_snapshot",
            "is_reused",
            "copied_at",
            "clock_epoch",
            "mark_row_id",
            "mark_snapshot",
            "mark_due",
            "marked_at",
            "watched_from",
            "trusted_at",
            "trusted_by",
            "trust_reason",
            "gone_seen_at",
        ],
        &[ours("spec_copy")],
    ),
    (
        Purpose::Passes,
        &["SELECT", "INSERT", "UPDATE", "DELETE"],
        &["gone_seen_at"],
        &[ours("source_column_type")],
    ),
    (
        Purpose::Passes,
        &["SELECT", "INSERT", "UPDATE", "DELETE"],
        &["table_name", "purged_seen_at", "last_removal_id", "gone_seen_at", "undone_seen_at"],
        &[ours("drop_history")],
    ),
    (Purpose::Passes, &["SELECT", "DELETE"], &[], &[ours("drop_receipt"), ours("window_rule")]),
    (Purpose::Passes, &["SELECT", "INSERT", "DELETE"], &[], &[ours("noted_head")]),
    (Purpose::Passes, &["SELECT", "INSERT", "UPDATE"], &[], &[ours("clock_memory")]),
    (Purpose::Evidence, &["SELECT"], &[], &[hog("hog_file_column_stats"), hog("hog_table_stats")]),
    (Purpose::ExplicitDropsAndFeed, &["SELECT"], &[], &[hog("hog_commit_receipt")]),
    (Purpose::ExplicitDropsAndFeed, &["INSERT"], &[], &[ours("drop_receipt")]),
    (
        Purpose::Shield,
        &["SELECT", "INSERT", "UPDATE", "DELETE"],
        &[],
        &[hog("hog_compaction_claim")],
    ),
    (Purpose::Shield, &["INSERT", "UPDATE"], &[], &[ours("window_rule")]),
    (Purpose::Shield, &["SELECT", "INSERT", "DELETE"], &[], &[ours("claimant")]),
    (Purpose::Shield, &["SELECT", "UPDATE"], &[], &[ours("window_setting")]),
    (
        Purpose::Inspection,
        &["SELECT"],
        &[],
        &[
            hog("hog_consumer_offset"),
            hog("hog_maintenance_summary"),
            hog("hog_maintenance_summary_tier"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_right_as_a_statement() {
        let all = needed();
        let of = |object: Object, privilege: &str| {
            all.iter().find(|right| right.object == object && right.privilege == privilege)
        };
        let files = of(hog("hog_data_file"), "UPDATE").map(|right| right.grant("Lake", "it's"));
        assert_eq!(
            files.as_deref(),
            Some(r#"grant update (end_snapshot) on "Lake".hog_data_file to "it's";"#)
        );
        let schema = of(Object::Schema(Whose::Ours), "USAGE").map(|right| right.grant("x", "y"));
        assert_eq!(schema.as_deref(), Some("grant usage on schema tailrace to y;"));
    }

    #[test]
    fn none_is_listed_twice() {
        let all = needed();
        for (at, right) in all.iter().enumerate() {
            let same =
                |other: &Right| other.object == right.object && other.privilege == right.privilege;
            assert!(!all[at + 1..].iter().any(same), "{right:?}");
        }
    }
}
