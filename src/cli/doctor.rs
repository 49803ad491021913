//! `tailrace doctor`

mod bundle;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use super::text::{counted, spinner, wrapped};
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
    /// Write FILE, to be attached to an issue, instead of the report. FILE is one JSON object with the
    /// configuration, the versions, and the output of `doctor`, `plan`, `verify` and `trace`. Passwords, keys and
    /// tokens are masked. FILE must not exist yet; its mode is 0600. The versions and each of the four outputs take
    /// at most a minute. Where one of them fails, FILE has the error in its place. If `doctor` fails, the exit code
    /// is 1.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["grants", "output"])]
    bundle: Option<PathBuf>,
}

impl DoctorArgs {
    /// Whether `database.url` has to be set.
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
    // Nothing is checked before: whether the schema `tailrace` fits this program is one of the findings.
    let database = database(config)?;
    let settings = Settings::from_config(config);
    let doctor =
        Doctor { database: &database, settings: &settings, catalog: args.catalog.as_deref() };
    if let Some(file) = &args.bundle {
        return bundle::run(config, &doctor, file).await;
    }
    let bar = spinner("looking");
    let report = examine(&doctor).await;
    bar.finish_and_clear();
    let report = report?;
    let width = out::width();
    out::show(args.output, &report, |report| text(report, width))?;
    Ok(if report.has_problem() { PROBLEM_FOUND } else { DONE })
}

/// The report for people; without a width no line is broken.
fn text(report: &Report, width: Option<usize>) -> String {
    let mut text = format!("As of {}\n", report.as_of);
    for finding in &report.findings {
        text.push_str(&finding_text(finding, width));
    }
    text.push_str(&format!("\n{}\n", levels(report)));
    text
}

/// The number of findings of each level.
fn levels(report: &Report) -> String {
    let of = |level| report.findings.iter().filter(|finding| finding.level == level).count() as i64;
    format!(
        "{}, {}, {}, {} ok",
        counted(of(Level::Problem), "problem"),
        counted(of(Level::Warning), "warning"),
        counted(of(Level::Note), "note"),
        of(Level::Ok)
    )
}

pub(super) fn finding_text(finding: &Finding, width: Option<usize>) -> String {
    let place = match (&finding.catalog, &finding.table) {
        (Some(catalog), Some(table)) => format!(" {} {}:", line(catalog), line(table)),
        (Some(catalog), None) => format!(" {}:", line(catalog)),
        _ => String::new(),
    };
    let mut text = match finding.level {
        Level::Ok => String::new(),
        _ => "\n".to_owned(),
    };
    let what = format!("{}{place} {}", finding.check, line(&finding.what));
    text.push_str(&wrapped(&format!("{:<8} ", finding.level.name()), &what, width));
    for (word, words) in [("why", &finding.why), ("do", &finding.to_do)] {
        if !words.is_empty() {
            text.push_str(&wrapped(&format!("  {word:<4} "), &line(words), width));
        }
    }
    // Never wrapped, so that they can be copied.
    for statement in &finding.statements {
        text.push_str(&format!("       {}\n", line(statement)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_fit_a_terminal_and_statements_stay_whole() {
        let statement = "create index concurrently hog_data_file_path on public.hog_data_file (catalog_id, path)";
        let mut finding = Finding::new(
            Level::Problem,
            "indexes",
            "the index hog_data_file_path is missing, and each pass reads more than it has to",
            "a look-up reads the whole table",
            "build it",
        )
        .with(vec![statement.to_owned()]);
        finding.catalog = Some("lake".to_owned());
        let long = "problem  indexes lake: the index hog_data_file_path is missing, and each pass reads more than it has to\n";
        assert_eq!(
            finding_text(&finding, None),
            format!(
                "\n{long}  why  a look-up reads the whole table\n  do   build it\n       {statement}\n"
            )
        );
        assert_eq!(
            finding_text(&finding, Some(40)),
            format!(
                "\nproblem  indexes lake: the index\n         hog_data_file_path is missing,\n         and \
                 each pass reads more than\n         it has to\n  why  a look-up reads the whole table\n  do   \
                 build it\n       {statement}\n"
            )
        );
    }

    #[test]
    fn one_of_a_level_is_singular() {
        let finding = |level| Finding::new(level, "rights", "what", "", "");
        let findings = vec![
            finding(Level::Problem),
            finding(Level::Warning),
            finding(Level::Warning),
            finding(Level::Ok),
        ];
        let as_of = "2026-12-01T00:00:00Z".parse().expect("an instant");
        assert_eq!(levels(&Report { as_of, findings }), "1 problem, 2 warnings, 0 notes, 1 ok");
    }
}
