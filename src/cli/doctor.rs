//! `tailrace doctor`

use clap::builder::NonEmptyStringValueParser;

use super::text::spinner;
use super::{DONE, Output, PROBLEM_FOUND, database, out};
use crate::config::Config;
use crate::doctor::{Doctor, Finding, Level, Report, examine};
use crate::installation::rights::grants;
use crate::sweep::Settings;
use crate::telemetry::line;

#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Only this catalog, and what is of the whole database.
    #[arg(long, value_name = "CATALOG")]
    catalog: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
    /// Print the GRANTs that tailrace needs, for the role of the URL and the schema of the configuration,
    /// and look at nothing. Never asks the database.
    #[arg(long, conflicts_with_all = ["catalog", "output"])]
    grants: bool,
    /// For this role instead; no URL is needed then.
    #[arg(long, value_name = "ROLE", requires = "grants", value_parser = NonEmptyStringValueParser::new())]
    role: Option<String>,
}

impl DoctorArgs {
    /// Whether `database.url` has to be there.
    pub fn needs_url(&self) -> bool {
        self.role.is_none()
    }
}

pub async fn run(config: &Config, args: &DoctorArgs) -> anyhow::Result<u8> {
    if args.grants {
        let role = match &args.role {
            Some(role) => role.clone(),
            None => config.connect_options()?.get_username().to_owned(),
        };
        out::text(&grants(config.database.schema.as_str(), &role))?;
        return Ok(DONE);
    }
    // Whether our schema is what it should be is one of the findings, so nothing is checked before.
    let database = database(config)?;
    let settings = Settings::from_config(config);
    let bar = spinner("looking", "");
    let doctor =
        Doctor { database: &database, settings: &settings, catalog: args.catalog.as_deref() };
    let report = examine(&doctor).await;
    bar.finish_and_clear();
    let report = report?;
    out::show(args.output, &report, text)?;
    Ok(if report.has_problem() { PROBLEM_FOUND } else { DONE })
}

fn text(report: &Report) -> String {
    let mut text = format!("As of {}\n", report.as_of);
    for finding in &report.findings {
        text.push_str(&finding_text(finding));
    }
    let of = |level| report.findings.iter().filter(|finding| finding.level == level).count();
    text.push_str(&format!(
        "\n{} problems, {} warnings, {} notes, {} ok\n",
        of(Level::Problem),
        of(Level::Warning),
        of(Level::Note),
        of(Level::Ok)
    ));
    text
}

fn finding_text(finding: &Finding) -> String {
    let place = match (&finding.catalog, &finding.table) {
        (Some(catalog), Some(table)) => format!(" {} {}:", line(catalog), line(table)),
        (Some(catalog), None) => format!(" {}:", line(catalog)),
        _ => String::new(),
    };
    let what = line(&finding.what);
    let mut text = match finding.level {
        Level::Ok => String::new(),
        _ => "\n".to_owned(),
    };
    text.push_str(&format!("{:<8} {}{place} {what}\n", finding.level.name(), finding.check));
    for (word, words) in [("why", &finding.why), ("do", &finding.to_do)] {
        if !words.is_empty() {
            text.push_str(&format!("  {word:<4} {}\n", line(words)));
        }
    }
    for statement in &finding.statements {
        text.push_str(&format!("       {}\n", line(statement)));
    }
    text
}
