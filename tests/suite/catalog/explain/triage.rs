//! Tests of the statements by which a pass finds the tables that have work.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Scope, run_pass};
use tailrace_kit::lake::{Field, NewFile};
use tokio_util::sync::CancellationToken;

use super::crowd::{Crowd, Statistics};
use super::passes::pass;
use super::pins::{assert_keeps_to, by};
use super::watch::Watch;
use super::{ALL, LIVE};
use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};
use crate::sweep::triage::settle;

/// One descent of the live files for each governed table, however many files anybody has.
#[tokio::test]
async fn new_files_are_asked_of_the_live_ones() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        let crowd = Crowd::new(statistics).await?;
        let watch = Watch::begin();
        let database = watch.over(&crowd.database, planned);
        pass(&database, &settings()).await?;
        settle(&crowd.database).await?;
        let noisy = crowd.catalog.open_table("events", "noisy").await?;
        noisy.append(vec![NewFile::of([days_ago(0)])]).await?;
        watch.take()?;
        let reports = pass(&database, &settings()).await?;
        assert_eq!(reports.map(|report| report.outcome), [Outcome::NothingToDo; 2]);
        assert_keeps_to("triage", &watch.take()?, &[by("new files", &[(LIVE, 2)])]);
    }
    Ok(())
}

const CATALOGS: usize = 12;
const TABLES_OF_EACH: usize = 4;

/// What is noted of catalogs and tables is found for each of them by its key: no statement of a pass compares
/// each with each, however few of them the planner believes in.
#[tokio::test]
async fn no_table_is_compared_with_another() -> Result<()> {
    for (statistics, planned) in ALL {
        let database = TestDatabase::new().await?;
        for number in 0..CATALOGS {
            let catalog = database.catalog(&format!("lake{number}")).await?;
            for number in 0..TABLES_OF_EACH {
                let name = format!("t{number}");
                let table = database.table(&catalog, &name, &[Field::day("at")]).await?;
                table.append(vec![NewFile::of([days_ago(0)])]).await?;
                database.govern(&table, "at", "7d").await?;
            }
        }
        database.sweep().await?;
        settle(&database).await?;
        if statistics == Statistics::Gathered {
            database.sql("ANALYZE").await?;
        }
        let watch = Watch::begin();
        run_pass(
            &watch.over(&database, planned),
            &settings(),
            &Scope::default(),
            &CancellationToken::new(),
            &|_| {},
        )
        .await?;
        let mut executed = watch.take()?;
        executed.retain(|statement| statement.compared > (CATALOGS * TABLES_OF_EACH) as f64);
        assert!(executed.is_empty(), "{statistics:?}, {planned:?}: {executed:#?}");
    }
    Ok(())
}
