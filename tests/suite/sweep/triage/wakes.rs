//! Tests that a pass which was woken works only on what is due.

use anyhow::Result;
use tailrace::policy::Mode;
use tailrace::sweep::{Kind, Scope, Settings};
use tailrace_kit::lake::NewFile;

use super::Scene;
use crate::support::program::{days_ago, settings};

const DUE: &str = "INSERT INTO tailrace.calendar (catalog_id, table_uuid, spec_id, is_day, value,
                     range_end, last_end, span_seconds)
                   SELECT catalog_id, table_uuid, 1, false, '18000', now() - interval '8 days',
                          now() - interval '8 days', 86400
                   FROM hog_table";

#[tokio::test]
async fn it_works_on_due_rows_alone() -> Result<()> {
    let scene = Scene::settled().await?;
    let wake = Settings { kind: Kind::Wake, ..settings() };
    let woken = async || scene.pass(&wake, &Scope::default()).await;
    // Files that came late, a full pass and a catalog with specs to copy are for regular passes.
    scene.raw.append(vec![NewFile::of([days_ago(9)])]).await?;
    scene
        .database
        .sql(
            "UPDATE tailrace.table_state SET owes_full_pass = true;
              DELETE FROM tailrace.spec_copy;
              UPDATE tailrace.catalog_state SET specs_copied_at_version = null",
        )
        .await?;
    let (worked, report) = woken().await?;
    assert_eq!((worked.len(), report.tables.len()), (0, 0));

    scene.database.sql(DUE).await?;
    scene.database.govern_as(&scene.other, "at", "7d", Mode::Observe).await?;
    let (worked, report) = woken().await?;
    assert_eq!(worked, ["raw"]);
    assert_eq!(report.tables.len(), 1, "what it did not work on is not in its report");
    let copies = "SELECT count(*) FROM tailrace.spec_copy";
    assert_eq!(scene.database.text(copies).await?.as_deref(), Some("0"));

    // It leaves to regular passes what is theirs.
    scene.database.sql("UPDATE tailrace.table_state SET outcome = null").await?;
    woken().await?;
    let unfinished = "SELECT count(*) FROM tailrace.table_state WHERE outcome IS NULL";
    assert_eq!(scene.database.text(unfinished).await?.as_deref(), Some("2"));

    // What is to be quiet is not woken for.
    let quiet = "UPDATE tailrace.table_state SET quiet_until = now() + interval '1 minute'";
    scene.database.sql(quiet).await?;
    assert_eq!(woken().await?.0, Vec::<String>::new());
    Ok(())
}
