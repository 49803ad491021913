//! Which live files a list of tuples has, and what they amount to.
//!
//! A file is matched by its spec and its whole tuple, as [`crate::catalog::tuples`] says.

use std::ops::ControlFlow;

use super::lookups::LookUps;
use super::matching::Matcher;
use crate::catalog::live_file::{Counts, LiveFile};
use crate::catalog::session::Session;
use crate::catalog::table_files::{PIECE, Place, live_in_ids, next_piece};
use crate::catalog::tables::file_id_counter;
use crate::catalog::tuples::TupleOfSpec;
use crate::catalog::values::has_lookup_index;

/// How many values one statement looks up.
const VALUES: usize = 512;

/// Up to so many ids it is no use to ask whether a tuple's files are fewer.
const FEW_IDS: i64 = 1_000;

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
    pub lookup_keys: &'a [usize],
    /// Files with lower ids are left out.
    pub from_id: i64,
}

/// What the next page is made of.
#[derive(Debug)]
enum Step {
    /// The way in which files are found is chosen.
    Choose,
    /// What the values at hand find.
    LookUp,
    /// The ids from this one on, below another.
    Ids(i64, i64),
    /// The piece of the table after this place.
    Piece(Place),
    End,
}

/// The live files of the tuples, each once, with the places of their tuples, in no particular order.
///
/// The lookup index finds a tuple's files by the value at `lookup_keys`, whatever the size of the table.
/// Where it reads more than it is worth, because only few ids are asked for, the primary key is
/// read instead; where there is none (before V23), for ids above zero too, and the table's own
/// files for all ids: slower, and bounded all the same.
#[derive(Debug)]
pub struct TuplePages<'a> {
    search: Search<'a>,
    matcher: Matcher<'a>,
    look_ups: LookUps,
    step: Step,
}

impl<'a> TuplePages<'a> {
    /// Begins a search.
    pub fn new(search: Search<'a>) -> Self {
        let matcher = Matcher::new(search.tuples, search.lookup_keys);
        let step = if matcher.is_empty() { Step::End } else { Step::Choose };
        TuplePages { search, matcher, look_ups: LookUps::default(), step }
    }

    /// The next page, by one statement that reads files; it may be empty. `None` once all is found, and after an
    /// error.
    pub async fn next(
        &mut self,
        connection: &mut Session,
    ) -> sqlx::Result<Option<Vec<(i32, LiveFile)>>> {
        let Search { catalog_id, table_id, .. } = self.search;
        match std::mem::replace(&mut self.step, Step::End) {
            Step::Choose => {
                self.step = self.choose(connection).await?;
                Ok(Some(Vec::new()))
            }
            Step::LookUp => {
                let table = (catalog_id, table_id);
                let found = self.look_ups.next(connection, table, VALUES).await?;
                self.step = if self.look_ups.is_over() { Step::End } else { Step::LookUp };
                let with_number = |(value, file): (_, LiveFile)| {
                    Some((self.matcher.by_lookup_value(file.spec_id?, &file.tuple, &value)?, file))
                };
                Ok(Some(found.into_iter().filter_map(with_number).collect()))
            }
            // What is committed meanwhile is whole in neither reading; the caller looks for it anyway.
            Step::Ids(from_id, end) => {
                let before = end.min(from_id.saturating_add(PIECE));
                let files = live_in_ids(connection, catalog_id, table_id, from_id, before).await?;
                self.step = if before < end { Step::Ids(before, end) } else { Step::End };
                Ok(Some(self.of_tuples(files)))
            }
            Step::Piece(after) => {
                let (files, next) =
                    next_piece(connection, catalog_id, table_id, after, PIECE).await?;
                self.step = next.map_or(Step::End, Step::Piece);
                Ok(Some(self.of_tuples(files)))
            }
            Step::End => Ok(None),
        }
    }

    async fn choose(&mut self, connection: &mut Session) -> sqlx::Result<Step> {
        let Search { catalog_id, from_id, .. } = self.search;
        let counter = match from_id {
            ..=0 => None,
            _ => file_id_counter(connection, catalog_id).await?,
        };
        let values = i64::try_from(self.matcher.lookup_values().len()).unwrap_or(i64::MAX);
        Ok(match counter {
            Some(counter) if counter <= from_id => Step::End,
            // Reading a foreign id costs a fraction of looking a value up.
            Some(counter) if counter - from_id <= values.saturating_mul(4).max(FEW_IDS) => {
                Step::Ids(from_id, counter)
            }
            _ if has_lookup_index(connection).await? => {
                self.look_ups.add(self.matcher.lookup_values().iter().cloned(), from_id);
                Step::LookUp
            }
            Some(counter) => Step::Ids(from_id, counter),
            None => Step::Piece(Place::START),
        })
    }

    fn of_tuples(&self, files: Vec<LiveFile>) -> Vec<(i32, LiveFile)> {
        let number = |file: &LiveFile| self.matcher.by_tuple(file.spec_id?, &file.tuple);
        files.into_iter().filter_map(|file| Some((number(&file)?, file))).collect()
    }
}

/// Hands the live files of the tuples on one by one, with the places of their tuples, until it is told to stop.
pub async fn visit(
    connection: &mut Session,
    search: &Search<'_>,
    mut each: impl FnMut(i32, LiveFile) -> ControlFlow<()>,
) -> sqlx::Result<()> {
    let mut pages = TuplePages::new(*search);
    while let Some(files) = pages.next(connection).await? {
        for (tuple_no, file) in files {
            if each(tuple_no, file).is_break() {
                return Ok(());
            }
        }
    }
    Ok(())
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
    lookup_keys: &[usize],
    from_id: i64,
    limit: i64,
) -> sqlx::Result<Vec<(i64, i32)>> {
    let search = Search { catalog_id, table_id, tuples, lookup_keys, from_id };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let mut files = Vec::new();
    visit(connection, &search, |tuple_no, file| {
        if files.len() == most {
            return ControlFlow::Break(());
        }
        files.push((file.data_file_id, tuple_no));
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
    visit(connection, search, |tuple_no, file| {
        *by_tuple.entry(tuple_no).or_default() += file.counts();
        ControlFlow::Continue(())
    })
    .await?;
    Ok(by_tuple.into_iter().collect())
}
