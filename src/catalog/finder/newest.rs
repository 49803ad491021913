//! The newest time values of a table, by its live files alone: no row of our own memory says which there are.

use super::{Candidate, Finder};
use crate::catalog::live_file::LiveFile;
use crate::catalog::session::Session;
use crate::catalog::values::{BelowId, has_lookup_index, newest_with_values};
use crate::rules::expiry::newest::{Newest, TimeValues};
use crate::rules::transform::TimeRange;

/// The newest as far as they were found.
struct Found {
    values: TimeValues,
    /// The file of the value that starts last.
    newest: Option<(TimeRange, LiveFile)>,
}

impl Found {
    fn nothing(wanted: i32) -> Self {
        Found { values: TimeValues::new(wanted), newest: None }
    }

    fn add(&mut self, finder: Finder<'_>, files: Vec<LiveFile>) {
        for file in files {
            let Some(range) = finder.judge.time_value(file.spec_id, &file.tuple) else { continue };
            self.values.add(range);
            let of = |range: &TimeRange| (range.start, range.end);
            if self.newest.as_ref().is_none_or(|(newest, _)| of(newest) < of(&range)) {
                self.newest = Some((range, file));
            }
        }
    }
}

/// Which of the table's time values are the `wanted` newest.
///
/// A small table is read. Of a larger one the catalog's distinct partition values at the keys of its time fields are
/// listed by index, at most `most` of a key, and asked for a live file of the table from the newest back until as many
/// have one. Where a key has more, or there is no index, the table is read in pieces. Each statement is bounded, and
/// they see different moments: a caller to whom that matters proves that nothing went meanwhile. What comes meanwhile
/// only makes the values newer than they are told here.
pub async fn newest_values(
    connection: &mut Session,
    finder: Finder<'_>,
    wanted: i32,
    most: i64,
) -> sqlx::Result<Newest> {
    let mut found = Found::nothing(wanted);
    if !look(connection, finder, most, &mut found).await? {
        let mut pages = finder.in_pieces();
        while let Some(files) = pages.next(connection).await? {
            found.add(finder, files);
        }
    }
    Ok(found.values.newest())
}

/// The newest time value of the table, with a live file that has it; `None` where there is none, or where a table that
/// is not small would have to be read for it.
pub async fn newest_value(
    connection: &mut Session,
    finder: Finder<'_>,
    most: i64,
) -> sqlx::Result<Option<(TimeRange, LiveFile)>> {
    let mut found = Found::nothing(1);
    let is_told = look(connection, finder, most, &mut found).await?;
    Ok(found.newest.filter(|_| is_told))
}

/// Looks for the newest; false where that takes to read a table that is not small.
async fn look(
    connection: &mut Session,
    finder: Finder<'_>,
    most: i64,
    found: &mut Found,
) -> sqlx::Result<bool> {
    if let Some(files) = finder.small_table(connection).await? {
        found.add(finder, files);
        return Ok(true);
    }
    let listed = match has_lookup_index(connection).await? {
        true => list_begun(connection, finder, most).await?,
        false => None,
    };
    let Some(listed) = listed else { return Ok(false) };
    let (catalog_id, table_id) = (finder.table.catalog_id, finder.table.table_id);
    for some in listed.chunks(finder.scan_limits.values_at_once.max(1)) {
        // None of the others can count with a later start.
        let latest = some.first().map(|candidate| candidate.end);
        if let Newest::Since(since) = found.values.newest()
            && latest.is_none_or(|latest| since >= latest)
        {
            break;
        }
        let below =
            |candidate: &Candidate| BelowId { value: candidate.value(), before_id: i64::MAX };
        let mut asked: Vec<BelowId> = some.iter().map(below).collect();
        while !asked.is_empty() {
            let (files, more) =
                newest_with_values(connection, catalog_id, table_id, &asked).await?;
            found.add(finder, files);
            asked = more;
        }
    }
    Ok(true)
}

/// The catalog's partition values at the keys of the table's time fields that may count, the latest to start first, with
/// that start; `None` where a key has more than `most` distinct partition values.
async fn list_begun(
    connection: &mut Session,
    finder: Finder<'_>,
    most: i64,
) -> sqlx::Result<Option<Vec<Candidate>>> {
    let mut found = Vec::new();
    for key_index in finder.judge.lookup_key_indexes() {
        let (mut after, mut read) = (None, 0_i64);
        loop {
            let (values, next) =
                finder.values(connection, key_index, after.as_deref(), None).await?;
            read = read.saturating_add(values.len() as i64);
            if read > most {
                return Ok(None);
            }
            found.extend(values.into_iter().filter_map(|text| {
                let start = finder.judge.latest_start(key_index, &text)?;
                Some(Candidate { end: start, key_index, text })
            }));
            match next {
                Some(next) => after = Some(next),
                None => break,
            }
        }
    }
    found.sort_unstable_by(|one, other| other.cmp(one));
    Ok(Some(found))
}
