//! The play, from the first scene to the checks.

use std::time::Duration;

use anyhow::{Context, Result};
use sqlx::postgres::PgPoolOptions;
use tailrace::catalog::connect::{Database, close};
use tailrace::catalog::session::Patience;
use tailrace::cli;
use tailrace::config::{Config, LoadOptions};
use tailrace::installation::migrate;
use tailrace::policy::set::{Set, Wanted, set_policy};
use tailrace::policy::{Mode, Policy};
use tailrace::rules::instant::UtcInstant;
use tailrace::rules::transform::TimeTransform;
use tailrace::sweep::plan_report::PlanReport;
use tailrace::sweep::planning::plan_all;
use tailrace::sweep::{Scope, Settings, run_pass};
use tailrace_kit::server::{PrivateServer, ServerOptions, StopMode};
use tokio_util::sync::CancellationToken;

use super::checks::Checks;
use super::findings::{Findings, check};
use super::gallery::Gallery;
use super::invitation::DATABASE;
use super::picture::LEGEND;
use super::removal::{self, Sight, follow};
use super::scene::{
    CATALOG, DAYS, NAMESPACE, POLICIES, SPEC_CHANGE, Scene, UNGOVERNED, UNGOVERNED_DAYS,
};
use super::screen::{busy, indented, section, text};

/// Who sets the demo's policies.
const DEMO: &str = "tailrace demo";

/// What is there when the curtain falls.
#[derive(Debug)]
pub struct Shown {
    /// The server, running.
    pub server: PrivateServer,
    /// What was checked.
    pub checks: Checks,
}

impl Shown {
    /// Stops the server and removes all of it.
    pub async fn end(mut self) -> Result<()> {
        self.server.stop(StopMode::Immediate).await
    }
}

/// Shows all of it.
pub async fn play(stop: &CancellationToken) -> Result<Shown> {
    text("tailrace demo: tables that drop their own tail\n")?;
    let (server, database, scene) = busy("making a Postgres cluster and a lake", set_up()).await?;
    let settings = Settings::from_config(&Config::load(&LoadOptions {
        // The built-in configuration, wherever we are run.
        folder: server.folder().to_owned(),
        ..LoadOptions::default()
    })?);
    let at_start = Sight::take("before the pass", &scene, scene.catalog.head().await?).await?;
    section(
        "1. A lake of our own",
        &format!(
            "Postgres {} in {},\n\
             reached by a socket only, and gone when this ends.\n\
             A hoglake catalog {CATALOG:?} with four tables, written day by day through real\n\
             commits, their times set back. {} objects on disk, of placeholder bytes.\n\
             \n\
             {NAMESPACE}.events_raw    {DAYS} days, by day; some files have deletion vectors\n\
             {NAMESPACE}.orders        by month until {SPEC_CHANGE} days ago, by day since\n\
             {NAMESPACE}.team_events   by team and day\n\
             {NAMESPACE}.audit_log     {UNGOVERNED_DAYS} days, by day",
            server.version(),
            server.folder().display(),
            at_start.objects.len(),
        ),
    )?;

    migrate(&database).await?;
    section(
        "2. Policies, stored beside the catalog (as `tailrace policy set` does)",
        &format!("{NAMESPACE}.{UNGOVERNED} gets none, to see that it stays as it is."),
    )?;
    let policies = set_policies(&database, &settings).await?;

    section(
        "3. The plan (as `tailrace plan` shows it)",
        "A partition goes when its last instant is older than its policy keeps it.\n\
         What cannot be dated for certain stays.",
    )?;
    let plans = plan_all(&database, &settings, &Scope::default(), None).await?;
    text(&format!("\n{}", indented(&cli::plan_text(&PlanReport::of(&plans)))))?;

    section("4. The partitions before the pass", &format!("A bar each, by files.   {LEGEND}"))?;
    let before = gallery(&database, &scene, &policies, plans.as_of).await?;
    text(&before.text())?;
    let [month, day] = [TimeTransform::Month, TimeTransform::Day]
        .map(|transform| transform.display(Some(&scene.stray)));
    text(&indented(&format!(
        "\nTwo stay because nobody can date them for certain:\n\
         - {day} of {NAMESPACE}.orders. After the spec changed from month to day, a\n  \
         stale writer stored {month} as a month ({}), which reads as that day. It\n  \
         stays until both are old.\n\
         - 42 / null of {NAMESPACE}.team_events. No row of it has a time.",
        scene.stray
    )))?;

    section(
        "5. A pass, as the daemon runs it",
        "Each commit is one snapshot; files end together with their deletion vectors.",
    )?;
    let head = scene.catalog.head().await?;
    let dump_before = scene.lake.dump().await?;
    let report = run_pass(&database, &settings, &Scope::default(), stop, &|_| {}).await?;
    let dump_after = scene.lake.dump().await?;
    text(&format!("\n{}", indented(&cli::sweep_text(&report, false))))?;

    section("6. The partitions after it", &format!("The same bars.   {LEGEND}"))?;
    let after = gallery(&database, &scene, &policies, report.as_of).await?;
    text(&after.text_since(&before))?;

    let dropped = Sight::take("after the pass", &scene, head).await?;
    section(
        "7. The objects, which tailrace never touches",
        &format!(
            "The server's expiry and cleanup delete them, once the floor (the oldest\n\
             snapshot that can be read) has passed the drop, here snapshots {} to {}.\n\
             Both loops are stand-ins here, written from the server's contract. This\n\
             catalog keeps an hour, and the last two lines are as if two had passed.",
            head + 1,
            scene.catalog.head().await?
        ),
    )?;
    let removal = follow(&scene, head).await?;
    let sights = [&at_start, &dropped, &removal.below, &removal.passed, &removal.cleaned];
    text(&format!("\n{}", removal::text(&sights, head)))?;

    let checks = check(&Findings {
        scene: &scene,
        head,
        dump_before: &dump_before,
        dump_after: &dump_after,
        before: &before,
        after: &after,
        report: &report,
        at_start: &at_start,
        dropped: &dropped,
        removal: &removal,
    })
    .await?;
    section("8. What was checked", &summary(&checks))?;
    text(&format!("\n{}", checks.text()))?;
    scene.lake.pool().close().await;
    Ok(Shown { server, checks })
}

async fn set_up() -> Result<(PrivateServer, Database, Scene)> {
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
    let scene = Scene::build(&pool, &objects, now).await?;
    Ok((server, database, scene))
}

async fn set_policies(database: &Database, settings: &Settings) -> Result<Vec<Policy>> {
    let mut connection = database.session().await?;
    let mut policies = Vec::new();
    text("\n")?;
    for governed in POLICIES {
        let wanted = Wanted {
            catalog: CATALOG,
            namespace: NAMESPACE,
            table: governed.table,
            field: governed.field,
            keep: governed.keep,
            mode: Some(Mode::Enforce),
            fence: None,
            by: DEMO,
        };
        let Set { table, policy, .. } =
            set_policy(&mut connection, wanted, settings.min_keep).await?;
        let name = format!("{}.{}", table.namespace, table.table);
        text(&format!(
            "   {name:<18}{:<16}keep {:<5}{}\n",
            policy.field,
            policy.keep.text(),
            policy.mode
        ))?;
        policies.push(policy);
    }
    close(connection).await;
    Ok(policies)
}

async fn gallery(
    database: &Database,
    scene: &Scene,
    policies: &[Policy],
    now: UtcInstant,
) -> Result<Gallery> {
    let mut connection = database.read_only_session().await?;
    let gallery = Gallery::read(&mut connection, scene, policies, now).await;
    close(connection).await;
    gallery
}

fn summary(checks: &Checks) -> String {
    match checks.failed() {
        0 => format!("All {} checks hold.", checks.count()),
        failed => format!("{failed} of {} checks FAILED.", checks.count()),
    }
}
