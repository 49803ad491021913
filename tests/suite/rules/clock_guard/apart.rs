//! Tests of the host's clock against the database's.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::Field;

use super::{HOUR, Scene, THIS, YEAR, by};
use crate::support::governed::{of_table, outcomes};

#[tokio::test]
async fn a_database_a_year_ahead_drops_nothing() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.files().await?;
    for (database, host) in [(YEAR, 0), (0, YEAR), (301, 0), (0, 301), (-301, 0)] {
        let report = scene.pass(scene.clock(database, host, Some((0, THIS)))).await?;
        let table = of_table(&report, "raw");
        assert_eq!(table.outcome, Outcome::ClockSkew, "{database} {host}");
        assert_eq!((report.failures(), table.snapshots.len()), (1, 0));
        let error = table.error.as_deref().unwrap_or_default();
        assert!(error.starts_with("the database's clock ("), "{error}");
        let do_so = "nothing is dropped until the clocks agree, or `tailrace clock accept lake \
                     --reason TEXT` takes the database's as it is, for one pass";
        assert!(error.ends_with(do_so), "{error}");
        assert_eq!(scene.live().await?, files, "{database} {host}");
    }
    // Five minutes are allowed for, either way.
    assert_eq!(scene.outcome(scene.clock(300, 0, None)).await?, Outcome::Dropped);
    assert_eq!(scene.live().await?, files[1..]);
    assert_eq!(scene.outcome(scene.clock(0, 300, None)).await?, Outcome::NothingToDo);
    Ok(())
}

/// It is told how far the clocks may be.
#[tokio::test]
async fn the_limit_is_a_setting() -> Result<()> {
    let scene = Scene::new().await?;
    scene.files().await?;
    let strict = |clock| tailrace::sweep::Settings {
        max_clock_skew: std::time::Duration::from_secs(1),
        ..by(clock)
    };
    for (ahead, expected) in [(2, Outcome::ClockSkew), (1, Outcome::Dropped)] {
        let report = scene.database.sweep_with(&strict(scene.clock(ahead, 0, None))).await?;
        assert_eq!(outcomes(&report), [("raw", expected)], "{ahead}");
    }
    let ran = scene.database.ran_with(&["config"], &[("TAILRACE__GUARD__MAX_CLOCK_SKEW", "90s")]);
    assert!(ran.await?.out.contains("max_clock_skew = \"1m 30s\""));
    for bad in ["999ms", "25h"] {
        let env = [("TAILRACE__GUARD__MAX_CLOCK_SKEW", bad)];
        let ran = scene.database.ran_with(&["config"], &env).await?;
        assert_eq!(ran.code, 2, "{ran:?}");
    }
    Ok(())
}

/// Whatever the mode, and whatever the policy says: nobody looks at a policy by such a clock.
#[tokio::test]
async fn every_governed_table_in_scope_is_reported() -> Result<()> {
    let scene = Scene::new().await?;
    let spec = [Field::day("at")];
    for (name, mode) in [("watched", Mode::Observe), ("paused", Mode::Paused)] {
        let table = scene.database.table(&scene.catalog, name, &spec).await?;
        scene.database.govern_as(&table, "at", "7d", mode).await?;
    }
    let own = scene.database.table(&scene.catalog, "own", &spec).await?;
    own.set_property("partition_retention", Some(r#"{"field":"at","keep":"7d"}"#)).await?;
    scene.database.table(&scene.catalog, "without", &spec).await?;
    let report = scene.pass(scene.clock(YEAR, HOUR, None)).await?;
    let expected = ["own", "paused", "raw", "watched"].map(|name| (name, Outcome::ClockSkew));
    assert_eq!(outcomes(&report), expected);
    assert_eq!(report.failures(), 4);
    Ok(())
}
