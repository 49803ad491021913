//! Consumers of governed tables that may not be notified of drops.

use super::table_facts::TableFacts;
use super::{Finding, Level, listed};
use crate::policy::Mode;

const CHECK: &str = "consumers";

/// For each table under an enforcing policy that is not fenced: who has an offset for it. The
/// server's feed does not report drops; whether a consumer reads that one or ours cannot be seen.
pub fn findings(catalog: &str, tables: &[TableFacts]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for table in tables {
        let Ok(policy) = &table.governed.policy else { continue };
        if policy.mode != Mode::Enforce || policy.fence {
            continue;
        }
        let consumers = match &table.consumers {
            Some(consumers) if consumers.is_empty() => continue,
            Some(consumers) => consumers,
            None => {
                findings.push(unread(catalog));
                break;
            }
        };
        findings.push(
            Finding::new(
                Level::Warning,
                CHECK,
                format!("consumers with an offset: {}", listed(consumers)),
                "the server's feed does not report drops, so whoever reads it keeps the dropped \
                 rows in its copy",
                "let them read tailrace's feed of changes, or set the policy again with --fence",
            )
            .of_table(&table.governed.live.identity),
        );
    }
    if findings.is_empty() {
        let what = "no consumer of an enforced table depends on the server's feed without a fence";
        findings.push(Finding::ok(CHECK, what).of_catalog(catalog));
    }
    findings
}

fn unread(catalog: &str) -> Finding {
    Finding::new(
        Level::Warning,
        CHECK,
        "who has an offset for an enforced table may not be read",
        "it was not checked",
        "give the role the right: see the findings about rights",
    )
    .of_catalog(catalog)
}
