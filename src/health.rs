//! The heartbeat: the daemon writes it to a file, and `tailrace health` checks how old it is. The
//! database is not asked, so a database that cannot be reached does not cause a restart.

mod heartbeat;
#[cfg(test)]
mod tests;

use std::fmt;
use std::fs::{DirBuilder, Metadata};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;
use std::time::Duration;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::{Deserialize, Serialize};

pub use heartbeat::{EVERY, beat};

use crate::config::Config;
use crate::files::{Links, OTHERS_WRITE, folder_of, open_plain, own_uid, stranger};

/// The largest size of a heartbeat in bytes. A larger file is not a heartbeat of tailrace.
const LONGEST: u64 = 4096;

/// The place of the heartbeat file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The configured file, in any folder.
    File(PathBuf),
    /// The default: a file in a folder of this user's own, which the daemon creates in the folder for temporary
    /// files. In a folder that every user can write to, another user could create a file of this name.
    Usual,
}

impl Place {
    /// The place that the configuration sets.
    pub fn of(config: &Config) -> Self {
        config.health.file.clone().map_or(Self::Usual, Self::File)
    }

    /// The path of the file.
    pub fn file(&self) -> PathBuf {
        match self {
            Self::File(file) => file.clone(),
            Self::Usual => {
                std::env::temp_dir().join(format!("tailrace-{}", own_uid())).join("health.json")
            }
        }
    }

    /// Creates the default folder, if it does not exist.
    fn prepare(&self) -> io::Result<()> {
        let Self::Usual = self else { return Ok(()) };
        match DirBuilder::new().mode(0o700).create(folder_of(&self.file())) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    /// Makes sure that the usual folder is this user's alone: anybody could have made one of its name.
    fn check(&self) -> io::Result<()> {
        let Self::Usual = self else { return Ok(()) };
        let folder = folder_of(&self.file());
        // A link is none, wherever it leads to.
        let found = std::fs::symlink_metadata(&folder)?;
        alone(&found).map_err(|why| {
            let name = folder.display();
            let text = format!("its folder {name} {why}; set health.file to one in another folder");
            io::Error::new(io::ErrorKind::PermissionDenied, text)
        })
    }
}

/// Whether a folder is this user's alone; else why not.
fn alone(found: &Metadata) -> Result<(), String> {
    if !found.is_dir() {
        return Err("is not a folder".to_owned());
    }
    if let Some(whose) = stranger(found.uid(), own_uid()) {
        return Err(whose);
    }
    match found.mode() & OTHERS_WRITE {
        0 => Ok(()),
        _ => Err(format!("may be written by others (mode {:04o})", found.mode() & 0o7777)),
    }
}

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
        file: String,
        /// What the system said.
        source: io::Error,
    },
    /// The file holds something else.
    #[error("{file} is not a heartbeat: {why}")]
    NotAHeartbeat {
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
        /// `health.max_age`, in words.
        allowed: String,
    },
}

/// Writes the heartbeat, whole or not at all, readable by its owner only. Fails if the file is
/// a symbolic link, which nobody but an attacker would put there, or the usual folder is not ours alone.
pub fn write(place: &Place, report: &Report) -> io::Result<()> {
    place.prepare()?;
    place.check()?;
    let path = place.file();
    if std::fs::symlink_metadata(&path).is_ok_and(|found| found.file_type().is_symlink()) {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link"));
    }
    let folder = folder_of(&path);
    // Created with mode 0600 under a name that nobody can guess, then renamed, which replaces
    // a link instead of following it.
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    serde_json::to_writer(&mut file, report)?;
    file.write_all(b"\n")?;
    file.persist(path)?;
    Ok(())
}

/// The heartbeat, if it is at most `max_age` away from `now`, and is of this process's user, of root, or of
/// the user whose folder it is alone: anybody can write that something lives.
pub fn check(place: &Place, max_age: Duration, now: DateTime<Utc>) -> Result<Report, Unhealthy> {
    let file = || place.file().display().to_string();
    let text = read(place).map_err(|source| Unhealthy::Unreadable { file: file(), source })?;
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

fn read(place: &Place) -> io::Result<String> {
    place.check()?;
    let (file, found) = open_plain(&place.file(), Links::Refused)?;
    let (owner, folder) = (found.uid(), folder_of(&place.file()));
    if let Some(whose) = stranger(owner, own_uid()) {
        // Root asks of a daemon that has another user, and the folder is that one's alone.
        let around = std::fs::metadata(&folder)?;
        if around.uid() != owner || around.mode() & OTHERS_WRITE != 0 {
            let text = format!(
                "it {whose}: run this as the daemon's user, or give health.file a folder that is that \
                 user's alone"
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}
