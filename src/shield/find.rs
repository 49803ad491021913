//! Which of a table's files are in the drop window.

use std::collections::BTreeSet;

use super::Settings;
use crate::catalog::discovery::has_lookup_index;
use crate::catalog::session::Session;
use crate::catalog::shape::spec_book;
use crate::catalog::tables::TableIdentity;
use crate::instant::UtcInstant;
use crate::policy::Policy;
use crate::sweep::cursor::{Basis, Cursor, store};
use crate::sweep::evidence::Evidence;
use crate::sweep::lookup::{Candidate, Lookup};
use crate::sweep::plan::{NOT_PARQUET, list_expired};
use crate::sweep::sorter::Sorter;
use crate::window::{Judge, Retention, SpecBook};

/// The judge of the drop window: what it says has expired is in it.
pub fn window_judge(
    book: &SpecBook,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
) -> Judge {
    Judge::new(
        book,
        Retention {
            source_field_id: policy.source_field_id,
            keep: policy.keep.length(),
            now: now.plus(settings.lead),
        },
    )
}

/// The live files in the window, at most `settings.max_claimed_files`, the soonest to expire first;
/// `None` where they cannot be told without reading a large table whole.
///
/// A pass has told how far it came: then only what expires after that is looked up, and what it
/// left. Each step is a bounded statement; none holds a transaction open, and what is written
/// meanwhile may be missed until the next renewal.
pub async fn files_in_window(
    connection: &mut Session,
    table: &TableIdentity,
    policy: &Policy,
    now: UtcInstant,
    settings: &Settings,
) -> anyhow::Result<Option<BTreeSet<i64>>> {
    let book = spec_book(connection, table.catalog_id, table.table_id).await?;
    let judge = window_judge(&book, policy, now, settings);
    let lookup = Lookup { table, judge: &judge, reach: &settings.reach };
    let has_index = has_lookup_index(connection).await?;
    let mut sorter = Sorter::for_commits(&judge);
    let cursor = match has_index {
        true => cursor(connection, &lookup, policy, &book, now).await?,
        false => None,
    };
    let candidates = match &cursor {
        Some(cursor) => lookup.expiring_since(connection, cursor).await?,
        None => None,
    };
    let is_told = match (cursor, candidates) {
        (Some(cursor), Some(candidates)) if !lookup.is_crowded(connection, &candidates).await? => {
            let late = lookup.late(connection, cursor.marks).await?;
            late.into_iter().flatten().for_each(|file| sorter.add(file));
            look_up(connection, &lookup, &candidates, settings, &mut sorter).await?;
            true
        }
        _ => match lookup.small_table(connection).await? {
            Some(files) => {
                files.into_iter().for_each(|file| sorter.add(file));
                true
            }
            None if has_index => {
                let listed = list_expired(connection, &lookup, settings.max_values).await?;
                if let Some(candidates) = &listed {
                    look_up(connection, &lookup, candidates, settings, &mut sorter).await?;
                }
                listed.is_some()
            }
            None => false,
        },
    };
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
    // What its evidence keeps is not dropped within the lead, and compaction may have it.
    let mut evidence = Evidence::new(table, &judge, &book, settings.cross_check);
    let examined = evidence.examine(connection, soonest, true).await?;
    let soonest_first = examined.expired.into_iter().flat_map(|tuple| tuple.ids);
    Ok(Some(soonest_first.take(settings.max_claimed_files).collect()))
}

/// How far passes have come with the table, under this policy and these rules.
async fn cursor(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    policy: &Policy,
    book: &SpecBook,
    now: UtcInstant,
) -> anyhow::Result<Option<Cursor>> {
    let (table, judge) = (lookup.table, lookup.judge);
    let dated = judge.specs().filter(|(_, spec)| spec.lead_position().is_some());
    let specs: BTreeSet<i64> = dated.map(|(spec_id, _)| spec_id).collect();
    let basis = Basis::new(table.table_uuid, policy.revision, book);
    let marks = lookup.marks(connection).await?;
    let memory = store::load(connection, table, &basis, &specs).await?;
    Ok(memory.checked(marks, now.minus(policy.keep.length()), now).cursor)
}

/// Gives the files of some texts to the sorter, until it has as many as may be claimed.
async fn look_up(
    connection: &mut Session,
    lookup: &Lookup<'_>,
    candidates: &[Candidate],
    settings: &Settings,
    sorter: &mut Sorter<'_>,
) -> anyhow::Result<()> {
    for at_key in candidates.chunk_by(|a, b| a.key_index == b.key_index) {
        for texts in at_key.chunks(lookup.reach.texts_at_once) {
            if sorter.files() >= settings.max_claimed_files {
                return Ok(());
            }
            lookup.with_texts(connection, texts, i64::MIN, |_| true, sorter).await?;
        }
    }
    Ok(())
}
