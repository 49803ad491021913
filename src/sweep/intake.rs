//! The beginning of a pass: which catalogs and tables there are, and which of them have work. One session
//! asks, in a number of statements that does not grow with the number of catalogs or tables.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::closer::{moved_on, redefined, restored_of};
use super::report::TableReport;
use super::settings::Kind;
use super::settings::{Scope, Settings};
use super::triage::{
    CatalogFacts, CatalogReason, Facts, Rules, catalog_reasons, is_stale, left_out, work,
};
use super::waits::end_waits;
use crate::catalog::clock_memory::{Remembered, all_remembered, note_still_accepted};
use crate::catalog::evidence::may_read;
use crate::catalog::restore::{Restored, thin_heads};
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, TableIdentity};
use crate::catalog::triage::catalogs::{CatalogLook, look_at_catalogs, note_catalogs};
use crate::catalog::triage::shapes::{Unchanged, note_unchanged, shapes};
use crate::catalog::triage::tables::{columns_of_policies, look_at_tables};
use crate::catalog::triage::work::{earliest_ends, with_due_marks, with_new_files};
use crate::events;
use crate::rules::clock_guard::{Accepted, Memory, Reading, decide};
use crate::rules::fair_queue::{Step, Steps};

/// What a pass begins with.
pub struct Intake {
    /// Every catalog in scope, by name.
    pub catalogs: Vec<CatalogIntake>,
    /// How many catalogs there are, in scope or not.
    pub known: usize,
    /// The catalogs, those that are gone among them, of which nothing may be noted or purged beside its
    /// tables: the clock is in doubt there, or they were restored, or are not whole.
    pub untouched: BTreeSet<i64>,
}

/// A catalog, and what of it has work.
pub struct CatalogIntake {
    pub catalog: Catalog,
    /// Why it is looked after, whatever its tables.
    pub reasons: Vec<CatalogReason>,
    /// Its governed tables in scope, by id.
    pub governed: HashMap<i64, Governed>,
    /// Those with work, by their places.
    pub with_work: BTreeMap<usize, TableIdentity>,
    /// What is said of those without work, each with its place by namespace and name.
    pub left_out: BTreeMap<usize, TableReport>,
}

/// A governed table.
#[derive(Debug, Clone, Copy)]
pub struct Governed {
    /// Its place by namespace and name.
    pub place: usize,
    /// What is done of it; `None` where it has no work.
    pub steps: Option<Steps>,
    /// How often in a row what was due was not looked at.
    pub unlooked: u32,
}

impl CatalogIntake {
    /// Whether there is anything to do in it.
    pub fn has_work(&self) -> bool {
        !self.reasons.is_empty() || self.governed.values().any(|table| table.steps.is_some())
    }

    /// The first thing that is done of it. Where it was restored, what is found then may be due.
    pub fn first_step(&self) -> Step {
        let steps = self.governed.values().filter_map(|table| Some(table.steps?.first()));
        match self.reasons.contains(&CatalogReason::Restored) {
            true => Step::Due,
            false => steps.min().unwrap_or(Step::Rest),
        }
    }

    /// For how many nanoseconds something of it has been due, if anything is.
    pub fn overdue(&self) -> Option<i128> {
        self.governed.values().filter_map(|table| table.steps?.due).max()
    }

    fn is_in_doubt(&self) -> bool {
        self.reasons.iter().any(|reason| reason.is_doubt())
    }
}

/// What was asked about catalogs.
struct Catalogs {
    looks: Vec<CatalogLook>,
    remembered: HashMap<i64, Remembered>,
    restored: BTreeMap<i64, Restored>,
}

/// Asks, decides, and notes of what has no work that it was found as it is.
pub async fn take_in(
    control: &mut Session,
    settings: &Settings,
    scope: &Scope,
    reading: &Reading,
) -> sqlx::Result<Intake> {
    let remembered = all_remembered(control).await?;
    let is_ambiguous = |known: &Remembered| {
        decide(reading, &known.memory.by_rule(), settings.max_clock_skew)
            .map_or(true, |fine| fine.starts_epoch)
    };
    let mut untouched: BTreeSet<i64> =
        remembered.iter().filter(|(_, known)| is_ambiguous(known)).map(|(id, _)| *id).collect();
    let looks = look_at_catalogs(control).await?;
    let restored = restored_of(control, &looks).await?;
    untouched.extend(restored.keys());
    untouched
        .extend(looks.iter().filter(|look| !look.is_whole).map(|look| look.catalog.catalog_id));
    if settings.kind == Kind::Regular && reading.apart(settings.max_clock_skew).is_none() {
        end_waits(control, reading.database, &untouched).await;
    }
    let asked = Catalogs { looks, remembered: remembered.into_iter().collect(), restored };
    let mut catalogs = catalogs_in_scope(control, settings, scope, reading, &asked).await?;
    let changed = sort_tables(control, settings, scope, reading, &asked, &mut catalogs).await?;
    if settings.kind == Kind::Regular {
        note(control, reading, &asked, &catalogs, &changed).await?;
    }
    Ok(Intake { catalogs, known: asked.looks.len(), untouched })
}

/// The catalogs in scope, each with why it is looked after. A pass that was woken looks after none.
async fn catalogs_in_scope(
    control: &mut Session,
    settings: &Settings,
    scope: &Scope,
    reading: &Reading,
    asked: &Catalogs,
) -> sqlx::Result<Vec<CatalogIntake>> {
    let is_regular = settings.kind == Kind::Regular;
    let with_marks = match reading.database.to_chrono() {
        Some(now) if is_regular && may_read(control).await?.table_stats => {
            with_due_marks(control, now, settings.stale_writer_window).await?
        }
        _ => Default::default(),
    };
    let never = Memory::default();
    let reasons = |look: &CatalogLook| {
        let catalog_id = look.catalog.catalog_id;
        let facts = CatalogFacts {
            look,
            is_restored: asked.restored.contains_key(&catalog_id),
            memory: asked.remembered.get(&catalog_id).map_or(&never, |known| &known.memory),
            has_due_marks: with_marks.contains(&catalog_id),
        };
        catalog_reasons(&facts, reading, settings.max_clock_skew)
    };
    let in_scope = |look: &&CatalogLook| scope.has_catalog(&look.catalog.name);
    let intake = |look: &CatalogLook| CatalogIntake {
        catalog: look.catalog.clone(),
        reasons: if is_regular { reasons(look) } else { Vec::new() },
        governed: HashMap::new(),
        with_work: BTreeMap::new(),
        left_out: BTreeMap::new(),
    };
    Ok(asked.looks.iter().filter(in_scope).map(intake).collect())
}

/// Sorts the governed tables of these catalogs; returns those without work whose `schema_version` moved.
async fn sort_tables(
    control: &mut Session,
    settings: &Settings,
    scope: &Scope,
    reading: &Reading,
    asked: &Catalogs,
    catalogs: &mut [CatalogIntake],
) -> sqlx::Result<Vec<Unchanged>> {
    let is_regular = settings.kind == Kind::Regular;
    let rules = Rules {
        now: reading.database,
        kind: settings.kind,
        min_keep: settings.policy_limits.min_keep,
        full_pass_every: settings.full_pass_every,
        spreads_full_passes: settings.spreads_full_passes,
    };
    let looks: HashMap<i64, &CatalogLook> =
        asked.looks.iter().map(|look| (look.catalog.catalog_id, look)).collect();
    let mut of_catalog: HashMap<i64, &mut CatalogIntake> =
        catalogs.iter_mut().map(|intake| (intake.catalog.catalog_id, intake)).collect();
    let mut tables = look_at_tables(control).await?;
    tables.retain(|table| {
        let identity = &table.identity;
        of_catalog.contains_key(&identity.catalog_id)
            && scope.has_table(&identity.namespace, &identity.table)
    });
    let ends = earliest_ends(control, settings.heeds_pauses.then_some(rules.now)).await?;
    let (late, shapes, columns) = match is_regular {
        true => (
            with_new_files(control, &moved_on(&tables, &looks)).await?,
            shapes(control, &redefined(&tables, &looks)).await?,
            columns_of_policies(control).await?,
        ),
        false => Default::default(),
    };
    let mut unchanged = Vec::new();
    for (place, table) in tables.iter().enumerate() {
        let identity = &table.identity;
        let (catalog_id, table_id) = (identity.catalog_id, identity.table_id);
        let key = (catalog_id, identity.table_uuid);
        let (Some(look), Some(intake)) = (looks.get(&catalog_id), of_catalog.get_mut(&catalog_id))
        else {
            continue;
        };
        let shape = shapes.get(&key).map(String::as_str);
        let facts = Facts {
            look: table,
            schema_version: look.schema_version,
            shape,
            ends: ends.get(&key).copied().unwrap_or_default(),
            has_new_files: late.contains(&(catalog_id, table_id)),
            is_named: scope.table.is_some(),
            is_in_doubt: intake.is_in_doubt(),
        };
        let work = work(&facts, &rules);
        let steps = work.as_ref().map(|work| work.steps);
        let unlooked = table.state.as_ref().map_or(0, |state| state.unlooked);
        intake.governed.insert(table_id, Governed { place, steps, unlooked });
        if let Some(work) = work {
            intake.with_work.insert(place, identity.clone());
            tracing::debug!(
                event = events::TABLE_HAS_WORK,
                catalog = identity.catalog,
                namespace = identity.namespace,
                table = identity.table,
                reasons = ?work.reasons,
                "A pass is to work on a table"
            );
            continue;
        }
        if !is_regular {
            continue;
        }
        let field = table.policy().map(|policy| policy.source_field_id).unwrap_or_default();
        let column = columns.get(&(catalog_id, table_id, field)).map(String::as_str);
        if let Some(report) = left_out(table, column, rules.now) {
            intake.left_out.insert(place, report);
        }
        if let Some(shape) = shape {
            unchanged.push(Unchanged {
                catalog_id,
                table_uuid: identity.table_uuid,
                schema_version: look.schema_version,
                shape: shape.to_owned(),
            });
        }
    }
    Ok(unchanged)
}

/// Notes of catalogs in which nothing is to be done how far they were found to agree, and that the clock was
/// accepted; and of tables without work that they are defined as they were.
async fn note(
    control: &mut Session,
    reading: &Reading,
    asked: &Catalogs,
    catalogs: &[CatalogIntake],
    unchanged: &[Unchanged],
) -> sqlx::Result<()> {
    let quiet: BTreeSet<i64> = catalogs
        .iter()
        .filter(|intake| !intake.has_work())
        .map(|intake| intake.catalog.catalog_id)
        .collect();
    let has_moved = |look: &&CatalogLook| {
        quiet.contains(&look.catalog.catalog_id)
            && (look.newest_through != Some(look.head) || !look.agrees)
    };
    let moved: Vec<&CatalogLook> = asked.looks.iter().filter(has_moved).collect();
    note_catalogs(control, &moved, reading.database).await?;
    let thinned: Vec<i64> = moved.iter().map(|look| look.catalog.catalog_id).collect();
    if !thinned.is_empty() {
        thin_heads(control, &thinned).await?;
    }
    note_unchanged(control, unchanged).await?;
    let is_old =
        |id: &&i64| asked.remembered.get(id).is_some_and(|known| is_stale(&known.memory, reading));
    let stale: Vec<i64> = quiet.iter().filter(is_old).copied().collect();
    if stale.is_empty() {
        return Ok(());
    }
    let Reading { database, host, boot } = *reading;
    let accepted = Accepted { now: database, host: Some(host), boot };
    note_still_accepted(control, &stale, &accepted).await
}
