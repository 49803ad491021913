//! Partition specs of governed tables: those that somebody trusted, those that are not proven by row order
//! yet, and whether the server can delete a spec before it is copied.

use std::time::Duration;

use super::table_facts::TableFacts;
use super::{Finding, Level, roughly};
use crate::catalog::inventory::maintenance_state::Retention;
use crate::catalog::trust::{KnownSpec, Trust};

const CHECK: &str = "specs";
const COPIES: &str = "spec_copies";

/// One note for each trusted spec, and a line for the catalog.
pub fn findings(catalog: &str, tables: &[TableFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut due = Vec::new();
    for table in tables {
        for (spec, fields) in &table.specs {
            if let Some(trust) = &spec.trusted {
                findings.push(of_trust(table, spec, fields, trust));
            } else if spec.began_with_table != Some(true) {
                due.extend(spec.mark_due);
            }
        }
    }
    let waiting = match (due.len(), due.iter().min()) {
        (1, Some(first)) => format!("1 spec waits for its proof by row order, due {first}"),
        (several, Some(first)) => {
            format!("{several} specs wait for their proof by row order, the first due {first}")
        }
        (_, None) => "no spec waits for its proof by row order".to_owned(),
    };
    findings.push(Finding::ok(CHECK, waiting).of_catalog(catalog));
    findings
}

/// Whether a spec can begin, end and be deleted by the server between two looks, which are `looks` apart at
/// most. One that has ended may go at the next expiry whose floor has reached its end, however shortly
/// after that, but not before its first snapshot is as old as the retention. Nothing to say where snapshots
/// stay for ever.
pub fn of_retention(catalog: &str, retention: &Retention, looks: Duration) -> Option<Finding> {
    let seconds = retention.seconds?;
    let apart = i64::try_from(looks.as_secs()).unwrap_or(i64::MAX);
    let finding = match seconds > apart {
        true => Finding::ok(
            COPIES,
            format!(
                "a daemon copies specs every {}, and each stays for {} after it began",
                roughly(apart),
                roughly(seconds)
            ),
        ),
        false => Finding::new(
            Level::Warning,
            COPIES,
            format!(
                "a partition spec stays for {} after it began, and a daemon copies specs every {}",
                roughly(seconds),
                roughly(apart)
            ),
            "one that begins and ends in between is never known: its files are kept as unknown_spec, and \
             a value that a writer stores by it under a later spec may be taken for one of that; this \
             presumes a daemon with schedule.every: where passes are run by cron, compare their distance \
             with the first of these times by hand",
            "run the daemon with a shorter compaction.renew_every or schedule.every, or let snapshots stay \
             for longer",
        ),
    };
    Some(finding.of_catalog(catalog))
}

fn of_trust(table: &TableFacts, spec: &KnownSpec, fields: &str, trust: &Trust) -> Finding {
    let identity = &table.governed.live.identity;
    let Trust { at, by, reason } = trust;
    Finding::new(
        Level::Note,
        CHECK,
        format!("spec {} ({fields}) is trusted since {at} by {by}: {reason}", spec.spec_id),
        "its files are dropped by their partition values alone, also where a value may be one of an \
         earlier spec",
        "nothing, if that still holds; else take it back",
    )
    .with(vec![format!(
        "update tailrace.spec_copy set trusted_at = null, trusted_by = null, trust_reason = null \
         where catalog_id = {} and table_id = {} and table_uuid = '{}' and spec_id = {};",
        identity.catalog_id, identity.table_id, identity.table_uuid, spec.spec_id
    )])
    .of_table(identity)
}
