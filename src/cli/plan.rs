//! `tailrace plan`

use std::path::PathBuf;

use chrono::NaiveDate;
use chrono::format::ParseErrorKind;

use super::approve::save;
use super::arguments::{ScopeArgs, session_user};
use super::new_file;
use super::text::{bytes, columns, counted, last, spinner};
use super::{DONE, Output, SOME_TABLES_FAILED, database, out};
use crate::approvals::SavedPlan;
use crate::catalog::errors::one_line;
use crate::config::Config;
use crate::policy::Mode;
use crate::rules::blast_radius::Excess;
use crate::rules::expiry::shortened;
use crate::rules::instant::UtcInstant;
use crate::sweep::Settings;
use crate::sweep::plan::Health;
use crate::sweep::plan_report::{
    KeptReport, PlanReport, StalledReport, TablePlanReport, WaitingReport,
};
use crate::sweep::planning::{ClockRefused, plan_all};
use crate::sweep::report::PartitionReport;
use crate::telemetry::line;

#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    #[command(flatten)]
    scope: ScopeArgs,
    /// Plan for this time instead of the database's now: RFC 3339, such as 2026-09-17T06:00:00Z, or a date, which is
    /// its midnight in UTC.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: Option<UtcInstant>,
    /// Write what is held because it is too much to this new file, for `tailrace approve --plan`.
    #[arg(long, value_name = "FILE", conflicts_with = "at")]
    save: Option<PathBuf>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub(super) fn instant(text: &str) -> Result<UtcInstant, String> {
    let date = text.parse::<NaiveDate>();
    if let Err(error) = &date
        && matches!(error.kind(), ParseErrorKind::OutOfRange | ParseErrorKind::Impossible)
    {
        return Err("there is no such day".to_owned());
    }
    let midnight = date.ok().map(|date| format!("{date}T00:00:00Z"));
    midnight.as_deref().unwrap_or(text).parse().map_err(|error| {
        format!("{error}: say it as 2026-09-17, or as 2026-09-17T06:00:00Z with an offset or Z (RFC 3339)")
    })
}

pub async fn run(config: &Config, args: &PlanArgs) -> anyhow::Result<u8> {
    if let Some(file) = &args.save
        && let Err(error) = new_file::check(file)
    {
        return Ok(new_file::refused("plan", file, &error));
    }
    let database = database(config)?;
    let settings = Settings::from_config(config);
    let bar = spinner("planning");
    let plans = plan_all(&database, &settings, &args.scope.scope(), args.at).await;
    bar.finish_and_clear();
    let plans = plans?;
    let report = PlanReport::of(&plans);
    if report.tables.is_empty() && args.scope.scope() != Default::default() {
        return Err(args.scope.nothing_found(&database).await);
    }
    if let Some(file) = &args.save {
        save(file, &SavedPlan::of(&plans, &session_user()))?;
    }
    out::show(args.output, &report, text)?;
    Ok(if report.failures() == 0 { DONE } else { SOME_TABLES_FAILED })
}

/// How many entries of a long list are shown from its start, and how many partitions from its end.
const SHOWN_FIRST: usize = 30;
const SHOWN_LAST: usize = 5;

/// The plan for people.
pub fn text(report: &PlanReport) -> String {
    let mut text = format!("As of {}\n", report.as_of);
    for ClockRefused { catalog, reason } in &report.clock_refused {
        text.push_str(&format!(
            "{}: a pass would drop nothing now: {}; see tailrace doctor\n",
            line(catalog),
            line(reason)
        ));
    }
    if report.tables.is_empty() {
        text.push_str("No table has a policy: see `tailrace policy set --help`\n");
    }
    for table in &report.tables {
        text.push('\n');
        text.push_str(&table_text(table));
    }
    text
}

/// The plan of one table for people.
pub fn table_text(table: &TablePlanReport) -> String {
    let mut text =
        line(&format!("{} {}.{}", table.catalog, table.namespace, table.table)).into_owned();
    let (Some(field), Some(keep), Some(mode), Some(cutoff)) =
        (&table.shown_field, &table.keep, table.mode, table.cutoff)
    else {
        let error = table.error.as_deref().unwrap_or("no plan");
        return format!("{text}\n  error: {}\n", one_line(error));
    };
    let source = table.source.map(|source| source.to_string()).unwrap_or_default();
    let last = last(table.keep_last);
    text.push_str(&line(&format!(": {field} keep {keep}{last}, {mode} ({source} policy)")));
    text.push('\n');
    if let Some(pending) = &table.pending {
        text.push_str(&line(&format!("  waits        {}", pending.describe())));
        text.push('\n');
    }
    if let Some(pause) = &table.pause {
        text.push_str(&line(&format!("  paused       {}", pause.describe())));
        text.push('\n');
    }
    for hold in &table.holds {
        text.push_str(&line(&format!("  held         {}", hold.describe())));
        text.push('\n');
    }
    text.push_str(&format!("  cutoff       {cutoff}: what ended by then has expired\n"));
    text.push_str(&expired_text(&table.expired));
    if table.pause.is_some() && !table.expired.is_empty() {
        text.push_str("  but nothing will be dropped while the table is paused\n");
    } else if table.mode != Some(Mode::Enforce) && !table.expired.is_empty() {
        text.push_str(&format!("  but nothing will be dropped: the policy's mode is {mode}\n"));
    }
    text.push_str(&radius_text(table));
    text.push_str(&waiting_text(&table.waiting));
    match table.kept_files {
        Some(kept) => text.push_str(&format!("  kept         {}\n", counted(kept, "file"))),
        None => text.push_str("  kept         not counted (discovery.count_timeout)\n"),
    }
    for (reason, files) in table.kept.iter().flatten() {
        text.push_str(&format!("    {:<15} {}\n", reason.name(), counted(*files, "file")));
        let samples = table.undatable.iter().chain(&table.future).chain(&table.newer_rows);
        let samples =
            samples.chain(&table.held).chain(&table.among_newest).chain(&table.uncovered).flatten();
        let samples = samples.chain(table.blast_radius.iter().flat_map(|held| &held.samples));
        for sample in samples.filter(|sample| sample.reason == *reason) {
            text.push_str(&sample_text(sample));
        }
    }
    if let Some(at) = table.counted_at {
        text.push_str(&format!("    counted at {at}\n"));
    }
    if let Some(StalledReport { newest, ended }) = &table.stalled {
        let newest = shortened(newest);
        text.push_str(&format!(
            "  stalled      the newest partition {newest} ended {ended}, more than half of keep ago\n"
        ));
    }
    if let Some(next) = table.next_expiry {
        text.push_str(&format!("  next expiry  {next}\n"));
    }
    if let Some(next) = table.next_expiry_not_before {
        text.push_str(&format!("  next expiry  not before {next}\n"));
    }
    if let Some(behind) = &table.behind {
        text.push_str(&format!("  incomplete: {}\n", one_line(behind)));
    }
    if table.health == Some(Health::Unhealthy) {
        text.push_str("  unhealthy: the policy can date none of the table's live files\n");
    }
    text
}

/// What is held for its number, for people.
fn radius_text(table: &TablePlanReport) -> String {
    let Some(held) = &table.blast_radius else { return String::new() };
    let mut text = String::new();
    for (excess, why) in [
        (held.change, "had expired when this policy or the table's specs were met first"),
        (held.late, "had expired when they came"),
    ] {
        if let Some(Excess { files, live_files, .. }) = excess {
            text.push_str(&format!("  held         {files} of {live_files} live files {why}\n"));
        }
    }
    let partitions = counted(held.partitions, "partition");
    let words = "guard.max_drop_fraction holds";
    text.push_str(&format!("    {words} {partitions}; to let them go:\n"));
    text.push_str(&format!("      {}\n", line(&held.command)));
    text
}

/// The partitions that have expired and are kept for now, for people.
fn waiting_text(waiting: &[WaitingReport]) -> String {
    if waiting.is_empty() {
        return String::new();
    }
    let files = waiting.iter().fold(0_i64, |sum, one| sum.saturating_add(one.files));
    let mut text = format!(
        "  waiting      {}: {}\n",
        counted(waiting.len() as i64, "partition"),
        counted(files, "file")
    );
    for one in waiting.iter().take(SHOWN_FIRST) {
        let next = one.next_look.map(|next| format!(", next look {next}")).unwrap_or_default();
        text.push_str(&format!(
            "    {}  {} since {}{next}  {}\n",
            shortened(&one.display),
            one.reason,
            one.since,
            counted(one.files, "file")
        ));
        if let Some(error) = &one.error {
            text.push_str(&format!("      {}\n", one_line(error)));
        }
    }
    if waiting.len() > SHOWN_FIRST {
        let left_out = waiting.len() - SHOWN_FIRST;
        text.push_str(&format!("    ... {left_out} more: --output json lists all\n"));
    }
    text
}

fn sample_text(sample: &KeptReport) -> String {
    let spec = sample.spec_id.map_or("none".to_owned(), |spec_id| spec_id.to_string());
    let stored = sample.partition_values.iter().map(|value| value.as_deref().unwrap_or("null"));
    let described = match stored.collect::<Vec<_>>().join(" / ") == sample.display {
        true => String::new(),
        false => format!(" ({})", shortened(&sample.display)),
    };
    let mut text = format!(
        "      spec {spec}, {}{described}: {}\n",
        shortened(&serde_json::to_string(&sample.partition_values).unwrap_or_default()),
        counted(sample.files, "file")
    );
    if !sample.interpretations.is_empty() {
        let interpretations: Vec<_> =
            sample.interpretations.iter().map(|one| shortened(one)).collect();
        text.push_str(&format!("        may be: {}\n", interpretations.join("; ")));
    }
    let instants = [
        ("by its values it ended", sample.range_end),
        ("its newest row is of", sample.newest_row),
        ("it is dropped at", sample.leaves_at),
    ];
    let instants: Vec<_> =
        instants.iter().filter_map(|(what, at)| Some(format!("{what} {}", (*at)?))).collect();
    if !instants.is_empty() {
        text.push_str(&format!("        {}\n", instants.join(", ")));
    }
    text
}

/// What would be dropped, for people.
pub(super) fn expired_text(expired: &[PartitionReport]) -> String {
    let sum = |part: fn(&PartitionReport) -> i64| {
        expired.iter().map(part).fold(0_i64, i64::saturating_add)
    };
    if expired.is_empty() {
        return "  expired      nothing\n".to_owned();
    }
    let mut text = format!(
        "  expired      {}: {}, {}, {}, {}\n",
        counted(expired.len() as i64, "partition"),
        counted(sum(|partition| partition.counts.files), "file"),
        counted(sum(|partition| partition.counts.delete_files), "vector"),
        counted(sum(|partition| partition.counts.records), "record"),
        bytes(sum(|partition| partition.counts.bytes)),
    );
    let shown = |at: usize| at < SHOWN_FIRST || at + SHOWN_LAST >= expired.len();
    let rows: Vec<_> = expired
        .iter()
        .enumerate()
        .filter(|(at, _)| shown(*at))
        .map(|(_, partition)| partition)
        .map(|partition| {
            vec![
                partition.display.clone(),
                format!("ended {}", partition.range_end),
                counted(partition.counts.files, "file"),
                bytes(partition.counts.bytes),
            ]
        })
        .collect();
    let lines = columns(&rows, &[2, 3], "    ");
    let left_out = expired.len() - rows.len();
    for (at, line) in lines.lines().enumerate() {
        if left_out > 0 && at == SHOWN_FIRST {
            text.push_str(&format!("    ... {left_out} more: --output json lists all\n"));
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_its_midnight_in_utc() {
        let midnight = "2026-12-01T00:00:00Z".parse().expect("an instant");
        for text in ["2026-12-01", "2026-12-1", "2026-12-01T00:00:00Z", "2026-12-01T02:00:00+02:00"]
        {
            assert_eq!(instant(text), Ok(midnight), "{text}");
        }
        for text in ["2026-12-01T00:00:00", "tomorrow", ""] {
            let refused = instant(text).expect_err("no time");
            assert!(refused.ends_with("say it as 2026-09-17, or as 2026-09-17T06:00:00Z with an offset or Z (RFC 3339)"), "{refused}");
        }
        for text in ["2026-12-32", "2026-13-01", "2026-02-30"] {
            assert_eq!(instant(text), Err("there is no such day".to_owned()), "{text}");
        }
    }
}
