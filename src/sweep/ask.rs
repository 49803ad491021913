//! The partition values that a pass looks up: those of the rows that are due.

use std::collections::{BTreeMap, BTreeSet};

use super::calendar::{Row, RowKey};
use crate::catalog::finder::{Candidate, Finder};
use crate::catalog::session::Session;
use crate::rules::expiry::Judge;
use crate::rules::expiry::ends::Ends;
use crate::rules::instant::UtcInstant;

/// So many rows that stand for single values are asked for together, and so many that stand for days.
const VALUES_AT_ONCE: usize = 2_000;
const DAYS_AT_ONCE: usize = 8;

/// Days of one run lie at most so far apart: texts are written between the dates before and after.
const SAME_RUN: i128 = 4;

/// Values to be looked up, with the rows that this settles.
#[derive(Debug, Clone, Default)]
pub struct Ask {
    /// The values, oldest first; each is looked up once, whatever the number of specs.
    pub candidates: Vec<Candidate>,
    /// The rows.
    pub rows: Vec<AskedRow>,
}

/// A row of which all values that have expired are looked up.
#[derive(Debug, Clone)]
pub struct AskedRow {
    /// The row as it is stored.
    pub row: Row,
    /// The place of the last of its values among the candidates; `None` where there is none.
    pub last: Option<usize>,
    /// When the first of its values ends that had not expired and may have files.
    pub pending: Option<UtcInstant>,
}

/// Rows in their order, in groups that are asked for together.
pub fn groups(rows: Vec<Row>) -> Vec<Vec<Row>> {
    let mut groups: Vec<Vec<Row>> = Vec::new();
    let mut days = 0;
    for row in rows {
        days += usize::from(row.key.is_day);
        match groups.last_mut() {
            Some(group) if group.len() < VALUES_AT_ONCE && days <= DAYS_AT_ONCE => group.push(row),
            _ => {
                days = usize::from(row.key.is_day);
                groups.push(vec![row]);
            }
        }
    }
    groups
}

/// The end of what never expires.
pub const NEVER: UtcInstant = UtcInstant::from_days(2_932_896);

/// A row, its values that have expired, and when the first of the others ends.
type Asked = (Row, BTreeSet<(i32, String)>, Option<UtcInstant>);

/// Values that were found out, by key index: when the range of each ended.
type Found = BTreeMap<(i32, String), UtcInstant>;

/// The values of some rows: those that stand for themselves, those that can be counted out of a day, and
/// those that the catalog has between two texts. Reads distinct values in bounded pieces.
pub async fn ask(
    finder: Finder<'_>,
    connection: &mut Session,
    rows: Vec<Row>,
) -> sqlx::Result<Ask> {
    let judge = finder.judge;
    let mut found = Found::new();
    let mut asked: Vec<Asked> = Vec::new();
    // The days of each spec whose values can only be listed, by their places among `asked`.
    let mut listed: BTreeMap<i64, BTreeMap<i128, usize>> = BTreeMap::new();
    for row in rows {
        let RowKey { spec_id, value, .. } = &row.key;
        let spec_id = *spec_id;
        let Some(key_index) = judge.spec(spec_id).and_then(|spec| spec.lookup_key_index()) else {
            continue;
        };
        let mut texts = BTreeSet::new();
        let mut pending = None;
        match row.key.day() {
            None => {
                texts.insert((key_index, value.clone()));
            }
            Some(day) => {
                let Some(ending) = judge.ending_on(spec_id, day, day) else {
                    // Only a full pass finds what is unknown.
                    asked.push((row, texts, Some(NEVER)));
                    continue;
                };
                for (key_index, values) in ending.values {
                    texts.extend(values.into_iter().map(|text| (key_index, text)));
                }
                if !ending.between.is_empty() {
                    listed.entry(spec_id).or_default().insert(day, asked.len());
                }
            }
        }
        texts.retain(|(_, text)| is_due(judge, ends(judge, spec_id, text), &mut pending));
        asked.push((row, texts, pending));
    }
    for (spec_id, days) in listed {
        for run in runs(days.keys().copied()) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            let Some(ending) = judge.ending_on(spec_id, *first, *last) else { continue };
            for (key_index, betweens) in ending.between {
                for (after, before) in betweens {
                    list(
                        finder,
                        connection,
                        spec_id,
                        key_index,
                        (after, before),
                        |day| days.get(&day).copied(),
                        &mut asked,
                    )
                    .await?;
                }
            }
        }
    }
    for (row, texts, _) in &asked {
        for text in texts {
            let ends = ends(judge, row.key.spec_id, &text.1);
            let end = ends.map_or(UtcInstant::EARLIEST, |ends| ends.own);
            found.entry(text.clone()).and_modify(|at| *at = end.min(*at)).or_insert(end);
        }
    }
    let mut candidates: Vec<Candidate> = found
        .into_iter()
        .map(|((key_index, text), end)| Candidate { end, key_index, text })
        .collect();
    candidates.sort_unstable();
    let place: BTreeMap<(i32, &str), usize> = candidates
        .iter()
        .enumerate()
        .map(|(at, candidate)| ((candidate.key_index, candidate.text.as_str()), at))
        .collect();
    let rows = asked.into_iter().map(|(row, texts, pending)| {
        let places = texts.iter().filter_map(|(key, text)| place.get(&(*key, text.as_str())));
        AskedRow { last: places.copied().max(), row, pending }
    });
    Ok(Ask { rows: rows.collect(), candidates })
}

/// The values of a row that have not expired, the first to end first. `None` where they are unknown, or
/// are more than are listed at once.
pub async fn values_of(
    finder: Finder<'_>,
    connection: &mut Session,
    row: &Row,
) -> sqlx::Result<Option<Vec<Candidate>>> {
    let RowKey { spec_id, value, .. } = &row.key;
    let Some(key_index) = finder.judge.spec(*spec_id).and_then(|spec| spec.lookup_key_index())
    else {
        return Ok(None);
    };
    let mut texts = BTreeSet::new();
    match row.key.day() {
        None => {
            texts.insert((key_index, value.clone()));
        }
        Some(day) => {
            let Some(ending) = finder.judge.ending_on(*spec_id, day, day) else {
                return Ok(None);
            };
            for (key_index, values) in ending.values {
                texts.extend(values.into_iter().map(|text| (key_index, text)));
            }
            for (key_index, betweens) in ending.between {
                for (after, before) in betweens {
                    let (after, before) = (Some(after.as_str()), Some(before.as_str()));
                    let piece = finder.values(connection, key_index, after, before);
                    let (listed, None) = piece.await? else { return Ok(None) };
                    let ends_then = |text: &String| {
                        ends(finder.judge, *spec_id, text).is_some_and(|ends| ends.day() == day)
                    };
                    let listed = listed.into_iter().filter(ends_then);
                    texts.extend(listed.map(|text| (key_index, text)));
                }
            }
        }
    }
    let cutoff = finder.judge.retention().cutoff();
    let of = |(key_index, text): (i32, String)| {
        let end = ends(finder.judge, *spec_id, &text)?.last;
        // Another time field of its files may end later, which the last look has found out.
        let end = if row.key.is_day { end } else { end.max(row.last_end) };
        (end > cutoff).then_some(Candidate { end, key_index, text })
    };
    let mut values: Vec<Candidate> = texts.into_iter().filter_map(of).collect();
    values.sort_unstable();
    Ok(Some(values))
}

/// Whether a value has expired; where it has not, notes when it ends.
fn is_due(judge: &Judge, ends: Option<Ends>, pending: &mut Option<UtcInstant>) -> bool {
    let Some(Ends { last, .. }) = ends else { return false };
    if last <= judge.retention().cutoff() {
        return true;
    }
    *pending = Some(pending.map_or(last, |end| end.min(last)));
    false
}

fn ends(judge: &Judge, spec_id: i64, text: &str) -> Option<Ends> {
    judge.ends(spec_id, Some(text))?.ok()
}

/// Lists the catalog's values between two texts, and gives each to the row of the day on which it ends.
async fn list(
    finder: Finder<'_>,
    connection: &mut Session,
    spec_id: i64,
    key_index: i32,
    (after, before): (String, String),
    place_of: impl Fn(i128) -> Option<usize>,
    asked: &mut [Asked],
) -> sqlx::Result<()> {
    let mut after = Some(after);
    while after.is_some() {
        let piece = finder.values(connection, key_index, after.as_deref(), Some(before.as_str()));
        let (texts, next) = piece.await?;
        for text in texts {
            let Some(ends) = ends(finder.judge, spec_id, &text) else { continue };
            let Some((_, texts, pending)) = place_of(ends.day()).and_then(|at| asked.get_mut(at))
            else {
                continue;
            };
            if is_due(finder.judge, Some(ends), pending) {
                texts.insert((key_index, text));
            }
        }
        after = next;
    }
    Ok(())
}

/// Days in runs within which none lies far from the one before.
fn runs(days: impl IntoIterator<Item = i128>) -> Vec<Vec<i128>> {
    let mut runs: Vec<Vec<i128>> = Vec::new();
    for day in days {
        match runs.last_mut() {
            Some(run) if run.last().is_some_and(|last| day - last <= SAME_RUN) => run.push(day),
            _ => runs.push(vec![day]),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_that_lie_near_are_one_run() {
        let of = |days: &[i128]| runs(days.iter().copied());
        assert_eq!(of(&[]), Vec::<Vec<i128>>::new());
        assert_eq!(of(&[1, 2, 6, 11, 12]), [vec![1, 2, 6], vec![11, 12]]);
    }

    #[test]
    fn rows_are_asked_for_in_groups_that_are_bounded() {
        let row = |is_day| Row {
            key: RowKey { spec_id: 1, is_day, value: "1".to_owned() },
            range_end: UtcInstant::EARLIEST,
            last_end: UtcInstant::EARLIEST,
            span: std::time::Duration::ZERO,
            next_look: None,
        };
        let sizes = |rows: Vec<Row>| groups(rows).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(vec![row(false); 4_001]), [2_000, 2_000, 1]);
        assert_eq!(sizes(vec![row(true); 17]), [8, 8, 1]);
        assert_eq!(sizes(Vec::new()), Vec::<usize>::new());
    }
}
