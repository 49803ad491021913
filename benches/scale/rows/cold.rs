//! Measures the hold of the commit lock with cold caches: after a restart of the server, with its
//! files removed from the operating system's cache too.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tailrace::catalog::connect::close;
use tailrace_kit::server::StopMode;

use super::hold::{Days, drop_days, many_file_days, texts};
use super::{Measured, spread};
use crate::bench::Bench;
use crate::finding::{Finding, Verdict, grouped};
use crate::program::settings;
use crate::scale::{Fixture, SUBJECT};
use crate::statistics::Sample;

/// Pairs of measurements. Each costs two restarts.
const PAIRS: usize = 5;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let limits = settings()?.limits;
    let db = bench.copy(Fixture::Million).await?;
    let name = db.name.clone();
    let table = db.table(SUBJECT).await?;
    // The files of the days are looked up while all pages are warm.
    let mut rounds = Vec::new();
    let mut days = many_file_days(bench);
    for _ in 0..2 * bench.scale.times(PAIRS) {
        let days: Vec<i64> = days.by_ref().take(2).collect();
        let files = db.file_ids(&table, &texts(&days)).await?.len() as i64;
        rounds.push(Days { days, files });
    }
    db.leave().await;

    let (mut prewarmed, mut cold) = (Sample::default(), Sample::default());
    let mut refusal = None;
    for (round, days) in rounds.iter().enumerate() {
        bench.server.stop(StopMode::Fast).await?;
        let forgotten = forget(bench.server.folder());
        bench.server.restart(StopMode::Fast).await?;
        if let Err(error) = forgotten {
            refusal = Some(format!("{error:#}"));
            break;
        }
        let is_prewarmed = round % 2 == 0;
        let holds = if is_prewarmed { &mut prewarmed } else { &mut cold };
        let db = bench.open(&name)?;
        let mut session = db.database().session().await?;
        holds.push_time(drop_days(&mut session, &table, days, &limits, is_prewarmed).await?);
        close(session).await;
        db.leave().await;
    }
    let db = bench.open(&name)?;
    bench.remove(db).await?;

    let files = rounds.first().map_or(0, |days| days.files);
    let what = format!(
        "lock hold, {} files, cold pages, against a drop without prewarming",
        grouped(files)
    );
    let goal = "at least 3 times shorter";
    let times = cold.median() / prewarmed.median();
    Ok(Measured {
        title: "Cold pages",
        how: format!(
            "Before each of {} drops the server is stopped, its files are removed from the operating \
             system's cache (`dd iflag=nocache count=0` for each file), and the server is started again. \
             Then tailrace opens a session and drops two other days. Every other drop prewarms the pages \
             before it asks for the commit lock, as a pass does, and the others do not. What each step of \
             prewarming saves: [performance-warming.md](performance-warming.md).",
            prewarmed.len() + cold.len()
        ),
        findings: vec![match refusal {
            Some(reason) => Finding::not_measured(&what, goal, reason),
            None => Finding {
                what,
                ours: spread(&prewarmed),
                beside: spread(&cold),
                figure: format!("{times:.1} times shorter"),
                goal: goal.to_owned(),
                verdict: Verdict::all(&[times >= 3.0]),
            },
        }],
    })
}

/// Has the operating system write the files below a folder and remove them from its cache. No process may have
/// them open. This needs only the right to read the files, and leaves the cache of other files as it is.
fn forget(folder: &Path) -> Result<()> {
    let script = "sync && find \"$1\" -type f -size +0 -exec sh -c '\
                    for file; do dd if=\"$file\" iflag=nocache count=0 status=none || exit 1; done' sh {} +";
    let output = Command::new("sh").args(["-c", script, "forget"]).arg(folder).output();
    let output = output.context("cannot run the shell `sh`")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "the cache cannot be emptied here: {}",
        complaint.lines().next().unwrap_or("dd does not know iflag=nocache")
    );
    Ok(())
}
