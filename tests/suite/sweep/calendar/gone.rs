//! Tests of the calendar of a table that was dropped.

use std::time::Duration;

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::catalog::gone_tables::purge_gone_tables;
use tailrace_kit::lake::Field;

use super::{DAY, Scene};

/// It goes once the table was seen gone for longer than it is kept, with the table's state; not in a catalog that is
/// left alone, nor that of a table that was back in between.
#[tokio::test]
async fn it_goes_a_while_after_its_table_was_seen_gone() -> Result<()> {
    let scene = Scene::new(&[Field::day("at")]).await?;
    scene.table.append(vec![scene.file(0), scene.file(1)]).await?;
    scene.sweep().await?;
    let mut session = scene.database.tailrace().session().await?;
    let dropped = "UPDATE hog_table SET dropped_snapshot = 1";
    let back = "UPDATE hog_table SET dropped_snapshot = NULL";
    let (of_catalog, second) = (vec![scene.catalog.catalog_id], Duration::from_secs(1));
    let left = "SELECT (SELECT count(*) FROM tailrace.calendar) || ' '
                || (SELECT count(*) FROM tailrace.table_state)";
    let mut now = scene.now;
    for (then, after, but, rows) in [
        (dropped, second, &[][..], "2 1"),
        (back, DAY * 2, &[], "2 1"),
        (dropped, second, &[], "2 1"),
        (dropped, DAY, &[], "2 1"),
        (dropped, second, &of_catalog, "2 1"),
        (dropped, second, &[], "0 0"),
    ] {
        scene.database.sql(then).await?;
        now = now.plus(after);
        purge_gone_tables(&mut session, now, DAY, but).await?;
        assert_eq!(scene.database.text(left).await?.as_deref(), Some(rows), "{then} {now}");
    }
    close(session).await;
    Ok(())
}
