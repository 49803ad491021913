//! Pauses and holds: what they keep from being dropped, and for how long already.

use super::{Finding, Level};
use crate::guards::hold::Hold;
use crate::guards::pause::Pause;
use crate::policy::command::shell_word;
use crate::rules::instant::{UtcInstant, roughly};

const CHECK: &str = "guards";

/// A pause that is older, in seconds, was perhaps forgotten.
const LONG_PAUSED: u64 = 7 * 24 * 3600;

/// A hold without an end that is older, in seconds, was perhaps forgotten.
const LONG_HELD: u64 = 90 * 24 * 3600;

/// Each pause and each hold; one line where there is none. With `catalog`, those of the others are left out.
pub fn findings(
    pauses: &[Pause],
    holds: &[Hold],
    catalog: Option<&str>,
    now: UtcInstant,
) -> Vec<Finding> {
    let in_scope = |of: &str| catalog.is_none_or(|only| only == of);
    let pauses = pauses.iter().filter(|pause| pause.catalog.as_deref().is_none_or(in_scope));
    let holds = holds.iter().filter(|hold| in_scope(&hold.catalog));
    let found: Vec<Finding> = pauses
        .map(|pause| of_pause(pause, now))
        .chain(holds.map(|hold| of_hold(hold, now)))
        .collect();
    match found.is_empty() {
        true => vec![Finding::ok(CHECK, "nothing is paused or held")],
        false => found,
    }
}

fn age(since: UtcInstant, now: UtcInstant) -> String {
    format!("for {}", roughly(i64::try_from(now.distance(since).as_secs()).unwrap_or(i64::MAX)))
}

fn of_pause(pause: &Pause, now: UtcInstant) -> Finding {
    let is_long = now.distance(pause.paused_at).as_secs() >= LONG_PAUSED;
    let mut command = "tailrace resume".to_owned();
    if let Some(catalog) = &pause.catalog {
        command.push_str(&format!(" {}", shell_word(catalog)));
    }
    if let (Some(namespace), Some(table)) = (&pause.namespace, &pause.table) {
        command.push_str(&format!(" {}", shell_word(&format!("{namespace}.{table}"))));
    }
    let mut finding = Finding::new(
        if is_long { Level::Warning } else { Level::Note },
        CHECK,
        format!("{}, {}", pause.describe(), age(pause.paused_at, now)),
        "no pass, drop or truncate of tailrace ends files of it, whatever the policies say",
        "resume it once its reason is over:",
    )
    .with(vec![command]);
    finding.catalog = pause.catalog.clone();
    finding.table =
        pause.namespace.as_ref().zip(pause.table.as_ref()).map(|(n, t)| format!("{n}.{t}"));
    finding
}

fn of_hold(hold: &Hold, now: UtcInstant) -> Finding {
    let is_long = hold.until.is_none() && now.distance(hold.held_at).as_secs() >= LONG_HELD;
    let mut finding = Finding::new(
        if is_long { Level::Warning } else { Level::Note },
        CHECK,
        format!("{}, {}", hold.describe(), age(hold.held_at, now)),
        "no drop of tailrace ends what it keeps; the server's truncate, deletes of rows and DROP TABLE do not heed it",
        "`tailrace hold list` shows how many bytes it keeps; release it once its reason is over:",
    )
    .of_catalog(&hold.catalog)
    .with(vec![format!("tailrace hold release {}", hold.hold_id)]);
    finding.table = Some(format!("{}.{}", hold.namespace, hold.table));
    finding
}
