//! The rights that the database role needs: the one list that doctor, `deploy/sql/grants.sql` and tests share.

use crate::catalog::connect::quote_identifier;

/// What a right is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Policies and passes: without it nothing works as it should.
    Passes,
    /// What proves that a file's partition values are what its spec says. Without it files with
    /// ambiguous values are kept, and the others are not compared with column statistics.
    Evidence,
    /// The explicit drop, truncate, and the feed of changes.
    ExplicitDropsAndFeed,
    /// The claims that keep compaction from files about to be dropped (`compaction.claims`).
    CompactionClaims,
    /// What only `tailrace trace`, `tailrace doctor` and `tailrace debt` read.
    Inspection,
}

impl Purpose {
    /// All of them, the one that is needed most first.
    pub const ALL: [Self; 5] = [
        Self::Passes,
        Self::Evidence,
        Self::CompactionClaims,
        Self::ExplicitDropsAndFeed,
        Self::Inspection,
    ];

    /// What does not work without its rights, in lines.
    fn without(self) -> &'static [&'static str] {
        match self {
            Self::Passes => &["None of these can be left out."],
            Self::Evidence => &[
                "Without them a pass drops by partition values alone and keeps the files whose value is",
                "ambiguous, and `tailrace doctor` calls that a problem.",
            ],
            Self::CompactionClaims => &[
                "A server before V15 has no hog_compaction_claim: that statement fails there, and the",
                "others go through.",
            ],
            Self::ExplicitDropsAndFeed | Self::Inspection => &["Nothing else needs them."],
        }
    }

    /// As a sentence goes on after "needed for".
    pub fn describe(self) -> &'static str {
        match self {
            Self::Passes => "policies and passes",
            Self::Evidence => "checking partition values by column statistics and row order",
            Self::ExplicitDropsAndFeed => "explicit drops and the feed of changes",
            Self::CompactionClaims => "compaction.claims",
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

/// The statements that give `role` all of them on a catalog in `schema`: by purpose, one for each table, so that
/// an older server, which lacks some tables, takes the others.
pub fn grants(schema: &str, role: &str) -> String {
    let mut text = String::from(
        "-- The rights that tailrace needs, one statement for each object. Printed by\n\
         -- `tailrace doctor --grants`; run as the owner of the objects, after `tailrace migrate`.\n",
    );
    for purpose in Purpose::ALL {
        text.push_str(&format!("\n-- For {}.\n", purpose.describe()));
        purpose.without().iter().for_each(|line| text.push_str(&format!("-- {line}\n")));
        let lines = statements(purpose, schema, role).into_iter();
        lines.for_each(|statement| text.push_str(&format!("{statement}\n")));
    }
    text
}

/// The statements of [`grants`] for one purpose, one for each object.
pub fn statements(purpose: Purpose, schema: &str, role: &str) -> Vec<String> {
    let all = needed();
    let rights: Vec<&Right> = all.iter().filter(|right| right.purpose == purpose).collect();
    let mut written = Vec::new();
    let mut statements = Vec::new();
    for right in &rights {
        if written.contains(&right.object) {
            continue;
        }
        written.push(right.object);
        let of = rights.iter().filter(|other| other.object == right.object);
        let privileges: Vec<String> = of.map(|right| right.privilege_in_sql()).collect();
        statements.push(format!(
            "grant {} on {} to {};",
            privileges.join(", "),
            right.object.in_sql(schema),
            as_identifier(role)
        ));
    }
    statements
}

/// The words that are no name without quotes, of all versions of Postgres that are served.
const RESERVED: &str = "all analyse analyze and any array as asc asymmetric authorization binary both case cast check \
    collate collation column concurrently constraint create cross current_catalog current_date \
    current_role current_schema current_time current_timestamp current_user default deferrable desc \
    distinct do else end except false fetch for foreign freeze from full grant group having ilike in \
    initially inner intersect into is isnull join lateral leading left like limit localtime \
    localtimestamp natural not notnull null offset on only or order outer overlaps placing primary \
    references returning right select session_user similar some symmetric system_user table \
    tablesample then to trailing true union unique user using variadic verbose when where window with";

/// A name as SQL takes it, in quotes only where it needs them.
pub fn as_identifier(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !RESERVED.split(' ').any(|word| word == name);
    if plain { name.to_owned() } else { quote_identifier(name) }
}

type Listed = (Purpose, &'static [&'static str], &'static [&'static str], &'static [Object]);

/// Every right that some part needs and no more.
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
            ours("guard_state"),
            ours("pause"),
            ours("hold"),
            ours("calendar"),
            ours("table_state"),
            ours("waiting"),
            ours("catalog_state"),
        ],
    ),
    // Nobody changes what happened.
    (
        Purpose::Passes,
        &["SELECT", "INSERT", "DELETE"],
        &[],
        &[ours("approval"), ours("approved_partition"), ours("policy_change")],
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
        Purpose::CompactionClaims,
        &["SELECT", "INSERT", "UPDATE", "DELETE"],
        &[],
        &[hog("hog_compaction_claim")],
    ),
    (Purpose::CompactionClaims, &["INSERT", "UPDATE"], &[], &[ours("window_rule")]),
    (Purpose::CompactionClaims, &["SELECT", "INSERT", "DELETE"], &[], &[ours("claimant")]),
    (Purpose::CompactionClaims, &["SELECT", "UPDATE"], &[], &[ours("window_setting")]),
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
