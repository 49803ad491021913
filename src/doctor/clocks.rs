//! Whether the clocks agree: this host's, the database's, and the times of snapshots.

use std::time::Duration;

use super::{Finding, Level, roughly};
use crate::catalog::clock::{Behind, CLOCK_TOLERANCE};
use crate::catalog::clock_memory::ByHand;
use crate::rules::clock_guard::{Reading, Refusal};
use crate::sweep::clocks::Outlook;

const CHECK: &str = "clocks";

/// The host against the database.
pub fn of_host(reading: &Reading, max_skew: Duration) -> Finding {
    let (skew, apart) = (reading.skew(), reading.apart(max_skew));
    if skew <= CLOCK_TOLERANCE && apart.is_none() {
        return Finding::ok(CHECK, "this host's clock and the database's agree");
    }
    let way = if reading.database < reading.host { "behind" } else { "ahead of" };
    let seconds = i64::try_from(skew.as_secs()).unwrap_or(i64::MAX);
    let what = format!("the database's clock is {} {way} this host's", roughly(seconds));
    match apart {
        None => Finding::new(
            Level::Warning,
            CHECK,
            what,
            "what has expired is decided by the database's clock alone, so a wrong one drops too \
             early or too late",
            "find out which of them is wrong, and set it by NTP",
        ),
        Some(_) => Finding::new(
            Level::Problem,
            CHECK,
            what,
            format!(
                "that is more than guard.max_clock_skew ({}): a daemon on this host drops nothing, \
                 for one of them is wrong",
                humantime::format_duration(max_skew)
            ),
            "find out which of them is wrong, and set it by NTP; where the database's is right and \
             passes cannot wait, `tailrace clock accept CATALOG --reason TEXT` lets one through",
        ),
    }
}

/// What is remembered of a catalog's clock: whether passes are refused, and the last acceptance by a
/// person. Nothing where there is nothing to say.
pub fn of_memory(catalog: &str, seen: &Outlook) -> Vec<Finding> {
    let Outlook { known, refusal, behind } = seen;
    let mut findings = Vec::new();
    // That host and database are apart is a finding of its own, and so is a clock behind snapshots.
    let here = refusal.as_ref().filter(|refusal| !matches!(refusal, Refusal::Apart { .. }));
    let is_told = behind.is_some() && refusal.is_none();
    let since = known.memory.refused.map(|refused| refused.at).filter(|_| !is_told);
    let is_accepted = known.memory.is_accepted_once;
    let (what, why) = match (since, &known.refusal, here) {
        (Some(since), Some(refusal), _) => (
            format!("passes are refused since {since}: {refusal}"),
            "nothing is dropped, noted or purged in this catalog by a clock that may be wrong",
        ),
        (_, _, Some(refusal)) => (
            format!("the next pass will be refused: {refusal}"),
            "nothing will be dropped, noted or purged in this catalog by a clock that may be wrong",
        ),
        _ => Default::default(),
    };
    if !what.is_empty() && !is_accepted {
        let to_do = format!(
            "set the wrong clock by NTP: passes go on when the clocks agree again. Where the \
             database's is right, `tailrace clock accept {catalog} --reason TEXT`"
        );
        findings.push(Finding::new(Level::Problem, CHECK, what, why, to_do).of_catalog(catalog));
    } else if !what.is_empty() {
        let why = "the clock was accepted since, so the next pass goes through, whatever it is";
        findings.push(Finding::new(Level::Warning, CHECK, what, why, "").of_catalog(catalog));
    }
    if let Some(ByHand { by, reason, at }) = &known.by_hand {
        let head = known.trusted_head.unwrap_or_default();
        let what = format!(
            "{by} accepted the clock at {at}, and the snapshots up to {head} whatever their time: \
             {reason}"
        );
        findings.push(Finding::ok(CHECK, what).of_catalog(catalog));
    }
    findings
}

/// The database against what it has written itself.
pub fn of_snapshots(catalog: &str, behind: Option<&Behind>) -> Finding {
    let Some(behind) = behind else {
        let what = "no snapshot is younger than the database's clock says it is now";
        return Finding::ok(CHECK, what).of_catalog(catalog);
    };
    let seconds = i64::try_from(behind.by.as_secs()).unwrap_or(i64::MAX);
    let (level, why) = match behind.by > CLOCK_TOLERANCE {
        true => (
            Level::Problem,
            "the clock is wrong or was, and passes drop nothing until it has \
                                  caught up",
        ),
        false => (Level::Note, "the clock went back a little; passes go on"),
    };
    Finding::new(
        level,
        CHECK,
        format!(
            "the database's clock is {} behind the newest snapshot ({})",
            roughly(seconds),
            behind.newest_snapshot
        ),
        why,
        format!(
            "set the database host's clock by NTP. Where it is right now and was ahead when those \
             snapshots were made, `tailrace clock accept {catalog} --reason TEXT` leaves them out"
        ),
    )
    .of_catalog(catalog)
}
