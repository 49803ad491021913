//! `tailrace run`

#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::{DONE, database};
use crate::catalog::clock;
use crate::catalog::connect::{Access, Database};
use crate::catalog::errors::{describe, is_connection_error};
use crate::catalog::session::Session;
use crate::catalog::wakes::first_due;
use crate::claims::{self, Timer};
use crate::config::{Bind, Config};
use crate::daemon::{Hangups, Reload};
use crate::events;
use crate::http::tokens::Tokens;
use crate::http::{Context, Server};
use crate::installation::migrate;
use crate::metrics::Metrics;
use crate::scheduler::{PassEnd, PassKind};
use crate::sweep::pass_lock::PassLock;
use crate::sweep::report::{CatalogFailure, PassReport};
use crate::sweep::wakes::{Ended, Moment, Rules, Wakes};
use crate::sweep::{Kind, LostOnTheWay, Pacing, Scope, Settings, run_paced_pass};

pub async fn run(config: Config, tokens: Option<Tokens>, hangups: Hangups) -> anyhow::Result<u8> {
    // Only at the start. If a server is refused later, because it was upgraded, each pass fails with the reason,
    // and passes succeed again once the server is accepted again.
    if let Some(refused) = database(&config)?.refused_server().await {
        return Err(refused.into());
    }
    let runner = Runner {
        config: config.clone(),
        prepared: Arc::default(),
        metrics: Arc::default(),
        pacing: Arc::default(),
        wakes: Arc::new(Mutex::new(Wakes::new(fastrand::u64(..)))),
        gave_way: Arc::default(),
    };
    let pass_lock = PassLock::default();
    let tokens = tokens.map(Arc::new);
    let interface = match config.http.bind {
        Bind::Off => None,
        Bind::At(address) => {
            let context = context(&runner, &pass_lock, tokens.clone());
            listen(address, &config, context).await
        }
    };
    let claims_timer = claims_timer(&runner);
    let pass = move |kind: PassKind, stop: CancellationToken| {
        let (runner, pass_lock) = (runner.clone(), pass_lock.clone());
        async move {
            // A pass of the schedule waits until a requested pass has ended.
            let _guard = tokio::select! {
                guard = pass_lock.acquire() => guard,
                () = stop.cancelled() => return PassEnd::Done { wake_in: None },
            };
            runner.scheduled(kind, &stop).await
        }
    };
    let reload = Reload { hangups, tokens };
    crate::daemon::run(config, pass, interface, Some(claims_timer), reload).await?;
    Ok(DONE)
}

/// The HTTP interface, if its address is free. Passes do not depend on it: a second daemon on a host waits for
/// the catalogs of the first, even though the port is in use.
async fn listen(address: SocketAddr, config: &Config, context: Context) -> Option<Server> {
    match Server::bind(address, config, context).await {
        Ok(server) => Some(server),
        Err(error) => {
            tracing::error!(
                event = events::HTTP_UNAVAILABLE,
                address = %address,
                error = describe(&error),
                "The HTTP interface is not up; passes run without it"
            );
            None
        }
    }
}

/// The tokens that the HTTP interface accepts.
///
/// # Errors
/// Why the file of tokens cannot be used.
pub fn tokens(config: &Config) -> Result<Option<Tokens>, String> {
    match (&config.http.tokens_file, config.http.bind) {
        (Some(file), Bind::At(_)) => Tokens::read(file).map(Some),
        _ => Ok(None),
    }
}

fn context(runner: &Runner, pass_lock: &PassLock, tokens: Option<Arc<Tokens>>) -> Context {
    let config = runner.config.clone();
    let pass = runner.clone();
    Context {
        database: Arc::new(move || database(&config)),
        pass: Arc::new(move |scope, stop| {
            let runner = pass.clone();
            let settings = runner.settings(PassKind::Regular);
            async move { runner.pass(&settings, &scope, &stop).await }.boxed()
        }),
        pass_lock: pass_lock.clone(),
        metrics: runner.metrics.clone(),
        tokens,
    }
}

/// Runs the passes of the schedule and those that are requested.
#[derive(Clone)]
struct Runner {
    config: Config,
    // Whether the schema `tailrace` was brought up to date. The first pass that can connect does it, so that
    // the daemon also starts while the database cannot be reached.
    prepared: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    // Shared by all passes, so that the lock holds of one pass count in the next one.
    pacing: Arc<Pacing>,
    wakes: Arc<Mutex<Wakes>>,
    // Whether the last pass interrupted full scans because partitions expired meanwhile. The next pass drops
    // these partitions and then continues the full scans.
    gave_way: Arc<AtomicBool>,
}

impl Runner {
    /// Runs a pass of the schedule.
    async fn scheduled(&self, kind: PassKind, stop: &CancellationToken) -> PassEnd {
        let began = self.pacing.now();
        let goes_on = self.gave_way.swap(false, Ordering::Relaxed);
        let settings = self.settings(if goes_on { PassKind::Regular } else { kind });
        let lag = self.config.schedule.cron.is_none().then(|| self.config.schedule.lag.get());
        let settings = Settings { wakes_within: lag, ..settings };
        let result = self.pass(&settings, &Scope::default(), stop).await;
        let gave_way = result.as_ref().is_ok_and(|report| report.gave_way);
        self.gave_way.store(gave_way, Ordering::Relaxed);
        let as_of = result.as_ref().ok().map(|report| report.as_of);
        let end = end_of(result);
        let (Some(as_of), PassEnd::Done { .. } | PassEnd::Failed { .. }) = (as_of, &end) else {
            return end;
        };
        let ended = Ended { is_wake: kind == PassKind::Wake, as_of, began };
        match (end, self.wake_in(&ended, stop).await) {
            (PassEnd::Done { .. }, Ok(wake_in)) => PassEnd::Done { wake_in },
            (PassEnd::Failed { error, .. }, Ok(wake_in)) => PassEnd::Failed { error, wake_in },
            (PassEnd::Done { .. }, Err(error)) => end_of(Err(error)),
            (end, _) => end,
        }
    }

    /// The time until the calendar's next partition expires, if that is before the next tick.
    async fn wake_in(
        &self,
        ended: &Ended,
        stop: &CancellationToken,
    ) -> anyhow::Result<Option<Duration>> {
        if self.config.schedule.cron.is_some() || stop.is_cancelled() {
            return Ok(None);
        }
        let rules = Rules { every: self.config.every(), lag: self.config.schedule.lag.get() };
        let asking = "asking which partition falls due next, after a pass";
        let look = async |session: &mut Session| {
            let now = clock::now(session).await.context(asking)?;
            let moment = Moment { database: now, process: self.pacing.now() };
            let until = now.plus(rules.every);
            let due = first_due(session, ended.as_of, until, rules.every).await.context(asking)?;
            Ok((due, moment))
        };
        let (due, moment) = database(&self.config)?.in_session(Access::ReadOnly, look).await?;
        let mut wakes = self.wakes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(wakes.after(ended, &due, moment, rules))
    }

    fn settings(&self, kind: PassKind) -> Settings {
        let kind = match kind {
            PassKind::Regular => Kind::Regular,
            PassKind::Wake => Kind::Wake,
        };
        Settings { kind, ..Settings::from_config(&self.config) }
    }

    async fn pass(
        &self,
        settings: &Settings,
        scope: &Scope,
        stop: &CancellationToken,
    ) -> anyhow::Result<PassReport> {
        let result = self.uncounted(settings, scope, stop).await;
        match &result {
            Ok(report) => self.metrics.pass_done(report),
            Err(error) => self.metrics.pass_failed(is_connection_error(error)),
        }
        result
    }

    /// The database. The first call brings the schema `tailrace` up to date; afterwards each session checks that
    /// the schema fits this program.
    async fn prepared_database(&self) -> anyhow::Result<Database> {
        let config = &self.config;
        // The password file is read each time: a rotated password is found by the next one.
        let database = database(config)?;
        if config.database.migrate_on_start && !self.prepared.load(Ordering::Relaxed) {
            migrate(&database).await?;
            self.prepared.store(true, Ordering::Relaxed);
        }
        Ok(database)
    }

    /// Renews compaction claims, and logs if that failed.
    async fn renew_claims(&self) {
        let settings = claims::Settings::from_config(&self.config);
        let renewed = async {
            let database = self.prepared_database().await?;
            claims::renew(&database, &settings, None).await
        };
        match renewed.await {
            Ok(renewed) => self.metrics.shield_renewed(&renewed),
            Err(error) => {
                self.metrics.shield_failed();
                // The scheduler logs that the database cannot be reached.
                if !is_connection_error(&error) {
                    tracing::warn!(
                        event = events::SHIELD_FAILED,
                        error = describe(&error),
                        "Some compaction claims were not renewed: the server may compact files that are about to be dropped"
                    );
                }
            }
        }
    }

    async fn uncounted(
        &self,
        settings: &Settings,
        scope: &Scope,
        stop: &CancellationToken,
    ) -> anyhow::Result<PassReport> {
        let database = self.prepared_database().await?;
        run_paced_pass(&database, settings, scope, stop, &|_| {}, &self.pacing).await
    }
}

fn claims_timer(runner: &Runner) -> Timer {
    let every = runner.config.compaction.renew_every.get();
    let runner = runner.clone();
    let renewal = move || {
        let runner = runner.clone();
        async move { runner.renew_claims().await }.boxed()
    };
    Timer { every, renewal: Arc::new(renewal) }
}

fn end_of(result: anyhow::Result<PassReport>) -> PassEnd {
    let error = match result {
        Ok(report) => match report.failed_catalogs.into_iter().max_by_key(|failed| failed.away) {
            None => return PassEnd::Done { wake_in: None },
            Some(CatalogFailure { catalog, error, away }) => {
                let error = anyhow::anyhow!("catalog {catalog}: {error}");
                match away {
                    // The pass has already read the list of catalogs, so the database did answer.
                    true => return PassEnd::DatabaseAway { error, answered: true },
                    false => error,
                }
            }
        },
        Err(error) if is_connection_error(&error) => {
            let answered = error.is::<LostOnTheWay>();
            return PassEnd::DatabaseAway { error, answered };
        }
        Err(error) => error,
    };
    PassEnd::Failed { error, wake_in: None }
}
