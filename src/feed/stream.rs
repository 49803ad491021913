//! The whole window as one JSON text, chunk by chunk.

use std::ops::DerefMut;

use futures_util::stream::{self, Stream};
use serde::Serialize;

use super::Changes;
use super::window_reader::{CHUNK, Chunk, WindowReader};
use crate::catalog::changefeed::Section;
use crate::catalog::session::Session;
use crate::events;
use crate::explicit::problem::Problem;

impl Changes {
    /// The body of the answer, made as it is asked for: a chunk of at most 1,000 entries an item.
    ///
    /// `sessions` gives a session for one chunk. It is given back before the chunk is handed on,
    /// so that a client that reads slowly, or not at all, keeps none.
    ///
    /// The text is whole only if the stream ends without an error. Whoever sends it must break
    /// the connection on one, so that nobody takes what came for an answer; the reason is logged
    /// here, for the client cannot be informed any more.
    pub fn stream<F, Fut, S>(
        self,
        sessions: F,
    ) -> impl Stream<Item = Result<Vec<u8>, Problem>> + Send + 'static
    where
        F: FnMut() -> Fut + Send + 'static,
        Fut: Future<Output = Result<S, Problem>> + Send,
        S: DerefMut<Target = Session> + Send,
    {
        let body = Body { reader: self.reader, sessions, text: Text::default() };
        stream::try_unfold(Some(body), |body| async move {
            let Some(mut body) = body else { return Ok(None) };
            match body.next().await {
                Ok((part, true)) => Ok(Some((part, Some(body)))),
                Ok((part, false)) => Ok(Some((part, None))),
                Err(problem) => {
                    log_cut_off(&body.reader, &problem);
                    Err(problem)
                }
            }
        })
    }
}

struct Body<F> {
    reader: WindowReader,
    sessions: F,
    text: Text,
}

impl<F, Fut, S> Body<F>
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Result<S, Problem>>,
    S: DerefMut<Target = Session>,
{
    /// The next part, and whether there is another.
    async fn next(&mut self) -> Result<(Vec<u8>, bool), Problem> {
        let chunk = {
            let mut session = (self.sessions)().await?;
            self.reader.next(&mut session, CHUNK).await?
        };
        let mut part = Vec::new();
        if !self.text.is_begun {
            self.text.begin(&self.reader, &mut part);
        }
        let text = &mut self.text;
        let written = match &chunk {
            Some(Chunk::Files(files)) => text.entries(Section::Files, files, &mut part),
            Some(Chunk::DeleteFiles(files)) => text.entries(Section::DeleteFiles, files, &mut part),
            Some(Chunk::EndedFiles(files)) => text.entries(Section::EndedFiles, files, &mut part),
            None => {
                text.end(&self.reader, &mut part);
                Ok(())
            }
        };
        // An entry that cannot be written must not be left out.
        written.map_err(|_| Problem::Internal)?;
        Ok((part, chunk.is_some()))
    }
}

/// The text of a [`ChangesPage`](super::ChangesPage), written in parts.
#[derive(Default)]
struct Text {
    is_begun: bool,
    /// The list that is open, and whether it has entries.
    list: Option<Section>,
    has_entries: bool,
}

impl Text {
    fn begin(&mut self, reader: &WindowReader, part: &mut Vec<u8>) {
        let head = format!(
            r#"{{"table_uuid":"{}","from_snapshot":{},"to_snapshot":{}"#,
            reader.table.table_uuid, reader.from, reader.to
        );
        part.extend_from_slice(head.as_bytes());
        self.is_begun = true;
    }

    fn entries(
        &mut self,
        section: Section,
        entries: &[impl Serialize],
        part: &mut Vec<u8>,
    ) -> serde_json::Result<()> {
        self.open(section, part);
        for entry in entries {
            if std::mem::replace(&mut self.has_entries, true) {
                part.push(b',');
            }
            serde_json::to_writer(&mut *part, entry)?;
        }
        Ok(())
    }

    fn end(&mut self, reader: &WindowReader, part: &mut Vec<u8>) {
        let last = if reader.ended_files { Section::EndedFiles } else { Section::DeleteFiles };
        self.open(last, part);
        part.extend_from_slice(b"]}");
    }

    /// Closes the open list and opens those up to this one.
    fn open(&mut self, section: Section, part: &mut Vec<u8>) {
        while self.list != Some(section) {
            let (next, opening) = match self.list {
                None => (Section::Files, r#","files":["#),
                Some(Section::Files) => (Section::DeleteFiles, r#"],"delete_files":["#),
                Some(_) => (Section::EndedFiles, r#"],"ended_files":["#),
            };
            part.extend_from_slice(opening.as_bytes());
            self.list = Some(next);
            self.has_entries = false;
        }
    }
}

fn log_cut_off(reader: &WindowReader, problem: &Problem) {
    let table = &reader.table;
    tracing::warn!(
        event = events::CHANGES_CUT_OFF,
        catalog = %table.catalog,
        namespace = %table.namespace,
        table = %table.table,
        from_snapshot = reader.from,
        to_snapshot = reader.to,
        reason = problem.code(),
        "an answer with the changes of a table broke off"
    );
}
