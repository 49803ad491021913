//! Tests of clocks that cannot be trusted: what passes, renewals, plans, doctor and verify do, and
//! how a person accepts a clock. The tests give the times of the clocks, so no test waits or sets a
//! clock.

mod accept;
mod apart;
mod memory;
mod nothing;
mod others;
mod told;

use std::collections::BTreeMap;

use anyhow::Result;
use tailrace::catalog::clock_memory::{Epoch, remembered};
use tailrace::catalog::connect::close;
use tailrace::rules::clock_guard::{Boot, Reading};
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::report::{Outcome, PassReport};
use tailrace_kit::lake::{Catalog, Dump, Field, NewFile, Table};
use uuid::Uuid;

use crate::support::TestDatabase;
use crate::support::governed::{live_ids, outcomes};
use crate::support::program::{days_ago, settings};

pub const HOUR: i64 = 3_600;
pub const DAY: i64 = 24 * HOUR;
pub const YEAR: i64 = 365 * DAY;

/// This process, and another one.
pub const THIS: Uuid = Uuid::from_u128(1);
pub const OTHER: Uuid = Uuid::from_u128(2);

/// A lake with the table `events.raw` by day, which keeps 7 days.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
    /// When it was made, by all clocks.
    pub start: UtcInstant,
}

impl Scene {
    pub async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        database.govern(&table, "day(at)", "7d").await?;
        // Whole seconds: Postgres has no more than microseconds, and boundaries are asserted.
        let now = UtcInstant::from(chrono::Utc::now());
        let start = now.plus_nanos(-now.nanos().rem_euclid(1_000_000_000));
        Ok(Scene { database, catalog, table, start })
    }

    /// Appends a file that has expired, one of the day before yesterday, and one of three years from
    /// now.
    pub async fn files(&self) -> Result<Vec<i64>> {
        let days = ["18000".to_owned(), days_ago(2), days_ago(-3 * 365)];
        let files = days.map(|day| NewFile::of([day])).to_vec();
        Ok(self.table.append(files).await?.file_ids)
    }

    pub fn after(&self, seconds: i64) -> UtcInstant {
        self.start.plus_nanos(i128::from(seconds) * 1_000_000_000)
    }

    /// What the clocks say: so many seconds after the start the database's, this host's, and
    /// CLOCK_BOOTTIME of a process.
    pub fn clock(&self, database: i64, host: i64, boot: Option<(i64, Uuid)>) -> Reading {
        let (database, host) = (self.after(database), self.after(host));
        let boot =
            boot.map(|(seconds, process)| Boot { millis: 9_000_000 + seconds * 1_000, process });
        Reading { database, host, boot }
    }

    /// All clocks of this process, so many seconds after the start.
    pub fn agreed(&self, seconds: i64) -> Reading {
        self.clock(seconds, seconds, Some((seconds, THIS)))
    }

    /// One pass by these clocks.
    pub async fn pass(&self, clock: Reading) -> Result<PassReport> {
        self.database.sweep_with(&by(clock)).await
    }

    /// The outcome of the one table of a lake in a pass by these clocks.
    pub async fn outcome(&self, clock: Reading) -> Result<Outcome> {
        let report = self.pass(clock).await?;
        let [("raw", outcome)] = outcomes(&report)[..] else { panic!("{report:?}") };
        Ok(outcome)
    }

    pub async fn live(&self) -> Result<Vec<i64>> {
        live_ids(&self.table).await
    }

    /// The present epoch's number, and how many seconds after the start it began.
    pub async fn epoch(&self) -> Result<(i64, Option<i64>)> {
        let mut session = self.database.tailrace().session().await?;
        let memory = remembered(&mut session, self.catalog.catalog_id).await?;
        let Epoch { number, began } = memory.epoch;
        close(session).await;
        let seconds = |began: UtcInstant| (began.nanos() - self.start.nanos()) / 1_000_000_000;
        Ok((number, began.map(seconds).and_then(|seconds| i64::try_from(seconds).ok())))
    }

    /// Every row of every table of ours and of the server's.
    pub async fn everything(&self) -> Result<Dump> {
        everything(&self.database).await
    }

    /// The memory of the catalog's clock, as JSON.
    pub async fn remembered(&self) -> Result<serde_json::Value> {
        let rows = self.database.rows("SELECT * FROM tailrace.clock_memory").await?;
        let [row] = rows.as_slice() else { panic!("{rows:?}") };
        Ok(serde_json::from_str(row)?)
    }
}

/// The settings of a pass by these clocks.
pub fn by(clock: Reading) -> Settings {
    Settings { clock: Some(clock), ..settings() }
}

/// Every row of every table of ours and of the server's.
pub async fn everything(database: &TestDatabase) -> Result<Dump> {
    let mut all = database.lake.dump().await?;
    let ours = "SELECT relname FROM pg_class WHERE relnamespace = 'tailrace'::regnamespace
                   AND relkind = 'r' ORDER BY relname";
    for table in database.rows(ours).await? {
        let table: BTreeMap<String, String> = serde_json::from_str(&table)?;
        let table = format!("tailrace.{}", table["relname"]);
        let mut rows = database.rows(&format!("SELECT * FROM {table}")).await?;
        rows.sort_unstable();
        all.insert(table, rows);
    }
    Ok(all)
}
