//! `tailrace policy history`

use super::{TableArgs, find};
use crate::catalog::session::Session;
use crate::cli::arguments::TableName;
use crate::cli::text::last;
use crate::cli::{DONE, Output, out};
use crate::policy::history::{
    MOST, PolicyChange, PolicyHistory, PolicyTerms, changes, last_of_name,
};
use crate::telemetry::line;

#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    #[command(flatten)]
    table: TableArgs,
    /// How many changes, the newest first.
    #[arg(long, value_name = "N", default_value_t = 20,
          value_parser = clap::value_parser!(i64).range(1..=MOST))]
    limit: i64,
    /// Only changes that are older than this one: its number in the output.
    #[arg(long, value_name = "CHANGE")]
    before: Option<i64>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn history(connection: &mut Session, args: &HistoryArgs) -> anyhow::Result<u8> {
    let table = match find(connection, &args.table).await {
        Ok(live) => live.identity,
        // If the database did not answer, it is not known whether a table no longer exists.
        Err(error) if error.chain().any(|cause| cause.is::<sqlx::Error>()) => return Err(error),
        Err(error) => {
            let TableArgs { catalog, table: TableName { namespace, table } } = &args.table;
            last_of_name(connection, catalog, namespace, table).await?.ok_or(error)?
        }
    };
    let before = args.before.unwrap_or(i64::MAX);
    let answer = changes(connection, &table, before, args.limit).await?;
    out::show(args.output, &answer, text)?;
    Ok(DONE)
}

/// The changes for people.
fn text(answer: &PolicyHistory) -> String {
    let PolicyHistory { catalog, namespace, table, changes, next_before } = answer;
    let mut lines: Vec<String> = changes.iter().flat_map(change).collect();
    if changes.is_empty() {
        lines.push(format!("No change of a policy of {catalog} {namespace}.{table} is noted"));
    }
    lines.extend(next_before.map(|before| format!("There are older ones: --before {before}")));
    lines.iter().map(|text| format!("{}\n", line(text))).collect()
}

fn change(change: &PolicyChange) -> Vec<String> {
    let PolicyChange { change_id, changed_at, changed_by, source, before, after, reason } = change;
    let at = changed_at.format("%Y-%m-%dT%H:%M:%SZ");
    let mut lines = vec![
        format!("{change_id}  {at}  {source} policy, changed by {changed_by}"),
        format!("  from    {}", words(before.as_ref())),
        format!("  to      {}", words(after.as_ref())),
    ];
    lines.extend(reason.as_ref().map(|reason| format!("  reason  {reason}")));
    lines
}

fn words(rule: Option<&PolicyTerms>) -> String {
    let Some(PolicyTerms { field, keep, keep_last, mode, fence, problem, .. }) = rule else {
        return "none".to_owned();
    };
    let fence = if *fence { ", fenced" } else { "" };
    let problem = problem.as_ref().map(|why| format!(", not followed: {why}"));
    let last = last(*keep_last);
    format!("{field} keep {keep}{last}, {mode}{fence}{}", problem.unwrap_or_default())
}
