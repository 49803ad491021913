//! Tests of several catalogs in one pass.

use std::sync::Mutex;

use anyhow::Result;
use tailrace::sweep::report::{Outcome, PassReport};
use tailrace::sweep::{Pacing, Progress, Scope, Settings, run_paced_pass};
use tailrace_kit::lake::Catalog;
use tokio_util::sync::CancellationToken;

use super::{governed, one_by_one};
use crate::support::TestDatabase;
use crate::support::gate::{Gate, leases, queue};
use crate::support::wait::until;

/// Catalogs of these names, each with one governed table and two expired files.
async fn lakes<const N: usize>(database: &TestDatabase, names: [&str; N]) -> Result<Vec<Catalog>> {
    let mut catalogs = Vec::new();
    for name in names {
        let catalog = database.catalog(name).await?;
        governed(database, &catalog, "raw", [9, 8]).await?;
        catalogs.push(catalog);
    }
    Ok(catalogs)
}

fn by_catalog(report: &PassReport) -> Vec<(&str, Outcome, usize)> {
    let tables = report.tables.iter();
    tables.map(|table| (table.catalog.as_str(), table.outcome, table.snapshots.len())).collect()
}

#[tokio::test]
async fn a_slow_catalog_keeps_no_other_one_waiting() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalogs = lakes(&database, ["a", "b", "c"]).await?;
    let gate = Gate::shut(&catalogs[0]).await?;
    let dropped = Mutex::new(Vec::new());
    let note = |progress: Progress<'_>| {
        if let Progress::Dropped { table, .. } = progress {
            dropped.lock().expect("no panic").push(table.catalog.clone());
        }
    };
    let settings = Settings { parallel_catalogs: 2, ..one_by_one() };
    let (pacing, quiet) = (Pacing::default(), CancellationToken::new());
    let (place, scope) = (database.tailrace(), Scope::default());
    let sweep = run_paced_pass(&place, &settings, &scope, &quiet, &note, &pacing);
    let open = async {
        until("the others are through", async || Ok(dropped.lock().expect("no panic").len() == 4))
            .await?;
        queue(&catalogs[0], 1).await?;
        gate.open().await
    };
    let (report, ()) = tokio::try_join!(sweep, open)?;
    assert_eq!(dropped.into_inner()?, ["b", "b", "c", "c", "a", "a"]);
    let all = ["a", "b", "c"].map(|name| (name, Outcome::Dropped, 2));
    assert_eq!(by_catalog(&report), all);
    Ok(())
}

#[tokio::test]
async fn no_more_catalogs_are_in_work_than_may_be() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalogs = lakes(&database, ["a", "b", "c"]).await?;
    let gates = [Gate::shut(&catalogs[0]).await?, Gate::shut(&catalogs[1]).await?];
    let settings = Settings { parallel_catalogs: 2, ..one_by_one() };
    let sweep = database.sweep_with(&settings);
    let open = async {
        queue(&catalogs[0], 1).await?;
        queue(&catalogs[1], 1).await?;
        let mut in_work = Vec::new();
        for catalog in &catalogs {
            in_work.push(leases(catalog).await?);
        }
        assert_eq!(in_work, [1, 1, 0]);
        for gate in gates {
            gate.open().await?;
        }
        anyhow::Ok(())
    };
    let (report, ()) = tokio::try_join!(sweep, open)?;
    assert_eq!(by_catalog(&report), ["a", "b", "c"].map(|name| (name, Outcome::Dropped, 2)));
    Ok(())
}

/// The commits in flight end; no other one starts, in whatever catalog.
#[tokio::test]
async fn a_stop_ends_the_work_on_all_of_them() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalogs = lakes(&database, ["a", "b", "c"]).await?;
    let gates = [Gate::shut(&catalogs[0]).await?, Gate::shut(&catalogs[1]).await?];
    let settings = Settings { parallel_catalogs: 2, ..one_by_one() };
    let (pacing, stop) = (Pacing::default(), CancellationToken::new());
    let (place, scope) = (database.tailrace(), Scope::default());
    let sweep = run_paced_pass(&place, &settings, &scope, &stop, &|_| {}, &pacing);
    let end = async {
        queue(&catalogs[0], 1).await?;
        queue(&catalogs[1], 1).await?;
        stop.cancel();
        for gate in gates {
            gate.open().await?;
        }
        anyhow::Ok(())
    };
    let (report, ()) = tokio::try_join!(sweep, end)?;
    assert_eq!(by_catalog(&report), ["a", "b"].map(|name| (name, Outcome::Partial, 1)));
    for catalog in &catalogs {
        assert_eq!(leases(catalog).await?, 0);
    }
    Ok(())
}

#[tokio::test]
async fn a_catalog_that_fails_stops_no_other_and_is_told_in_its_place() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalogs = lakes(&database, ["a", "b", "c"]).await?;
    // Nothing of ours can be written for this one.
    database
        .sql(&format!(
            "create function refuse() returns trigger language plpgsql as
               $$begin raise exception 'no space'; end$$;
             create trigger refuse before insert on tailrace.spec_copy
               for each row when (new.catalog_id = {}) execute function refuse()",
            catalogs[1].catalog_id
        ))
        .await?;
    let report = database.sweep_with(&one_by_one()).await?;
    assert_eq!(by_catalog(&report), ["a", "c"].map(|name| (name, Outcome::Dropped, 2)));
    let [failed] = report.failed_catalogs.as_slice() else { panic!("{report:?}") };
    assert_eq!((failed.catalog.as_str(), failed.away), ("b", false));
    assert_eq!(failed.error, "the database says: no space (SQLSTATE P0001)");
    Ok(())
}
