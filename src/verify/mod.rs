//! Whether the invariants of retention hold, read from the database without writing.
//!
//! Each catalog is looked at in one transaction, so that all of its checks see one moment. What could not be looked
//! at is `incomplete`, never `ok`: a budget that ran out, a right that the role lacks, an index that somebody removed.
//! A check that an older server cannot support, because it lacks an index or a table, is `unsupported`: it is listed
//! and is no failure, because only an upgrade of the server can change it.

mod density;
mod history;
mod leases;
mod leftovers;
mod overdue;
mod policies;
mod probe;
mod receipts;
pub mod report;
mod settings;
mod undated;
mod vectors;
mod waiting;

use std::collections::BTreeMap;
use std::time::Duration;

use crate::catalog::checks::{CatalogState, catalog_state};
use crate::catalog::connect::{Access, Database};
use crate::catalog::restore::{Restored, restored};
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, LiveTable, TableIdentity, catalogs, live_tables};
use crate::policy::governed::Governed;
use crate::policy::grace::PolicyLimits;
use crate::rules::clock_guard::Reading;
use crate::rules::instant::UtcInstant;
use crate::sweep::Scope;
use crate::sweep::clocks::{outlook, read_clock};
use probe::{Probe, Stop};
use report::Findings;
use report::{CatalogReport, Check, CheckReport, Report};

pub use settings::Settings;

/// What the checks of one catalog share.
struct Scene<'a> {
    catalog: &'a Catalog,
    state: CatalogState,
    now: UtcInstant,
    clock: Reading,
    settings: &'a Settings,
    /// The one table that is looked at; all where there is none.
    only: Option<i64>,
    /// The live tables, by id.
    names: BTreeMap<i64, String>,
    /// The tables that have a policy or ask for one, or why they could not be read.
    governed: Result<Vec<Governed>, String>,
    /// Whether the catalog was restored and no pass has noted that, or why that is not known.
    restored: Result<Option<Restored>, String>,
}

impl Scene<'_> {
    fn has(&self, table_id: i64) -> bool {
        self.only.is_none_or(|only| only == table_id)
    }

    /// The table's name, or what can be said of one that is gone.
    fn name(&self, table_id: i64) -> String {
        self.names.get(&table_id).cloned().unwrap_or_else(|| format!("table {table_id}"))
    }

    /// Nothing, where passes act by the clock: by one that they refuse nothing is late. For checks that
    /// ask how old something is.
    async fn trusts_clock(&self, probe: &mut Probe<'_>) -> Result<(), Stop> {
        let max_skew = self.settings.sweep.max_clock_skew;
        let catalog_id = self.catalog.catalog_id;
        let seen = outlook(probe.turn().await?, catalog_id, &self.clock, max_skew).await?;
        let here = seen.refusal.map(|refusal| refusal.to_string());
        match here.or(seen.known.refusal) {
            None => Ok(()),
            Some(why) => Err(Stop::Unknown(format!(
                "passes refuse the database's clock, so what is late is unknown: {why}"
            ))),
        }
    }

    fn restored(&self) -> Result<Option<&Restored>, Stop> {
        self.restored.as_ref().map(Option::as_ref).map_err(|why| Stop::Unknown(why.clone()))
    }

    fn governed(&self) -> Result<impl Iterator<Item = &Governed>, Stop> {
        let governed = self.governed.as_ref().map_err(|why| Stop::Unknown(why.clone()))?;
        Ok(governed.iter().filter(|table| self.has(table.live.identity.table_id)))
    }
}

/// Verifies every catalog in scope, in a session that cannot write.
///
/// # Errors
/// The database is away, or the scope names what is not there.
pub async fn verify(
    database: &Database,
    settings: &Settings,
    scope: &Scope,
) -> anyhow::Result<Report> {
    database
        .in_session(Access::ReadOnly, async |session| verify_in(session, settings, scope).await)
        .await
}

/// As [`verify`], in a session that is there already. It must not be in a transaction.
///
/// # Errors
/// As those of [`verify`].
pub async fn verify_in(
    connection: &mut Session,
    settings: &Settings,
    scope: &Scope,
) -> anyhow::Result<Report> {
    let mut reports = Vec::new();
    let clock = read_clock(connection, &settings.sweep).await?;
    for catalog in catalogs(connection).await? {
        if scope.has_catalog(&catalog.name) {
            reports.extend(verify_catalog(connection, &catalog, clock, settings, scope).await?);
        }
    }
    anyhow::ensure!(!reports.is_empty() || *scope == Scope::default(), NOT_THERE);
    Ok(Report::of(reports))
}

/// What is said of a scope that names nothing.
const NOT_THERE: &str = "there is no such catalog, or no live table of that name in it";

/// Statements lead from keys to rows by an index, whatever the planner believes of the tables, as in each of our
/// sessions ([`Database::unchecked`]).
const BEGIN: &str = "begin isolation level repeatable read read only; \
    set local enable_seqscan = off; set local enable_bitmapscan = off; \
    set local enable_hashjoin = off; set local enable_mergejoin = off; \
    set local lock_timeout = '1s'";

/// `None` where the catalog is gone, or has no table of the scope.
///
/// One REPEATABLE READ transaction that cannot write and takes no lock but those of reading: under load, what
/// is committed meanwhile is neither half seen nor taken for a violation. Each check has a savepoint of its own
/// in it, and a budget: one whose statement the server cancels goes back to its savepoint, and the next one goes
/// on at the same moment. That is what sessions of an exported snapshot would give too, at the price of a session
/// for each check and of one that must sit idle in its transaction, which the server ends after 30 s. The price of
/// ours is one old snapshot, kept from vacuum for at most as many budgets as there are checks.
async fn verify_catalog(
    connection: &mut Session,
    catalog: &Catalog,
    clock: Reading,
    settings: &Settings,
    scope: &Scope,
) -> anyhow::Result<Option<CatalogReport>> {
    let mut transaction = connection.begin_with(BEGIN).await?;
    let report = in_transaction(&mut transaction, catalog, clock, settings, scope).await?;
    // Nothing was written.
    transaction.rollback().await?;
    Ok(report)
}

async fn in_transaction(
    connection: &mut Session,
    catalog: &Catalog,
    clock: Reading,
    settings: &Settings,
    scope: &Scope,
) -> anyhow::Result<Option<CatalogReport>> {
    let Some(state) = catalog_state(connection, catalog.catalog_id).await? else {
        return Ok(None);
    };
    let live = live_tables(connection, catalog, false).await?;
    let name = |table: &LiveTable| {
        let TableIdentity { table_id, namespace, table, .. } = &table.identity;
        (*table_id, format!("{namespace}.{table}"))
    };
    let names: BTreeMap<i64, String> = live.iter().map(name).collect();
    let only = match &scope.table {
        None => None,
        Some(_) => {
            let found = live
                .iter()
                .find(|live| scope.has_table(&live.identity.namespace, &live.identity.table));
            let Some(found) = found else { return Ok(None) };
            Some(found.identity.table_id)
        }
    };
    let mut scene = Scene {
        catalog,
        state,
        now: state.now.into(),
        clock,
        settings,
        only,
        names,
        governed: Ok(Vec::new()),
        restored: Ok(None),
    };
    scene.restored = read_restored(connection, &scene).await?;
    scene.governed = read_governed(connection, &scene).await?;
    let mut checks = Vec::new();
    for check in Check::ALL {
        let mut findings = Findings::default();
        let stopped = checked(connection, &scene, check, &mut findings).await?;
        checks.push(CheckReport::of(check, findings, stopped));
    }
    Ok(Some(CatalogReport {
        catalog: catalog.name.clone(),
        as_of: scene.now,
        snapshot_id: state.head,
        checks,
    }))
}

/// Reads the governed tables as a check does: a failure is told by each check that needs them.
async fn read_governed(
    connection: &mut Session,
    scene: &Scene<'_>,
) -> sqlx::Result<Result<Vec<Governed>, String>> {
    let mut probe = Probe::begin(connection, scene.settings.budget).await?;
    let mut tables = Vec::new();
    let read = governed_tables(&mut probe, scene).await;
    let stopped = probe.end(read.map(|read| tables = read)).await?;
    Ok(stopped.map_or(Ok(tables), Err))
}

/// Compares what is noted of the catalog with it, as a check does.
async fn read_restored(
    connection: &mut Session,
    scene: &Scene<'_>,
) -> sqlx::Result<Result<Option<Restored>, String>> {
    let mut probe = Probe::begin(connection, scene.settings.budget).await?;
    let mut found = None;
    let compared = async {
        found = restored(probe.turn().await?, scene.catalog.catalog_id).await?;
        Ok::<(), Stop>(())
    };
    let compared = compared.await;
    let stopped = probe.end(compared).await?;
    Ok(stopped.map_or(Ok(found), Err))
}

/// The tables that ask for retention, by name.
async fn governed_tables(probe: &mut Probe<'_>, scene: &Scene<'_>) -> Result<Vec<Governed>, Stop> {
    let mut tables = Vec::new();
    for live in live_tables(probe.turn().await?, scene.catalog, true).await? {
        if scene.has(live.identity.table_id) {
            // What no pass has read for so long is overdue, not waiting for its grace.
            let limits =
                PolicyLimits { grace: Duration::ZERO, ..scene.settings.sweep.policy_limits };
            tables.extend(Governed::read(probe.turn().await?, live, limits, scene.now).await?);
        }
    }
    Ok(tables)
}

/// Runs one check; why it could not come to its end, if it did not.
///
/// # Errors
/// Only where the session is lost: then no other check can be run either.
async fn checked(
    connection: &mut Session,
    scene: &Scene<'_>,
    check: Check,
    findings: &mut Findings,
) -> sqlx::Result<Option<String>> {
    let mut probe = Probe::begin(connection, scene.settings.budget).await?;
    let ran = run(&mut probe, scene, check, findings).await;
    probe.end(ran).await
}

async fn run(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    check: Check,
    findings: &mut Findings,
) -> Result<(), Stop> {
    match check {
        Check::OverdueFiles => overdue::check(probe, scene, findings).await,
        Check::VectorsOfDroppedFiles => vectors::check(probe, scene, findings).await,
        Check::DropHistory => history::check(probe, scene, findings).await,
        Check::DroppedPartitions => leftovers::check(probe, scene, findings).await,
        Check::SnapshotIds => density::check(probe, scene, findings).await,
        Check::Receipts => receipts::check(probe, scene, findings).await,
        Check::PolicyFields => policies::fields(scene, findings),
        Check::UndatedFiles => undated::check(probe, scene, findings).await,
        Check::WaitingPartitions => waiting::check(probe, scene, findings).await,
        Check::Leases => leases::check(probe, scene, findings).await,
        Check::ReplacedTables => policies::replaced(probe, scene, findings).await,
    }
}
