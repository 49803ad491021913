//! Measures renewals of compaction claims on files that are about to be dropped, without a pass.

use std::time::Instant;

use anyhow::{Result, ensure};
use tailrace::claims::{Settings, renew};

use super::{Measured, spread};
use crate::bench::Bench;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::program::{config, govern};
use crate::scale::{DAYS, Fixture};
use crate::statistics::Sample;

/// The number of days whose files are all claimed.
const WINDOW: i64 = 40;

/// How many renewals are measured.
const RENEWALS: usize = 7;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    // No pass runs in between, so the expired files remain in the drop window.
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
        title: "Compaction claims",
        how: format!(
            "Claims on {} files of 1,000,000, in {} rows of `hog_compaction_claim`. The first renewal \
             writes all rows, and {} further renewals find them unchanged. Whole renewals of all catalogs \
             are timed by the clock, with the opening of the session. A daemon renews claims at the same \
             time as passes, every `compaction.renew_every`, without the commit lock.",
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
