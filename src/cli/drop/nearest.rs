//! Lists the stored partitions that are nearest to those that were asked for, where none of these
//! has a live file. It helps whoever mistyped a value.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::known::Known;
use super::shown::{Line, Teller};
use crate::catalog::live_file::LiveFile;
use crate::catalog::session::Session;
use crate::catalog::table_files::live_since;
use crate::catalog::table_files::newest_live;
use crate::cli::text::{count, counted};
use crate::explicit::call::DropAnswer;
use crate::rules::instant::UtcInstant;
use crate::rules::transform::{TimeTransform, TimeType};

/// How many files are read from each end of the table.
const FILES: i64 = 20_000;

/// How many tuples are listed.
const LISTED: usize = 5;

type Values = Vec<Option<String>>;

/// A stored tuple with the number of its files.
type Stored<'a> = (&'a (i64, Values), i64);

/// A text which says that nothing matched, and lists the stored tuples that are nearest to the first requested
/// tuple. It only accompanies the answer of the drop, so a list that cannot be read is left out.
pub async fn described(session: &mut Session, teller: &Teller<'_>, answer: &DropAnswer) -> String {
    let mut text = format!(
        "tailrace: nothing matched: no live file of the table is in {}",
        match answer.partitions.len() {
            1 => "this partition".to_owned(),
            many => format!("any of these {}", counted(many as i64, "partition")),
        }
    );
    let (Some(asked), Some(known)) = (answer.partitions.first(), teller.known) else {
        return text + "\n";
    };
    let Ok((stored, is_whole)) = stored(session, known).await else { return text + "\n" };
    if stored.is_empty() {
        return text + "; it has no live file in any partition\n";
    }
    let of_which = match is_whole {
        true => String::new(),
        false => format!(" in its {0} oldest and {0} newest live files", count(FILES)),
    };
    let of_first = if answer.partitions.len() > 1 { " to the first of them" } else { "" };
    text.push_str(&format!("; nearest{of_first} is stored{of_which}\n"));
    let nearest = nearest(known, asked.spec_id, &asked.partition_values, &stored);
    let lines: Vec<_> = nearest
        .iter()
        .map(|((spec_id, values), files)| Line {
            typed: "",
            spec_id: *spec_id,
            values,
            files: *files,
            bytes: None,
        })
        .collect();
    text + &teller.lines(&lines)
}

/// The tuples of the table's live files, with their numbers of files, and whether all files were read. Of a
/// large table only the oldest and the newest files are read, because a person waits for the answer.
async fn stored(
    session: &mut Session,
    known: &Known,
) -> sqlx::Result<(BTreeMap<(i64, Values), i64>, bool)> {
    let (catalog_id, table_id) = (known.identity.catalog_id, known.identity.table_id);
    let mut files = live_since(session, catalog_id, table_id, i64::MIN, FILES).await?;
    let is_whole = (files.len() as i64) < FILES;
    if !is_whole {
        files.extend(newest_live(session, catalog_id, table_id, FILES).await?);
    }
    let mut seen = BTreeSet::new();
    let mut stored = BTreeMap::new();
    for LiveFile { data_file_id, spec_id, tuple, .. } in files {
        if let (Some(spec_id), true) = (spec_id, seen.insert(data_file_id)) {
            *stored.entry((spec_id, tuple.values)).or_insert(0) += 1;
        }
    }
    Ok((stored, is_whole))
}

/// The nearest tuples. Those of the same spec are preferred, then those with the same other values. Nearest
/// means nearest in time if a requested value is a time, else nearest in the order of the stored values.
fn nearest<'a>(
    known: &Known,
    spec_id: i64,
    values: &[Option<String>],
    stored: &'a BTreeMap<(i64, Values), i64>,
) -> Vec<Stored<'a>> {
    let all = || stored.iter().map(|(tuple, files)| (tuple, *files));
    let mut tuples: Vec<Stored<'a>> =
        all().filter(|((of_spec, _), _)| *of_spec == spec_id).collect();
    if tuples.is_empty() {
        tuples = all().collect();
    }
    if let Some((position, at)) = time(known, spec_id, values) {
        tuples.sort_by_cached_key(|((of_spec, stored), _)| {
            let differs =
                |other: &usize| *other != position && values.get(*other) != stored.get(*other);
            let others = (0..values.len().max(stored.len())).filter(differs).count();
            let time = time(known, *of_spec, stored);
            let away = time.map_or(Duration::MAX, |(_, stored)| stored.distance(at));
            (others, away, stored.clone())
        });
    } else {
        tuples.sort_by(|(a, _), (b, _)| (&a.1, a.0).cmp(&(&b.1, b.0)));
        let at = tuples.partition_point(|((_, stored), _)| stored.as_slice() < values);
        let last = tuples.len().min(at.saturating_sub(LISTED / 2) + LISTED);
        tuples = tuples.split_off(last.saturating_sub(LISTED).min(last));
    }
    tuples.truncate(LISTED);
    tuples
}

/// The first value of a tuple that is a time, with its position. A value of an identity field that no writer
/// should have stored is interpreted as far as possible, because nothing is dropped because of it.
fn time(known: &Known, spec_id: i64, values: &[Option<String>]) -> Option<(usize, UtcInstant)> {
    if let Some((position, range)) = known.ranges(spec_id, values).first() {
        return Some((*position, range.start));
    }
    let fields = known.book.specs.get(&spec_id)?;
    fields.iter().zip(values).enumerate().find_map(|(position, (field, value))| {
        let transforms = known.book.transforms_of(field);
        let is_instant = |of: &TimeTransform| matches!(of, TimeTransform::Identity(_));
        transforms.iter().find(|of| is_instant(of))?;
        let seems = [TimeType::TimestampTz, TimeType::Timestamp, TimeType::Date];
        let range = |of| TimeTransform::Identity(of).decode(value.as_deref()).ok();
        Some((position, seems.into_iter().find_map(range)?.start))
    })
}
