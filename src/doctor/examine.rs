//! Reads everything that the findings need, family by family. Nothing is decided here.

use std::time::{Duration, Instant};

use super::server;
use super::table_facts::{self, TableFacts};
use super::ungoverned::{self, Reading};
use super::{
    Finding, Level, Report, clocks, consumers, creators, guards, indexes, passes, policies, queue,
    restores, retention, rights, specs, waiting,
};
use crate::catalog::checks::drops::noted_undone;
use crate::catalog::checks::replaced::{left_policies, newest};
use crate::catalog::clock;
use crate::catalog::connect::{Access, Database, close};
use crate::catalog::errors::{Failure, describe, is_connection_error};
use crate::catalog::inventory::consumers::slowest;
use crate::catalog::inventory::creators::creators as creators_of;
use crate::catalog::inventory::{maintenance_state, objects, owners, privileges};
use crate::catalog::removal_queue::Stuck;
use crate::catalog::restore::restored;
use crate::catalog::server::{Misfit, server_tables};
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, LiveTable, catalogs, live_tables};
use crate::catalog::{compaction_sample, removal_queue};
use crate::guards::{hold, pause};
use crate::installation::{self, Unfit};
use crate::rules::clock_guard;
use crate::rules::instant::UtcInstant;
use crate::sweep::Settings;
use crate::sweep::clocks::{outlook, read_clock};

/// After so long, tables without a policy are reported from the server's sample alone.
const READ_TABLES_FOR: Duration = Duration::from_secs(20);

/// What is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Doctor<'a> {
    pub database: &'a Database,
    /// What the daemon would do.
    pub settings: &'a Settings,
    /// One catalog; all where none is named.
    pub catalog: Option<&'a str>,
}

/// Looks at everything. Takes no lock, and its session cannot write; a statement ends after 10 s.
///
/// # Errors
/// The database is away, there is no hoglake catalog in the schema, or no catalog of that name; or the
/// server is one that nothing here can be asked of ([`Unfit::Server`]).
pub async fn examine(doctor: &Doctor<'_>) -> anyhow::Result<Report> {
    let mut connection = doctor.database.unchecked(Access::ReadOnly).await?;
    let examined = examine_in(&mut connection, doctor).await;
    close(connection).await;
    examined
}

async fn examine_in(connection: &mut Session, doctor: &Doctor<'_>) -> anyhow::Result<Report> {
    connection.statements_take(Duration::from_secs(10));
    let bounds = "set statement_timeout = '10s'; set lock_timeout = '1s'";
    sqlx::raw_sql(bounds).execute(&mut *connection).await?;
    let clock = read_clock(connection, doctor.settings).await?;
    let now = clock.database;
    let schema = &doctor.database.schema;
    let found = objects(connection, schema).await?;
    anyhow::ensure!(
        found.tables.contains_key("hog_catalog"),
        "there is no hoglake catalog (table hog_catalog) in schema {schema:?} of this database: \
         check database.url and database.schema"
    );
    let tables = server_tables(connection).await?;
    match tables.fits() {
        // All can be read, and is reported: why nothing is dropped, among the rest.
        Ok(()) | Err(Misfit::MustFill(_)) => {}
        Err(misfit) => return Err(Unfit::Server(misfit).into()),
    }
    let (findings, began) = (server::findings(&found, &tables), Instant::now());
    let mut examination = Examination { doctor, clock, now, findings, began };
    examination.findings.extend(indexes::findings(&found, schema));
    let held = privileges::privileges(connection, schema).await?;
    examination.findings.extend(rights::findings(&held, schema));
    let may_create = creators_of(connection, schema).await?;
    let foreign = owners::foreign(connection, schema).await?;
    examination.findings.extend(creators::findings(&may_create, &foreign, schema));
    let checked = match installation::check_ours(connection, schema).await {
        Err(error) if is_connection_error(&error) => return Err(error),
        Err(error) => Err(describe(&error)),
        Ok(()) => Ok(installation::version()),
    };
    let has_ours = checked.is_ok();
    examination.findings.push(passes::of_schema(checked));
    examination.findings.push(clocks::of_host(&clock, doctor.settings.max_clock_skew));
    examination.catalogs(connection, has_ours).await?;
    let mut findings = examination.findings;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.level));
    Ok(Report { as_of: now, findings })
}

struct Examination<'a> {
    doctor: &'a Doctor<'a>,
    clock: clock_guard::Reading,
    now: UtcInstant,
    findings: Vec<Finding>,
    began: Instant,
}

impl Examination<'_> {
    async fn catalogs(&mut self, connection: &mut Session, has_ours: bool) -> anyhow::Result<()> {
        let read = catalogs(connection).await;
        let Some(mut found) = self.looked("catalogs", None, read)? else { return Ok(()) };
        if let Some(name) = self.doctor.catalog {
            found.retain(|catalog| catalog.name == name);
            anyhow::ensure!(!found.is_empty(), "there is no catalog {name:?}");
        }
        if has_ours {
            self.guards(connection).await?;
        }
        for catalog in &found {
            let trusted_head = match has_ours {
                true => self.memory(connection, catalog).await?,
                false => None,
            };
            self.maintenance_state(connection, catalog, trusted_head).await?;
            if has_ours {
                self.restores(connection, catalog).await?;
                self.tables(connection, catalog).await?;
            }
        }
        Ok(())
    }

    /// Pauses and holds.
    async fn guards(&mut self, connection: &mut Session) -> anyhow::Result<()> {
        let pauses = pause::all(connection).await;
        let Some(pauses) = self.looked("guards", None, pauses)? else { return Ok(()) };
        let holds = hold::all(connection).await;
        let Some(holds) = self.looked("guards", None, holds)? else { return Ok(()) };
        self.findings.extend(guards::findings(&pauses, &holds, self.doctor.catalog, self.now));
        Ok(())
    }

    /// What was read, or a finding that it could not be.
    fn looked<T>(
        &mut self,
        check: &'static str,
        catalog: Option<&Catalog>,
        read: sqlx::Result<T>,
    ) -> anyhow::Result<Option<T>> {
        let error = match read {
            Ok(read) => return Ok(Some(read)),
            Err(error) => error,
        };
        let failure = Failure::of(&error);
        let error = anyhow::Error::from(error);
        if failure == Failure::ConnectionLost {
            return Err(error);
        }
        let finding = Finding::new(
            Level::Warning,
            check,
            format!("this could not be looked at: {}", describe(&error)),
            "it was not checked",
            match failure {
                Failure::NotPermitted => "give the role the right: see the findings about rights",
                Failure::StatementCancelled => {
                    "see the findings about indexes, and try again later"
                }
                _ => "see what the database says",
            },
        );
        self.findings.push(match catalog {
            Some(catalog) => finding.of_catalog(&catalog.name),
            None => finding,
        });
        Ok(None)
    }

    /// What passes remember of the catalog's clock; up to which snapshot a person has accepted it.
    async fn memory(
        &mut self,
        connection: &mut Session,
        catalog: &Catalog,
    ) -> anyhow::Result<Option<i64>> {
        let max_skew = self.doctor.settings.max_clock_skew;
        let seen = outlook(connection, catalog.catalog_id, &self.clock, max_skew).await;
        let Some(seen) = self.looked("clocks", Some(catalog), seen)? else { return Ok(None) };
        self.findings.extend(clocks::of_memory(&catalog.name, &seen));
        Ok(seen.known.trusted_head)
    }

    /// Whether the catalog was restored, and what that took back.
    async fn restores(
        &mut self,
        connection: &mut Session,
        catalog: &Catalog,
    ) -> anyhow::Result<()> {
        let compared = restored(connection, catalog.catalog_id).await;
        let Some(compared) = self.looked("restores", Some(catalog), compared)? else {
            return Ok(());
        };
        let undone = noted_undone(connection, catalog.catalog_id, None).await;
        if let Some(undone) = self.looked("restores", Some(catalog), undone)? {
            self.findings.extend(restores::findings(&catalog.name, compared.as_ref(), undone));
        }
        Ok(())
    }

    /// Clocks, retention, the floor, the queue and the snapshots of a catalog.
    async fn maintenance_state(
        &mut self,
        connection: &mut Session,
        catalog: &Catalog,
        trusted_head: Option<i64>,
    ) -> anyhow::Result<()> {
        let (catalog_id, name) = (catalog.catalog_id, catalog.name.as_str());
        let behind = clock::behind_newest_snapshot(connection, catalog_id, trusted_head).await;
        if let Some(behind) = self.looked("clocks", Some(catalog), behind)? {
            self.findings.push(clocks::of_snapshots(name, behind.as_ref()));
        }
        let kept = maintenance_state::retention(connection, catalog_id).await;
        if let Some(Some(kept)) = self.looked("retention", Some(catalog), kept)? {
            let schema = &self.doctor.database.schema;
            self.findings.push(retention::of_seconds(name, schema, &kept));
            let looks = self.doctor.settings.specs_looked_at_every;
            self.findings.extend(specs::of_retention(name, &kept, looks));
            let slowest = slowest(connection, catalog_id).await;
            if let Some(slowest) = self.looked("floor", Some(catalog), slowest)? {
                self.findings.extend(retention::of_floor(name, &kept, slowest.as_ref()));
            }
        }
        let undrained = removal_queue::undrained(connection, catalog_id, queue::COUNTED_TO).await;
        if let Some(undrained) = self.looked("removal_queue", Some(catalog), undrained)? {
            let drained = maintenance_state::drained_of_late(connection, catalog_id).await;
            if let Some(drained) = self.looked("removal_queue", Some(catalog), drained)? {
                let (stuck, by_path) = self.stuck(connection, catalog).await?;
                let number = stuck.len() as i64;
                self.findings.push(queue::of_queue(name, undrained, number, &drained));
                self.findings.extend(queue::of_stuck(name, &stuck, by_path));
            }
        }
        let churn = maintenance_state::churn(connection, catalog_id, crate::sweep::AUTHOR).await;
        if let Some(churn) = self.looked("snapshots", Some(catalog), churn)? {
            self.findings.push(queue::of_snapshots(name, &churn));
        }
        Ok(())
    }

    /// What is stuck in the catalog's queue, and whether the rows were looked for that name it.
    async fn stuck(
        &mut self,
        connection: &mut Session,
        catalog: &Catalog,
    ) -> anyhow::Result<(Vec<Stuck>, bool)> {
        let by_path = removal_queue::has_path_indexes(connection).await;
        let by_path = self.looked("removal_queue", Some(catalog), by_path)?.unwrap_or_default();
        let stuck = removal_queue::stuck(connection, catalog.catalog_id, by_path).await;
        let stuck = self.looked("removal_queue", Some(catalog), stuck)?;
        Ok((stuck.unwrap_or_default(), by_path))
    }

    /// The policies of a catalog's tables, and the tables without one.
    async fn tables(&mut self, connection: &mut Session, catalog: &Catalog) -> anyhow::Result<()> {
        let settings = self.doctor.settings;
        let live = live_tables(connection, catalog, false).await;
        let Some(live) = self.looked("policies", Some(catalog), live)? else { return Ok(()) };
        let mut under_policy: Vec<TableFacts> = Vec::new();
        let mut without: Vec<LiveTable> = Vec::new();
        for table in live {
            let read = table_facts::read(connection, table.clone(), settings, self.now).await;
            match self.looked("policies", Some(catalog), read)? {
                Some(Some(facts)) => under_policy.push(facts),
                Some(None) if table.is_parquet => without.push(table),
                Some(None) | None => {}
            }
        }
        let (name, every) = (catalog.name.as_str(), settings.full_pass_every);
        let left = left_policies(connection, &[catalog.catalog_id]).await.map(newest);
        let left = self.looked("policies", Some(catalog), left)?.unwrap_or_default();
        if let Some(now) = self.now.to_chrono() {
            self.findings.extend(policies::findings(name, &under_policy, &left, now));
            self.findings.push(passes::findings(name, &under_policy, every, now));
        }
        self.findings.extend(waiting::findings(name, &under_policy, self.now));
        self.findings.extend(specs::findings(name, &under_policy));
        self.findings.extend(consumers::findings(name, &under_policy));
        let tables = self.ungoverned(connection, catalog, &without).await?;
        self.findings.extend(ungoverned::findings(name, &tables));
        Ok(())
    }

    async fn ungoverned(
        &mut self,
        connection: &mut Session,
        catalog: &Catalog,
        tables: &[LiveTable],
    ) -> anyhow::Result<Vec<ungoverned::Ungoverned>> {
        let published = match tables {
            [] => None,
            _ => {
                let published = compaction_sample::published(connection, catalog.catalog_id).await;
                self.looked("ungoverned", Some(catalog), published)?.flatten()
            }
        };
        let mut found = Vec::new();
        for table in tables {
            let most_files = match self.began.elapsed() < READ_TABLES_FOR {
                true => self.doctor.settings.scan_limits.small_table,
                false => 0,
            };
            let reading = Reading { most_files, sample: published, now: self.now };
            let read = ungoverned::read(connection, table, reading).await;
            found.extend(self.looked("ungoverned", Some(catalog), read)?.flatten());
        }
        Ok(found)
    }
}
