//! How a plan finds what has expired, and what it can say of the rest. Only reads.
//!
//! A small table is read. Of a larger one with a calendar the rows that are due are looked up, and the files
//! that came since the watermark are caught up with; what stays is as the last full pass counted it. Without
//! one, or where specs changed since, the distinct partition values of the catalog at the time field's key are listed by
//! index and the files of expired ones are read; what stays is counted in pieces. Catching up and counting take
//! at most `discovery.count_timeout`.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::ask::{ask, values_of};
use super::calendar::{Row, RowKey, read, row_of};
use super::memory::{self, BookDigest, Memory};
use super::settings::Settings;
use super::sorter::Sorter;
use crate::catalog::finder::pages::{Pages, Way};
use crate::catalog::finder::{Candidate, Finder};
use crate::catalog::late::{LateFiles, LookupKey, late_values};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::catalog::values::{has_live_file, has_lookup_index};
use crate::rules::expiry::SpecBook;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::KeptCounts;

/// A server without the lookup index leaves no way but to read the table's live files, and those
/// take what they take.
const WITHOUT_INDEX: Duration = Duration::from_secs(600);

/// So many rows are asked for a live file, to tell which falls due next.
const ROWS_PROBED: i64 = 20;

/// So many values of them.
const VALUES_PROBED: usize = 50;

/// So many entries of a value are looked at for that.
const ENTRIES_PROBED: i64 = 2_000;

/// When the next partition expires, if nothing changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextExpiry {
    /// Then.
    At(UtcInstant),
    /// Not before then; that is as far as was looked.
    NotBefore(UtcInstant),
}

/// What was found beside the expired files.
#[derive(Debug, Default)]
pub struct Found {
    /// What stays by its values; `None` where it was not counted.
    pub kept_counts: Option<KeptCounts>,
    /// When it was counted, where that was not now.
    pub counted_at: Option<UtcInstant>,
    /// When the next partition expires, where a calendar tells.
    pub next: Option<NextExpiry>,
    /// Why some of what has expired may be missing.
    pub behind: Option<String>,
}

/// Gives every expired file to the sorter.
pub async fn find(
    connection: &mut Session,
    finder: Finder<'_>,
    book: &SpecBook,
    settings: &Settings,
    sorter: &mut Sorter<'_>,
) -> anyhow::Result<Found> {
    let field = finder.judge.retention().source_field_id;
    let has_index = has_lookup_index(connection).await?;
    let loaded = memory::store::load(connection, finder.table, field).await?;
    let current_watermark = finder.current_watermark(connection).await?;
    let now = finder.judge.retention().now;
    let memory =
        loaded.map(|loaded| loaded.memory.checked(current_watermark, now)).filter(|memory| {
            has_index
                && memory.full_pass_at.is_some()
                && !memory.owes_full_pass
                && memory.book == BookDigest::of(book, field)
        });
    let is_large = |memory: &Memory| {
        let counted = memory.kept_counts.as_ref();
        counted.is_some_and(|(kept_counts, _)| {
            kept_counts.kept_files() > finder.scan_limits.small_table
        })
    };
    if let Some(memory) = memory.filter(is_large) {
        return by_calendar(connection, finder, memory, settings, sorter).await;
    }
    let mut pages = finder.expired(Some(settings.max_values));
    let limit = if has_index { settings.count_timeout } else { WITHOUT_INDEX };
    if !read(connection, &mut pages, limit, sorter).await? {
        let behind = format!(
            "the table has no calendar yet and is too large to be read within discovery.count_timeout, and \
             its catalog has more than discovery.max_values ({}) distinct partition values at the time \
             field's key: passes make the calendar, or raise either",
            settings.max_values
        );
        return Ok(Found { behind: Some(behind), ..Found::default() });
    }
    let kept_counts = match pages.way() {
        Way::AtOnce | Way::InPieces => Some(std::mem::take(&mut sorter.kept_counts)),
        Way::ByValue => {
            let mut counter = Sorter::once(finder.judge);
            let mut rest = finder.in_pieces();
            let is_counted = read(connection, &mut rest, settings.count_timeout, &mut counter);
            let is_counted = is_counted.await?;
            sorter.is_parquet &= counter.is_parquet;
            is_counted.then_some(counter.kept_counts)
        }
    };
    Ok(Found { kept_counts, ..Found::default() })
}

async fn by_calendar(
    connection: &mut Session,
    finder: Finder<'_>,
    memory: Memory,
    settings: &Settings,
    sorter: &mut Sorter<'_>,
) -> anyhow::Result<Found> {
    let (table, judge) = (finder.table, finder.judge);
    let cutoff = judge.retention().cutoff();
    let mut rows = read::due(connection, table, cutoff, None, i64::MAX).await?;
    let behind = catch_up(connection, finder, &memory, settings.count_timeout, &mut rows).await?;
    let ask = ask(finder, connection, rows).await?;
    read(connection, &mut finder.with_values(&ask.candidates), Duration::MAX, sorter).await?;
    let next = next_expiry(connection, finder).await?;
    let (kept_counts, counted_at) = memory.kept_counts.unzip();
    Ok(Found { kept_counts, counted_at, next, behind })
}

/// Adds the rows of late files that have expired. Says how far the calendar is behind, where that took too long.
async fn catch_up(
    connection: &mut Session,
    finder: Finder<'_>,
    memory: &Memory,
    limit: Duration,
    rows: &mut Vec<Row>,
) -> anyhow::Result<Option<String>> {
    let judge = finder.judge;
    let lookup_keys: Vec<LookupKey> =
        judge.lookup_keys().map(|(spec_id, key_index)| LookupKey { spec_id, key_index }).collect();
    let TableIdentity { catalog_id, table_id, .. } = *finder.table;
    let current_watermark = finder.current_watermark(connection).await?;
    let of = LateFiles { catalog_id, table_id, lookup_keys: &lookup_keys, current_watermark };
    let mut known: HashSet<RowKey> = rows.iter().map(|row| row.key.clone()).collect();
    let (mut watermark, mut block, began) = (memory.watermark, None, Instant::now());
    while watermark != current_watermark {
        if began.elapsed() > limit {
            return Ok(Some(format!(
                "files of snapshots after {} up to {} were not looked at within discovery.count_timeout: the \
                 next pass reads them",
                watermark.through_snapshot, current_watermark.through_snapshot
            )));
        }
        let piece = late_values(connection, &of, watermark, block).await?;
        for value in piece.values {
            let Some(spec_id) = value.spec_id else { continue };
            let row = row_of(judge, &memory.days, spec_id, value.value.as_deref());
            if let Some(Ok(row)) = row
                && row.last_end <= judge.retention().cutoff()
                && known.insert(row.key.clone())
            {
                rows.push(row);
            }
        }
        (watermark, block) = (piece.watermark, piece.block);
    }
    Ok(None)
}

/// When the first value after the cutoff ends that has a live file.
async fn next_expiry(
    connection: &mut Session,
    finder: Finder<'_>,
) -> anyhow::Result<Option<NextExpiry>> {
    let (table, retention) = (finder.table, finder.judge.retention());
    let rows = read::upcoming(connection, table, retention.cutoff(), ROWS_PROBED).await?;
    let (mut first, mut probed): (Option<UtcInstant>, usize) = (None, 0);
    for row in &rows {
        // Rows after this one end no earlier than it; of a day the first of its values may have no file left.
        if first.is_some_and(|first| first <= row.last_end) {
            break;
        }
        let not_before = NextExpiry::NotBefore(row.last_end.plus(retention.keep));
        let Some(values) = values_of(finder, connection, row).await? else {
            return Ok(Some(not_before));
        };
        for Candidate { end, key_index, text } in values {
            if first.is_some_and(|first| first <= end) {
                break;
            }
            probed += 1;
            let (catalog_id, value) = (table.catalog_id, (key_index, text.as_str()));
            let has_file =
                has_live_file(connection, catalog_id, table.table_id, value, ENTRIES_PROBED);
            match has_file.await? {
                Some(true) => first = Some(end),
                Some(false) if probed < VALUES_PROBED => {}
                Some(false) | None => return Ok(Some(not_before)),
            }
        }
    }
    let last = rows.last().filter(|_| rows.len() as i64 >= ROWS_PROBED).map(|row| row.last_end);
    let at = |end: UtcInstant| end.plus(retention.keep);
    Ok(match (first, last) {
        (Some(first), Some(last)) if last < first => Some(NextExpiry::NotBefore(at(last))),
        (Some(first), _) => Some(NextExpiry::At(at(first))),
        (None, last) => last.map(|last| NextExpiry::NotBefore(at(last))),
    })
}

/// Gives the files of a search to the sorter; false where reading the table piece by piece took longer than
/// `limit`.
async fn read(
    connection: &mut Session,
    pages: &mut Pages<'_>,
    limit: Duration,
    sorter: &mut Sorter<'_>,
) -> sqlx::Result<bool> {
    let mut began = None;
    while !pages.is_over() {
        if pages.way() == Way::InPieces && began.get_or_insert_with(Instant::now).elapsed() > limit
        {
            return Ok(false);
        }
        let files = pages.next(connection).await?;
        files.into_iter().flatten().for_each(|file| sorter.add(file));
    }
    Ok(true)
}
