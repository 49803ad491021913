//! Which server this is, as far as the columns and indexes of its tables show it (contract, "Older and other
//! servers").

use super::{Finding, Level, listed};
use crate::catalog::inventory::Objects;
use crate::catalog::server::{CLAIMS, ServerTables};

const CHECK: &str = "server";

/// Something that a migration brought.
#[derive(Debug, Clone, Copy)]
enum Mark {
    Table(&'static str),
    Column(&'static str, &'static str),
    Index(&'static str),
    /// An index whose definition says this.
    IndexSaying(&'static str, &'static str),
    /// A CHECK of a table that says this.
    Check(&'static str, &'static str),
}

/// What each migration brought that can be seen, the oldest first.
const MARKS: &[(u32, &[Mark])] = &[
    (7, &[Mark::Table("hog_commit_receipt")]),
    (9, &[Mark::Column("hog_column", "parent_field_id")]),
    (
        10,
        &[
            Mark::Column("hog_maintenance_summary_tier", "pending_max_bytes"),
            Mark::Index("hog_data_file_maintenance_size_scan"),
        ],
    ),
    (
        11,
        &[
            Mark::Column("hog_table_version", "comment"),
            Mark::Column("hog_table_version", "properties"),
        ],
    ),
    (12, &[Mark::Check("hog_file_removal", "'trino_upload'")]),
    (14, &[Mark::Column("hog_table", "replaced_table_id")]),
    (15, &[Mark::Table("hog_compaction_claim")]),
    (16, &[Mark::Index("hog_file_removal_undrained_path")]),
    (17, &[Mark::Index("hog_data_file_path"), Mark::Index("hog_delete_file_path")]),
    (18, &[Mark::Column("hog_data_file", "split_offsets")]),
    (19, &[Mark::Index("hog_data_file_ended")]),
    (20, &[Mark::Column("hog_table", "retirement_eligible_at")]),
    (
        21,
        &[
            Mark::Column("hog_file_removal", "claimed_at"),
            Mark::Column("hog_file_removal", "claimed_by"),
        ],
    ),
    (
        22,
        &[
            Mark::Column("hog_maintenance_summary_tier", "record_count"),
            Mark::Column("hog_maintenance_summary_tier", "newest_begin_snapshot"),
            Mark::Column("hog_maintenance_summary", "measures_generation"),
            Mark::Index("hog_maintenance_summary_tier_table"),
        ],
    ),
    (23, &[Mark::Index("hog_file_partition_value_lookup")]),
    (
        24,
        &[
            Mark::Column("hog_commit_receipt", "fingerprint"),
            Mark::Column("hog_commit_receipt", "created_at"),
        ],
    ),
    (25, &[Mark::Check("hog_maintenance_run", "'reindex'")]),
    (
        26,
        &[
            Mark::Index("hog_data_file_failed"),
            Mark::Index("hog_data_file_missing_field_ids"),
            Mark::IndexSaying("hog_data_file_pending", "end_snapshot IS NULL"),
        ],
    ),
    (27, &[Mark::Column("hog_maintenance_summary", "live_files")]),
];

/// What an older server lacks that we would use, by the migration that brings it.
const FOR_US: &[(u32, &str)] = &[
    (11, "a table cannot bring its policy by the property partition_retention"),
    (15, "nothing keeps compaction from rewriting partitions that are about to be dropped"),
    (17, "which row names a queued path that cleanup skips is unknown"),
    (19, "the feed of changes looks for ended files without an index"),
    (
        21,
        "cleanup holds the commit lock, some 19 s for 1,000 objects: passes wait meanwhile, and where it \
         is switched off for that objects stay",
    ),
    (22, "the sample does not tell how many rows it stands for"),
    (23, "passes over large tables read all of their files"),
];

impl Mark {
    fn is_in(self, objects: &Objects) -> bool {
        match self {
            Self::Table(table) => objects.tables.contains_key(table),
            Self::Column(table, column) => {
                objects.tables.get(table).is_some_and(|columns| columns.contains(column))
            }
            Self::Index(index) => objects.indexes.contains_key(index),
            Self::IndexSaying(index, text) => {
                objects.indexes.get(index).is_some_and(|index| says(&index.definition, text))
            }
            Self::Check(table, text) => {
                objects.checks.get(table).is_some_and(|checks| checks.iter().any(|c| says(c, text)))
            }
        }
    }
}

fn says(definition: &str, text: &str) -> bool {
    definition.contains(text)
}

/// The highest migration all of whose marks are there; `None` for a server before V7, which is refused
/// as all before V9 are.
pub fn version(objects: &Objects) -> Option<u32> {
    let is_there = |marks: &[Mark]| marks.iter().all(|mark| mark.is_in(objects));
    MARKS.iter().rev().find(|(_, marks)| is_there(marks)).map(|(version, _)| *version)
}

/// The version, what it lacks for us, and what its own migrations should have left and did not.
/// And what it has that we do not know.
pub fn findings(objects: &Objects, tables: &ServerTables) -> Vec<Finding> {
    let found = version(objects).unwrap_or_default();
    let what = match MARKS.last() {
        Some((newest, _)) if *newest == found => format!("the server is at V{found} or newer"),
        _ => format!("the server is at V{found}"),
    };
    let lacking: Vec<_> = FOR_US
        .iter()
        .filter(|(version, _)| found < *version)
        .map(|(version, lack)| format!("{lack} (V{version})"))
        .collect();
    let mut findings = vec![match lacking.as_slice() {
        [] => Finding::ok(CHECK, what),
        lacking => Finding::new(
            Level::Note,
            CHECK,
            what,
            lacking.join("; "),
            "nothing has to be done: tailrace works without it; an upgrade of the server brings it",
        ),
    }];
    // What is missing below the version is damage: indexes, mostly, that somebody dropped.
    let missing: Vec<_> = MARKS
        .iter()
        .filter(|(version, marks)| {
            *version < found && !marks.iter().all(|mark| mark.is_in(objects))
        })
        .map(|(version, _)| format!("V{version}"))
        .collect();
    if !missing.is_empty() {
        findings.push(Finding::new(
            Level::Warning,
            CHECK,
            format!("of the older migrations {} something is missing", missing.join(", ")),
            "the server and tailrace expect what all migrations up to the newest brought",
            "find out who removed it; missing indexes that tailrace uses are reported separately",
        ));
    }
    findings.extend(unknown(tables));
    findings
}

/// What a server that is newer than we know has, as bad as it is.
fn unknown(tables: &ServerTables) -> Option<Finding> {
    let unknown = tables.unknown();
    if unknown.is_empty() {
        return None;
    }
    let finding = |level, what: String, why: &str| {
        Finding::new(
            level,
            CHECK,
            what,
            why,
            "upgrade tailrace to a version that knows this server",
        )
    };
    if let Err(misfit) = tables.fits() {
        let why =
            "every command but this one refuses to work: a drop's commit would fail under the lock";
        return Some(finding(Level::Problem, misfit.to_string(), why));
    }
    let of_claims = tables.must_fill(CLAIMS);
    if !of_claims.is_empty() {
        let what = format!("each row of the server's claims must fill {}", listed(&of_claims));
        let why = "tailrace would not fill it and claims nothing: nothing keeps compaction from rewriting \
         partitions that are about to be dropped";
        return Some(finding(Level::Problem, what, why));
    }
    Some(finding(
        Level::Warning,
        format!("the server has columns that this tailrace does not know: {}", listed(&unknown)),
        "what tailrace needs is there, and it works; whether they change the meaning of what it reads and \
         writes, it cannot know",
    ))
}
