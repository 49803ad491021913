//! Measures renewals of claims over many tables with policies, without any file in the drop window.

use std::time::Instant;

use anyhow::{Result, ensure};
use tailrace::catalog::connect::close;
use tailrace::claims::{Settings, renew};

use super::{Measured, spread};
use crate::bare;
use crate::bench::Bench;
use crate::database_time;
use crate::finding::{Finding, Verdict, grouped, ms};
use crate::many::govern_all;
use crate::program::{config, first_passes, steady_settings_at};
use crate::scale::{DAYS_OF_MANY, FILES_OF_MANY, Fixture, TABLES_OF_A_CATALOG};
use crate::statistics::Sample;

/// How many renewals are measured.
const RENEWALS: usize = 7;

/// The results for one fixture with many tables.
struct Found {
    tables: i64,
    first: Sample,
    in_database: Sample,
    by_the_clock: Sample,
    statements: usize,
    wal: Sample,
}

pub async fn measure(bench: &mut Bench) -> Result<Measured> {
    let in_one = measure_one(bench, Fixture::Tables).await?;
    let in_many = measure_one(bench, Fixture::Catalogs).await?;
    let catalogs = grouped(in_many.tables / TABLES_OF_A_CATALOG);
    let names = [
        format!("{} tables in one catalog", grouped(in_one.tables)),
        format!("{catalogs} catalogs of {TABLES_OF_A_CATALOG} tables each"),
    ];
    let both = |told: fn(&Found) -> String| format!("{} and {}", told(&in_one), told(&in_many));
    Ok(Measured {
        title: "Renewals over many tables",
        how: format!(
            "The tables of \"Many tables\", each with {DAYS_OF_MANY} days of {FILES_OF_MANY} files, of which \
             none expires within two days. The first passes come before. The first renewal copies specs \
             and stores rules ({} by the clock). Then {} renewals find nothing to do ({} statements, and a \
             median of {} bytes of WAL). Whole renewals are timed, with the opening of the session.",
            both(|found| ms(found.first.median())),
            in_one.by_the_clock.len(),
            both(|found| grouped(found.statements as i64)),
            both(|found| grouped(found.wal.median() as i64)),
        ),
        findings: names
            .iter()
            .zip([&in_one, &in_many])
            .map(|(name, found)| told(name, found))
            .collect(),
    })
}

fn told(name: &str, found: &Found) -> Finding {
    let (in_database, by_the_clock) = (found.in_database.median(), found.by_the_clock.median());
    Finding {
        what: format!("renewal with nothing to do, {name}"),
        ours: format!("{} in the database", spread(&found.in_database)),
        beside: format!("{} by the clock", spread(&found.by_the_clock)),
        figure: format!("{} and {}", ms(in_database), ms(by_the_clock)),
        goal: "<= 1 s in the database, <= 2 s by the clock".to_owned(),
        verdict: Verdict::all(&[in_database <= 1_000.0, by_the_clock <= 2_000.0]),
    }
}

async fn measure_one(bench: &mut Bench, fixture: Fixture) -> Result<Found> {
    let db = bench.copy(fixture).await?;
    let (tables, _) = govern_all(&db, DAYS_OF_MANY + 4).await?;
    first_passes(&db, &steady_settings_at(chrono::Utc::now().timestamp())?).await?;
    let settings = Settings::from_config(&config()?);
    let mut found = Found {
        tables,
        first: Sample::default(),
        in_database: Sample::default(),
        by_the_clock: Sample::default(),
        statements: 0,
        wal: Sample::default(),
    };
    let clock = Instant::now();
    renew(&db.database(), &settings, None).await?;
    found.first.push_time(clock.elapsed());
    database_time::log_statements(bench, &db).await?;
    for _ in 0..bench.scale.times(RENEWALS) {
        let mut session = db.database().session().await?;
        let wal = bare::wal(&mut session).await?;
        let mark = database_time::mark(bench)?;
        let clock = Instant::now();
        let renewed = renew(&db.database(), &settings, None).await?;
        found.by_the_clock.push_time(clock.elapsed());
        let spent = database_time::since(bench, &db, mark)?;
        found.wal.push((bare::wal(&mut session).await? - wal) as f64);
        close(session).await;
        ensure!(renewed.failed.is_empty(), "a renewal failed: {:?}", renewed.failed);
        ensure!(renewed.files == 0, "{} files were claimed", renewed.files);
        found.in_database.push(spent.ms);
        found.statements = spent.statements;
    }
    bench.remove(db).await?;
    Ok(found)
}
