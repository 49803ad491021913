//! The demo: all of tailrace, on a lake of its own. `make demo` runs it.
//!
//! `play` goes through it, section by section: `scene` makes the lake, `partitions` and `gallery`
//! read what `picture` draws, `removal` follows the objects, `findings` and `evidence` compare
//! what was seen with what should be for `checks`, `invitation` says what to try. What happens
//! to the tables is the daemon's own code throughout.

mod checks;
mod evidence;
mod findings;
mod gallery;
mod invitation;
mod partitions;
mod picture;
mod play;
mod removal;
mod scene;
mod screen;

use std::io;
use std::process::ExitCode;

use anyhow::{Context, ensure};
use clap::Parser;
use tailrace::catalog::errors::in_words;
use tailrace::config::{Log, LogFilter, LogFormat};
use tailrace::daemon::stop_on_signal;
use tailrace::telemetry;
use tokio_util::sync::CancellationToken;

/// What of the log is shown unless RUST_LOG says otherwise. Warnings are not: that some files
/// cannot be dated is part of the play.
const QUIET: &str = "error";

/// How long the demo may take to clean up after a signal.
const GRACE: std::time::Duration = std::time::Duration::from_secs(15);

/// Show all of tailrace on a lake of its own: a private throwaway Postgres, tables, policies, a pass.
#[derive(Debug, Parser)]
#[command(name = "demo")]
struct Demo {
    /// Leave the lake running at the end, and say how to connect and what to try.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let _flush = telemetry::FlushAtEnd;
    match run(Demo::parse().keep).await {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::say(&format!("demo: {}\n", in_words(&error)));
            ExitCode::FAILURE
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// Runs the demo; with `keep` it leaves the lake running until SIGINT or SIGTERM. In either
/// case nothing is left of it afterwards.
///
/// # Errors
/// No Postgres server programs, a signal before the end, or a check that does not hold.
async fn run(keep: bool) -> anyhow::Result<()> {
    quiet_log()?;
    let stop = stop_on_signal(GRACE)?;
    let shown = tokio::select! {
        shown = play::play(&stop) => Some(shown?),
        () = stop.cancelled() => None,
    };
    let shown = shown.context("stopped before the end; nothing is left of the demo's server")?;
    if keep {
        wait(&shown, &stop).await?;
    }
    let verdict = verdict(&shown.checks);
    shown.end().await?;
    verdict
}

/// A demo that shows something else than it says has failed.
fn verdict(checks: &checks::Checks) -> anyhow::Result<()> {
    let (failed, count) = (checks.failed(), checks.count());
    ensure!(failed == 0, "{failed} of {count} checks failed");
    Ok(())
}

async fn wait(shown: &play::Shown, stop: &CancellationToken) -> anyhow::Result<()> {
    invitation::show(&shown.server)?;
    stop.cancelled().await;
    Ok(())
}

fn quiet_log() -> anyhow::Result<()> {
    let filter = std::env::var("RUST_LOG").ok().filter(|text| !text.is_empty());
    let filter = filter.as_deref().unwrap_or(QUIET).parse();
    let filter: LogFilter =
        filter.map_err(|problem: String| anyhow::anyhow!("RUST_LOG {problem}"))?;
    telemetry::init(&Log { format: LogFormat::Auto, command_filter: filter.clone(), filter })
}

#[cfg(test)]
mod tests {
    use super::checks::Checks;
    use super::verdict;

    #[test]
    fn one_check_that_fails_is_a_failure() {
        let mut checks = Checks::default();
        checks.equal("files", 3, 3);
        assert!(verdict(&checks).is_ok());
        checks.equal("files", 3, 4);
        assert_eq!(verdict(&checks).unwrap_err().to_string(), "1 of 2 checks failed");
    }
}
