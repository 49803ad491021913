//! The parameters of a request for the changes of a table.

use serde::Deserialize;

use super::cursor::Cursor;
use crate::explicit::problem::Problem;

/// The most entries of a page.
pub const MAX_LIMIT: i64 = 10_000;

/// The parameters of the call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ChangesQuery {
    /// The snapshot after which the window begins: the last one that the caller has applied.
    pub from_snapshot: i64,
    /// The last snapshot of the window; the head if not given. The answer says which it was.
    #[serde(default)]
    pub to_snapshot: Option<i64>,
    /// Also list the files that a drop or truncate ended in the window.
    #[serde(default)]
    pub ended_files: bool,
    /// At most so many entries, over all lists, in one answer: 1 to 10,000. Without it the
    /// answer is the whole window.
    #[serde(default)]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before; the other parameters as they were, but for `limit`.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// The parameters, as far as they can be checked without a catalog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Asked {
    pub from_snapshot: i64,
    pub to_snapshot: Option<i64>,
    pub ended_files: bool,
    pub limit: Option<usize>,
    pub position: Option<Cursor>,
}

impl ChangesQuery {
    pub(super) fn check(&self) -> Result<Asked, Problem> {
        let position = self.cursor.as_deref().map(Cursor::parse).transpose()?;
        let limit = match self.limit {
            None => None,
            Some(limit) => match usize::try_from(limit) {
                Ok(entries) if (1..=MAX_LIMIT).contains(&limit) => Some(entries),
                _ => {
                    let text = format!("limit is {limit}, not between 1 and {MAX_LIMIT}");
                    return Err(Problem::Validation(text));
                }
            },
        };
        let Some(cursor) = position else {
            return Ok(Asked {
                from_snapshot: self.from_snapshot,
                to_snapshot: self.to_snapshot,
                ended_files: self.ended_files,
                limit,
                position: None,
            });
        };
        if limit.is_none() {
            return Err(Problem::Validation("a cursor needs a limit".to_owned()));
        }
        let same = self.from_snapshot == cursor.from_snapshot
            && self.to_snapshot.is_none_or(|to| to == cursor.to_snapshot)
            && self.ended_files == cursor.ended_files;
        if !same {
            return Err(Problem::Validation(
                "the cursor belongs to a request with another window or other lists".to_owned(),
            ));
        }
        Ok(Asked {
            from_snapshot: cursor.from_snapshot,
            // The head may have moved since the first page; the window has not.
            to_snapshot: Some(cursor.to_snapshot),
            ended_files: cursor.ended_files,
            limit,
            position: Some(cursor),
        })
    }
}
