//! Tests that a renewal of claims looks up a few keys of each table, however many files there are.

use anyhow::{Context, Result};
use tailrace::claims::renew;
use tailrace_kit::lake::{Field, NewFile};

use super::ALL;
use super::crowd::{Crowd, Statistics};
use super::passes::pass;
use super::pins::assert_keeps_to;
use super::watch::{Executed, Planned, Watch};
use crate::support::TestDatabase;
use crate::support::program::{days_ago, settings};

const CATALOGS: usize = 3;
const TABLES_OF_EACH: usize = 20;
const TABLES: usize = CATALOGS * TABLES_OF_EACH;

/// Tables with 1,000 rows of the calendar each, none of them due for long, and claims of ours on each third of
/// them beside fifty of the server's own.
async fn tables(statistics: Statistics) -> Result<TestDatabase> {
    let database = TestDatabase::new().await?;
    for number in 0..CATALOGS {
        let catalog = database.catalog(&format!("lake{number}")).await?;
        for number in 0..TABLES_OF_EACH {
            let name = format!("t{number}");
            let table = database.table(&catalog, &name, &[Field::day("at")]).await?;
            let age = if number % 3 == 0 { 7 } else { 0 };
            table.append(vec![NewFile::of([days_ago(age)])]).await?;
            database.govern(&table, "at", "7d").await?;
        }
    }
    database.sweep().await?;
    database
        .sql(
            "INSERT INTO tailrace.calendar
             SELECT catalog_id, table_uuid, 1, false, 'x' || no, ends, ends, 86400,
                    CASE WHEN no % 2 = 0 THEN ends END
               FROM tailrace.policy, generate_series(1, 1000) AS no,
                    LATERAL (SELECT now() + no * interval '1 day') AS e (ends);
             INSERT INTO hog_compaction_claim (catalog_id, table_id, group_key, input_file_ids,
                                               claimant, expires_at)
             SELECT catalog_id, 1, no::text, '{1,2}', gen_random_uuid(), now()
               FROM hog_catalog, generate_series(1, 50) AS no",
        )
        .await?;
    let renewed = renew(&database.tailrace(), &crate::claims::settings(), None).await?;
    assert_eq!((renewed.files, renewed.failed), (CATALOGS * TABLES_OF_EACH.div_ceil(3), vec![]));
    if statistics == Statistics::Gathered {
        database.sql("ANALYZE").await?;
    }
    Ok(database)
}

/// That a statement with these words, which was executed once, looked at no more in any of its scans.
fn assert_looks_at(executed: &[Executed], words: &str, most: usize) -> Result<()> {
    let mut with_words = executed.iter().filter(|statement| statement.sql.contains(words));
    let statement = with_words.next().with_context(|| format!("{words:?} was not asked"))?;
    assert!(with_words.next().is_none(), "{words:?} was asked twice");
    for scan in &statement.scans {
        let looked = scan.rows.max(scan.times);
        assert!(looked <= most as f64, "{words:?}: more than {most}: {:#?}", statement.scans);
    }
    Ok(())
}

async fn asked(statistics: Statistics, planned: Planned) -> Result<()> {
    let database = tables(statistics).await?;
    let watch = Watch::begin();
    let through = watch.over(&database, planned);
    let renewed = renew(&through, &crate::claims::settings(), None).await?;
    assert_eq!(renewed.failed, []);
    let executed = watch.take()?;
    // A few rows for each table; of claims all that there are.
    assert_looks_at(&executed, "with enforced as materialized", 2 * TABLES)?;
    assert_looks_at(&executed, "as fresh_ended", 2 * TABLES)?;
    assert_looks_at(&executed, "select distinct table_id from hog_compaction_claim", 180)?;
    assert_looks_at(&executed, "delete from hog_compaction_claim where ctid", 1)?;

    // All are let go at once.
    database.sql("UPDATE tailrace.policy SET mode = 'paused'").await?;
    renew(&through, &crate::claims::settings(), None).await?;
    let executed = watch.take()?;
    // Those of others on these tables are passed over.
    assert_looks_at(&executed, "delete from hog_compaction_claim where ctid", 180)?;
    assert_eq!(
        database.text("SELECT count(*) FROM hog_compaction_claim").await?.as_deref(),
        Some("150")
    );
    Ok(())
}

#[tokio::test]
async fn of_each_table_a_few_keys() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        asked(statistics, planned).await?;
    }
    Ok(())
}

/// No file, value or vector is looked at where nothing is in the window.
#[tokio::test]
async fn an_idle_renewal_reads_no_files() -> Result<()> {
    for (statistics, planned) in ALL {
        println!("{statistics:?}, {planned:?}");
        let crowd = Crowd::new(statistics).await?;
        let watch = Watch::begin();
        let database = watch.over(&crowd.database, planned);
        pass(&database, &settings()).await?;
        renew(&database, &crate::claims::settings(), None).await?;
        watch.take()?;
        let renewed = renew(&database, &crate::claims::settings(), None).await?;
        assert_eq!((renewed.files, renewed.failed), (0, vec![]));
        assert_keeps_to("renewal", &watch.take()?, &[]);
    }
    Ok(())
}
