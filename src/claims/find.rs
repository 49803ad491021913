//! Finds the files of a table that are in the drop window.

use std::collections::BTreeSet;

use super::Settings;
use crate::catalog::finder::Finder;
use crate::catalog::finder::pages::{Pages, Way};
use crate::catalog::session::Session;
use crate::catalog::tables::TableIdentity;
use crate::catalog::values::has_lookup_index;
use crate::policy::Policy;
use crate::rules::expiry::{Judge, SpecBook};
use crate::rules::instant::UtcInstant;
use crate::sweep::ask::ask;
use crate::sweep::calendar;
use crate::sweep::evidence::{Evidence, Keepers};
use crate::sweep::memory::{BookDigest, store};
use crate::sweep::plan::NOT_PARQUET;
use crate::sweep::radius::{keep_back, rule_of};
use crate::sweep::sorter::Sorter;

/// The judge of the drop window, with the table's specs: what it says has expired is in the window.
pub async fn window_judge(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
) -> sqlx::Result<(SpecBook, Judge)> {
    policy.judge(connection, table, now.plus(settings.lead)).await
}

/// The live files in the window, at most `settings.max_claimed_files`, the soonest to expire first;
/// `None` where they are unknown without reading a large table whole.
///
/// By the calendar, which is only read: the rows that fall due within `compaction.lead`, but for those whose next look
/// lies beyond it, and the files that came since the watermark. Each step is a bounded statement; none holds a
/// transaction open, and what is written meanwhile may be missed until the next renewal.
pub async fn files_in_window(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
) -> anyhow::Result<Option<BTreeSet<i64>>> {
    let (book, judge) = window_judge(connection, table, policy, now, settings).await?;
    let finder = Finder { table, judge: &judge, scan_limits: &settings.scan_limits };
    let has_index = has_lookup_index(connection).await?;
    let mut sorter = Sorter::for_commits(&judge);
    let loaded = match has_index {
        true => store::load(connection, table, policy.source_field_id).await?,
        false => None,
    };
    // What pauses under another policy, or by another hold, is looked at by the next pass.
    let is_of_policy = loaded.as_ref().is_some_and(|it| {
        it.policy_revision == Some(policy.revision) && it.guard_revision == policy.guards.revision
    });
    let rule = rule_of(&book, judge.retention(), policy);
    let rule_change = loaded.as_ref().and_then(|it| it.memory.rule_change.clone());
    let rule_change = rule_change.filter(|change| change.rule == rule);
    // A first scan that is under way has yet to come to values of the table.
    let current_watermark = finder.current_watermark(connection).await?;
    let memory =
        loaded.map(|loaded| loaded.memory.checked(current_watermark, now)).filter(|memory| {
            !memory.owes_full_pass
                && memory.full_pass_at.is_some()
                && memory.book == BookDigest::of(&book, policy.source_field_id)
        });
    let mut is_told = false;
    if let Some(memory) = memory {
        let through = judge.retention().cutoff();
        let until = is_of_policy.then(|| now.plus(settings.lead));
        let most = i64::try_from(settings.max_claimed_files).unwrap_or(i64::MAX);
        let due = calendar::read::due(connection, table, through, until, most).await?;
        let candidates = ask(finder, connection, due).await?.candidates;
        if !finder.is_crowded(connection, &candidates).await? {
            let late = memory.watermark.through_snapshot;
            let late =
                finder.began_after(connection, late, settings.scan_limits.small_table).await?;
            // So many that it is unknown which are claimed: the values are listed instead.
            is_told = late.is_some();
            late.into_iter().flatten().for_each(|file| sorter.add(file));
            collect(connection, finder.with_values(&candidates), settings, &mut sorter).await?;
        }
    }
    if !is_told {
        let pages = finder.expired(Some(settings.max_values));
        is_told = collect(connection, pages, settings, &mut sorter).await?;
    }
    anyhow::ensure!(sorter.is_parquet, NOT_PARQUET);
    if !is_told {
        return Ok(None);
    }
    let mut files = 0;
    let soonest: Vec<_> = sorter
        .take()
        .into_iter()
        .take_while(|tuple| {
            let has_room = files < settings.max_claimed_files;
            files += tuple.ids.len();
            has_room
        })
        .collect();
    // What its evidence keeps is not dropped within `compaction.lead`, and compaction may have it.
    let keepers = Keepers::of(policy, &settings.scan_limits, settings.max_values);
    let mut evidence = Evidence::new(table, &judge, &book, settings.cross_check, keepers);
    let examined = evidence.examine(connection, soonest, true).await?;
    // Nor is what is held for its number.
    let expired = match &rule_change {
        Some(change) => {
            keep_back(connection, table, change, judge.retention(), examined.expired).await?.0
        }
        None => examined.expired,
    };
    let soonest_first = expired.into_iter().flat_map(|tuple| tuple.ids);
    Ok(Some(soonest_first.take(settings.max_claimed_files).collect()))
}

/// Gives the files of a search to the sorter, until it has as many as may be claimed; false where a large table
/// would have to be read whole.
async fn collect(
    connection: &mut Session,
    mut pages: Pages<'_>,
    settings: &Settings,
    sorter: &mut Sorter<'_>,
) -> sqlx::Result<bool> {
    while sorter.files() < settings.max_claimed_files
        && let Some(files) = pages.next(connection).await?
    {
        if pages.way() == Way::InPieces {
            return Ok(false);
        }
        files.into_iter().for_each(|file| sorter.add(file));
    }
    Ok(true)
}
