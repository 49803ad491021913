//! One renewal: it claims what is in the drop window, and releases what has left it.

use std::collections::BTreeSet;
use std::time::Instant;

use super::intake::{CatalogIntake, Intake, look_again, take_in};
use super::learn::{copy_new_specs, mirror_properties};
use super::lease::{in_force, renew_table};
use super::log::{log_off, log_renewal, log_unread};
use super::renewed::{Failed, Renewed};
use super::{LEASE, Settings};
use crate::catalog::clock;
use crate::catalog::compaction_claims::{
    claimed_tables, forget_gone_catalogs, has_claims, release_tables,
};
use crate::catalog::connect::{Access, Database};
use crate::catalog::errors::{describe, is_connection_error};
use crate::catalog::server::{CLAIMS, server_tables};
use crate::catalog::session::{Session, within};
use crate::catalog::tables::live_tables_among;
use crate::catalog::window_rules::{
    Enforced, keep_window_rules, note_window_setting, with_old_rules,
};
use crate::rules::clock_guard::Reading;
use crate::rules::instant::UtcInstant;

impl Renewed {
    /// Notes that something of a catalog failed; whether it did not.
    ///
    /// # Errors
    /// The same, where it is that the database is away.
    fn went(&mut self, catalog: &CatalogIntake, done: anyhow::Result<()>) -> anyhow::Result<bool> {
        match done {
            Ok(()) => Ok(true),
            Err(error) if is_connection_error(&error) => Err(error),
            Err(error) => {
                let (catalog, error) = (catalog.catalog.name.clone(), describe(&error));
                self.failed.push(Failed { catalog, table: None, error });
                Ok(false)
            }
        }
    }
}

/// Claims the files in the drop window of every catalog, renews the leases of those claimed before,
/// releases those that left it; and brings the window in SQL up to date. Copies partition specs and mirrors
/// properties first (`learn`), whether or not anything is claimed.
///
/// What there is to do is asked over all catalogs at once (`intake`), and decided without IO (`triage`). Only
/// catalogs and tables that have something to do are worked on, one by one, so that what fails in one stops no
/// other: where nothing is, the number of statements is the same for any number of them. What nobody governs any
/// more is released in all catalogs by one statement.
///
/// Any number of daemons may do this side by side: they share the claimant of a catalog, take
/// turns at writing, and each writes what is true by its own look.
///
/// `now` decides, in place of the database's time where it is given; leases run by the database's
/// clock in any case, as planners go by that. Takes no commit lock. Where the server knows no claims
/// (before V15), or `settings.claims` is off, specs and the window in SQL are looked after all the same.
///
/// # Errors
/// The database is away, our schema is not there, or what there is to do cannot be asked.
pub async fn renew(
    database: &Database,
    settings: &Settings,
    now: Option<UtcInstant>,
) -> anyhow::Result<Renewed> {
    let began = Instant::now();
    let mut renewed = Renewed::default();
    // A network that falls silent ends this renewal, and not all that would follow: by then the
    // leases have lapsed anyway.
    let all = async |session: &mut Session| {
        within(LEASE, renew_all(session, settings, now, &mut renewed)).await
    };
    database.in_session(Access::ReadWrite, all).await?;
    renewed.took = began.elapsed();
    log_renewal(&renewed);
    Ok(renewed)
}

async fn renew_all(
    connection: &mut Session,
    settings: &Settings,
    now: Option<UtcInstant>,
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let clock = match (settings.clock, now) {
        (Some(reading), _) => reading,
        (None, Some(now)) => Reading::rehearsed(now),
        (None, None) => clock::read(connection).await?,
    };
    if clock.apart(settings.max_clock_skew).is_none() {
        note_window_setting(connection, settings.lead, settings.policy_limits.min_keep).await?;
        forget_gone_catalogs(connection).await?;
    }
    let can_claim = has_claims(connection).await?;
    if !can_claim {
        log_off();
    }
    let must_fill = server_tables(connection).await?.must_fill(CLAIMS);
    let Intake { mut catalogs, refused, mut enforced } =
        take_in(connection, settings, &clock).await?;
    renewed.failed.extend(refused);
    // Of all catalogs before anything is claimed in any, so that no large table keeps another one's specs
    // waiting.
    for catalog in &catalogs {
        let copied = copy_new_specs(connection, catalog, clock.database).await;
        renewed.went(catalog, copied)?;
    }
    for catalog in catalogs.iter().filter(|catalog| !catalog.mirrors.is_empty()) {
        let mirrored = mirror_properties(connection, catalog, settings, renewed).await;
        renewed.went(catalog, mirrored)?;
    }
    if catalogs.iter().any(|catalog| !catalog.mirrors.is_empty()) {
        enforced = look_again(connection, settings).await?;
    }
    keep_rules(connection, &enforced, &mut catalogs, renewed).await?;
    match (can_claim, settings.claims) {
        (false, _) => Ok(()),
        (true, true) if !must_fill.is_empty() => {
            let why = format!(
                "each claim must fill {}, which this tailrace does not know: upgrade it",
                must_fill.join(", ")
            );
            catalogs.iter().try_for_each(|catalog| {
                renewed.went(catalog, Err(anyhow::anyhow!(why.clone()))).map(|_| ())
            })
        }
        (true, _) => claim(connection, &catalogs, settings, clock.database, renewed).await,
    }
}

/// Keeps the rules of the window in SQL of the catalogs in which they are old. Nothing more is done in those
/// where that fails.
async fn keep_rules(
    connection: &mut Session,
    enforced: &[Enforced],
    catalogs: &mut Vec<CatalogIntake>,
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let old = with_old_rules(connection, enforced).await?;
    for catalog in std::mem::take(catalogs) {
        let catalog_id = catalog.catalog.catalog_id;
        let kept = match old.contains(&catalog_id) {
            true => keep_window_rules(connection, catalog_id).await,
            false => Ok(()),
        };
        if renewed.went(&catalog, kept.map_err(anyhow::Error::from))? {
            catalogs.push(catalog);
        }
    }
    Ok(())
}

/// Claims and renews, and releases what is claimed of other tables: all of it, where nothing is to be claimed.
async fn claim(
    connection: &mut Session,
    catalogs: &[CatalogIntake],
    settings: &Settings,
    now: UtcInstant,
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let claimed = match claimed_tables(connection).await.map_err(anyhow::Error::from) {
        Ok(claimed) => claimed,
        Err(error) if is_connection_error(&error) => return Err(error),
        Err(error) => {
            let said = describe(&error);
            return catalogs.iter().try_for_each(|catalog| {
                renewed.went(catalog, Err(anyhow::anyhow!(said.clone()))).map(|_| ())
            });
        }
    };
    let mut done = Vec::new();
    for catalog in catalogs {
        let catalog_id = catalog.catalog.catalog_id;
        let of_catalog = claimed.range((catalog_id, i64::MIN)..=(catalog_id, i64::MAX));
        let mut released: BTreeSet<i64> = of_catalog.map(|(_, table_id)| *table_id).collect();
        if settings.claims {
            let tables = catalog.claims.union(&released).copied().collect();
            let claimed = renew_tables(connection, catalog, tables, settings, now, renewed).await;
            match claimed {
                Ok(claimed) => released.retain(|table_id| !claimed.contains(table_id)),
                Err(error) => {
                    renewed.went(catalog, Err(error))?;
                    continue;
                }
            }
        }
        done.push((catalog, released));
    }
    let_go(connection, &done, renewed).await
}

/// Renews the claims of some tables of a catalog; those of which claims may stay: they are still governed, or
/// nobody could tell.
async fn renew_tables(
    connection: &mut Session,
    intake: &CatalogIntake,
    tables: Vec<i64>,
    settings: &Settings,
    now: UtcInstant,
    renewed: &mut Renewed,
) -> anyhow::Result<BTreeSet<i64>> {
    let mut claimed = BTreeSet::new();
    if tables.is_empty() {
        return Ok(claimed);
    }
    for table in live_tables_among(connection, &intake.catalog, true, Some(&tables)).await? {
        let done = async {
            match in_force(connection, &table, settings).await? {
                Some(policy) if table.is_parquet => {
                    claimed.insert(table.identity.table_id);
                    renew_table(connection, &table, &policy, settings, now).await
                }
                _ => Ok(Some((0, 0))),
            }
        };
        match done.await {
            Ok(Some((files, rows))) => {
                renewed.tables += usize::from(files > 0);
                renewed.files += files;
                renewed.rows += rows;
            }
            Ok(None) => log_unread(&table),
            Err(error) if is_connection_error(&error) => return Err(error),
            Err(error) => {
                claimed.insert(table.identity.table_id);
                renewed.failed.push(Failed::of_table(&table.identity, &error));
            }
        }
    }
    Ok(claimed)
}

/// Releases tables of all catalogs at once; where that fails, of one after another, for it to be seen in which
/// it does. Sent also where nothing is to be released: a right that is missing is told before it is needed.
async fn let_go(
    connection: &mut Session,
    released: &[(&CatalogIntake, BTreeSet<i64>)],
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let keys = |(catalog, tables): &(&CatalogIntake, BTreeSet<i64>)| -> Vec<(i64, i64)> {
        tables.iter().map(|table_id| (catalog.catalog.catalog_id, *table_id)).collect()
    };
    let all: Vec<(i64, i64)> = released.iter().flat_map(keys).collect();
    match release_tables(connection, &all).await.map_err(anyhow::Error::from) {
        Ok(()) => Ok(()),
        Err(error) if is_connection_error(&error) => Err(error),
        Err(_) => {
            for one in released {
                let done = release_tables(connection, &keys(one)).await;
                renewed.went(one.0, done.map_err(anyhow::Error::from))?;
            }
            Ok(())
        }
    }
}
