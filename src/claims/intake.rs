//! The beginning of a renewal: which catalogs and tables have work. It runs a number of statements that does
//! not grow with the number of catalogs or tables, the same statements as a pass
//! ([`crate::catalog::triage`]). Nothing is written.

use std::collections::{BTreeSet, HashMap};

use super::Settings;
use super::renewed::Failed;
use super::triage::{Todo, enforced, rules, todo};
use crate::catalog::clock_memory::{Remembered, all_remembered};
use crate::catalog::session::Session;
use crate::catalog::tables::Catalog;
use crate::catalog::triage::catalogs::{CatalogLook, look_at_catalogs};
use crate::catalog::triage::shapes::shapes;
use crate::catalog::triage::tables::{TableLook, look_at_tables};
use crate::catalog::triage::work::{earliest_ends, with_new_files};
use crate::catalog::window_rules::Enforced;
use crate::rules::clock_guard::{Reading, decide};
use crate::sweep::closer::{moved_on, redefined, restored_of};
use crate::sweep::triage::Facts;

/// A catalog by whose clock leases may be written, and what there is to do in it.
#[derive(Debug)]
pub struct CatalogIntake {
    pub catalog: Catalog,
    /// Its `schema_version`, read before anything else of it is.
    pub schema_version: i64,
    /// It has what it must have ([`crate::catalog::restore::is_whole`]).
    pub is_whole: bool,
    /// It may have specs of which there is no copy.
    pub copies_specs: bool,
    /// The tables whose property may say something new, by id.
    pub mirrors: Vec<i64>,
    /// The tables that may have files to be claimed, by id.
    pub claims: BTreeSet<i64>,
}

/// What a renewal begins with.
#[derive(Debug)]
pub struct Intake {
    /// By name.
    pub catalogs: Vec<CatalogIntake>,
    /// Why nothing is done in the others.
    pub refused: Vec<Failed>,
    /// The tables of all catalogs whose policy enforces.
    pub enforced: Vec<Enforced>,
}

/// Asks, and decides. What is claimed and for how long is a matter of the database's clock: of a catalog in
/// which that is refused as it is for passes ([`clock_guard`](crate::rules::clock_guard)), nothing is written,
/// and leases lapse.
///
/// # Errors
/// The database's: then nothing is known of any catalog.
pub async fn take_in(
    connection: &mut Session,
    settings: &Settings,
    clock: &Reading,
) -> sqlx::Result<Intake> {
    let remembered: HashMap<i64, Remembered> =
        all_remembered(connection).await?.into_iter().collect();
    let looks = look_at_catalogs(connection).await?;
    let restored = restored_of(connection, &looks).await?;
    let (mut trusted, mut refused) = (Vec::new(), Vec::new());
    for look in &looks {
        let catalog_id = look.catalog.catalog_id;
        // What a person accepted was accepted for a pass.
        let memory = remembered.get(&catalog_id).map(|known| known.memory.by_rule());
        if let Err(refusal) = decide(clock, &memory.unwrap_or_default(), settings.max_clock_skew) {
            refused.push(Failed {
                catalog: look.catalog.name.clone(),
                table: None,
                error: format!("nothing is claimed or released: {refusal}"),
            });
            continue;
        }
        let is_restored = restored.contains_key(&catalog_id);
        trusted.push(CatalogIntake {
            catalog: look.catalog.clone(),
            schema_version: look.schema_version,
            is_whole: look.is_whole,
            // Of one that is being loaded more may have come, with no other version.
            copies_specs: !is_restored
                && (!look.is_whole || look.specs_copied_at_version != Some(look.schema_version)),
            mirrors: Vec::new(),
            claims: BTreeSet::new(),
        });
    }
    let is_ambiguous =
        |look: &&CatalogLook| !look.is_whole || restored.contains_key(&look.catalog.catalog_id);
    let ambiguous: BTreeSet<i64> =
        looks.iter().filter(is_ambiguous).map(|look| look.catalog.catalog_id).collect();
    let tables = look_at_tables(connection).await?;
    let enforced = tables
        .iter()
        .filter_map(|table| enforced(table, settings.policy_limits.min_keep))
        .collect();
    sort(connection, settings, clock, &Looks { catalogs: &looks, tables, ambiguous }, &mut trusted)
        .await?;
    Ok(Intake { catalogs: trusted, refused, enforced })
}

/// The tables of all catalogs whose policy enforces, as it is now.
pub async fn look_again(
    connection: &mut Session,
    settings: &Settings,
) -> sqlx::Result<Vec<Enforced>> {
    let tables = look_at_tables(connection).await?;
    Ok(tables.iter().filter_map(|table| enforced(table, settings.policy_limits.min_keep)).collect())
}

/// What was asked.
struct Looks<'a> {
    catalogs: &'a [CatalogLook],
    tables: Vec<TableLook>,
    /// The catalogs that are not whole, or were restored.
    ambiguous: BTreeSet<i64>,
}

/// Sorts the governed tables of these catalogs by what there is to do in them.
///
/// A renewal's files are those of the rows of the [calendar](crate::sweep::calendar) whose end plus keep is
/// within `compaction.lead`, and those that came since the watermark. So it works on the tables with such rows or files,
/// on those of which the calendar does not tell, and on those with claims of ours. It reads the calendar and
/// writes none of it.
async fn sort(
    connection: &mut Session,
    settings: &Settings,
    clock: &Reading,
    asked: &Looks<'_>,
    trusted: &mut [CatalogIntake],
) -> sqlx::Result<()> {
    let until = clock.database.plus(settings.lead);
    let rules = rules(until, settings.policy_limits.min_keep);
    let Looks { catalogs, tables, ambiguous } = asked;
    let looks: HashMap<i64, &CatalogLook> =
        catalogs.iter().map(|look| (look.catalog.catalog_id, look)).collect();
    let mut of_catalog: HashMap<i64, &mut CatalogIntake> =
        trusted.iter_mut().map(|intake| (intake.catalog.catalog_id, intake)).collect();
    // What waits until after `compaction.lead` is left out.
    let ends = earliest_ends(connection, Some(until)).await?;
    let late = with_new_files(connection, &moved_on(tables, &looks)).await?;
    let shapes = shapes(connection, &redefined(tables, &looks)).await?;
    for table in tables {
        let (catalog_id, table_id) = (table.identity.catalog_id, table.identity.table_id);
        let key = (catalog_id, table.identity.table_uuid);
        let (Some(look), Some(intake)) = (looks.get(&catalog_id), of_catalog.get_mut(&catalog_id))
        else {
            continue;
        };
        let facts = Facts {
            look: table,
            schema_version: look.schema_version,
            shape: shapes.get(&key).map(String::as_str),
            ends: ends.get(&key).copied().unwrap_or_default(),
            has_new_files: late.contains(&(catalog_id, table_id)),
            is_named: false,
            is_in_doubt: ambiguous.contains(&catalog_id),
        };
        let Todo { mirrors, claims } = todo(&facts, &rules);
        if mirrors {
            intake.mirrors.push(table_id);
        }
        if claims {
            intake.claims.insert(table_id);
        }
    }
    Ok(())
}
