//! The log: lines on stderr, as JSON with every field at the top level, or pretty; times in UTC.
//!
//! All that this process writes to stderr passes through `lines`, so that a reader which is gone or
//! stopped neither ends nor delays any work. All of it is made plain text (`plain`), so that no
//! line controls the terminal.

mod lines;
mod plain;

use std::backtrace::{Backtrace, BacktraceStatus};
use std::io::{self, IsTerminal, Write, stderr};
use std::panic::PanicHookInfo;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::Context;
use indicatif::ProgressBar;
use tracing::field::Field;
use tracing::{Dispatch, Subscriber, dispatcher};
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::{Writer, debug_fn};
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Log, LogFormat};
use crate::events;
use lines::Lines;
use plain::Escaping;
pub use plain::{line, plain};

/// The bytes of lines that wait for stderr at most: some thousand lines.
const WAITING: usize = 4 << 20;
/// How long [`flush`] waits at most.
const FLUSH: Duration = Duration::from_secs(2);

/// The lines of this process.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Sends the log of this process, and what panics say, to stderr. To be called once, before the first
/// line. Whoever ends the process calls [`flush`] before that.
///
/// # Errors
/// The filter is none, there can be no more threads, or the log is set up already.
pub fn init(log: &Log) -> anyhow::Result<()> {
    let terminal = stderr().is_terminal();
    let lines = Lines::start(WAITING, AboveProgress, notice(log, terminal)?)
        .context("cannot start the thread that writes the log")?;
    let writer = lines.clone();
    let subscriber = subscriber(log, terminal, move || writer.clone())?;
    tracing::subscriber::set_global_default(subscriber).context("the log is already set up")?;
    let panics = lines.clone();
    std::panic::set_hook(Box::new(move |panic| panics.push(plain(&told(panic)).as_bytes())));
    LINES.set(lines).ok().context("the log is already set up")
}

/// Writes text on stderr that is no log line, [`plain()`]. If nobody can read it, that is no failure.
pub fn say(text: &str) {
    let text = plain(text);
    match LINES.get() {
        Some(lines) => lines.push(text.as_bytes()),
        None => drop(stderr().write_all(text.as_bytes())),
    }
}

/// Shows progress on stderr: lines that are written from now on stand above it.
pub fn write_above(bar: &ProgressBar) {
    *PROGRESS.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.clone());
}

/// The progress that is shown, or was.
static PROGRESS: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Stderr, where a line that shows progress gives way to other lines.
struct AboveProgress;

impl Write for AboveProgress {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bar = PROGRESS.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match bar.filter(|bar| !bar.is_finished()) {
            Some(bar) => bar.suspend(|| stderr().write(bytes)),
            None => stderr().write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        stderr().flush()
    }
}

/// Waits until what was logged and said is on stderr, or for 2 s.
pub fn flush() {
    if let Some(lines) = LINES.get() {
        lines.flush(FLUSH);
    }
}

/// Calls [`flush`] at the end of its scope, be that a panic.
pub struct FlushAtEnd;

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        flush();
    }
}

/// How it is logged that lines were lost, as a line of its own: it does not wait behind others.
fn notice(log: &Log, terminal: bool) -> anyhow::Result<impl Fn(u64) -> Vec<u8> + Send + use<>> {
    let line = Arc::new(Mutex::new(Vec::new()));
    let written = line.clone();
    let log = Dispatch::new(subscriber(log, terminal, move || Shared(written.clone()))?);
    Ok(move |lines| {
        dispatcher::with_default(&log, || {
            tracing::warn!(
                event = events::LOG_LINES_LOST,
                lines,
                "Lines of the log were lost because stderr accepted none; it accepts lines again"
            );
        });
        std::mem::take(&mut *line.lock().unwrap_or_else(PoisonError::into_inner))
    })
}

/// What a panic says, as the standard library words it.
fn told(panic: &PanicHookInfo<'_>) -> String {
    let thread = thread::current();
    let mut text = format!("thread '{}' {panic}\n", thread.name().unwrap_or("<unnamed>"));
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        text.push_str(&format!("stack backtrace:\n{backtrace}\n"));
    }
    text
}

/// The subscriber that writes to `writer`, which is or is not a `terminal`.
fn subscriber<W>(
    log: &Log,
    terminal: bool,
    writer: W,
) -> anyhow::Result<Box<dyn Subscriber + Send + Sync>>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_new(log.filter.as_str())
        .with_context(|| format!("log.filter = {:?} is no filter", log.filter.as_str()))?;
    // Not where in the code a line comes from: `event` says what it is, and modules are renamed.
    let lines = fmt().with_env_filter(filter).with_target(false);
    let pretty = match log.format {
        LogFormat::Pretty => true,
        LogFormat::Json => false,
        LogFormat::Auto => terminal,
    };
    // https://no-color.org: any text but an empty one.
    let color = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Ok(if pretty {
        // The line as a whole cannot be escaped: it has colors.
        let fields = debug_fn(field).delimited(" ");
        Box::new(lines.with_writer(writer).fmt_fields(fields).with_ansi(color).finish())
    } else {
        let lines = lines.with_writer(Escaping(writer));
        Box::new(lines.json().flatten_event(true).with_span_list(false).finish())
    })
}

/// Writes a field of a line for people, its value as one line.
fn field(writer: &mut Writer<'_>, field: &Field, value: &dyn std::fmt::Debug) -> std::fmt::Result {
    let value = format!("{value:?}");
    let value = line(&value);
    match field.name() {
        "message" => write!(writer, "{value}"),
        name if writer.has_ansi_escapes() => {
            write!(writer, "\x1b[3m{name}\x1b[0m\x1b[2m=\x1b[0m{value}")
        }
        name => write!(writer, "{name}={value}"),
    }
}

/// Keeps what is written.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What a test saw in the log.
#[cfg(test)]
pub mod capture {
    use tracing::subscriber::DefaultGuard;

    use super::*;
    use crate::config::LogFilter;

    /// Collects the lines of this thread for as long as it lives.
    pub struct Capture {
        lines: Shared,
        _guard: DefaultGuard,
    }

    /// Starts to collect, as JSON, what `filter` lets through.
    pub fn start(filter: &str) -> Capture {
        let filter: LogFilter = filter.parse().expect("a filter");
        let log = Log { format: LogFormat::Json, command_filter: filter.clone(), filter };
        let lines = Shared::default();
        let writer = lines.clone();
        let subscriber = subscriber(&log, false, move || writer.clone()).expect("a subscriber");
        Capture { lines, _guard: tracing::subscriber::set_default(subscriber) }
    }

    impl Capture {
        /// The lines so far.
        pub fn lines(&self) -> Vec<serde_json::Value> {
            let bytes = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
            let text = String::from_utf8_lossy(&bytes).into_owned();
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
        }

        /// The names of the events so far.
        pub fn events(&self) -> Vec<String> {
            let name = |line: &serde_json::Value| line["event"].as_str().map(str::to_owned);
            self.lines().iter().filter_map(name).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Log, LogFormat, Shared, capture, subscriber};
    use crate::config::LogFilter;
    use crate::events;

    /// In the log of a terminal and in JSON, with colors and without.
    #[test]
    fn no_line_makes_a_terminal_do_anything() {
        let hostile = "a\x1b[2J\r\nb\u{9b}31m\u{202e}\x7f";
        let shown = "a\\u001b[2J\\r\\nb\\u009b31m\\u202e\\u007f";
        for (format, color) in
            [(LogFormat::Pretty, false), (LogFormat::Pretty, true), (LogFormat::Json, true)]
        {
            let filter: LogFilter = "info".parse().expect("a filter");
            let log = Log { format, command_filter: filter.clone(), filter };
            let lines = Shared::default();
            let writer = lines.clone();
            let subscriber = subscriber(&log, color, move || writer.clone()).expect("a subscriber");
            tracing::subscriber::with_default(subscriber, || {
                let span = tracing::error_span!("request", token = hostile);
                let _entered = span.enter();
                tracing::info!(event = events::DROP_COMMITTED, table = hostile, "Gone");
                tracing::warn!(error = %hostile, "It says {hostile}");
            });
            let text = String::from_utf8(std::mem::take(&mut *lines.0.lock().expect("no panic")));
            let text = text.expect("text");
            assert_eq!(text.lines().count(), 2, "{text}");
            assert!(text.contains(shown) && text.contains("drop_committed"), "{text}");
            let plain_text = ["\x1b[0m", "\x1b[2m", "\x1b[3m", "\x1b[1m", "\x1b[32m", "\x1b[33m"]
                .iter()
                .fold(text.clone(), |text, color| text.replace(color, ""));
            assert_eq!(super::plain(&plain_text), plain_text, "nothing is left but our own colors");
        }
    }

    #[test]
    fn fields_keep_their_types_at_the_top_level() {
        let log = capture::start("info");
        tracing::info!(event = events::DROP_COMMITTED, table = %"raw", files_ended = 7_u64, "Gone");
        tracing::debug!("not at this level");
        let lines = log.lines();
        assert_eq!(lines.len(), 1);
        let keys: Vec<&String> = lines[0].as_object().expect("an object").keys().collect();
        assert_eq!(keys, ["event", "files_ended", "level", "message", "table", "timestamp"]);
        assert_eq!(lines[0]["event"], "drop_committed");
        assert_eq!(lines[0]["table"], "raw");
        assert_eq!(lines[0]["files_ended"], 7);
        assert_eq!(lines[0]["message"], "Gone");
        assert_eq!(lines[0]["level"], "INFO");
        let time = lines[0]["timestamp"].as_str().expect("a time");
        assert!(time.ends_with('Z'), "{time} is in UTC");
    }
}
