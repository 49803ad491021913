//! How the work on a catalog begins.

use std::collections::BTreeSet;

use super::{Begun, QueuedTable};
use crate::catalog::marks::{note_marks, revoke_marks_before};
use crate::catalog::restore::settle::{
    PausedPolicy, Settled, Untrusted, lower_trusted_head, settle,
};
use crate::catalog::restore::{Restored, note_head, restored, thin_heads};
use crate::catalog::specs::copy_specs;
use crate::catalog::tables::{Catalog, LiveTable, live_tables_among};
use crate::catalog::triage::catalogs::{note_compared, note_copied, schema_version};
use crate::catalog::triage::shapes::shapes;
use crate::events;
use crate::rules::fair_queue::{FairQueue, Steps, most_overdue_first};
use crate::sweep::clocks::{Refused, judge_clock};
use crate::sweep::context::{Context, Progress};
use crate::sweep::intake::{CatalogIntake, Governed};
use crate::sweep::lease::LeasedSession;
use crate::sweep::settings::Kind;
use crate::sweep::settings::Scope;

/// What a catalog is worked on by: its clock, its specs copied, its tables with work, which are looked up
/// again: one that is gone or renamed since is what it is now.
///
/// Under a clock that is refused nothing is noted, and so nothing is copied; one that is behind the
/// catalog's own snapshots dates nothing, but what the specs say is true all the same.
///
/// Before anything is looked up, what is remembered is compared with the catalog: where it was restored
/// since, what was learned after that is forgotten first, which waits for a clock that is acted by. Then,
/// and where the clock is refused, all governed tables in scope are worked on. A pass that was woken keeps to
/// what fell due.
pub(super) async fn begin(
    session: &mut LeasedSession<'_>,
    intake: &CatalogIntake,
    scope: &Scope,
    context: &Context<'_>,
) -> sqlx::Result<Begun> {
    let connection = session.connection();
    let catalog = &intake.catalog;
    let catalog_id = catalog.catalog_id;
    let is_regular = context.settings.kind == Kind::Regular;
    let schema_version = schema_version(connection, catalog_id).await?.unwrap_or_default();
    let restored = restored(connection, catalog_id).await?;
    if let Some(restored) = &restored {
        lower_trusted_head(connection, catalog_id, restored).await?;
    }
    let clock = judge_clock(connection, catalog, context).await?;
    let mut undone = BTreeSet::new();
    if clock.refused.is_none() {
        if let Some(restored) = &restored {
            let window = context.settings.stale_writer_window;
            let settled = settle(connection, catalog_id, restored, context.now, window).await?;
            log_restored(catalog, restored, &settled);
            undone = settled.undone_tables;
        }
        if is_regular {
            thin_heads(connection, &[catalog_id]).await?;
        }
        let noted = note_head(connection, catalog_id, context.now).await?;
        if let Some(noted) = noted.filter(|noted| !noted.is_restored) {
            note_compared(connection, catalog_id, noted.watermark.through_snapshot).await?;
        }
    }
    if is_regular && !matches!(clock.refused, Some(Refused::Skew { .. })) {
        // Of the moment in which they are read, not of the pass's beginning: what began since was
        // not there before.
        let seen_at = match clock.refused {
            None => Some(context.time_of_moment(connection).await?),
            Some(_) => None,
        };
        copy_specs(connection, catalog_id, seen_at).await?;
        if seen_at.is_some() {
            note_copied(connection, catalog_id, schema_version).await?;
        }
    }
    if is_regular && clock.refused.is_none() {
        let window = context.settings.stale_writer_window;
        revoke_marks_before(connection, catalog_id, clock.epoch, window).await?;
        note_marks(connection, catalog_id, context.now, window).await?;
    }
    let is_all = is_regular && (restored.is_some() || clock.refused.is_some());
    let with_work = |(id, table): (&i64, &Governed)| table.steps.map(|_| *id);
    let with_work: Vec<i64> = intake.governed.iter().filter_map(with_work).collect();
    let these = if is_all { None } else { Some(with_work.as_slice()) };
    let mut live = live_tables_among(connection, catalog, true, these).await?;
    live.retain(|table| scope.has_table(&table.identity.namespace, &table.identity.table));
    let keys: Vec<_> = live.iter().map(|table| (catalog_id, table.identity.table_uuid)).collect();
    let mut shapes = shapes(connection, &keys).await?;
    // One that is new since comes after the others.
    let beyond = intake.governed.values().map(|table| table.place + 1).max().unwrap_or_default();
    let queued = |(number, table): (usize, LiveTable)| QueuedTable {
        governed: intake.governed.get(&table.identity.table_id).copied().unwrap_or(Governed {
            place: beyond + number,
            steps: None,
            unlooked: 0,
        }),
        shape: shapes.remove(&(catalog_id, table.identity.table_uuid)),
        table,
        steps: Steps::REST,
        done: None,
        so_far: None,
        is_lost: false,
        by: None,
    };
    let mut tables: Vec<QueuedTable> = live.into_iter().enumerate().map(queued).collect();
    (context.progress)(Progress::Tables(tables.len()));
    let steps_of = |queued: &QueuedTable| match undone.contains(&queued.table.identity.table_uuid) {
        // Their values were just put in as due.
        true => Steps { due: Some(i128::MAX), late: true, rest: true },
        false => queued.governed.steps.unwrap_or(Steps::REST),
    };
    tables.iter_mut().for_each(|queued| queued.steps = steps_of(queued));
    most_overdue_first(&mut tables, |queued| queued.steps);
    let tables = FairQueue::new(tables.into_iter().map(|queued| (queued.steps.first(), queued)));
    Ok(Begun { clock, schema_version, tables })
}

fn log_restored(catalog: &Catalog, restored: &Restored, settled: &Settled) {
    let Settled { undone, paused, untrusted, .. } = settled;
    let catalog = &catalog.name;
    tracing::error!(
        event = events::CATALOG_RESTORED,
        catalog,
        head = restored.head,
        agreed = restored.agreed.map(|agreed| agreed.snapshot_id),
        drops_undone = undone,
        "The catalog was restored to an earlier time, and the schema tailrace was not: what was \
         learned after that is forgotten"
    );
    for Untrusted { table, spec_id } in untrusted {
        tracing::warn!(
            event = events::TRUST_WITHDRAWN,
            catalog,
            table,
            spec_id,
            "The restore removed a partition spec that a writer may still use: the values of this \
             spec are no longer trusted"
        );
    }
    for PausedPolicy { namespace, table, field, keep } in paused {
        tracing::warn!(
            event = events::POLICY_PAUSED,
            catalog,
            namespace,
            table,
            field,
            keep,
            "A policy that was set after the time to which the catalog was restored is paused: its column \
             is known by an id that another column may have. Set the policy again"
        );
    }
    if *undone > 0 {
        tracing::error!(
            event = events::DROPS_UNDONE,
            catalog,
            drops = undone,
            "The catalog was restored to a time before some drops of tailrace: they are undone, and \
             their data may be live again"
        );
    }
}
