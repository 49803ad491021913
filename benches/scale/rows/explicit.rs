//! Measures the explicit drop of many tuples by one request.

use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use tailrace::catalog::connect::close;
use tailrace::catalog::session::Session;
use tailrace::explicit::call::{DropBody, PartitionItem, TableRef};
use tailrace::explicit::{Bounds, drop_partitions};
use uuid::Uuid;

use super::{Measured, spread};
use crate::bare;
use crate::bench::Bench;
use crate::finding::{Finding, Verdict, grouped};
use crate::fixture::{CATALOG, NAMESPACE};
use crate::program::config;
use crate::scale::{DAYS_OF_A_REQUEST, Fixture, KINDS, REQUESTS, SUBJECT};
use crate::statistics::Sample;

/// Copies of the fixture; each serves two requests and two bare UPDATEs.
const COPIES: usize = 3;

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let mut bounds = Bounds::from_config(&config()?);
    // On a busy machine a drop should be slow in the results, and not refused.
    bounds.limits.max_hold = Duration::from_secs(60);
    bounds.max_files = i64::MAX;
    let oldest = bench.scale.oldest_day(DAYS_OF_A_REQUEST * REQUESTS);
    let files = DAYS_OF_A_REQUEST * KINDS * bench.scale.files(100);
    let (mut whole, mut bares) = (Sample::default(), Sample::default());
    for copy in 0..bench.scale.times(COPIES) {
        let db = bench.copy(Fixture::Tuples).await?;
        let table = db.table(SUBJECT).await?;
        let mut session = db.database().session().await?;
        bare::prepare(&mut session).await?;
        for request in 0..REQUESTS {
            let first = oldest + request * DAYS_OF_A_REQUEST;
            let days: Vec<i64> = (first..first + DAYS_OF_A_REQUEST).collect();
            let ids = db.file_ids(&table, &super::hold::texts(&days)).await?;
            ensure!(ids.len() as i64 == files, "{} files in place of {files}", ids.len());
            bare::checkpoint(&mut session).await?;
            if (request + copy as i64) % 2 == 0 {
                whole.push_time(request_drop(&mut session, &days, &bounds, files).await?);
            } else {
                bares.push_time(bare::end_files(&mut session, table.catalog_id, &ids).await?);
            }
        }
        close(session).await;
        bench.remove(db).await?;
    }
    let ratio = whole.median() / bares.median();
    let tuples = DAYS_OF_A_REQUEST * KINDS;
    Ok(Measured {
        title: "Explicit drop",
        how: format!(
            "The function of the HTTP endpoint is called once, in an open session, and timed from the \
             request to the answer: validation, planning, commit, receipt. It takes turns with the bare \
             UPDATE of as many rows of other days, {} times each. `drop.max_hold` is 60 s here, in place \
             of 4 s, and `drop.max_files` has no effect.",
            whole.len()
        ),
        findings: vec![Finding {
            what: format!(
                "explicit drop of {} tuples x {} files, whole request, against the bare UPDATE",
                grouped(tuples),
                grouped(files / tuples)
            ),
            ours: spread(&whole),
            beside: spread(&bares),
            figure: format!("{ratio:.2}"),
            goal: "ratio <= 1.3".to_owned(),
            verdict: Verdict::all(&[ratio <= 1.3]),
        }],
    })
}

async fn request_drop(
    session: &mut Session,
    days: &[i64],
    bounds: &Bounds,
    files: i64,
) -> Result<Duration> {
    let item = |day: i64, kind: i64| PartitionItem {
        partition_values: vec![Some(day.to_string()), Some(format!("kind {kind}"))],
        spec_id: None,
        literal: false,
    };
    let body = DropBody {
        partitions: days.iter().flat_map(|day| (1..=KINDS).map(|kind| item(*day, kind))).collect(),
        idempotency_key: Uuid::new_v4(),
        expected_table_uuid: None,
        read_snapshot: None,
        author: None,
        message: None,
        dry_run: false,
        fence: false,
    };
    let table = TableRef {
        catalog: CATALOG.to_owned(),
        namespace: NAMESPACE.to_owned(),
        table: SUBJECT.to_owned(),
    };
    let clock = Instant::now();
    let answer = drop_partitions(session, &table, &body, "benchmark", bounds).await;
    let took = clock.elapsed();
    let answer = answer.map_err(|problem| anyhow!("the drop was refused: {problem:?}"))?;
    ensure!(answer.files_ended == files, "{} files were ended", answer.files_ended);
    Ok(took)
}
