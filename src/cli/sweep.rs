//! `tailrace sweep`

use std::collections::HashSet;
use std::fmt;
use std::sync::mpsc;

use tokio_util::sync::CancellationToken;

use super::arguments::ScopeArgs;
use super::text::{bytes, counted, spinner};
use super::{DONE, FAILED, Output, SOME_TABLES_FAILED, database, out};
use crate::catalog::errors::one_line;
use crate::catalog::tables::TableIdentity;
use crate::config::Config;
use crate::sweep::report::{PassReport, TableReport};
use crate::sweep::{Progress, Settings, run_pass};
use crate::telemetry::line;

#[derive(Debug, clap::Args)]
pub struct SweepArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &SweepArgs) -> anyhow::Result<u8> {
    let database = database(config)?;
    let settings = Settings { heeds_pauses: false, ..Settings::from_config(config) };
    let stop = crate::daemon::stop_on_signal(config.shutdown.grace.get())?;
    let report = with_progress(&stop, async |progress| {
        run_pass(&database, &settings, &args.scope.scope(), &stop, progress).await
    })
    .await?;
    let is_empty = report.tables.is_empty()
        && report.skipped_catalogs.is_empty()
        && report.failed_catalogs.is_empty();
    if is_empty && !stop.is_cancelled() && args.scope.scope() != Default::default() {
        return Err(args.scope.nothing_found(&database).await);
    }
    out::show(args.output, &report, |report| text(report, stop.is_cancelled()))?;
    Ok(match (report.failed_catalogs.is_empty(), report.failures()) {
        (false, _) => FAILED,
        (true, 0) if is_kept_out(&report) => SOME_TABLES_FAILED,
        (true, 0) => DONE,
        (true, _) => SOME_TABLES_FAILED,
    })
}

/// Whether the pass did nothing because other passes run on its catalogs.
fn is_kept_out(report: &PassReport) -> bool {
    report.tables.is_empty() && !report.skipped_catalogs.is_empty()
}

/// Shows the progress of the pass on a terminal. A thread of its own draws, so that the pass, which may hold a
/// commit lock, does not wait for a terminal that accepts no output.
async fn with_progress<T>(
    stop: &CancellationToken,
    work: impl AsyncFnOnce(&(dyn Fn(Progress<'_>) + Send + Sync)) -> T,
) -> T {
    let bar = spinner("reading the policies");
    let (show, shown) = mpsc::channel::<Shown>();
    let drawing = std::thread::spawn(move || {
        let mut so_far = SoFar::default();
        for shown in shown {
            so_far.add(shown);
            bar.set_message(so_far.to_string());
        }
        bar.finish_and_clear();
    });
    let show_progress = move |progress: Progress<'_>| {
        let shown = match progress {
            Progress::Tables(tables) => Shown::Tables(tables),
            Progress::Table(table) => {
                let ending = if stop.is_cancelled() { " (ending)" } else { "" };
                let TableIdentity { catalog, namespace, table, .. } = table;
                Shown::At(line(&format!("{catalog} {namespace}.{table}{ending}")).into_owned())
            }
            Progress::Dropped { files, .. } => Shown::Dropped(files),
        };
        // The drawing thread has ended: the progress is no longer shown.
        let _ = show.send(shown);
    };
    let result = work(&show_progress).await;
    drop(show_progress);
    let _ = drawing.join();
    result
}

/// The progress that a pass reports.
enum Shown {
    /// This many tables were added to the work.
    Tables(usize),
    /// The pass now works on this table.
    At(String),
    /// This many more files were dropped.
    Dropped(i64),
}

/// The sum of the progress reported so far, for the line of progress.
#[derive(Default)]
struct SoFar {
    tables: usize,
    /// The tables that the pass worked on. It may work on one table several times.
    seen: HashSet<String>,
    at: String,
    files: i64,
}

impl SoFar {
    fn add(&mut self, shown: Shown) {
        match shown {
            Shown::Tables(more) => self.tables += more,
            Shown::Dropped(files) => self.files += files,
            Shown::At(table) => {
                self.seen.insert(table.clone());
                self.at = table;
            }
        }
    }
}

impl fmt::Display for SoFar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tables, seen, at, files } = self;
        let (of, files) = (counted(*tables as i64, "table"), counted(*files, "file"));
        write!(f, "{} of {of}, {files} dropped: {at}", seen.len())
    }
}

/// The report for people.
pub fn text(report: &PassReport, stopped: bool) -> String {
    let mut text = format!("As of {}\n", report.as_of);
    if report.tables.is_empty()
        && report.skipped_catalogs.is_empty()
        && report.failed_catalogs.is_empty()
        && !stopped
    {
        text.push_str("No table has a policy: see `tailrace policy set --help`\n");
    }
    for pause in &report.pauses {
        text.push_str(&format!("{}\n", line(&pause.describe())));
    }
    for table in &report.tables {
        text.push_str(&table_text(table));
    }
    if stopped {
        text.push_str("Stopped before the pass was through; the next one goes on\n");
    }
    for failed in &report.failed_catalogs {
        let catalog = line(&failed.catalog);
        text.push_str(&format!("{catalog}: failed\n  {}\n", one_line(&failed.error)));
    }
    for catalog in &report.skipped_catalogs {
        let catalog = line(catalog);
        text.push_str(&format!("{catalog}: skipped, another daemon works on it\n"));
    }
    if is_kept_out(report) {
        text.push_str("Nothing was looked at: run it again once the other daemon's pass is over\n");
    }
    text
}

fn table_text(table: &TableReport) -> String {
    let TableReport { catalog, namespace, table: name, outcome, .. } = table;
    let name = format!("{catalog} {namespace}.{name}");
    let mut text = format!("{}: {}\n", line(&name), outcome.name());
    for snapshot in &table.snapshots {
        let displays: Vec<_> =
            snapshot.partitions.iter().map(|partition| partition.display.as_str()).collect();
        let span = match displays.as_slice() {
            [first, .., last] => format!("{first} to {last}"),
            [one] => (*one).to_owned(),
            [] => String::new(),
        };
        text.push_str(&format!(
            "  snapshot {}: {} ({span})\n    {}, {}, {}, {}\n    lock waited {} ms, held {} ms\n",
            snapshot.snapshot_id,
            counted(displays.len() as i64, "partition"),
            counted(snapshot.files_ended, "file"),
            counted(snapshot.delete_files_ended, "vector"),
            counted(snapshot.records, "record"),
            bytes(snapshot.bytes),
            snapshot.lock_wait_ms,
            snapshot.lock_hold_ms,
        ));
    }
    for partition in &table.would_drop {
        text.push_str(&format!(
            "  would drop {}: {}, {}\n",
            partition.display,
            counted(partition.counts.files, "file"),
            bytes(partition.counts.bytes)
        ));
    }
    if let Some(error) = &table.error {
        text.push_str(&format!("  {}\n", one_line(error)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_each_table_once() {
        let mut so_far = SoFar::default();
        so_far.add(Shown::Tables(2));
        for at in ["lake events.a", "lake events.b", "lake events.a"] {
            so_far.add(Shown::At(at.to_owned()));
            so_far.add(Shown::Dropped(400));
        }
        assert_eq!(so_far.to_string(), "2 of 2 tables, 1,200 files dropped: lake events.a");
        so_far.add(Shown::Tables(1));
        assert_eq!(so_far.to_string(), "2 of 3 tables, 1,200 files dropped: lake events.a");
    }
}
