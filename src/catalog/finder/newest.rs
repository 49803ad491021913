//! The newest time values of a table, by its live files alone: no row of our own memory says which there are.

use super::{Candidate, Finder};
use crate::catalog::live_file::LiveFile;
use crate::catalog::session::Session;
use crate::catalog::values::has_lookup_index;
use crate::rules::expiry::newest::{Newest, TimeValues};

/// Which of the table's time values are the `wanted` newest.
///
/// A small table is read. Of a larger one the catalog's distinct partition values at the keys of its time fields are
/// listed by index, at most `most` of a key, and looked up from the newest back until as many have a live file of the
/// table. Where a key has more, or there is no index, the table is read in pieces. Each statement is bounded, and they
/// see different moments: a caller to whom that matters proves that nothing went meanwhile. What comes meanwhile only
/// makes the values newer than they are told here.
pub async fn newest_values(
    connection: &mut Session,
    finder: Finder<'_>,
    wanted: i32,
    most: i64,
) -> sqlx::Result<Newest> {
    let mut values = TimeValues::new(wanted);
    let add = |values: &mut TimeValues, files: Vec<LiveFile>| {
        let ranges =
            files.iter().filter_map(|file| finder.judge.time_value(file.spec_id, &file.tuple));
        ranges.for_each(|range| values.add(range));
    };
    if let Some(files) = finder.small_table(connection).await? {
        add(&mut values, files);
        return Ok(values.newest());
    }
    let listed = match has_lookup_index(connection).await? {
        true => list_begun(connection, finder, most).await?,
        false => None,
    };
    let Some(listed) = listed else {
        let mut pages = finder.in_pieces();
        while let Some(files) = pages.next(connection).await? {
            add(&mut values, files);
        }
        return Ok(values.newest());
    };
    let mut rest = listed.as_slice();
    while let Some(next) = rest.first() {
        // None of the others can count with a later start.
        if let Newest::Since(since) = values.newest()
            && since >= next.end
        {
            break;
        }
        let (some, others) =
            rest.split_at(rest.len().min(finder.scan_limits.values_at_once.max(1)));
        let mut pages = finder.with_values(some);
        while let Some(files) = pages.next(connection).await? {
            add(&mut values, files);
        }
        rest = others;
    }
    Ok(values.newest())
}

/// The catalog's partition values at the keys of the table's time fields that may count, the latest to start first;
/// `None` where a key has more than `most` distinct partition values.
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
