//! A soak test: everything that works on a lake runs at the same time, by a random schedule, while
//! the test checks what may never happen.
//!
//! | file | what runs or is checked |
//! |---|---|
//! | [`lake_loops`] | the server's loops: hydrator, compaction, expiry, cleanup |
//! | [`writers`] | appends and deletions of rows |
//! | [`readers`] | consumers of tailrace's feed, each with its own copy of the table |
//! | [`operator`] | the daemon, changes of policies, explicit drops |
//! | [`history`], [`rules`] | what every snapshot did, and what no snapshot may do |
//! | [`disk`] | objects: none that is needed is missing, and at the end none is left over |
//!
//! `TAILRACE_SOAK=10m` sets the duration. `TAILRACE_SOAK_SEED` repeats a schedule, but not a run:
//! how the tasks interleave depends on the machine.

mod disk;
mod history;
mod lake_loops;
mod operator;
mod readers;
mod rules;
mod window;
mod writers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex as Plain, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use fastrand::Rng;
use tailrace_kit::lake::{CatalogOptions, Field};
use tokio::sync::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::feed::Scene;
use crate::support::TestDatabase;
use crate::support::process::Running;

use history::History;
use readers::Reader;
use window::Window;

/// How long they work where nobody says it.
const USUALLY: Duration = Duration::from_secs(40);

/// What all tasks share.
struct Soak {
    scene: Scene,
    history: Mutex<History>,
    /// The drop window in force, none while it changes or where nothing is enforced.
    window: Plain<Option<Window>>,
    tally: Plain<BTreeMap<&'static str, u64>>,
    stop: CancellationToken,
}

impl Soak {
    async fn begin() -> Result<Self> {
        let database = TestDatabase::with_objects().await?;
        let retention = Some(Duration::from_secs(3600));
        let options = CatalogOptions { retention, consumer_floor: true };
        let catalog = database.lake.catalog("lake", options).await?;
        let spec = [Field::day("at"), Field::identity("kind")];
        let table = database.table(&catalog, "raw", &spec).await?;
        Ok(Soak {
            history: Mutex::new(History::begin(&table).await?),
            scene: Scene { database, catalog, table },
            window: Plain::default(),
            tally: Plain::default(),
            stop: CancellationToken::new(),
        })
    }

    /// A pause of the schedule, of up to so many milliseconds; false once all are to stop.
    async fn goes_on(&self, random: &mut Rng, at_most: u64) -> bool {
        let pause = tokio::time::sleep(Duration::from_millis(random.u64(0..=at_most)));
        self.stop.run_until_cancelled(pause).await.is_some()
    }

    /// Adds to what is told in the end.
    fn count(&self, what: &'static str, number: u64) {
        let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        *tally.entry(what).or_default() += number;
    }

    fn counted(&self, what: &str) -> u64 {
        let tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
        tally.get(what).copied().unwrap_or_default()
    }
}

/// What a task leaves for the end.
enum Left {
    Nothing,
    Reader(Reader),
    Daemon(Running),
}

/// Lets all work for so long, and stops them. The first failure of one ends it for all.
async fn all_at_once(
    soak: &Arc<Soak>,
    random: &mut Rng,
    length: Duration,
) -> Result<(Running, Vec<Reader>)> {
    let daemon = operator::start(soak)?;
    let mut tasks = JoinSet::new();
    tasks.spawn(operator::operate(soak.clone(), random.fork(), daemon));
    for _ in 0..2 {
        tasks.spawn(writers::append(soak.clone(), random.fork()));
    }
    tasks.spawn(writers::delete_rows(soak.clone(), random.fork()));
    tasks.spawn(lake_loops::hydrate(soak.clone(), random.fork()));
    tasks.spawn(lake_loops::compact(soak.clone(), random.fork()));
    tasks.spawn(lake_loops::expire(soak.clone(), random.fork()));
    tasks.spawn(lake_loops::clean_up(soak.clone(), random.fork()));
    tasks.spawn(disk::watch(soak.clone(), random.fork()));
    for (name, longest_pause) in [("prompt", 100), ("slow", 1500), ("lazy", 4000)] {
        let reader = Reader::registered(soak, name).await?;
        tasks.spawn(readers::follow(reader, random.fork(), longest_pause));
    }
    let reader = Reader::unregistered(soak).await?;
    tasks.spawn(readers::follow(reader, random.fork(), 2500));

    let time = tokio::time::sleep(length);
    tokio::pin!(time);
    let (mut daemon, mut readers) = (None, Vec::new());
    loop {
        let ended = tokio::select! {
            () = &mut time, if !soak.stop.is_cancelled() => {
                soak.stop.cancel();
                continue;
            }
            ended = tasks.join_next() => ended,
        };
        match ended {
            None => return Ok((daemon.context("the operator has ended")?, readers)),
            Some(Err(ended)) => std::panic::resume_unwind(ended.try_into_panic()?),
            Some(Ok(left)) => match left? {
                _ if !soak.stop.is_cancelled() => bail!("a task ended early"),
                Left::Nothing => {}
                Left::Reader(reader) => readers.push(reader),
                Left::Daemon(running) => daemon = Some(running),
            },
        }
    }
}

async fn soak(seed: u64, length: Duration) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    let soak = Arc::new(Soak::begin().await?);
    operator::set_policy(&soak, 7, "enforce").await?;
    // However short it is, there is something to drop.
    writers::first_files(&soak).await?;
    let (daemon, mut readers) = all_at_once(&soak, &mut random, length).await?;
    operator::drop_all_that_expired(&soak, daemon).await?;
    for reader in &mut readers {
        reader.finish().await?;
    }
    disk::drain(&soak).await?;
    disk::holds_what_is_live_and_no_more(&soak).await?;
    let mut tally = soak.tally.lock().unwrap_or_else(PoisonError::into_inner).clone();
    soak.history.lock().await.count_into(&mut tally);
    eprintln!("the soak, {length:?}: {tally:#?}");
    assert!(tally["partition drops by policy"] > 0);
    assert!(tally["objects deleted"] > 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_at_once_and_nothing_that_may_not_happen() -> Result<()> {
    let setting = |name: &str| std::env::var(name).ok();
    let length = match setting("TAILRACE_SOAK") {
        Some(text) => humantime::parse_duration(&text).context("TAILRACE_SOAK")?,
        None => USUALLY,
    };
    let seed = match setting("TAILRACE_SOAK_SEED") {
        Some(text) => text.parse().context("TAILRACE_SOAK_SEED")?,
        None => fastrand::u64(..),
    };
    // Shown if it fails.
    eprintln!("TAILRACE_SOAK_SEED={seed}");
    soak(seed, length).await
}
