//! The [blast radius](crate::rules::blast_radius) of passes and plans: which rule is followed, how many files have
//! expired, and which of them are kept.

use std::collections::{HashMap, HashSet};

use super::evidence::Withheld;
use super::expired::ExpiredTuple;
use super::memory::{BookDigest, store};
use super::settings::Settings;
use crate::catalog::checks::there::{WasThere, was_there};
use crate::catalog::checks::{begins, catalog_state};
use crate::catalog::finder::Finder;
use crate::catalog::session::Session;
use crate::catalog::table_files::count_live;
use crate::catalog::tables::{TableIdentity, current_watermark};
use crate::policy::command::shell_word;
use crate::policy::{Policy, Source};
use crate::rules::blast_radius::{Excess, RadiusLimits, RuleChange};
use crate::rules::expiry::{KeptReason, Retention, SpecBook, Verdict};
use crate::rules::instant::UtcInstant;

/// So many files are asked for their beginning at once.
const PIECE: usize = 5_000;

/// The digest of what decides which files expire: the column, the keep, the specs and how they are read.
pub fn rule_of(book: &SpecBook, retention: Retention) -> String {
    let Retention { source_field_id, keep, .. } = retention;
    let specs = hex::encode(BookDigest::of(book, source_field_id).to_bytes());
    format!("{source_field_id} {} {specs}", keep.as_secs())
}

/// What a rule is to those who follow it.
#[derive(Debug)]
pub enum Met {
    /// The rule that was followed before; `let_go` says why that is let go which was kept.
    Known { change: Box<RuleChange>, let_go: Option<&'static str> },
    /// Another one; whether somebody has seen what it drops.
    New { is_seen: bool },
}

/// Meets a rule, after the one that was followed before.
///
/// Somebody has seen what is dropped by a policy whose setter was shown it, when that policy is met first; by a property,
/// where all are trusted; and by a policy under which an earlier program, which knew no blast radius, dropped all
/// that was due.
pub fn meet(
    before: Option<RuleChange>,
    rule: &str,
    policy: &Policy,
    trusts_properties: bool,
    is_of_earlier_program: bool,
) -> Met {
    let is_new = before.as_ref().is_none_or(|it| it.policy_revision != policy.revision);
    let is_confirmed = policy.is_confirmed && is_new;
    let is_trusted = policy.source == Source::Property && trusts_properties;
    match before {
        Some(mut change) if change.rule == rule => {
            change.policy_revision = policy.revision;
            let mut let_go = None;
            if is_confirmed && change.holds_any() {
                let_go = Some("confirmed");
                change.let_go();
            }
            if is_trusted && change.held.take().is_some() {
                let_go = Some("trusted");
            }
            Met::Known { change: Box::new(change), let_go }
        }
        before => {
            let is_of_earlier_program = before.is_none() && is_of_earlier_program;
            Met::New { is_seen: is_confirmed || is_trusted || is_of_earlier_program }
        }
    }
}

/// What the blast radius makes of a plan: the rule as the next pass would meet it. `expired` are all tuples that
/// have expired by their values, with all of their files.
pub async fn in_plan(
    connection: &mut Session,
    finder: Finder<'_>,
    book: &SpecBook,
    policy: &Policy,
    settings: &Settings,
    expired: &[ExpiredTuple],
) -> sqlx::Result<RuleChange> {
    let (table, retention) = (finder.table, finder.judge.retention());
    let (now, limits) = (retention.now, settings.radius);
    let loaded = store::load(connection, table, retention.source_field_id).await?;
    let revision = loaded.as_ref().and_then(|loaded| loaded.policy_revision);
    let stored = loaded.and_then(|loaded| loaded.memory.rule_change);
    let is_of_earlier_program = stored.is_none() && revision == Some(policy.revision);
    let rule = rule_of(book, retention);
    let met = meet(stored, &rule, policy, settings.trusts_properties, is_of_earlier_program);
    let mut change = match met {
        Met::Known { change, .. } => *change,
        Met::New { is_seen } => {
            let files = expired.iter().map(|tuple| tuple.counts.files).sum();
            let held = match is_seen {
                true => None,
                false => excess(connection, table, files, 0, limits, now).await?,
            };
            let current = current_watermark(connection, table.catalog_id).await?;
            let files_below = current.map_or(i64::MAX, |current| current.files_below);
            return Ok(RuleChange::new(rule, policy.revision, retention, files_below, held));
        }
    };
    let ids = |tuple: &ExpiredTuple| tuple.ids.clone();
    let from = change.late.counted_below;
    let unread = expired.iter().flat_map(ids).filter(|id| *id >= from).count() as i64;
    let files = change.late.files.saturating_add(unread);
    if change.late.held.is_none() && unread > 0 && !limits.allow(files, 0) {
        let mut ends = HashMap::new();
        for tuple in expired {
            let may_be = tuple.ids.iter().filter(|id| change.may_be_late(**id));
            ends.extend(may_be.map(|id| (*id, tuple.range_end)));
        }
        let there = late_of(connection, table, &ends, retention).await?.len() as i64;
        let files = files.min(change.late.files.saturating_add(there));
        change.late.held = excess(connection, table, files, there, limits, now).await?;
    }
    Ok(change)
}

/// What lets go what is kept.
pub fn command(table: &TableIdentity, policy: &Policy) -> String {
    format!(
        "tailrace policy set {} {} --field {} --keep {} --yes",
        shell_word(&table.catalog),
        shell_word(&format!("{}.{}", table.namespace, table.table)),
        shell_word(policy.field.text()),
        shell_word(policy.keep.text())
    )
}

/// How many live files have expired by their values, whatever else keeps them. Each statement is one page.
pub async fn count_expired(connection: &mut Session, finder: Finder<'_>) -> sqlx::Result<i64> {
    let (mut pages, mut count) = (finder.expired(None), 0);
    while let Some(files) = pages.next(connection).await? {
        let is_expired = |verdict| matches!(verdict, Verdict::Expired { .. });
        let expired =
            files.iter().filter(|file| is_expired(finder.judge.judge(file.spec_id, &file.tuple)));
        count += expired.count() as i64;
    }
    Ok(count)
}

/// How many live files have expired and came late.
pub async fn count_late(
    connection: &mut Session,
    finder: Finder<'_>,
    change: &RuleChange,
) -> sqlx::Result<i64> {
    let (mut pages, mut count) = (finder.expired(None), 0);
    while let Some(files) = pages.next(connection).await? {
        let mut ends = HashMap::new();
        for file in files.iter().filter(|file| change.may_be_late(file.data_file_id)) {
            if let Verdict::Expired { range_end, .. } =
                finder.judge.judge(file.spec_id, &file.tuple)
            {
                ends.insert(file.data_file_id, range_end);
            }
        }
        let retention = finder.judge.retention();
        count += late_of(connection, finder.table, &ends, retention).await?.len() as i64;
    }
    Ok(count)
}

/// Those of the files, given with the ends of their values' ranges, that had expired when they came, or may have:
/// of one whose snapshot was deleted it is only known that it is older than the floor.
async fn late_of(
    connection: &mut Session,
    table: &TableIdentity,
    ends: &HashMap<i64, UtcInstant>,
    retention: Retention,
) -> sqlx::Result<Vec<i64>> {
    let ids: Vec<i64> = ends.keys().copied().collect();
    let mut late = Vec::new();
    if ids.is_empty() {
        return Ok(late);
    }
    let Some(state) = catalog_state(connection, table.catalog_id).await? else { return Ok(ids) };
    for piece in ids.chunks(PIECE) {
        for begin in begins(connection, table.catalog_id, piece).await? {
            let Some(range_end) = ends.get(&begin.data_file_id) else { continue };
            if was_there(&begin, range_end.plus(retention.keep), &state) != WasThere::Yes {
                late.push(begin.data_file_id);
            }
        }
    }
    Ok(late)
}

/// Whether so many files may go, of the live ones and `ended` ones that were live; `None` if they may.
pub async fn excess(
    connection: &mut Session,
    table: &TableIdentity,
    files: i64,
    not_counted: i64,
    limits: RadiusLimits,
    now: UtcInstant,
) -> sqlx::Result<Option<Excess>> {
    if limits.allow(files, 0) {
        return Ok(None);
    }
    let enough = limits.enough_live(files).saturating_add(not_counted);
    let live = count_live(connection, table.catalog_id, table.table_id, enough).await?;
    let live_files = live.saturating_sub(not_counted);
    let is_allowed = limits.allow(files, live_files);
    Ok((!is_allowed).then_some(Excess { files, live_files, at: now }))
}

/// Separates tuples that may go from those that the blast radius keeps, which it does whole. `ids` are all of their
/// files that were there when they were looked for.
pub async fn keep_back(
    connection: &mut Session,
    table: &TableIdentity,
    change: &RuleChange,
    retention: Retention,
    expired: Vec<ExpiredTuple>,
) -> sqlx::Result<(Vec<ExpiredTuple>, Vec<Withheld>)> {
    if !change.holds_any() {
        return Ok((expired, Vec::new()));
    }
    let late = match change.late.held {
        None => Vec::new(),
        Some(_) => {
            let mut ends = HashMap::new();
            for tuple in &expired {
                let may_be = tuple.ids.iter().filter(|id| change.may_be_late(**id));
                ends.extend(may_be.map(|id| (*id, tuple.range_end)));
            }
            late_of(connection, table, &ends, retention).await?
        }
    };
    let late: HashSet<i64> = late.into_iter().collect();
    let is_kept = |tuple: &ExpiredTuple| {
        change.held.is_some() && change.came_with(tuple.range_end, &tuple.ids)
            || tuple.ids.iter().any(|id| late.contains(id))
    };
    let (kept, expired): (Vec<_>, Vec<_>) = expired.into_iter().partition(is_kept);
    let (reason, leaves_at, newest) = (KeptReason::BlastRadius, None, None);
    let kept = kept.into_iter().map(|tuple| Withheld { tuple, reason, leaves_at, newest });
    Ok((expired, kept.collect()))
}
