//! The queue of log lines for stderr. A thread of its own writes them.
//!
//! Code that logs never waits for stderr and never fails because of it: the reader of a full pipe
//! may be stopped while a pass holds the commit lock. A line that cannot be queued or written is
//! counted as lost. The count is logged when stderr takes lines again.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often at most lost lines are reported while more are lost.
const AGAIN: Duration = Duration::from_secs(1);

/// The lines that wait to be written: the end where they come in.
#[derive(Clone)]
pub struct Lines(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
    limit: usize,
}

#[derive(Default)]
struct Queue {
    lines: VecDeque<Vec<u8>>,
    /// The bytes of all of them.
    bytes: usize,
    /// The lines that were lost, and that were not reported yet.
    lost: u64,
    /// Something that is no longer in the queue is being written.
    is_writing: bool,
}

impl Lines {
    /// Starts the thread that writes to `sink`. At most `limit` bytes wait for it; a line beyond that
    /// is lost. `notice` makes the line that reports how many lines were lost; it is empty if this is
    /// not to be reported.
    ///
    /// # Errors
    /// There can be no more threads.
    pub fn start(
        limit: usize,
        sink: impl Write + Send + 'static,
        notice: impl Fn(u64) -> Vec<u8> + Send + 'static,
    ) -> io::Result<Self> {
        let queue = Mutex::new(Queue::default());
        let lines = Lines(Arc::new(Shared { queue, changed: Condvar::new(), limit }));
        let writer = lines.clone();
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || writer.carry(Sink { sink, is_torn: false }, notice))?;
        Ok(lines)
    }

    /// Adds a line, or counts it as lost. Returns at once.
    pub fn push(&self, line: &[u8]) {
        let mut queue = self.queue();
        if queue.bytes.saturating_add(line.len()) > self.0.limit {
            queue.lost = queue.lost.saturating_add(1);
            return;
        }
        queue.bytes += line.len();
        queue.lines.push_back(line.to_owned());
        self.0.changed.notify_all();
    }

    /// Waits until all that was added is written or lost, at most for so long.
    pub fn flush(&self, at_most: Duration) {
        let open = |queue: &mut Queue| queue.is_writing || !queue.lines.is_empty();
        let waited = self.0.changed.wait_timeout_while(self.queue(), at_most, open);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what comes, for ever.
    fn carry(&self, mut sink: Sink<impl Write>, notice: impl Fn(u64) -> Vec<u8>) {
        let mut tried = Instant::now();
        loop {
            let written = self.next().map(|line| sink.write(&line).is_ok());
            let mut queue = self.queue();
            if written == Some(false) {
                queue.lost = queue.lost.saturating_add(1);
            }
            let lost = queue.lost;
            // Those that still wait are older than the lines that found no place.
            let is_due = lost > 0 && (queue.lines.is_empty() || tried.elapsed() >= AGAIN);
            drop(queue);
            if is_due {
                tried = Instant::now();
                if sink.write(&notice(lost)).is_ok() {
                    self.queue().lost -= lost;
                }
            }
        }
    }

    /// The next line; nothing, if there was none for a while and lost ones are to be reported.
    fn next(&self) -> Option<Vec<u8>> {
        let mut queue = self.queue();
        queue.is_writing = false;
        self.0.changed.notify_all();
        let is_empty = |queue: &mut Queue| queue.lines.is_empty();
        queue = match queue.lost {
            0 => self.0.changed.wait_while(queue, is_empty).unwrap_or_else(PoisonError::into_inner),
            _ => {
                let waited = self.0.changed.wait_timeout_while(queue, AGAIN, is_empty);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        queue.is_writing = true;
        let line = queue.lines.pop_front()?;
        queue.bytes -= line.len();
        Some(line)
    }
}

impl Write for Lines {
    /// Takes the buffer as a line.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where lines go.
struct Sink<W> {
    sink: W,
    /// A line broke off, so that the next one needs a line end before it.
    is_torn: bool,
}

impl<W: Write> Sink<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if self.is_torn {
            self.all(b"\n")?;
            self.is_torn = false;
        }
        self.all(line)
    }

    fn all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        let whole = bytes.len();
        while !bytes.is_empty() {
            let error = match self.sink.write(bytes) {
                Ok(0) => ErrorKind::WriteZero.into(),
                Ok(length) => {
                    bytes = &bytes[length..];
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => error,
            };
            self.is_torn |= bytes.len() < whole;
            return Err(error);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
