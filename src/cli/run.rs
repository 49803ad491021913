//! `tailrace run`

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio_util::sync::CancellationToken;

use super::{DONE, checked_database, database};
use crate::catalog::failure::is_away;
use crate::config::Config;
use crate::installation::migrate;
use crate::scheduler::PassEnd;
use crate::sweep::report::{CatalogFailure, PassReport};
use crate::sweep::{Scope, Settings, run_pass};

pub async fn run(config: Config) -> anyhow::Result<u8> {
    let pass_config = config.clone();
    // Our schema is looked after in the first pass that gets through to the database, so that
    // a database that is away at the start is waited for like one that goes away later.
    let prepared = Arc::new(AtomicBool::new(false));
    let pass = move |stop: CancellationToken| {
        let (config, prepared) = (pass_config.clone(), prepared.clone());
        async move { end_of(one_pass(&config, &prepared, &stop).await) }
    };
    crate::daemon::run(config, pass).await?;
    Ok(DONE)
}

async fn one_pass(
    config: &Config,
    prepared: &AtomicBool,
    stop: &CancellationToken,
) -> anyhow::Result<PassReport> {
    // The password file is read for each pass: a rotated password is found by the next one.
    let database = database(config)?;
    if config.database.migrate_on_start && !prepared.load(Ordering::Relaxed) {
        migrate(&database).await?;
        prepared.store(true, Ordering::Relaxed);
    }
    checked_database(config).await?;
    run_pass(&database, &Settings::from_config(config), &Scope::default(), stop, &|_| {}).await
}

fn end_of(result: anyhow::Result<PassReport>) -> PassEnd {
    let error = match result {
        Ok(report) => match report.failed_catalogs.into_iter().max_by_key(|failed| failed.away) {
            None => return PassEnd::Done,
            Some(CatalogFailure { catalog, error, away }) => {
                let error = anyhow::anyhow!("catalog {catalog}: {error}");
                match away {
                    true => return PassEnd::DatabaseAway { error },
                    false => error,
                }
            }
        },
        Err(error) if is_away(&error) => return PassEnd::DatabaseAway { error },
        Err(error) => error,
    };
    PassEnd::Failed { error }
}
