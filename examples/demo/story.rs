//! What the demo does, in order, and the pages that show it. All of it is done before the first page is shown:
//! a reader may take any time.

use std::time::Duration;

use anyhow::{Context, Result};
use sqlx::postgres::PgPoolOptions;
use tailrace::catalog::connect::{Database, close};
use tailrace::catalog::session::Patience;
use tailrace::config::{Config, LoadOptions};
use tailrace::installation::migrate;
use tailrace::policy::set::{Wanted, set_policy};
use tailrace::policy::{Mode, Policy};
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::planning::plan_all;
use tailrace::sweep::{Scope, Settings, run_pass};
use tailrace_kit::server::{PrivateServer, ServerOptions, StopMode};
use tokio_util::sync::CancellationToken;

use super::checks::Checks;
use super::findings::{Findings, check};
use super::lake::{CATALOG, DemoLake, NAMESPACE, POLICIES};
use super::narration;
use super::next_steps::DATABASE;
use super::pages::{Page, busy};
use super::pictures::Pictures;
use super::removal::{Observation, follow};

/// Who sets the demo's policies.
const DEMO: &str = "tailrace demo";

/// What there is when all is done.
#[derive(Debug)]
pub struct Done {
    /// The server, running.
    pub server: PrivateServer,
    /// What was checked.
    pub checks: Checks,
    /// What happened.
    pub pages: Vec<Page>,
}

impl Done {
    /// Stops the server and removes all of it.
    pub async fn end(mut self) -> Result<()> {
        self.server.stop(StopMode::Immediate).await
    }
}

/// Does all of it; with `list_checks` each check is shown even if all hold, and with `keep` the lake will be left
/// running.
pub async fn run(list_checks: bool, keep: bool, stop: &CancellationToken) -> Result<Done> {
    let (server, database, lake) =
        busy("starting a private Postgres, and writing a lake", set_up()).await?;
    let settings = Settings::from_config(&Config::load(&LoadOptions {
        // The built-in configuration, wherever we are run.
        folder: server.folder().to_owned(),
        ..LoadOptions::default()
    })?);
    let head = lake.catalog.head().await?;
    let at_start = Observation::make("before the pass", &lake, head).await?;
    migrate(&database).await?;
    let policies = set_policies(&database, &settings).await?;

    let plans = plan_all(&database, &settings, &Scope::default(), None).await?;
    let before = pictures(&database, &lake, &policies, plans.as_of).await?;

    let dump_before = lake.lake.dump().await?;
    let report = run_pass(&database, &settings, &Scope::default(), stop, &|_| {}).await?;
    let dump_after = lake.lake.dump().await?;
    let after = pictures(&database, &lake, &policies, report.as_of).await?;

    let dropped = Observation::make("after the pass", &lake, head).await?;
    let removal = follow(&lake, head).await?;
    let seen = Findings {
        lake: &lake,
        head,
        dump_before: &dump_before,
        dump_after: &dump_after,
        before: &before,
        after: &after,
        report: &report,
        at_start: &at_start,
        dropped: &dropped,
        removal: &removal,
    };
    let checks = check(&seen).await?;
    let mut pages = vec![
        narration::lake(&server, &seen, &policies),
        narration::plan(&plans, &seen),
        narration::pass(&seen),
        narration::events(&seen),
        narration::orders(&seen),
        narration::teams(&seen),
        narration::objects(&seen),
    ];
    if list_checks || checks.failed() > 0 {
        pages.push(Page::new("What was checked", &checks.text()));
    }
    pages.push(narration::verdict(&seen, &checks, keep));
    lake.lake.pool().close().await;
    Ok(Done { server, checks, pages })
}

async fn set_up() -> Result<(PrivateServer, Database, DemoLake)> {
    let options = ServerOptions { fast_and_loose: true, ..ServerOptions::default() };
    let server = PrivateServer::start(options).await?;
    server.create_database(DATABASE, None).await?;
    let database = Database {
        options: server.url(DATABASE).parse().context("the server's own URL")?,
        schema: "public".to_owned(),
        connect_timeout: Duration::from_secs(10),
        patience: Patience::default(),
    };
    let pool = PgPoolOptions::new().connect_lazy_with(database.options.clone());
    let objects = server.folder().join("objects");
    let now = UtcInstant::from(chrono::Utc::now());
    let lake = DemoLake::build(&pool, &objects, now).await?;
    Ok((server, database, lake))
}

async fn set_policies(database: &Database, settings: &Settings) -> Result<Vec<Policy>> {
    let mut connection = database.session().await?;
    let mut policies = Vec::new();
    for governed in POLICIES {
        let wanted = Wanted {
            catalog: CATALOG,
            namespace: NAMESPACE,
            table: governed.table,
            field: governed.field,
            keep: governed.keep,
            keep_last: None,
            mode: Some(Mode::Enforce),
            fence: None,
            is_confirmed: true,
            by: DEMO,
            reason: None,
        };
        policies.push(set_policy(&mut connection, wanted, settings.policy_limits).await?.policy);
    }
    close(connection).await;
    Ok(policies)
}

async fn pictures(
    database: &Database,
    lake: &DemoLake,
    policies: &[Policy],
    now: UtcInstant,
) -> Result<Pictures> {
    let mut connection = database.read_only_session().await?;
    let pictures = Pictures::read(&mut connection, lake, policies, now).await;
    close(connection).await;
    pictures
}
