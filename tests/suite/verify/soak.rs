//! Tests of `verify` under load: writers, vectors, compaction, expiry, passes and explicit drops
//! run at the same time, and no verification reports a violation.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use tailrace::verify::report::{Report, Status};
use tailrace::verify::verify;
use tailrace_kit::lake::{CatalogOptions, Field, LakeError, Table};
use tailrace_kit::simulated_loops::{Compaction, Expiry};

use super::settings;
use crate::drop::races::{file, patient};
use crate::support::TestDatabase;

/// Verifications while the others are at work.
const RUNS: usize = 25;

/// A writer that was too late for what another one did.
fn or_late<T>(result: Result<T, LakeError>) -> Result<()> {
    match result {
        Ok(_) | Err(LakeError::Conflict(_) | LakeError::Validation(_)) => Ok(()),
        Err(error) => bail!(error),
    }
}

async fn write(table: &Table, stop: &AtomicBool) -> Result<()> {
    let mut random = fastrand::Rng::with_seed(table.table_id.unsigned_abs());
    while !stop.load(Ordering::Relaxed) {
        let ages = std::iter::repeat_with(|| [0, 1, 2, 9, 10, 11][random.usize(0..6)]);
        let files = ages.take(4).map(file).collect();
        let ids = table.append(files).await?.file_ids;
        or_late(table.register_vector(ids[random.usize(0..4)], 1, None).await)?;
    }
    Ok(())
}

fn of_violations(report: &Report) -> Vec<String> {
    let checks = report.catalogs.iter().flat_map(|catalog| &catalog.checks);
    let violated = checks.filter(|check| check.status == Status::Violated);
    violated.map(|check| format!("{check:?}")).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_run_under_load_finds_a_violation() -> Result<()> {
    let database = TestDatabase::new().await?;
    let retention = Some(Duration::from_secs(1));
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    let catalog = database.lake.catalog("lake", options).await?;
    let mut tables = Vec::new();
    for name in ["raw", "silver"] {
        let table = database.table(&catalog, name, &[Field::day("at")]).await?;
        database.govern(&table, "day(at)", "7d").await?;
        tables.push(table);
    }
    let stop = AtomicBool::new(false);
    let (ours, settings) = (database.tailrace(), settings());
    let compaction = Compaction::new(&catalog, 1_000);
    let expiry = Expiry::new(&catalog);
    let passes = async {
        while !stop.load(Ordering::Relaxed) {
            database.sweep_with(&patient()).await?;
        }
        anyhow::Ok(())
    };
    let maintenance = async {
        while !stop.load(Ordering::Relaxed) {
            for table in &tables {
                compaction.run(table).await?;
            }
            expiry.run().await?;
        }
        anyhow::Ok(())
    };
    let verifications = async {
        let mut drops = 0;
        for run in 0..RUNS {
            let report = verify(&ours, &settings, &Default::default()).await;
            let found = report.map(|report| of_violations(&report));
            if !matches!(&found, Ok(found) if found.is_empty()) || run + 1 == RUNS {
                stop.store(true, Ordering::Relaxed);
            }
            assert_eq!(found?, Vec::<String>::new(), "run {run}");
            drops = drops.max(database.rows("SELECT 1 FROM tailrace.drop_history").await?.len());
        }
        assert!(drops > 0, "there was something to verify");
        anyhow::Ok(())
    };
    tokio::try_join!(
        write(&tables[0], &stop),
        write(&tables[1], &stop),
        passes,
        maintenance,
        verifications
    )?;

    database.sweep_with(&patient()).await?;
    let report = verify(&ours, &settings, &Default::default()).await?;
    assert_eq!(report.status, Status::Ok, "{report:#?}");
    Ok(())
}
