//! Log lines on stderr: JSON with every field at the top level, or pretty; times in UTC.

use std::io::{IsTerminal, stderr};

use anyhow::Context;
use tracing::Subscriber;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::{EnvFilter, fmt};

use crate::config::{Log, LogFormat};

/// Sends the log of this process to stderr. To be called once, before the first line.
pub fn init(log: &Log) -> anyhow::Result<()> {
    let terminal = stderr().is_terminal();
    let subscriber = subscriber(log, terminal, stderr)?;
    tracing::subscriber::set_global_default(subscriber).context("the log is already set up")
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
    let lines = fmt().with_env_filter(filter).with_writer(writer).with_target(false);
    let pretty = match log.format {
        LogFormat::Pretty => true,
        LogFormat::Json => false,
        LogFormat::Auto => terminal,
    };
    // https://no-color.org: any text but an empty one.
    let color = terminal && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    Ok(if pretty {
        Box::new(lines.with_ansi(color).finish())
    } else {
        Box::new(lines.json().flatten_event(true).with_span_list(false).finish())
    })
}

/// What a test saw in the log.
#[cfg(test)]
pub mod capture {
    use std::io::{Result, Write};
    use std::sync::{Arc, Mutex, PoisonError};

    use tracing::subscriber::DefaultGuard;

    use super::*;

    /// Collects the lines of this thread for as long as it lives.
    pub struct Capture {
        lines: Lines,
        _guard: DefaultGuard,
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> Result<()> {
            Ok(())
        }
    }

    /// Starts to collect, as JSON, what `filter` lets through.
    pub fn start(filter: &str) -> Capture {
        let filter = filter.parse().expect("a filter");
        let log = Log { format: LogFormat::Json, filter };
        let lines = Lines::default();
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
    use super::capture;
    use crate::events;

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
