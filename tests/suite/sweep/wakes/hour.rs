//! Runs the scheduler with real passes for an hour of virtual time, in which a row is due that no
//! pass deals with. The number of passes must stay small.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use tailrace::catalog::connect::{Database, close};
use tailrace::catalog::wakes::first_due;
use tailrace::config::{Config, LoadOptions};
use tailrace::health::Status;
use tailrace::rules::clock_guard::Reading;
use tailrace::rules::instant::UtcInstant;
use tailrace::scheduler::{Pass, PassEnd, PassKind, Scheduler};
use tailrace::sweep::pacing::Timer;
use tailrace::sweep::report::PassReport;
use tailrace::sweep::wakes::{Ended, Moment, Rules, Wakes};
use tailrace::sweep::{Kind, Pacing, Scope, Settings, run_paced_pass};
use tailrace_kit::lake::{Catalog, Field, Table};
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::support::TestDatabase;
use crate::support::program::settings;

const LAG: Duration = Duration::from_secs(30);
/// A little less than an hour: the tick at its end is not of it.
const HOUR: Duration = Duration::from_secs(3_590);

/// The runtime's clock. It goes by the wall while a pass asks the database, stands still while nobody does
/// anything, and jumps over what is slept.
struct Virtual;

impl Timer for Virtual {
    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }

    fn sleep(&self, length: Duration) -> BoxFuture<'_, ()> {
        async move {
            tokio::time::pause();
            tokio::time::advance(length).await;
            tokio::time::resume();
        }
        .boxed()
    }
}

/// A table of which something is due that passes do not deal with.
pub struct Stuck {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
    /// How passes work.
    pub settings: Settings,
    /// By how much the host's clock is ahead of the database's.
    pub skew: Duration,
    /// What keeps passes from it, for as long as it is there.
    pub holder: Option<Box<dyn Any>>,
    /// When the hour begins.
    began: UtcInstant,
}

/// What came of an hour.
#[derive(Debug, PartialEq, Eq)]
pub struct Told {
    /// How many passes there were.
    pub passes: usize,
    /// How they ended for the table, each with how often.
    pub outcomes: BTreeMap<&'static str, usize>,
}

impl Stuck {
    /// The table has two days, of which a file each falls due before the hour.
    pub async fn new() -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let before: UtcInstant = "2026-11-30T12:00:00Z".parse()?;
        let day = |ago: i128| tailrace_kit::lake::NewFile::of([(before.days() - ago).to_string()]);
        table.append(vec![day(7), day(6).pending(), day(0)]).await?;
        database.govern(&table, "at", "7d").await?;
        let settings = Settings { lock_duty: 1.0, ..settings() };
        database.sweep_with(&Settings { as_of: Some(before), ..settings }).await?;
        let began = before.plus(Duration::from_secs(2 * 86_400));
        // The other passes of a day are no full ones.
        let settings = Settings { full_pass_every: Duration::from_secs(30 * 86_400), ..settings };
        Ok(Stuck { database, catalog, table, settings, skew: Duration::ZERO, holder: None, began })
    }

    /// The rows that are due.
    pub async fn due(&self) -> Result<usize> {
        let rows =
            "SELECT count(*) FROM tailrace.calendar WHERE last_end <= '2026-11-25T12:00:00Z'";
        let rows = self.database.text(rows).await?.context("a number")?;
        Ok(rows.parse()?)
    }

    /// An hour of the scheduler, with ticks at this distance.
    pub async fn hour(&self, every: Duration) -> Result<Told> {
        let env = [
            ("TAILRACE__SCHEDULE__EVERY", format!("{}s", every.as_secs())),
            ("TAILRACE__SCHEDULE__JITTER", "0s".to_owned()),
            ("TAILRACE__SCHEDULE__LAG", "30s".to_owned()),
        ];
        let env = env.map(|(key, value)| (key.to_owned(), value)).into_iter().collect();
        let config = Config::load(&LoadOptions { env, ..LoadOptions::default() })?;
        let stop = CancellationToken::new();
        let told = Arc::new(Mutex::new(Told { passes: 0, outcomes: BTreeMap::new() }));
        let runner = Runner {
            database: self.database.tailrace(),
            began: self.began,
            skew: self.skew,
            settings: Settings { every, ..self.settings },
            rules: Rules { every, lag: LAG },
            pacing: Pacing::by(Arc::new(Virtual), fastrand::Rng::with_seed(7)),
            wakes: Wakes::new(7),
            origin: Instant::now(),
            told: told.clone(),
        };
        let (status, _watched) = watch::channel(Status::STARTING);
        let scheduler = Scheduler::new(&config, status, stop.clone());
        tokio::time::pause();
        let running = scheduler.run(runner);
        let ends = async {
            tokio::time::sleep(HOUR).await;
            stop.cancel();
        };
        tokio::join!(running, ends);
        tokio::time::resume();
        let told = std::mem::replace(
            &mut *told.lock().expect("no panic"),
            Told { passes: 0, outcomes: BTreeMap::new() },
        );
        Ok(told)
    }
}

/// Passes as the daemon has them.
struct Runner {
    database: Database,
    /// When the hour begins, and by how much the host's clock is ahead in it.
    began: UtcInstant,
    skew: Duration,
    settings: Settings,
    rules: Rules,
    pacing: Pacing,
    wakes: Wakes,
    origin: Instant,
    told: Arc<Mutex<Told>>,
}

impl Pass for Runner {
    async fn run(&mut self, kind: PassKind, _stop: CancellationToken) -> PassEnd {
        tokio::time::resume();
        let wake_in = self.pass_and_ask(kind).await;
        tokio::time::pause();
        match wake_in {
            Ok(wake_in) => PassEnd::Done { wake_in },
            Err(error) => PassEnd::Failed { error, wake_in: None },
        }
    }
}

impl Runner {
    fn now(&self) -> UtcInstant {
        self.began.plus(self.origin.elapsed())
    }

    async fn pass_and_ask(&mut self, kind: PassKind) -> Result<Option<Duration>> {
        let began = self.pacing.now();
        let report = self.pass(kind).await?;
        let told = report.tables.first().map_or("no report", |table| table.outcome.name());
        {
            let mut all = self.told.lock().expect("no panic");
            all.passes += 1;
            *all.outcomes.entry(told).or_default() += 1;
        }
        let mut session = self.database.read_only_session().await?;
        let moment = Moment { database: self.now(), process: self.pacing.now() };
        let (until, every) = (moment.database.plus(self.rules.every), self.rules.every);
        let due = first_due(&mut session, report.as_of, until, every).await?;
        close(session).await;
        let ended = Ended { is_wake: kind == PassKind::Wake, as_of: report.as_of, began };
        Ok(self.wakes.after(&ended, &due, moment, self.rules))
    }

    async fn pass(&self, kind: PassKind) -> Result<PassReport> {
        let now = self.now();
        let kind = match kind {
            PassKind::Regular => Kind::Regular,
            PassKind::Wake => Kind::Wake,
        };
        let clock = Reading { host: now.plus(self.skew), ..Reading::rehearsed(now) };
        let settings = Settings { kind, clock: Some(clock), ..self.settings };
        let (scope, stop) = (Scope::default(), CancellationToken::new());
        run_paced_pass(&self.database, &settings, &scope, &stop, &|_| {}, &self.pacing).await
    }
}
