//! Measures the memory of the program during a first pass that drops everything.

use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::process::Command;

use super::Measured;
use crate::bench::Bench;
use crate::finding::{Finding, Verdict, grouped};
use crate::program::govern;
use crate::scale::{DAYS, Fixture};

const GOAL: f64 = 64.0;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    govern(&db, &bench.scale.keep(DAYS, DAYS)).await?;
    let clock = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_tailrace"))
        .args(["sweep", "--output", "json"])
        .env_clear()
        .env("TAILRACE__DATABASE__URL", &db.url)
        .env("TAILRACE__SWEEP__LOCK_DUTY", "1")
        .env("TAILRACE__LOG__FILTER", "error")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .kill_on_drop(true)
        .spawn()
        .context("cannot run tailrace")?;
    let process = child.id().context("it has ended already")?;
    let mut output = child.stdout.take().context("its output")?;
    let reading = tokio::spawn(async move {
        let mut text = Vec::new();
        tokio::io::AsyncReadExt::read_to_end(&mut output, &mut text).await.map(|_| text)
    });
    let mut peak = None;
    let status = loop {
        // The kernel's own high-water mark, so nothing between two looks is missed but the last.
        peak = high_water_mib(process).or(peak);
        match tokio::time::timeout(Duration::from_millis(20), child.wait()).await {
            Ok(status) => break status?,
            Err(_) => continue,
        }
    };
    let took = clock.elapsed();
    let report: Value = serde_json::from_slice(&reading.await??).context("its report")?;
    ensure!(status.success(), "tailrace ended with {status}");
    bench.remove(db).await?;

    let snapshots = report["tables"][0]["snapshots"].as_array().cloned().unwrap_or_default();
    let ended: i64 = snapshots.iter().filter_map(|snapshot| snapshot["files_ended"].as_i64()).sum();
    ensure!(ended == bench.scale.files(DAYS * 2_500), "{ended} files were ended");
    let what = format!("peak memory, first pass over {} expired files", grouped(ended));
    let goal = format!("<= {GOAL:.0} MiB");
    Ok(Measured {
        title: "Memory",
        how: format!(
            "`tailrace sweep` runs as a process of its own. The figure is its VmHWM, the peak that the \
             kernel records. With `sweep.lock_duty = 1` it does not wait between commits: {:.0} s for {} \
             snapshots.",
            took.as_secs_f64(),
            snapshots.len()
        ),
        findings: vec![match peak {
            None => Finding::not_measured(&what, &goal, "there is no /proc here".to_owned()),
            Some(peak) => Finding {
                what,
                ours: format!("{peak:.1} MiB"),
                beside: "-".to_owned(),
                figure: format!("{peak:.1} MiB"),
                goal,
                verdict: Verdict::all(&[peak <= GOAL]),
            },
        }],
    })
}

/// The most memory that a process has had at any time.
fn high_water_mib(process: u32) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.trim().split(' ').next()?.parse::<f64>().ok().map(|kib| kib / 1024.0)
}
