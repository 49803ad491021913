//! Tables that are partitioned by time and have no policy, and what a policy would free.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use super::{Finding, Level, at, shell_word};
use crate::catalog::compaction_sample::{Generation, tuples};
use crate::catalog::session::Session;
use crate::catalog::specs::{spec_book, table_shape};
use crate::catalog::table_files::at_most;
use crate::catalog::tables::{LiveTable, TableIdentity};
use crate::doctor::debt;
use crate::rules::expiry::{Judge, Retention, SpecBook, Verdict};
use crate::rules::instant::UtcInstant;

const CHECK: &str = "ungoverned";

/// What is shown for each table.
const KEEP_DAYS: [u32; 3] = [7, 30, 90];

/// What a `keep` would free now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Freed {
    /// Days.
    pub keep_days: u32,
    /// Live files that have expired by it.
    pub files: i64,
    /// Their bytes.
    pub bytes: i64,
}

/// Where the numbers come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// From the table's live files, all of them.
    Exactly,
    /// From the server's sample of this time.
    FromSample(Option<DateTime<Utc>>),
    /// The table is large, or time was up, and the server has no sample.
    NotAtAll,
}

/// A table without a policy.
#[derive(Debug, Clone)]
pub struct Ungoverned {
    pub table: TableIdentity,
    /// What it is partitioned by: `day(at)`.
    pub field: String,
    /// Where the numbers come from.
    pub counted: Counted,
    /// By `keep`; empty where nothing was counted.
    pub frees: Vec<Freed>,
}

/// How a table's files may be read.
#[derive(Debug, Clone, Copy)]
pub struct Reading {
    /// A table of at most this many live files is read; 0 where there is no time left for that.
    pub most_files: i64,
    /// The published sample, for the others.
    pub sample: Option<Generation>,
    /// The database's time.
    pub now: UtcInstant,
}

/// Reads what a policy on the first time field of the live spec would free; `None` for a table
/// that is not partitioned by time.
pub async fn read(
    connection: &mut Session,
    table: &LiveTable,
    reading: Reading,
) -> sqlx::Result<Option<Ungoverned>> {
    let TableIdentity { catalog_id, table_id, .. } = table.identity;
    let book = spec_book(connection, catalog_id, table_id).await?;
    let shape = table_shape(connection, catalog_id, table_id).await?;
    let fields = shape.live_spec_fields();
    let Some(field) = fields.iter().find(|field| !book.transforms_of(field).is_empty()) else {
        return Ok(None);
    };
    let judges = judges(&book, field.source_field_id, reading.now);
    let (counted, frees) = count(connection, &table.identity, &judges, reading).await?;
    Ok(Some(Ungoverned {
        table: table.identity.clone(),
        field: shape.describe_field(field),
        counted,
        frees,
    }))
}

fn judges(book: &SpecBook, source_field_id: i64, now: UtcInstant) -> Vec<(u32, Judge)> {
    let judge = |days: u32| {
        let keep = Duration::from_secs(u64::from(days) * 24 * 3600);
        (days, Judge::new(book, Retention { source_field_id, keep, now }))
    };
    KEEP_DAYS.map(judge).into()
}

async fn count(
    connection: &mut Session,
    table: &TableIdentity,
    judges: &[(u32, Judge)],
    reading: Reading,
) -> sqlx::Result<(Counted, Vec<Freed>)> {
    let TableIdentity { catalog_id, table_id, .. } = *table;
    if reading.most_files > 0 {
        let files = at_most(connection, catalog_id, table_id, reading.most_files).await?;
        if let Some(files) = files {
            let freed = |(keep_days, judge): &(u32, Judge)| {
                let mut freed = Freed { keep_days: *keep_days, files: 0, bytes: 0 };
                for file in &files {
                    if let Verdict::Expired { .. } = judge.judge(file.spec_id, &file.tuple) {
                        freed.files += 1;
                        freed.bytes = freed.bytes.saturating_add(file.file_size_bytes);
                    }
                }
                freed
            };
            return Ok((Counted::Exactly, judges.iter().map(freed).collect()));
        }
    }
    let Some(generation) = reading.sample else { return Ok((Counted::NotAtAll, Vec::new())) };
    let tuples = tuples(connection, catalog_id, table_id, generation).await?;
    let freed = |(keep_days, judge): &(u32, Judge)| {
        let sum = debt::expired(judge, &tuples, generation.has_measures);
        Freed { keep_days: *keep_days, files: sum.files, bytes: sum.bytes }
    };
    Ok((Counted::FromSample(generation.sampled_at), judges.iter().map(freed).collect()))
}

/// One note a table; one line for the catalog where there is none.
pub fn findings(catalog: &str, tables: &[Ungoverned]) -> Vec<Finding> {
    if tables.is_empty() {
        let what = "every table that is partitioned by time has a policy";
        return vec![Finding::ok(CHECK, what).of_catalog(catalog)];
    }
    tables.iter().map(of_table).collect()
}

fn of_table(table: &Ungoverned) -> Finding {
    let freed = |freed: &Freed| {
        format!("{}d {} files, {} bytes", freed.keep_days, freed.files, freed.bytes)
    };
    let by_keep = table.frees.iter().map(freed).collect::<Vec<_>>().join("; ");
    let frees = match table.counted {
        Counted::Exactly => format!("a keep would free: {by_keep}"),
        Counted::FromSample(Some(time)) => {
            format!("a keep would free, by the server's sample of {}: {by_keep}", at(time))
        }
        Counted::FromSample(None) => {
            format!("a keep would free, by the server's sample: {by_keep}")
        }
        Counted::NotAtAll => {
            "the table is too large to be read here and the server has no sample of it".to_owned()
        }
    };
    let mut finding = Finding::new(
        Level::Note,
        CHECK,
        format!("partitioned by {} without a policy; {frees}", table.field),
        "it grows for ever",
        format!(
            "if it may be dropped: tailrace policy set {} {} --field {} --keep KEEP --mode observe",
            shell_word(&table.table.catalog),
            shell_word(&format!("{}.{}", table.table.namespace, table.table.table)),
            shell_word(&table.field)
        ),
    )
    .of_table(&table.table);
    finding.frees = table.frees.clone();
    finding
}
