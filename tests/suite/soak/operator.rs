//! Runs the daemon, changes policies, and makes explicit drops now and then.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use anyhow::Result;
use fastrand::Rng;
use serde_json::Value;
use tailrace::explicit::drop_partitions;
use tailrace::explicit::problem::Problem;

use crate::explicit::{drop_of, item, patient, raw};
use crate::support::process::Running;
use crate::support::program::days_ago;
use crate::support::wait::until;

use super::window::{SETTINGS, Window};
use super::writers::partition;
use super::{Left, Soak};

/// Starts the daemon, with commits of few files and a pass every second.
pub fn start(soak: &Soak) -> Result<Running> {
    let heartbeat = soak.objects_folder()?.join("health.json").to_string_lossy().into_owned();
    let mut env = vec![
        ("TAILRACE__HEALTH__FILE", heartbeat.as_str()),
        ("TAILRACE__SCHEDULE__EVERY", "1s"),
        ("TAILRACE__SCHEDULE__JITTER", "0s"),
        ("TAILRACE__DROP__ROW_LOCK_TIMEOUT", "100ms"),
        ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "6"),
        ("TAILRACE__SWEEP__LOCK_DUTY", "0.5"),
        // What comes late is dropped here, however much it is.
        ("TAILRACE__GUARD__MIN_DROP_FILES", "1000000"),
    ];
    env.extend(SETTINGS);
    soak.scene.database.start(&["run"], &env)
}

/// Sets the policy through the program.
pub async fn set_policy(soak: &Soak, keep_days: i64, mode: &str) -> Result<()> {
    let window = |window| *soak.window.lock().unwrap_or_else(PoisonError::into_inner) = window;
    window(None);
    let keep = format!("{keep_days}d");
    let args = ["policy", "set", "lake", "events.raw", "--field", "day(at)", "--keep"];
    let args = [&args[..], &[&keep, "--mode", mode]].concat();
    let output = soak.scene.database.run(&args).await?;
    assert!(output.status.success(), "{output:?}");
    window((mode == "enforce").then(|| Window { keep_days, since: Instant::now() }));
    soak.count("policies set", 1);
    Ok(())
}

/// Drops partitions by hand, young ones too.
async fn drop_some(soak: &Soak, random: &mut Rng) -> Result<()> {
    let number = random.usize(1..12);
    let mut tuples: Vec<_> = (0..number).map(|_| partition(random)).collect();
    tuples.sort();
    tuples.dedup();
    let items = tuples.iter().map(|[day, kind]| item([Some(day), Some(kind)])).collect();
    let mut session = soak.scene.database.tailrace().session().await?;
    match drop_partitions(&mut session, &raw(), &drop_of(items), "me", &patient()).await {
        Ok(answer) => {
            soak.count("drops by hand that matched nothing", u64::from(!answer.committed));
        }
        // The hydrator had a row for longer than this waits.
        Err(Problem::CommitQueueTimeout { .. }) => soak.count("drops by hand that gave up", 1),
        Err(other) => return Err(other.into()),
    }
    Ok(())
}

/// Changes its mind at random, and kills the daemon now and then.
pub async fn operate(soak: Arc<Soak>, mut random: Rng, mut daemon: Running) -> Result<Left> {
    let (mut keep_days, mut paused) = (7, false);
    while soak.goes_on(&mut random, 3000).await {
        match random.u8(0..12) {
            0..4 if paused => {
                paused = false;
                set_policy(&soak, keep_days, "enforce").await?;
            }
            0 => {
                paused = true;
                set_policy(&soak, keep_days, "paused").await?;
            }
            1 => {
                keep_days = 16 - keep_days;
                paused = false;
                set_policy(&soak, keep_days, "enforce").await?;
            }
            2 => {
                daemon.kill().await?;
                daemon = start(&soak)?;
                soak.count("daemons killed", 1);
            }
            _ => drop_some(&soak, &mut random).await?,
        }
    }
    Ok(Left::Daemon(daemon))
}

/// Returns once the daemon, which is stopped then, has dropped all that a keep of 7 days lets go.
pub async fn drop_all_that_expired(soak: &Soak, daemon: Running) -> Result<()> {
    set_policy(soak, 7, "enforce").await?;
    let last_kept: i64 = days_ago(7).parse()?;
    until("all that expired is dropped", async || {
        let mut history = soak.history.lock().await;
        history.read().await?;
        let oldest = history.live_files().filter_map(|(file, _)| file.values[0].as_deref());
        Ok(oldest.filter_map(|day| day.parse::<i64>().ok()).all(|day| day >= last_kept))
    })
    .await?;
    daemon.signal("TERM").await?;
    let ended = daemon.end().await?;
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let errors: Vec<&Value> = ended.log.iter().filter(|line| line["level"] == "ERROR").collect();
    assert_eq!(errors, Vec::<&Value>::new());
    Ok(())
}
