//! How a plan finds what has expired, and what it can say of the rest. Only reads.
//!
//! A small table is read. Of a larger one with a calendar the rows that are due are looked up, and the files
//! that came since the watermark are caught up with; what stays is as the last full pass counted it. Without
//! one, or where specs changed since, the distinct texts of the catalog at the time field's key are listed by
//! index and the files of expired ones are read; what stays is counted in pieces. Catching up and counting take
//! at most `discovery.count_timeout`.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::calendar::{Row, RowKey, read, row_of};
use super::lookup::list_expired;
use super::lookup::{Candidate, Lookup};
use super::memory::{self, BookDigest, Memory};
use super::settings::Settings;
use super::sorter::Sorter;
use crate::catalog::discovery::has_lookup_index;
use crate::catalog::late::{LateFiles, Lead, late_values};
use crate::catalog::live_file::LiveFile;
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::catalog::texts::has_live_file;
use crate::catalog::walk::{Place, walk};
use crate::rules::expiry::SpecBook;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::Census;

/// A server without the lookup index leaves no way but to read the table's live files, and those
/// take what they take.
const WITHOUT_INDEX: Duration = Duration::from_secs(600);

/// So many rows are asked for a live file, to tell which falls due next.
const ROWS_PROBED: i64 = 20;

/// So many values of them.
const VALUES_PROBED: usize = 50;

/// So many entries of a value are looked at for that.
const ENTRIES_PROBED: i64 = 2_000;

/// When the next partition goes, if nothing changes.
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
    pub census: Option<Census>,
    /// When it was counted, where that was not now.
    pub counted_at: Option<UtcInstant>,
    /// When the next partition goes, where a calendar tells.
    pub next: Option<NextExpiry>,
    /// Why some of what has expired may be missing.
    pub behind: Option<String>,
}

/// Gives every expired file to the sorter.
pub async fn find(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    book: &SpecBook,
    settings: &Settings,
    sorter: &mut Sorter<'_>,
) -> anyhow::Result<Found> {
    let field = lookup.judge.retention().source_field_id;
    let has_index = has_lookup_index(connection).await?;
    let loaded = memory::store::load(connection, lookup.table, field).await?;
    let marks = lookup.marks(connection).await?;
    let now = lookup.judge.retention().now;
    let memory = loaded.map(|loaded| loaded.memory.checked(marks, now)).filter(|memory| {
        has_index
            && memory.full_pass_at.is_some()
            && !memory.owes_full_pass
            && memory.book == BookDigest::of(book, field)
    });
    let is_large = |memory: &Memory| {
        let counted = memory.census.as_ref();
        counted.is_some_and(|(census, _)| census.kept_files() > lookup.reach.small_table)
    };
    if let Some(memory) = memory.filter(is_large) {
        return by_calendar(connection, lookup, memory, settings, sorter).await;
    }
    if let Some(files) = lookup.small_table(connection).await? {
        files.into_iter().for_each(|file| sorter.add(file));
        return Ok(counted(sorter));
    }
    let listed = match has_index {
        true => list_expired(connection, lookup, settings.max_values).await?,
        false => None,
    };
    let Some(candidates) = listed else {
        let limit = if has_index { settings.count_timeout } else { WITHOUT_INDEX };
        if read_all(connection, lookup, limit, sorter).await? {
            return Ok(counted(sorter));
        }
        let behind = format!(
            "the table has no calendar yet and is too large to be read within discovery.count_timeout, and \
             its catalog has more than discovery.max_values ({}) distinct partition values at the time \
             field's key: passes make the calendar, or raise either",
            settings.max_values
        );
        return Ok(Found { behind: Some(behind), ..Found::default() });
    };
    look_up(connection, lookup, &candidates, sorter).await?;
    let mut counter = Sorter::once(lookup.judge);
    let is_counted = read_all(connection, lookup, settings.count_timeout, &mut counter).await?;
    sorter.is_parquet &= counter.is_parquet;
    Ok(Found { census: is_counted.then_some(counter.census), ..Found::default() })
}

fn counted(sorter: &mut Sorter<'_>) -> Found {
    Found { census: Some(std::mem::take(&mut sorter.census)), ..Found::default() }
}

async fn by_calendar(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    memory: Memory,
    settings: &Settings,
    sorter: &mut Sorter<'_>,
) -> anyhow::Result<Found> {
    let (table, judge) = (lookup.table, lookup.judge);
    let cutoff = judge.retention().cutoff();
    let mut rows = read::due(connection, table, cutoff, None, i64::MAX).await?;
    let behind = catch_up(connection, lookup, &memory, settings.count_timeout, &mut rows).await?;
    let ask = lookup.ask(connection, rows).await?;
    look_up(connection, lookup, &ask.candidates, sorter).await?;
    let next = next_expiry(connection, lookup).await?;
    let (census, counted_at) = memory.census.unzip();
    Ok(Found { census, counted_at, next, behind })
}

/// Adds the rows of late files that have expired. Says how far the calendar is behind, where that took too long.
async fn catch_up(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    memory: &Memory,
    limit: Duration,
    rows: &mut Vec<Row>,
) -> anyhow::Result<Option<String>> {
    let judge = lookup.judge;
    let leads: Vec<Lead> =
        judge.leads().map(|(spec_id, key_index)| Lead { spec_id, key_index }).collect();
    let TableIdentity { catalog_id, table_id, .. } = *lookup.table;
    let marks = lookup.marks(connection).await?;
    let of = LateFiles { catalog_id, table_id, leads: &leads, marks };
    let mut known: HashSet<RowKey> = rows.iter().map(|row| row.key.clone()).collect();
    let (mut watermark, mut block, began) = (memory.watermark, None, Instant::now());
    while watermark != marks {
        if began.elapsed() > limit {
            return Ok(Some(format!(
                "files of snapshots after {} up to {} were not looked at within discovery.count_timeout: the \
                 next pass reads them",
                watermark.through_snapshot, marks.through_snapshot
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
    lookup: &Lookup<'_>,
) -> anyhow::Result<Option<NextExpiry>> {
    let (table, retention) = (lookup.table, lookup.judge.retention());
    let rows = read::upcoming(connection, table, retention.cutoff(), ROWS_PROBED).await?;
    let (mut first, mut probed): (Option<UtcInstant>, usize) = (None, 0);
    for row in &rows {
        // Rows after this one end no earlier than it; of a day the first of its values may have no file left.
        if first.is_some_and(|first| first <= row.last_end) {
            break;
        }
        let not_before = NextExpiry::NotBefore(row.last_end.plus(retention.keep));
        let Some(values) = lookup.values_of(connection, row).await? else {
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

async fn look_up(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    candidates: &[Candidate],
    sorter: &mut Sorter<'_>,
) -> sqlx::Result<()> {
    for texts in candidates.chunk_by(|a, b| a.key_index == b.key_index) {
        for texts in texts.chunks(lookup.reach.texts_at_once) {
            let key_index = texts[0].key_index;
            let lead = |file: &LiveFile| lookup.is_lead(file, key_index);
            lookup.with_texts(connection, texts, lead, sorter).await?;
        }
    }
    Ok(())
}

/// Reads the table's own files piece by piece; false if that took longer than `limit`.
async fn read_all(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    limit: Duration,
    sorter: &mut Sorter<'_>,
) -> sqlx::Result<bool> {
    let TableIdentity { catalog_id, table_id, .. } = *lookup.table;
    let began = Instant::now();
    let mut after = Some(Place::START);
    while let Some(place) = after {
        if began.elapsed() > limit {
            return Ok(false);
        }
        let piece = walk(connection, catalog_id, table_id, place, lookup.reach.piece);
        let (files, next) = piece.await?;
        files.into_iter().for_each(|file| sorter.add(file));
        after = next;
    }
    Ok(true)
}
