//! Measures the check of expired partitions by the statistics of their files, and shows that this
//! check does not lengthen the hold of the commit lock.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use tailrace::catalog::connect::close;
use tailrace::catalog::live_file::Counts;
use tailrace::catalog::session::Session;
use tailrace::catalog::specs::{spec_book, table_shape};
use tailrace::catalog::tables::{TableIdentity, file_id_counter};
use tailrace::catalog::tuples::TupleOfSpec;
use tailrace::config::CrossCheck;
use tailrace::drop::{DropOutcome, DropRequest, Late, Limits, drop_tuples};
use tailrace::rules::expiry::{Judge, Retention, SpecBook, StoredTuple, Verdict};
use tailrace::rules::hold::Held;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::evidence::{Evidence, Keepers};
use tailrace::sweep::expired::ExpiredTuple;

use super::hold::{many_file_days, texts};
use super::{Measured, spread};
use crate::bare;
use crate::bench::{Bench, Db};
use crate::finding::{Finding, Verdict as Goal, grouped, ms};
use crate::fixture::DAY_COLUMN;
use crate::program::settings;
use crate::scale::{Fixture, SUBJECT};
use crate::statistics::Sample;

/// How often the same files are checked, after one check that does not count.
const LOOKS: usize = 15;

/// Pairs of drops, after one that does not count.
const PAIRS: usize = 9;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let db = bench.copy(Fixture::Million).await?;
    let table = db.table(SUBJECT).await?;
    let settings = settings()?;
    let limits = settings.limits;
    let nothing = Keepers {
        held: Held::default(),
        keep_last: None,
        scan_limits: &settings.scan_limits,
        max_values: settings.max_values,
    };
    let mut session = db.database().session().await?;
    bare::prepare(&mut session).await?;
    let book = spec_book(&mut session, table.catalog_id, table.table_id).await?;
    let judge = judge_of(&mut session, &table, &book, bench.scale.today).await?;
    let mut days = many_file_days(bench);

    let first: Vec<i64> = days.by_ref().take(2).collect();
    let tuples = expired(&db, &table, &judge, &first).await?;
    let files: usize = tuples.iter().map(|tuple| tuple.ids.len()).sum();
    let mut looks = Sample::default();
    for look in 0..=bench.scale.times(LOOKS) {
        let mut evidence = Evidence::new(&table, &judge, &book, CrossCheck::Block, nothing.clone());
        let tuples = tuples.clone();
        let clock = Instant::now();
        let examined = evidence.examine(&mut session, tuples, true).await?;
        let took = clock.elapsed();
        ensure!(examined.expired.len() == first.len(), "kept: {:?}", examined.withheld);
        if look > 0 {
            looks.push_time(took);
        }
    }

    let (mut with, mut without) = (Sample::default(), Sample::default());
    for pair in 0..=bench.scale.times(PAIRS) {
        // The first of two drops may have additional costs, so the two settings take turns in being first.
        for is_on in [pair % 2 == 0, pair % 2 != 0] {
            let days: Vec<i64> = days.by_ref().take(2).collect();
            let counter = file_id_counter(&mut session, table.catalog_id).await?;
            let found_below = counter.context("the catalog is gone")?;
            let tuples = expired(&db, &table, &judge, &days).await?;
            let cross_check = if is_on { CrossCheck::Block } else { CrossCheck::Off };
            let mut evidence = Evidence::new(&table, &judge, &book, cross_check, nothing.clone());
            let examined = evidence.examine(&mut session, tuples, true).await?;
            bare::checkpoint(&mut session).await?;
            let expired_batch =
                ExpiredBatch { tuples: &examined.expired, found_below, evidence: &evidence };
            let held = drop_batch(&mut session, &table, &expired_batch, &limits).await?;
            if pair > 0 {
                if is_on { &mut with } else { &mut without }.push_time(held);
            }
        }
    }
    close(session).await;
    bench.remove(db).await?;
    let ratio = with.median() / without.median();
    let many = grouped(files as i64);
    Ok(Measured {
        title: "Evidence",
        how: format!(
            "The upper bounds of the column statistics of {many} files, two whole days, are read and \
             checked as a pass does before it drops these files: {} times in an open session, with warm \
             pages. The table has 1,000,000 of 1,600,000 files, and each file has one bound. The lock hold \
             is that of the drop of two whole days as a pass makes it, with all files found before. Two \
             settings take turns, {} times each, each after a checkpoint: `guard.cross_check = block`, \
             with this check and with the rule for late files (there are none), and `off`.",
            looks.len(),
            with.len(),
        ),
        findings: vec![
            Finding {
                what: format!("evidence of {many} files, warm, outside the lock"),
                ours: spread(&looks),
                beside: "-".to_owned(),
                figure: ms(looks.median()),
                goal: "<= 100 ms".to_owned(),
                verdict: Goal::all(&[looks.median() <= 100.0]),
            },
            Finding {
                what: format!(
                    "lock hold, {many} files, with the rule for late files, against without"
                ),
                ours: spread(&with),
                beside: spread(&without),
                figure: format!("{ratio:.2}"),
                goal: "ratio <= 1.05".to_owned(),
                verdict: Goal::all(&[ratio <= 1.05]),
            },
        ],
    })
}

/// The rules of a policy by which every day of the fixture has expired.
async fn judge_of(
    session: &mut Session,
    table: &TableIdentity,
    book: &SpecBook,
    today: i64,
) -> Result<Judge> {
    let shape = table_shape(session, table.catalog_id, table.table_id).await?;
    let column = shape.leaf_by_path(DAY_COLUMN).context("the fixture's column")?;
    let now = UtcInstant::from_days(i128::from(today));
    let keep = Duration::from_secs(1);
    Ok(Judge::new(book, Retention { source_field_id: column.field_id, keep, now }))
}

/// Days that have expired, with all of their files.
async fn expired(
    db: &Db,
    table: &TableIdentity,
    judge: &Judge,
    days: &[i64],
) -> Result<Vec<ExpiredTuple>> {
    let mut tuples = Vec::new();
    for text in texts(days) {
        let ids = db.file_ids(table, std::slice::from_ref(&text)).await?;
        let tuple = StoredTuple { keys: vec![0], values: vec![Some(text)] };
        let Verdict::Expired { range_end, doubt } = judge.judge(Some(1), &tuple) else {
            bail!("{tuple:?} has not expired");
        };
        ensure!(doubt.is_none(), "{doubt:?}");
        tuples.push(ExpiredTuple {
            display: judge.display(Some(1), &tuple),
            tuple: TupleOfSpec { spec_id: 1, tuple },
            lookup_key: 0,
            range_end,
            doubt,
            newest: None,
            is_approved: false,
            counts: Counts::default(),
            ids,
        });
    }
    Ok(tuples)
}

/// Tuples that were examined.
struct ExpiredBatch<'a> {
    tuples: &'a [ExpiredTuple],
    found_below: i64,
    evidence: &'a Evidence<'a>,
}

/// Drops the tuples as a pass does, and returns how long the lock was held.
async fn drop_batch(
    session: &mut Session,
    table: &TableIdentity,
    expired_batch: &ExpiredBatch<'_>,
    limits: &Limits,
) -> Result<Duration> {
    let tuples: Vec<_> = expired_batch.tuples.iter().map(|expired| expired.tuple.clone()).collect();
    let numbered = (0_i32..).zip(expired_batch.tuples);
    let mut found: Vec<(i64, i32)> = numbered
        .flat_map(|(number, expired)| expired.ids.iter().map(move |id| (*id, number)))
        .collect();
    found.sort_unstable();
    let (lookup_keys, ambiguous) = (vec![0; tuples.len()], vec![false; tuples.len()]);
    let request = DropRequest {
        table,
        tuples: &tuples,
        lookup_keys: &lookup_keys,
        policy: None,
        found: &found,
        found_below: expired_batch.found_below,
        late: Some(Late { rule: expired_batch.evidence.late_rule(), ambiguous: &ambiguous }),
        is_piece: false,
        fence: false,
        author: "benchmark",
        message: "benchmark",
    };
    let attempt = drop_tuples(session, &request, limits).await;
    match attempt.result.context("the drop")? {
        DropOutcome::Dropped(receipt) => {
            ensure!(receipt.counts.files == found.len() as i64, "{receipt:?}");
            Ok(attempt.lock_hold)
        }
        other => bail!("the drop ended with {other:?}"),
    }
}
