//! Which live files a list of tuples has, and what they amount to.
//!
//! A file is matched by its spec and its whole tuple, as [`super::discovery`] says. No statement
//! here grows with the table or with a tuple: each reads a bounded piece.

mod lookup;
mod matching;

use std::ops::ControlFlow;

use super::discovery::{TupleOfSpec, has_lookup_index};
use super::live_file::Counts;
use super::live_file::LiveFile;
use super::session::Session;
use super::tables::file_id_counter;
use super::walk::{PIECE, Place, live_in_ids, walk};
use matching::Matcher;

/// What is looked for.
#[derive(Debug, Clone, Copy)]
pub struct Search<'a> {
    /// The catalog.
    pub catalog_id: i64,
    /// The table.
    pub table_id: i64,
    /// The tuples; none is named twice.
    pub tuples: &'a [TupleOfSpec],
    /// For each tuple the position of the value, null or not, by which its files are found.
    pub lead: &'a [usize],
    /// Files with lower ids are left out.
    pub from_id: i64,
}

/// A live file of one of the tuples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoundFile {
    /// Its id.
    pub data_file_id: i64,
    /// The index of its tuple.
    pub tuple_no: i32,
    /// Whether it has a live deletion vector.
    pub has_vector: bool,
    /// Rows as written.
    pub record_count: i64,
    /// Bytes.
    pub file_size_bytes: i64,
}

impl FoundFile {
    /// What the file amounts to.
    pub fn counts(&self) -> Counts {
        Counts {
            files: 1,
            delete_files: i64::from(self.has_vector),
            records: self.record_count,
            bytes: self.file_size_bytes,
        }
    }
}

/// Up to so many ids it is no use to ask whether a tuple's files are fewer.
const FEW_IDS: i64 = 1_000;

/// Hands the live files of the tuples on one by one, each once, in no particular order, until it
/// is told to stop.
///
/// Whoever needs all files as of a moment reads the id counter before: a file that is committed
/// after that read has an id at or above it. The statements see different moments, so a file that
/// ended in between may or may not be among them.
///
/// The lookup index finds a tuple's files by the value at `lead`, whatever the size of the table.
/// Where it reads more than it is worth, because only few ids are asked for, the primary key is
/// read instead; where there is none (before V23), for ids above zero too, and the table's own
/// files for all ids: slower, and bounded all the same.
pub async fn visit(
    connection: &mut Session,
    search: &Search<'_>,
    mut each: impl FnMut(FoundFile) -> ControlFlow<()>,
) -> sqlx::Result<()> {
    let matcher = Matcher::new(search.tuples, search.lead);
    if matcher.is_empty() {
        return Ok(());
    }
    let counter = match search.from_id {
        ..=0 => None,
        _ => file_id_counter(connection, search.catalog_id).await?,
    };
    let leads = i64::try_from(matcher.leads().len()).unwrap_or(i64::MAX);
    match counter {
        // Reading a foreign id costs a fraction of looking a value up.
        Some(counter) if counter - search.from_id <= leads.saturating_mul(4).max(FEW_IDS) => {
            by_ids(connection, search, &matcher, counter, &mut each).await
        }
        _ if has_lookup_index(connection).await? => {
            lookup::by_leads(connection, search, &matcher, &mut each).await
        }
        Some(counter) => by_ids(connection, search, &matcher, counter, &mut each).await,
        None => by_walking(connection, search, &matcher, &mut each).await,
    }
}

/// Files with ids below the counter, by the primary key.
async fn by_ids(
    connection: &mut Session,
    search: &Search<'_>,
    matcher: &Matcher<'_>,
    counter: i64,
    each: &mut impl FnMut(FoundFile) -> ControlFlow<()>,
) -> sqlx::Result<()> {
    let mut from_id = search.from_id;
    // What is committed meanwhile is whole in neither reading; the caller looks for it anyway.
    while from_id < counter {
        let before_id = counter.min(from_id.saturating_add(PIECE));
        let files =
            live_in_ids(connection, search.catalog_id, search.table_id, from_id, before_id).await?;
        if hand_on(&files, matcher, each).is_break() {
            return Ok(());
        }
        from_id = before_id;
    }
    Ok(())
}

/// All files, by the table's own.
async fn by_walking(
    connection: &mut Session,
    search: &Search<'_>,
    matcher: &Matcher<'_>,
    each: &mut impl FnMut(FoundFile) -> ControlFlow<()>,
) -> sqlx::Result<()> {
    let mut next = Some(Place::START);
    while let Some(after) = next {
        let (files, last) =
            walk(connection, search.catalog_id, search.table_id, after, PIECE).await?;
        if hand_on(&files, matcher, each).is_break() {
            return Ok(());
        }
        next = last;
    }
    Ok(())
}

fn hand_on(
    files: &[LiveFile],
    matcher: &Matcher<'_>,
    each: &mut impl FnMut(FoundFile) -> ControlFlow<()>,
) -> ControlFlow<()> {
    for file in files {
        let Some(tuple_no) = file.spec_id.and_then(|spec| matcher.by_tuple(spec, &file.tuple))
        else {
            continue;
        };
        each(FoundFile {
            data_file_id: file.data_file_id,
            tuple_no,
            has_vector: file.has_vector,
            record_count: file.record_count,
            file_size_bytes: file.file_size_bytes,
        })?;
    }
    ControlFlow::Continue(())
}

/// The live files of the tuples with ids from `from_id` on, as (file id, index into `tuples`),
/// oldest id first; of more than `limit` files only so many, and not always the oldest.
///
/// Found as by [`visit`].
pub async fn files_of(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
    tuples: &[TupleOfSpec],
    lead: &[usize],
    from_id: i64,
    limit: i64,
) -> sqlx::Result<Vec<(i64, i32)>> {
    let search = Search { catalog_id, table_id, tuples, lead, from_id };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut files = Vec::new();
    visit(connection, &search, |file| {
        if files.len() == most {
            return ControlFlow::Break(());
        }
        files.push((file.data_file_id, file.tuple_no));
        ControlFlow::Continue(())
    })
    .await?;
    files.sort_unstable();
    files.dedup();
    Ok(files)
}

/// What each tuple's live files amount to, as (index into `tuples`, counts); tuples without any are
/// left out. Found as by [`visit`].
pub async fn count_files(
    connection: &mut Session,
    search: &Search<'_>,
) -> sqlx::Result<Vec<(i32, Counts)>> {
    let mut by_tuple = std::collections::BTreeMap::<i32, Counts>::new();
    visit(connection, search, |file| {
        *by_tuple.entry(file.tuple_no).or_default() += file.counts();
        ControlFlow::Continue(())
    })
    .await?;
    Ok(by_tuple.into_iter().collect())
}

/// How many live files the table has, of every spec and of none.
pub async fn count_live(
    connection: &mut Session,
    catalog_id: i64,
    table_id: i64,
) -> sqlx::Result<i64> {
    sqlx::query_scalar!(
        r#"select pg_catalog.count(*) as "files!" from hog_data_file
           where catalog_id = $1 and table_id = $2 and end_snapshot is null"#,
        catalog_id,
        table_id
    )
    .fetch_one(connection)
    .await
}
