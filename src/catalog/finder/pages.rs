//! A search as a series of pages. One statement finds each page, and the caller may stop after any page.

use super::listing::{Listed, Listing};
use super::lookups::LookUps;
use super::{Candidate, Finder};
use crate::catalog::live_file::LiveFile;
use crate::catalog::session::Session;
use crate::catalog::table_files::Place;
use crate::catalog::values::has_lookup_index;

/// In which way files are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// All of a small table at once, or it is not known yet whether it is small.
    AtOnce,
    /// By their values: others are not found.
    ByValue,
    /// All of the table, piece by piece.
    InPieces,
}

/// What the next page is made of.
#[derive(Debug)]
enum Step {
    /// The whole table, if it is small; else it is searched so.
    Small(Large),
    /// The next partition values of a listing.
    List(Listing),
    /// What the values at hand find; then the rest of a listing.
    LookUp(Option<Listing>),
    /// The piece after this place.
    Piece(Place),
    End,
}

/// How a table that is not small is searched.
#[derive(Debug, Clone, Copy)]
enum Large {
    InPieces,
    /// By the expired partition values, of which so many at a key may be listed.
    Expired(Option<i64>),
}

/// A search, as [`Finder`] makes it.
#[derive(Debug)]
pub struct Pages<'a> {
    finder: Finder<'a>,
    step: Step,
    way: Way,
    look_ups: LookUps,
}

impl<'a> Pages<'a> {
    fn new(finder: Finder<'a>, step: Step, way: Way) -> Self {
        Pages { finder, step, way, look_ups: LookUps::default() }
    }

    pub(super) fn all(finder: Finder<'a>) -> Self {
        Self::new(finder, Step::Small(Large::InPieces), Way::AtOnce)
    }

    pub(super) fn in_pieces(finder: Finder<'a>) -> Self {
        Self::new(finder, Step::Piece(Place::START), Way::InPieces)
    }

    pub(super) fn expired(finder: Finder<'a>, most: Option<i64>) -> Self {
        Self::new(finder, Step::Small(Large::Expired(most)), Way::AtOnce)
    }

    pub(super) fn with_values(finder: Finder<'a>, candidates: &[Candidate]) -> Self {
        let mut pages = Self::new(finder, Step::LookUp(None), Way::ByValue);
        pages.look_ups.add(candidates.iter().map(Candidate::value), i64::MIN);
        pages
    }

    /// In which way the files of the next page are found, or those of the last one were.
    pub fn way(&self) -> Way {
        self.way
    }

    /// Whether there is no next page.
    pub fn is_over(&self) -> bool {
        match &self.step {
            Step::LookUp(rest) => rest.is_none() && self.look_ups.is_over(),
            Step::End => true,
            Step::Small(_) | Step::List(_) | Step::Piece(_) => false,
        }
    }

    /// The next page, by one statement that reads files or values; it may be empty. `None` once all is found, and
    /// after an error.
    pub async fn next(&mut self, connection: &mut Session) -> sqlx::Result<Option<Vec<LiveFile>>> {
        match std::mem::replace(&mut self.step, Step::End) {
            Step::Small(large) => {
                let files = self.finder.small_table(connection).await?;
                if files.is_none() {
                    self.begin(large, connection).await?;
                }
                Ok(Some(files.unwrap_or_default()))
            }
            Step::List(listing) => self.list(listing, connection).await,
            Step::LookUp(rest) if !self.look_ups.is_over() => {
                let files = self.look_up(connection).await?;
                self.step = Step::LookUp(rest);
                Ok(Some(files))
            }
            Step::LookUp(Some(rest)) => self.list(rest, connection).await,
            Step::Piece(after) => {
                let (files, next) = self.finder.piece(connection, after).await?;
                self.step = next.map_or(Step::End, Step::Piece);
                Ok(Some(files))
            }
            Step::LookUp(None) | Step::End => Ok(None),
        }
    }

    async fn begin(&mut self, large: Large, connection: &mut Session) -> sqlx::Result<()> {
        match large {
            Large::Expired(most) if has_lookup_index(connection).await? => {
                self.way = Way::ByValue;
                self.step = Step::List(Listing::new(&self.finder, most));
            }
            Large::Expired(_) | Large::InPieces => self.read_pieces(),
        }
        Ok(())
    }

    fn read_pieces(&mut self) {
        self.way = Way::InPieces;
        self.step = Step::Piece(Place::START);
    }

    async fn list(
        &mut self,
        mut listing: Listing,
        connection: &mut Session,
    ) -> sqlx::Result<Option<Vec<LiveFile>>> {
        let listed = listing.next(&self.finder, connection).await?;
        match listed {
            Listed::TooMany => self.read_pieces(),
            Listed::Some if listing.is_bounded() => self.step = Step::List(listing),
            Listed::Some | Listed::All => {
                self.look_ups.add(listing.take().iter().map(Candidate::value), i64::MIN);
                self.step = Step::LookUp((listed == Listed::Some).then_some(listing));
            }
        }
        Ok(Some(Vec::new()))
    }

    async fn look_up(&mut self, connection: &mut Session) -> sqlx::Result<Vec<LiveFile>> {
        let (table, at_once) = (self.finder.table, self.finder.scan_limits.values_at_once);
        let table = (table.catalog_id, table.table_id);
        let mut found = self.look_ups.next(connection, table, at_once).await?;
        // A file has several values, and is found by the lookup key of its own spec alone.
        found.retain(|(value, file)| self.finder.lookup_key_index(file) == Some(value.key_index));
        Ok(found.into_iter().map(|(_, file)| file).collect())
    }
}
