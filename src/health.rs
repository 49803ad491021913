//! Whether the daemon lives: it writes a heartbeat into a file, and `tailrace health` looks
//! at how old that is. The database has no say in it, so that its absence restarts nobody.

mod heartbeat;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

pub use heartbeat::{EVERY, beat};

/// No heartbeat is longer; whatever is, is not ours.
const LONGEST: u64 = 4096;

/// What the daemon is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// No pass has begun yet.
    Starting,
    /// Waiting for the next pass.
    Idle,
    /// In a pass.
    Pass,
    /// Waiting to try the database again.
    DatabaseAway,
    /// Told to stop; the pass in flight ends.
    Stopping,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Pass => "in a pass",
            Self::DatabaseAway => "waiting for the database",
            Self::Stopping => "stopping",
        })
    }
}

/// What the daemon tells about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What it is doing.
    pub state: State,
    /// When the last pass ended, by the host's clock.
    pub last_pass_at: Option<DateTime<Utc>>,
    /// Whether that pass went through.
    pub last_pass_ok: Option<bool>,
}

impl Status {
    /// That of a daemon which has done nothing yet.
    pub const STARTING: Self =
        Self { state: State::Starting, last_pass_at: None, last_pass_ok: None };
}

/// The content of the heartbeat file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The daemon's process.
    pub pid: u32,
    /// When it wrote this, by the host's clock.
    pub written_at: DateTime<Utc>,
    /// What it was doing.
    #[serde(flatten)]
    pub status: Status,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = |at: &DateTime<Utc>| at.to_rfc3339_opts(SecondsFormat::Secs, true);
        write!(f, "alive: {}, heartbeat of {}", self.status.state, time(&self.written_at))?;
        let ended = match self.status.last_pass_ok {
            Some(true) => "ended well",
            _ => "failed",
        };
        match &self.status.last_pass_at {
            Some(at) => write!(f, ", last pass {ended} at {}", time(at)),
            None => f.write_str(", no pass yet"),
        }
    }
}

/// Why the daemon is not known to live.
#[derive(Debug, thiserror::Error)]
pub enum Unhealthy {
    /// There is no heartbeat to read.
    #[error(
        "no heartbeat in {file}: {source}; is the daemon running, and is health.file the same \
         for it and for this command?"
    )]
    Unreadable {
        /// The heartbeat file.
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{file} is not a heartbeat: {why}")]
    NotAHeartbeat {
        /// The heartbeat file.
        file: String,
        /// What is wrong with it.
        why: String,
    },
    /// The daemon has not written for too long, or the clock has jumped.
    #[error(
        "the heartbeat of process {pid} is {distance} away from now, more than {allowed} \
         (health.max_age): the daemon hangs or is gone, or the clock was set"
    )]
    Stale {
        /// The process that wrote it.
        pid: u32,
        /// How far its time is from now, in whole seconds, in words.
        distance: String,
        /// How far it may be.
        allowed: String,
    },
}

/// Writes the heartbeat, whole or not at all, readable by its owner only. Fails if `path` is
/// a symbolic link, which nobody but an attacker would put there.
pub fn write(path: &Path, report: &Report) -> io::Result<()> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_symlink()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"));
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // Created with mode 0600 under a name that nobody can guess, then renamed, which replaces
    // a link instead of following it.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, report)?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}

/// The heartbeat in `path`, if it is at most `max_age` away from `now`.
pub fn check(path: &Path, max_age: Duration, now: DateTime<Utc>) -> Result<Report, Unhealthy> {
    let file = || path.display().to_string();
    let text = read(path).map_err(|source| Unhealthy::Unreadable { file: file(), source })?;
    let report: Report = serde_json::from_str(&text)
        .map_err(|why| Unhealthy::NotAHeartbeat { file: file(), why: why.to_string() })?;
    let distance = (now - report.written_at).abs().to_std().unwrap_or(Duration::MAX);
    if distance > max_age {
        let words = |length| humantime::format_duration(length).to_string();
        return Err(Unhealthy::Stale {
            pid: report.pid,
            distance: words(Duration::from_secs(distance.as_secs())),
            allowed: words(max_age),
        });
    }
    Ok(report)
}

fn read(path: &Path) -> io::Result<String> {
    let found = std::fs::symlink_metadata(path)?;
    if !found.file_type().is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a plain file"));
    }
    let mut text = String::new();
    File::open(path)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}
