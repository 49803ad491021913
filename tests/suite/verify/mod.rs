//! Tests of `verify`: it finds exactly the violations that a test makes, and none in a healthy
//! catalog.

mod budget;
mod drops;
mod overdue;
mod policies;
mod servers;
mod soak;
mod taken_over;
mod wire;

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::catalog::connect::close;
use tailrace::config::{Config, LoadOptions};
use tailrace::explicit::drop_partitions;
use tailrace::sweep::Scope;
use tailrace::sweep::report::Outcome;
use tailrace::verify::report::{Check, CheckReport, Report, Status};
use tailrace::verify::{Settings, verify};
use tailrace_kit::lake::{Catalog, Field, Table};
use tailrace_kit::simulated_loops::Expiry;
use uuid::Uuid;

use crate::drop::races::file;
use crate::explicit::{drop_of, item, patient, raw};
use crate::support::TestDatabase;
use crate::support::program::days_ago;

/// A lake with the table `events.raw` by day, which keeps 7 days.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
    /// Files of 0, 3, 9, 10 and 10 days; the second and the third have a vector. None expired within
    /// the last day: the grace of `verify` counts from the midnight at which a day expires.
    pub files: Vec<i64>,
}

impl Scene {
    /// Before any pass. The policy and the files are new.
    pub async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let files = table.append([0, 3, 9, 10, 10].map(file).to_vec()).await?.file_ids;
        table.register_vector(files[1], 1, None).await?;
        table.register_vector(files[2], 2, None).await?;
        database.govern(&table, "day(at)", "7d").await?;
        Ok(Scene { database, catalog, table, files })
    }

    /// After a pass that dropped the last three files; with its snapshot.
    pub async fn swept() -> Result<(Self, i64)> {
        let scene = Self::new().await?;
        let report = scene.database.sweep_one().await?;
        assert_eq!(report.outcome, Outcome::Dropped);
        let [snapshot] = report.snapshots.as_slice() else { panic!("{report:?}") };
        assert_eq!((snapshot.files_ended, snapshot.delete_files_ended), (3, 1));
        Ok((scene, snapshot.snapshot_id))
    }

    /// Makes all that there is older than any grace.
    pub async fn age(&self) -> Result<()> {
        let day_ago = chrono::Utc::now() - chrono::TimeDelta::days(1);
        self.catalog.backdate_through(self.catalog.head().await?, day_ago).await?;
        self.database
            .sql("UPDATE tailrace.policy SET updated_at = clock_timestamp() - interval '1 day'")
            .await
    }

    /// Drops the day of the second file as a client does, and returns the key.
    pub async fn drop_explicitly(&self) -> Result<Uuid> {
        let body = drop_of(vec![item([Some(&days_ago(3))])]);
        let mut session = self.database.tailrace().session().await?;
        let answer = drop_partitions(&mut session, &raw(), &body, "me", &patient()).await?;
        close(session).await;
        assert_eq!((answer.files_ended, answer.committed), (1, true));
        Ok(body.idempotency_key)
    }

    /// The report of everything.
    pub async fn report(&self) -> Result<Report> {
        self.report_with(&settings()).await
    }

    /// With these settings.
    pub async fn report_with(&self, settings: &Settings) -> Result<Report> {
        verify(&self.database.tailrace(), settings, &Scope::default()).await
    }

    /// Runs everything, and makes sure that these checks are violated and no others.
    pub async fn violated(&self, expected: &[Check]) -> Result<Report> {
        let report = self.report().await?;
        let violated: Vec<_> = of_status(&report, Status::Violated);
        assert_eq!(violated, expected, "{report:#?}");
        let status = if expected.is_empty() { Status::Ok } else { Status::Violated };
        assert_eq!(report.status, status);
        Ok(report)
    }
}

/// The settings that the configuration gives where nobody sets anything, with time for a machine
/// that has much else to do.
pub fn settings() -> Settings {
    let config = Config::load(&LoadOptions::default()).expect("the built-in configuration");
    let settings = Settings::from_config(&config);
    assert_eq!(settings.grace, Duration::from_secs(20 * 60), "two passes' worth");
    assert_eq!(settings.budget, Duration::from_secs(10));
    Settings { budget: Duration::from_secs(60), ..settings }
}

/// The checks that came out so, in the report's order.
pub fn of_status(report: &Report, status: Status) -> Vec<Check> {
    let checks = report.catalogs.iter().flat_map(|catalog| &catalog.checks);
    checks.filter(|check| check.status == status).map(|check| check.check).collect()
}

/// The report of a check.
pub fn of(report: &Report, check: Check) -> Result<&CheckReport> {
    let checks = report.catalogs.iter().flat_map(|catalog| &catalog.checks);
    checks.into_iter().find(|found| found.check == check).context("the check was made")
}

/// How many a check found; of each sample the snapshot, and what is said of it.
pub type Problems<'a> = (i64, Vec<(Option<i64>, &'a str)>);

/// What a check found.
pub fn problems(report: &Report, check: Check) -> Result<Problems<'_>> {
    let found = of(report, check)?;
    let sample = found.samples.iter().map(|s| (s.snapshot_id, s.problem.as_str())).collect();
    Ok((found.count, sample))
}

#[tokio::test]
async fn a_healthy_catalog_gives_nothing_at_any_stage_of_a_drop() -> Result<()> {
    let scene = Scene::new().await?;
    scene.violated(&[]).await?;
    scene.database.sweep_one().await?;
    scene.drop_explicitly().await?;
    scene.age().await?;
    let report = scene.violated(&[]).await?;
    assert_eq!(of_status(&report, Status::Ok), Check::ALL, "{report:#?}");
    let [catalog] = report.catalogs.as_slice() else { panic!("{report:?}") };
    assert_eq!(catalog.snapshot_id, scene.catalog.head().await?);

    scene.database.sql("UPDATE hog_catalog SET snapshot_retention_seconds = 60").await?;
    let expiry = Expiry::new(&scene.catalog);
    expiry.advance_floor(None).await?;
    assert_eq!(scene.catalog.floor().await?, scene.catalog.head().await?);
    scene.violated(&[]).await?;
    expiry.purge().await?;
    scene.violated(&[]).await?;
    Ok(())
}
