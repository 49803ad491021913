//! Measures a table that is partitioned by the instant itself, so that each instant is a partition.

use anyhow::Result;

use super::idle::idle;
use super::{Measured, spread};
use crate::bench::Bench;
use crate::calendar;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::scale::{DAYS_OF_INSTANTS, Fixture};

/// The most rows that the calendar may have.
const GOAL: i64 = 5_000;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.built(Fixture::Instants).await?;
    // One day more than the fixture has, because an instant expires at its own time of the day.
    let found = idle(bench, &db, &bench.scale.keep(DAYS_OF_INSTANTS + 1, 0)).await?;
    let rows = calendar::rows(&db.pool).await?;
    bench.remove(db).await?;
    let what = format!(
        "{} distinct instants in {} days under identity(timestamp)",
        grouped(found.files),
        grouped(DAYS_OF_INSTANTS)
    );
    Ok(Measured {
        title: "Instants",
        how: format!(
            "Each instant has one file. The first pass is timed by the clock: it reads all files and drops \
             nothing. Then {} passes have nothing to do, and take {} by the clock. The calendar rows are \
             those of `tailrace.calendar` afterwards.",
            found.in_database.len(),
            spread(&found.by_the_clock),
        ),
        findings: vec![Finding {
            what,
            ours: format!("{} in the database with nothing to do", spread(&found.in_database)),
            beside: format!("first pass {}", ms(found.first_pass_ms)),
            figure: format!("{} calendar rows", grouped(rows)),
            goal: format!("<= {} calendar rows", grouped(GOAL)),
            verdict: match rows {
                0 => Verdict::NotMeasured("the calendar has no row".to_owned()),
                rows => Verdict::all(&[rows <= GOAL]),
            },
        }],
    })
}
