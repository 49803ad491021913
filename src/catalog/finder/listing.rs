//! The partition values of a catalog that may belong to an expired tuple, listed by the lookup index.

use std::collections::VecDeque;

use super::{Candidate, Finder};
use crate::catalog::session::Session;

/// How far a listing has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// There may be more.
    Some,
    /// That is all.
    All,
    /// A key has more distinct partition values than may be read.
    TooMany,
}

/// A listing under way: the partition values at the keys of all time fields of the table's specs.
#[derive(Debug)]
pub struct Listing {
    keys: VecDeque<i32>,
    after: Option<String>,
    /// Distinct partition values of the first key that were read.
    read: i64,
    /// How many may be; any number, where there is none.
    most: Option<i64>,
    /// What was found and not taken yet.
    found: Vec<Candidate>,
}

impl Listing {
    /// A listing; with `most` it gives up where a key has more distinct partition values.
    pub fn new(finder: &Finder<'_>, most: Option<i64>) -> Self {
        let keys = finder.judge.lookup_key_indexes().into_iter().collect();
        Listing { keys, after: None, read: 0, most, found: Vec::new() }
    }

    /// Lists on, by one statement.
    pub async fn next(
        &mut self,
        finder: &Finder<'_>,
        connection: &mut Session,
    ) -> sqlx::Result<Listed> {
        let Some(&key_index) = self.keys.front() else { return Ok(Listed::All) };
        let (values, next) =
            finder.values(connection, key_index, self.after.as_deref(), None).await?;
        self.read = self.read.saturating_add(values.len() as i64);
        if self.most.is_some_and(|most| self.read > most) {
            return Ok(Listed::TooMany);
        }
        self.found.extend(values.into_iter().filter_map(|text| {
            let end = finder.judge.expiry_of_text(key_index, &text)?;
            Some(Candidate { end, key_index, text })
        }));
        if next.is_none() {
            self.keys.pop_front();
            self.read = 0;
        }
        self.after = next;
        Ok(if self.keys.is_empty() { Listed::All } else { Listed::Some })
    }

    /// Whether it may give up.
    pub fn is_bounded(&self) -> bool {
        self.most.is_some()
    }

    /// What was found since the last time, the first to end first.
    pub fn take(&mut self) -> Vec<Candidate> {
        let mut found = std::mem::take(&mut self.found);
        found.sort_unstable();
        found
    }
}

/// All of them, oldest first; `None` where a key has more than `most` distinct partition values.
pub async fn list_expired(
    connection: &mut Session,
    finder: &Finder<'_>,
    most: i64,
) -> sqlx::Result<Option<Vec<Candidate>>> {
    let mut listing = Listing::new(finder, Some(most));
    loop {
        match listing.next(finder, connection).await? {
            Listed::Some => {}
            Listed::All => return Ok(Some(listing.take())),
            Listed::TooMany => return Ok(None),
        }
    }
}
