//! `tailrace verify`

use super::arguments::ScopeArgs;
use super::text::{count, spinner};
use super::{DONE, Output, SOME_TABLES_FAILED, database, out};
use crate::config::Config;
use crate::telemetry::line;
use crate::verify::report::{CheckReport, Report, Status};
use crate::verify::{Settings, verify};

#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &VerifyArgs) -> anyhow::Result<u8> {
    let database = database(config)?;
    let bar = spinner("verifying");
    let report = verify(&database, &Settings::from_config(config), &args.scope.scope()).await;
    bar.finish_and_clear();
    let report = report?;
    out::show(args.output, &report, text)?;
    Ok(if report.status == Status::Ok { DONE } else { SOME_TABLES_FAILED })
}

/// The report for people.
fn text(report: &Report) -> String {
    let mut text = String::new();
    for catalog in &report.catalogs {
        text.push_str(&format!(
            "{} as of {}, snapshot {}\n",
            line(&catalog.catalog),
            catalog.as_of,
            catalog.snapshot_id
        ));
        for check in &catalog.checks {
            text.push_str(&check_text(check));
        }
        text.push('\n');
    }
    text.push_str(&format!("{}\n", report.status.name()));
    text
}

fn check_text(check: &CheckReport) -> String {
    let mut text = format!("  {:<12}{}", check.status.name(), check.check.name());
    if check.count > 0 {
        let least = if check.complete { "" } else { "at least " };
        text.push_str(&format!(": {least}{}", count(check.count)));
    }
    text.push('\n');
    for note in &check.notes {
        text.push_str(&format!("      {}\n", line(note)));
    }
    for sample in &check.samples {
        let id = |what: &str, id: Option<i64>| id.map(|id| format!("{what} {id}"));
        let parts = [
            sample.table.clone(),
            sample.partition.as_ref().map(|partition| format!("partition {partition}")),
            id("file", sample.data_file_id),
            id("vector", sample.delete_file_id),
            id("snapshot", sample.snapshot_id),
        ];
        let of = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let separator = if of.is_empty() { "" } else { ": " };
        let words = format!("{of}{separator}{}", sample.problem);
        text.push_str(&format!("      {}\n", line(&words)));
    }
    let hidden = usize::try_from(check.count).unwrap_or(usize::MAX);
    if hidden > check.samples.len() && check.status == Status::Violated {
        text.push_str("      ...\n");
    }
    text
}
