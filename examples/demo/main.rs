//! The demo: all of tailrace, on a lake of its own. `make demo` runs it.
//!
//! `story` does it, and `narration` says it page by page. `lake` writes the lake, `partitions` and `pictures`
//! read what `picture` draws, `removal` follows the objects, `findings` and `evidence` compare what was seen
//! with what should be for `checks`, `next_steps` has the commands to try, `pages` shows the pages. What
//! happens to the tables is the daemon's own code throughout.

mod checks;
mod evidence;
mod findings;
mod lake;
mod narration;
mod next_steps;
mod pages;
mod partitions;
mod picture;
mod pictures;
mod removal;
mod story;

use std::io;
use std::process::ExitCode;

use anyhow::{bail, ensure};
use clap::Parser;
use tailrace::catalog::errors::describe;
use tailrace::config::{Log, LogFilter, LogFormat};
use tailrace::daemon::stop_on_signal;
use tailrace::telemetry;
use tokio_util::sync::CancellationToken;

/// What of the log is shown unless RUST_LOG says otherwise. Warnings are not: the demo has undatable files on
/// purpose.
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

    /// List each check, with the values that were found.
    #[arg(long)]
    checks: bool,

    /// Show all pages at once on a terminal too.
    #[arg(long)]
    no_pause: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let _flush = telemetry::FlushAtEnd;
    match run(&Demo::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            telemetry::say(&format!("demo: {}\n", describe(&error)));
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
async fn run(options: &Demo) -> anyhow::Result<()> {
    quiet_log()?;
    let stop = stop_on_signal(GRACE)?;
    let ask = pages::can_ask() && !options.no_pause;
    let shown = tokio::select! {
        shown = show(options, ask, &stop) => Some(shown?),
        () = stop.cancelled() => None,
    };
    let Some((done, to_the_end)) = shown else {
        if ask {
            // Below the question that was not answered.
            pages::write("\n")?;
        }
        bail!("stopped before the end; nothing is left of the demo's server");
    };
    if options.keep && to_the_end {
        stop.cancelled().await;
    }
    let verdict = verdict(&done.checks);
    done.end().await?;
    if !to_the_end {
        pages::write("Nothing is left of the demo's server.\n")?;
    }
    verdict
}

/// Does all of it and shows it, and says whether all pages were shown.
async fn show(
    options: &Demo,
    ask: bool,
    stop: &CancellationToken,
) -> anyhow::Result<(story::Done, bool)> {
    let mut done = story::run(options.checks, options.keep, stop).await?;
    if options.keep {
        done.pages.push(next_steps::page(&done.server)?);
    }
    let to_the_end = pages::show(&done.pages, ask).await?;
    Ok((done, to_the_end))
}

/// A demo that shows something else than it says has failed.
fn verdict(checks: &checks::Checks) -> anyhow::Result<()> {
    let (failed, count) = (checks.failed(), checks.count());
    ensure!(failed == 0, "{failed} of {count} checks failed");
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
