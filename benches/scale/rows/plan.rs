//! Measures `tailrace plan` of a table that passes have read before.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use tailrace::sweep::Scope;
use tailrace::sweep::plan_report::PlanReport;
use tailrace::sweep::planning::plan_all;

use super::{Measured, spread};
use crate::bench::{Bench, Db};
use crate::database_time;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::program::{first_passes, govern, settings};
use crate::scale::{DAYS, Fixture, SUBJECT};
use crate::statistics::Sample;

/// How many plans of each kind are measured.
const PLANS: usize = 7;

/// The number of expired days in the second kind of plan.
const EXPIRED: i64 = 40;

/// Plans of one kind.
#[derive(Default)]
struct Plans {
    in_database: Sample,
    by_the_clock: Sample,
}

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let all = db.live_files(&db.table(SUBJECT).await?).await?;
    govern(&db, &bench.scale.keep(DAYS, 0)).await?;
    first_passes(&db, &settings()?).await?;
    database_time::log_statements(bench, &db).await?;
    let nothing = plans(bench, &db, 0).await?;
    // No pass runs in between, so the expired files are still live.
    govern(&db, &bench.scale.keep(DAYS, EXPIRED)).await?;
    let expired = bench.scale.files(EXPIRED * 2_500);
    let some = plans(bench, &db, expired).await?;
    bench.remove(db).await?;

    let base = nothing.by_the_clock.median();
    let each = (some.by_the_clock.median() - base) * 1e3 / expired as f64;
    Ok(Measured {
        title: "A plan",
        how: format!(
            "The function that `tailrace plan` calls is timed from the opening of its session to the \
             report, after a pass has read the table. Nothing has expired: {} times. After `keep` was \
             changed so that the oldest {EXPIRED} days have expired, which the plan lists with their \
             counts: {} times. In the database the two take {} and {}.",
            nothing.by_the_clock.len(),
            some.by_the_clock.len(),
            spread(&nothing.in_database),
            spread(&some.in_database),
        ),
        findings: vec![
            Finding {
                what: format!("plan of {} files / {DAYS} days, nothing expired", grouped(all)),
                ours: spread(&nothing.by_the_clock),
                beside: "-".to_owned(),
                figure: ms(base),
                goal: "<= 20 ms by the clock".to_owned(),
                verdict: Verdict::all(&[base <= 20.0]),
            },
            Finding {
                what: format!("plan with {} files expired, against none expired", grouped(expired)),
                ours: spread(&some.by_the_clock),
                beside: spread(&nothing.by_the_clock),
                figure: format!("{each:.1} us more for each expired file"),
                goal: "<= 15 us more a file".to_owned(),
                verdict: Verdict::all(&[each <= 15.0]),
            },
        ],
    })
}

/// Makes plans, each of which must list this number of expired files.
async fn plans(bench: &Bench, db: &Db, expired: i64) -> Result<Plans> {
    let (database, settings) = (db.database(), settings()?);
    let mut plans = Plans::default();
    for _ in 0..bench.scale.times(PLANS) {
        let mark = database_time::mark(bench)?;
        let clock = Instant::now();
        let planned = plan_all(&database, &settings, &Scope::default(), None).await?;
        let report = PlanReport::of(&planned);
        plans.by_the_clock.push_time(clock.elapsed());
        plans.in_database.push(database_time::since(bench, db, mark)?.ms);
        let table = report.tables.first().context("no table is governed")?;
        if let Some(error) = &table.error {
            anyhow::bail!("there is no plan: {error}");
        }
        let files: i64 = table.expired.iter().map(|partition| partition.counts.files).sum();
        ensure!(files == expired, "{files} files in place of {expired}");
    }
    Ok(plans)
}
