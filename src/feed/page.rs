//! Answers a window page by page.

use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::Changes;
use super::cursor::Cursor;
use super::window_reader::{CHUNK, Chunk};
use crate::catalog::changefeed::{DataFile, DeleteFile};
use crate::catalog::session::Session;
use crate::explicit::problem::Problem;

/// A page of a window; put together in order, the lists of all pages are those of the window.
///
/// Only the page without `next_cursor` is the last, and before it nothing is complete: a vector
/// or the end of a file may stand on a later page than the file itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ChangesPage {
    /// The table's UUID.
    pub table_uuid: Uuid,
    /// The window begins after it.
    pub from_snapshot: i64,
    /// The window's last snapshot: where to go on from once all of it is applied.
    pub to_snapshot: i64,
    /// Files that began, but for compaction's outputs.
    pub files: Vec<DataFile>,
    /// Deletion vectors that began.
    pub delete_files: Vec<DeleteFile>,
    /// Files that a drop or truncate ended; only where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_files: Option<Vec<DataFile>>,
    /// What to ask for the next page with; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

impl Changes {
    /// The page that was asked for; the whole window if no limit was given.
    ///
    /// One short transaction for each 1,000 entries. A page that is full has a `next_cursor` even
    /// if nothing follows: the next page is then empty.
    ///
    /// # Errors
    /// As of [`WindowReader::next`](super::window_reader::WindowReader::next).
    pub async fn page(mut self, connection: &mut Session) -> Result<ChangesPage, Problem> {
        let reader = &mut self.reader;
        let mut page = ChangesPage {
            table_uuid: reader.table.table_uuid,
            from_snapshot: reader.from,
            to_snapshot: reader.to,
            files: Vec::new(),
            delete_files: Vec::new(),
            ended_files: reader.ended_files.then(Vec::new),
            next_cursor: None,
        };
        let mut room = self.limit.unwrap_or(usize::MAX);
        while room > 0 {
            let Some(chunk) = reader.next(connection, room.min(CHUNK)).await? else {
                return Ok(page);
            };
            room -= chunk.entries();
            match chunk {
                Chunk::Files(files) => page.files.extend(files),
                Chunk::DeleteFiles(vectors) => page.delete_files.extend(vectors),
                Chunk::EndedFiles(files) => {
                    page.ended_files.get_or_insert_default().extend(files);
                }
            }
        }
        page.next_cursor = reader.place().map(|(section, after)| {
            let cursor = Cursor {
                table_uuid: reader.table.table_uuid,
                from_snapshot: reader.from,
                to_snapshot: reader.to,
                ended_files: reader.ended_files,
                section,
                after,
            };
            cursor.render()
        });
        Ok(page)
    }
}
