//! Measures other ways to delete one day: one deletion vector for each of its files, and other tools.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use tokio::process::Command;

use super::day::new_days;
use super::{Measured, vectors};
use crate::bench::Bench;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::fixture::{CATALOG, NAMESPACE};
use crate::program::govern;
use crate::scale::{Fixture, SUBJECT};
use crate::statistics::Sample;

/// The numbers of days of the tables.
const DAYS: [i64; 3] = [10, 100, 300];
/// How often each is measured.
const TIMES: usize = 3;
/// The other tools, by the names that their runner has for them.
const TOOLS: [&str; 3] = ["delta-rs", "pyiceberg", "ducklake"];
/// The program that runs them; its README describes the lines that it prints.
const RUNNER: &str = "benches/others/run";

/// Milliseconds by the number of days.
type ByDays = BTreeMap<i64, f64>;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let files = bench.scale.files(1_000);
    let (mut ours, mut theirs) = (ByDays::new(), ByDays::new());
    let mut steps = Vec::new();
    for days in DAYS {
        let (pass, vectors) = on_the_catalog(bench, days, files, &mut steps).await?;
        ours.insert(days, pass);
        theirs.insert(days, vectors);
    }
    let mut findings = vec![compared("one vector per file", &ours, &theirs, files)];
    let mut tools = Vec::new();
    for tool in TOOLS {
        findings.push(match by_tool(bench, tool, files).await {
            Ok((theirs, version)) => {
                tools.push(version);
                compared(tool, &ours, &theirs, files)
            }
            Err(reason) => Finding::not_measured(&what(tool, files), GOAL, format!("{reason:#}")),
        });
    }
    Ok(Measured {
        title: "Other ways to drop one day",
        how: format!(
            "One day is dropped from tables of {} days. tailrace: the whole pass that drops a newly \
             expired day, measured as above. One vector per file: an engine reads the snapshot's files \
             with their partition values, writes a deletion vector for each file of the day into a local \
             folder, and registers all of them in one commit on the same catalog ({}). The files stay, \
             and every later reader has to open them. The other tools ({}) drop a day from tables of \
             their own with as many files. They are timed from the opening of the table to the end of \
             the drop, in a process that already runs. Their catalogs, where they have one, are in the \
             same Postgres: see benches/others/README.md. Medians of {TIMES}.",
            DAYS.map(|days| days.to_string()).join(", "),
            steps.join("; "),
            tools.join("; ")
        ),
        findings,
    })
}

/// The times of a whole pass of tailrace and of the vectors, in milliseconds.
async fn on_the_catalog(
    bench: &mut Bench,
    days: i64,
    files: i64,
    steps: &mut Vec<String>,
) -> Result<(f64, f64)> {
    let times = bench.scale.times(TIMES);
    let oldest = bench.scale.oldest_day(days);
    let folder = tempfile::tempdir()?;
    let db = bench.copy(Fixture::Days(days)).await?;
    let lake = db.lake();
    let table = lake.open_catalog(CATALOG).await?.open_table(NAMESPACE, SUBJECT).await?;
    let (mut all, mut list, mut write, mut register) =
        (Sample::default(), Sample::default(), Sample::default(), Sample::default());
    // From the newest day backwards, so that tailrace drops other days.
    for time in 0..times as i64 {
        let day = (oldest + days - 1 - time).to_string();
        let took = vectors::delete_rows(&table, &day, files, folder.path()).await?;
        all.push_time(took.all());
        list.push_time(took.list);
        write.push_time(took.write);
        register.push_time(took.register);
    }
    lake.pool().close().await;
    steps.push(format!(
        "{days} days: reading {} + writing {} + registering {}",
        ms(list.median()),
        ms(write.median()),
        ms(register.median())
    ));
    govern(&db, &bench.scale.keep(days, 0)).await?;
    let ours = new_days(bench, &db, 0..times as i64, files).await?;
    bench.remove(db).await?;
    Ok((ours.whole.median(), all.median()))
}

const GOAL: &str = "faster, by a factor that grows with the table";

fn what(name: &str, files: i64) -> String {
    format!(
        "dropping one day of {} files from 10, 100 and 300 days, against {name}",
        grouped(files)
    )
}

fn listed(by_days: &ByDays) -> String {
    by_days.values().map(|value| ms(*value)).collect::<Vec<_>>().join(", ")
}

fn compared(name: &str, ours: &ByDays, theirs: &ByDays, files: i64) -> Finding {
    let factors: Vec<f64> =
        DAYS.iter().filter_map(|days| Some(theirs.get(days)? / ours.get(days)?)).collect();
    let is_ahead = factors.len() == DAYS.len() && factors.iter().all(|factor| *factor > 1.0);
    let grows = factors.is_sorted() && factors.first() < factors.last();
    let factors: Vec<_> = factors.iter().map(|factor| format!("{factor:.1}")).collect();
    Finding {
        what: what(name, files),
        ours: listed(ours),
        beside: listed(theirs),
        figure: format!("{} times", factors.join(", ")),
        goal: GOAL.to_owned(),
        verdict: Verdict::all(&[is_ahead, grows]),
    }
}

/// One line of the runner's output: a figure, or the reason why there is none.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Line {
    Figure {
        tool: String,
        version: String,
        catalog: String,
        days: i64,
        seconds: f64,
        open_seconds: f64,
    },
    None {
        not_available: String,
    },
}

/// The times of a tool, and its name and version.
async fn by_tool(bench: &Bench, tool: &str, files: i64) -> Result<(ByDays, String)> {
    anyhow::ensure!(Path::new(RUNNER).exists(), "there is no {RUNNER}");
    let days: Vec<_> = DAYS.iter().map(i64::to_string).collect();
    let output = Command::new(RUNNER)
        .args([tool, "--postgres", "--days", &days.join(",")])
        .args(["--files-per-day", &files.to_string(), "--repeat", &TIMES.to_string()])
        .env("PGHOST", bench.server.folder())
        .envs([("PGPORT", "5432"), ("PGUSER", "postgres"), ("PGDATABASE", "postgres")])
        .output()
        .await
        .with_context(|| format!("cannot run {RUNNER}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().last().unwrap_or("it gave no reason");
    anyhow::ensure!(output.status.success(), "{complaint}");
    let (mut found, mut opened, mut which) = (ByDays::new(), ByDays::new(), String::new());
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        match serde_json::from_str(line).with_context(|| format!("it said {line:?}"))? {
            Line::Figure { tool, version, catalog, days, seconds, open_seconds } => {
                found.insert(days, (open_seconds + seconds) * 1e3);
                opened.insert(days, open_seconds * 1e3);
                which = format!("{tool} {version}, catalog: {catalog}");
            }
            Line::None { not_available } => anyhow::bail!("not available here: {not_available}"),
        }
    }
    Ok((found, format!("{which}, opening {}", listed(&opened))))
}
