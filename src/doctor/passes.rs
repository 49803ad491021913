//! Whether the schema tailrace is the one that is needed, and whether full passes finish.

use chrono::{DateTime, Utc};

use super::table_facts::TableFacts;
use super::{Finding, Level, at, listed};

const SCHEMA: &str = "schema";
const CHECK: &str = "passes";

/// The schema `tailrace`: up to date, or why not.
pub fn of_schema(checked: Result<i64, String>) -> Finding {
    match checked {
        Ok(version) => Finding::ok(SCHEMA, format!("the schema tailrace is at version {version}")),
        Err(problem) => Finding::new(
            Level::Problem,
            SCHEMA,
            problem,
            "no daemon and no command works without it; policies and passes were not looked at",
            "as it says; `tailrace migrate` makes it and brings it up to date",
        ),
    }
}

/// Tables under an enforcing policy that no full pass got to the end of for two turns of
/// `sweep.full_pass_every`: since the last one, or since the policy is in force as it is, if that was later.
pub fn findings(
    catalog: &str,
    tables: &[TableFacts],
    full_pass_every: std::time::Duration,
    now: DateTime<Utc>,
) -> Finding {
    let overdue = i64::try_from(full_pass_every.as_secs()).unwrap_or(i64::MAX).saturating_mul(2);
    let enforced = || tables.iter().filter(|table| table.governed.enforced().is_some());
    let is_old = |time: DateTime<Utc>| (now - time).num_seconds() > overdue;
    let waiting: Vec<_> = enforced()
        .filter(|table| table.full_pass_at.max(table.in_force_since()).is_some_and(is_old))
        .map(|table| {
            format!(
                "{}.{}",
                table.governed.live.identity.namespace, table.governed.live.identity.table
            )
        })
        .collect();
    let newest = enforced().filter_map(|table| table.full_pass_at).max();
    let finding = match (waiting.as_slice(), newest) {
        ([], None) => Finding::ok(CHECK, "no full pass yet, and none is due"),
        ([], Some(newest)) => Finding::ok(
            CHECK,
            format!("every enforced table has its full passes, the newest of {}", at(newest)),
        ),
        (waiting, _) => Finding::new(
            Level::Warning,
            CHECK,
            format!("no full pass has finished lately over {}", listed(waiting)),
            "expired partitions there are kept, or the first pass is still running",
            "see whether a daemon runs (`tailrace health`) and what its log says (`pass_finished`)",
        ),
    };
    finding.of_catalog(catalog)
}
