//! Tests that `verify` reports no violation for what is kept for its evidence.

use anyhow::Result;
use tailrace::sweep::Scope;
use tailrace::verify::report::{Check, Status};
use tailrace::verify::verify;
use tailrace_kit::lake::NewFile;

use super::{Scene, file};
use crate::verify::{of, settings};

#[tokio::test]
async fn what_is_kept_for_its_evidence_is_not_overdue() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    let now = chrono::Utc::now().format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let files = scene
        .append(vec![
            NewFile::of(["42"]),
            file(&["43"], &now),
            // Overdue, by statistics that prove it.
            file(&["44"], "2020-01-01T00:00:00Z"),
        ])
        .await?;
    let day_ago = chrono::Utc::now() - chrono::TimeDelta::days(1);
    scene.catalog.backdate_through(scene.catalog.head().await?, day_ago).await?;
    scene
        .database
        .sql("UPDATE tailrace.policy SET updated_at = clock_timestamp() - interval '1 day'")
        .await?;
    let report = verify(&scene.database.tailrace(), &settings(), &Scope::default()).await?;
    let overdue = of(&report, Check::OverdueFiles)?;
    assert_eq!((overdue.status, overdue.count), (Status::Violated, 1));
    assert_eq!(overdue.samples[0].data_file_id, Some(files[2]));
    scene.database.sweep().await?;
    assert_eq!(scene.live().await?, files[..2]);
    let report = verify(&scene.database.tailrace(), &settings(), &Scope::default()).await?;
    assert_eq!(of(&report, Check::OverdueFiles)?.status, Status::Ok, "{report:#?}");
    Ok(())
}
