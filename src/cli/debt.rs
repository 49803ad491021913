//! `tailrace debt`

use super::text::{bytes, columns, count};
use super::{DONE, Output, database, out};
use crate::catalog::compaction_sample::Sampled;
use crate::config::Config;
use crate::doctor::debt::{CatalogDebt, DebtReport, Rules, debt};
use crate::policy::grace::PolicyLimits;
use crate::telemetry::line;

#[derive(Debug, clap::Args)]
pub struct DebtArgs {
    /// Only this catalog.
    #[arg(long, value_name = "CATALOG")]
    catalog: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &DebtArgs) -> anyhow::Result<u8> {
    let database = database(config)?;
    let rules = Rules {
        policy_limits: PolicyLimits::from_config(config),
        lead: config.compaction.lead.get(),
    };
    let report = debt(&database, args.catalog.as_deref(), rules).await?;
    out::show(args.output, &report, text)?;
    Ok(DONE)
}

fn text(report: &DebtReport) -> String {
    let hours = report.lead_seconds / 3600;
    let mut text = format!(
        "As of {}; the window: what has expired, or will within {hours} hours\n",
        report.as_of
    );
    for catalog in &report.catalogs {
        text.push_str(&catalog_text(catalog));
    }
    text
}

fn catalog_text(catalog: &CatalogDebt) -> String {
    let Some(generation) = catalog.generation else {
        return format!("\n{}: the server has published no sample\n", line(&catalog.catalog));
    };
    let when = catalog.sampled_at.map_or("at an unknown time".to_owned(), |at| {
        format!("at {}", crate::rules::instant::UtcInstant::from(at))
    });
    let name = line(&catalog.catalog);
    let mut text = format!("\n{name}: generation {generation}, sampled {when}\n");
    if catalog.tables.is_empty() {
        text.push_str("  no live table has a file in it\n");
        return text;
    }
    let head = ["TABLE", "FILES", "SMALL", "SELECTED", "BYTES", "SELECTED BYTES"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for table in &catalog.tables {
        rows.push(row(&format!("{}.{}", table.namespace, table.table), &table.all));
        if table.is_enforced {
            rows.push(row("  in the window", &table.window));
            rows.push(row("  without it", &table.without_window));
        }
    }
    text.push_str(&columns(&rows, &[1, 2, 3, 4, 5], "  "));
    for table in &catalog.tables {
        if let Some(problem) = &table.problem {
            let words = format!(
                "{}.{} has no window, for its policy is not followed: {problem}",
                table.namespace, table.table
            );
            text.push_str(&format!("  {}\n", line(&words)));
        }
    }
    let saved = catalog.tables.iter().map(|table| table.saved_rewrite_bytes);
    let saved = saved.fold(0_i64, i64::saturating_add);
    text.push_str(&format!(
        "  not rewritten thanks to compaction claims: about {}\n",
        bytes(saved)
    ));
    text
}

fn row(name: &str, sampled: &Sampled) -> Vec<String> {
    vec![
        name.to_owned(),
        count(sampled.files),
        count(sampled.small_files),
        count(sampled.selected),
        bytes(sampled.bytes),
        bytes(sampled.selected_bytes),
    ]
}
