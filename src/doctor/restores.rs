//! Whether a catalog was restored while the schema `tailrace` was not.

use super::{Finding, Level};
use crate::catalog::restore::Restored;

const CHECK: &str = "restores";

/// What no pass has settled yet, and how many drops are noted as undone. Nothing where the catalog was
/// never restored, as far as is remembered.
pub fn findings(catalog: &str, restored: Option<&Restored>, undone: i64) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(Restored { head, agreed }) = restored {
        let to = match agreed {
            Some(agreed) => format!("to snapshot {} or a later one", agreed.snapshot_id),
            None => "to before everything that passes noted".to_owned(),
        };
        findings.push(Finding::new(
            Level::Warning,
            CHECK,
            format!("the catalog was restored, {to}, and is at {head} now; no pass has noted that yet"),
            "drops after that are undone, and their data may be live again; what passes learned after \
             that is not true any more",
            "find out who restored what; the next pass forgets it and looks at every table anew",
        ));
    }
    if undone > 0 {
        let drops = if undone == 1 { "drop is" } else { "drops are" };
        findings.push(Finding::new(
            Level::Warning,
            CHECK,
            format!("{undone} {drops} undone: the catalog was restored to a time before"),
            "their data was live again; passes drop what has expired anew, and nobody drops again \
             what was dropped by request",
            format!(
                "`tailrace trace {catalog} --all` shows them; drop by request, with a fresh key, what is \
                 to be dropped again"
            ),
        ));
    }
    findings.into_iter().map(|finding| finding.of_catalog(catalog)).collect()
}
