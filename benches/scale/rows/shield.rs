//! The claims that keep compaction from files about to be dropped, apart from the pass.

use std::time::Instant;

use anyhow::{Result, ensure};
use tailrace::claims::{Settings, renew};

use super::{Measured, spread};
use crate::bench::Bench;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::program::{config, govern};
use crate::scale::{DAYS, Fixture};
use crate::statistics::Sample;

/// Of so many days all files are claimed.
const WINDOW: i64 = 40;

/// How many renewals are measured.
const RENEWALS: usize = 7;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    // No pass comes in between, so what has expired stays in the window.
    govern(&db, &bench.scale.keep(DAYS, WINDOW)).await?;
    let settings = Settings::from_config(&config()?);
    let first = renew(&db.database(), &settings, None).await?;
    ensure!(first.failed.is_empty(), "a renewal failed: {:?}", first.failed);
    let mut renewals = Sample::default();
    for _ in 0..bench.scale.times(RENEWALS) {
        let began = Instant::now();
        let again = renew(&db.database(), &settings, None).await?;
        renewals.push_time(began.elapsed());
        ensure!(again.files == first.files, "{} files, then {}", first.files, again.files);
    }
    bench.remove(db).await?;
    Ok(Measured {
        title: "The shield",
        how: format!(
            "Claims on {} files of 1,000,000 in {} rows of hog_compaction_claim: the first renewal, which \
             writes them all, and {} that find them as they were. Whole renewals by the clock, of all \
             catalogs, the opening of the session included. It runs beside the passes, every \
             compaction.renew_every, and takes no commit lock.",
            grouped(first.files as i64),
            first.rows,
            renewals.len()
        ),
        findings: vec![Finding {
            what: format!("renewal of the claims on {} files", grouped(first.files as i64)),
            ours: spread(&renewals),
            beside: format!("{} the first time", ms(first.took.as_secs_f64() * 1e3)),
            figure: ms(renewals.median()),
            goal: "measured apart from the pass".to_owned(),
            verdict: Verdict::NoGoal,
        }],
    })
}
