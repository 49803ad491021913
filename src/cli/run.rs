//! `tailrace run`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use tokio_util::sync::CancellationToken;

use super::{DONE, database};
use crate::catalog::connect::Database;
use crate::catalog::failure::{in_words, is_away};
use crate::config::{Bind, Config};
use crate::daemon::{Hangups, Reload};
use crate::events;
use crate::http::tokens::Tokens;
use crate::http::{Context, Server};
use crate::installation::migrate;
use crate::metrics::Metrics;
use crate::scheduler::PassEnd;
use crate::shield::{self, Timer};
use crate::sweep::report::{CatalogFailure, PassReport};
use crate::sweep::{LostOnTheWay, Pacing, Scope, Settings, run_paced_pass};
use crate::turn::Turn;

pub async fn run(config: Config, tokens: Option<Tokens>, hangups: Hangups) -> anyhow::Result<u8> {
    // Only at the start: a server that is refused later, as one that was upgraded, fails pass after pass
    // with the reason, and once it is one to work with again they go on by themselves.
    if let Some(refused) = database(&config)?.refused_server().await {
        return Err(refused.into());
    }
    let runner = Runner {
        config: config.clone(),
        prepared: Arc::default(),
        metrics: Arc::default(),
        pacing: Arc::default(),
    };
    let turn = Turn::default();
    let tokens = tokens.map(Arc::new);
    let interface = match config.http.bind {
        Bind::Off => None,
        Bind::At(address) => {
            let context = context(&runner, &turn, tokens.clone());
            listen(address, &config, context).await
        }
    };
    let shield = shield(&runner);
    let pass = move |stop: CancellationToken| {
        let (runner, turn) = (runner.clone(), turn.clone());
        async move {
            // A pass that somebody asked for is one that the schedule waits for.
            let _turn = tokio::select! {
                turn = turn.wait() => turn,
                () = stop.cancelled() => return PassEnd::Done,
            };
            end_of(runner.pass(&Scope::default(), &stop).await)
        }
    };
    let reload = Reload { hangups, tokens };
    crate::daemon::run(config, pass, interface, Some(shield), reload).await?;
    Ok(DONE)
}

/// The interface, if its address can be had. Retention does not depend on it: a second daemon on a
/// host waits for the first one's catalogs even though its port is taken.
async fn listen(address: SocketAddr, config: &Config, context: Context) -> Option<Server> {
    match Server::bind(address, config, context).await {
        Ok(server) => Some(server),
        Err(error) => {
            tracing::error!(
                event = events::HTTP_UNAVAILABLE,
                address = %address,
                error = in_words(&error),
                "The HTTP interface is not up; passes run without it"
            );
            None
        }
    }
}

/// The tokens that the interface asks for.
///
/// # Errors
/// A file that is wrong, in words.
pub fn tokens(config: &Config) -> Result<Option<Tokens>, String> {
    match (&config.http.tokens_file, config.http.bind) {
        (Some(file), Bind::At(_)) => Tokens::read(file).map(Some),
        _ => Ok(None),
    }
}

fn context(runner: &Runner, turn: &Turn, tokens: Option<Arc<Tokens>>) -> Context {
    let config = runner.config.clone();
    let pass = runner.clone();
    Context {
        database: Arc::new(move || database(&config)),
        pass: Arc::new(move |scope, stop| {
            let runner = pass.clone();
            async move { runner.pass(&scope, &stop).await }.boxed()
        }),
        turn: turn.clone(),
        metrics: runner.metrics.clone(),
        tokens,
    }
}

/// Runs passes, whoever asks for them.
#[derive(Clone)]
struct Runner {
    config: Config,
    // Our schema is looked after in the first pass that gets through to the database, so that
    // a database that is away at the start is waited for like one that goes away later.
    prepared: Arc<AtomicBool>,
    metrics: Arc<Metrics>,
    // A pass does not start with a share of the commit lock that the one before has used up.
    pacing: Arc<Pacing>,
}

impl Runner {
    async fn pass(&self, scope: &Scope, stop: &CancellationToken) -> anyhow::Result<PassReport> {
        let result = self.uncounted(scope, stop).await;
        match &result {
            Ok(report) => self.metrics.pass_done(report),
            Err(error) => self.metrics.pass_failed(is_away(error)),
        }
        result
    }

    /// The database, with our schema in it brought up to date once. That it still is the one that
    /// this program works with, each session makes sure of.
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

    /// Renews the shield, and tells if that failed.
    async fn renew_shield(&self) {
        let settings = shield::Settings::from_config(&self.config);
        let renewed = async {
            let database = self.prepared_database().await?;
            shield::renew(&database, &settings, None).await
        };
        match renewed.await {
            Ok(renewed) => self.metrics.shield_renewed(&renewed),
            Err(error) => {
                self.metrics.shield_failed();
                // That the database is away, the scheduler tells.
                if !is_away(&error) {
                    tracing::warn!(
                        event = events::SHIELD_FAILED,
                        error = in_words(&error),
                        "Files about to be dropped may not be kept from compaction"
                    );
                }
            }
        }
    }

    async fn uncounted(
        &self,
        scope: &Scope,
        stop: &CancellationToken,
    ) -> anyhow::Result<PassReport> {
        let database = self.prepared_database().await?;
        let settings = Settings::from_config(&self.config);
        run_paced_pass(&database, &settings, scope, stop, &|_| {}, &self.pacing).await
    }
}

fn shield(runner: &Runner) -> Timer {
    let every = runner.config.compaction.renew_every.get();
    let runner = runner.clone();
    let renewal = move || {
        let runner = runner.clone();
        async move { runner.renew_shield().await }.boxed()
    };
    Timer { every, renewal: Arc::new(renewal) }
}

fn end_of(result: anyhow::Result<PassReport>) -> PassEnd {
    let error = match result {
        Ok(report) => match report.failed_catalogs.into_iter().max_by_key(|failed| failed.away) {
            None => return PassEnd::Done,
            Some(CatalogFailure { catalog, error, away }) => {
                let error = anyhow::anyhow!("catalog {catalog}: {error}");
                match away {
                    // It has told which catalogs there are.
                    true => return PassEnd::DatabaseAway { error, answered: true },
                    false => error,
                }
            }
        },
        Err(error) if is_away(&error) => {
            let answered = error.is::<LostOnTheWay>();
            return PassEnd::DatabaseAway { error, answered };
        }
        Err(error) => error,
    };
    PassEnd::Failed { error }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(failed: &[(&str, bool)]) -> anyhow::Result<PassReport> {
        let failed = failed.iter().map(|(catalog, away)| CatalogFailure {
            catalog: (*catalog).to_owned(),
            error: "no".to_owned(),
            away: *away,
        });
        Ok(PassReport {
            as_of: "2026-09-17T00:00:00Z".parse()?,
            tables: Vec::new(),
            skipped_catalogs: Vec::new(),
            failed_catalogs: failed.collect(),
        })
    }

    fn end(result: anyhow::Result<PassReport>) -> String {
        match end_of(result) {
            PassEnd::Done => "done".to_owned(),
            PassEnd::DatabaseAway { error, answered } => format!("away, {answered}: {error:#}"),
            PassEnd::Failed { error } => format!("failed: {error:#}"),
        }
    }

    #[test]
    fn a_database_is_away_by_what_it_said_and_when() {
        let refused = || anyhow::Error::new(sqlx::Error::WorkerCrashed);
        let words = refused().to_string();
        assert_eq!(end(report(&[])), "done");
        assert_eq!(end(report(&[("lake", false)])), "failed: catalog lake: no");
        let away = report(&[("lake", false), ("pond", true)]);
        assert_eq!(end(away), "away, true: catalog pond: no");
        assert_eq!(end(Err(refused())), format!("away, false: {words}"));
        let on_the_way = refused().context(LostOnTheWay);
        assert_eq!(end(Err(on_the_way)), format!("away, true: {LostOnTheWay}: {words}"));
        assert_eq!(end(Err(anyhow::anyhow!("no"))), "failed: no");
    }
}
