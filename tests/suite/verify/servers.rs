//! Tests of older servers, and of roles that cannot read everything.

use anyhow::{Context, Result};
use tailrace::catalog::connect::Database;
use tailrace::sweep::Scope;
use tailrace::verify::report::{Check, Status};
use tailrace::verify::verify;

use super::{Scene, of, of_status, settings};

#[tokio::test]
async fn older_servers_are_verified_as_far_as_they_can_be() -> Result<()> {
    let table: [(u32, &[Check]); 6] = [
        (22, &[]),
        (18, &[Check::DropHistory]),
        (14, &[Check::DropHistory, Check::Leases]),
        (13, &[Check::DropHistory, Check::Leases]),
        (10, &[Check::DropHistory, Check::Leases]),
        (9, &[Check::DropHistory, Check::Leases]),
    ];
    for (version, unsupported) in table {
        let (scene, _) = Scene::swept().await?;
        scene.database.lake.downgrade(version).await?;
        scene.age().await?;
        let report = scene.violated(&[]).await?;
        assert_eq!(of_status(&report, Status::Unsupported), unsupported, "V{version}");
        let others = of_status(&report, Status::Ok);
        assert_eq!(others.len(), Check::ALL.len() - unsupported.len(), "V{version}: {report:#?}");
        let ran = scene.database.ran(&["verify"]).await?;
        assert_eq!(ran.code, 0, "V{version}: {ran:?}");
        for (check, lacks) in [
            (
                Check::DropHistory,
                "the server has no index hog_data_file_ended, as those before V19",
            ),
            (Check::Leases, "the server is older than V15 and has no compaction claims"),
        ] {
            let told = &of(&report, check)?.notes;
            let is_told = told.iter().any(|note| note.starts_with(lacks));
            assert_eq!(is_told, unsupported.contains(&check), "V{version}: {told:?}");
            let line = format!("  unsupported {}\n      {lacks}", check.name());
            assert_eq!(ran.out.contains(&line), is_told, "V{version}: {}", ran.out);
        }
    }
    Ok(())
}

/// What such a server lacks hides nothing that can be found on it.
#[tokio::test]
async fn on_an_older_server_a_violation_is_one() -> Result<()> {
    let (scene, snapshot_id) = Scene::swept().await?;
    scene.database.lake.downgrade(18).await?;
    scene
        .database
        .sql(&format!("DELETE FROM hog_snapshot_change WHERE snapshot_id = {snapshot_id}"))
        .await?;
    scene.violated(&[Check::DropHistory]).await?;
    Ok(())
}

/// A newer server has the index, unless somebody removed it: that is to be mended, and a failure.
#[tokio::test]
async fn an_index_that_somebody_removed_is_no_lack_of_the_server() -> Result<()> {
    let (scene, _) = Scene::swept().await?;
    scene.database.sql("DROP INDEX hog_data_file_ended").await?;
    let report = scene.report().await?;
    assert_eq!(of_status(&report, Status::Incomplete), [Check::DropHistory], "{report:#?}");
    assert_eq!(report.status, Status::Incomplete);
    let notes = &of(&report, Check::DropHistory)?.notes;
    assert!(notes[0].starts_with("the server's index hog_data_file_ended is missing"), "{notes:?}");
    Ok(())
}

#[tokio::test]
async fn a_role_that_may_not_look_is_told_what_it_lacks() -> Result<()> {
    let (scene, _) = Scene::swept().await?;
    let database = scene.database.tailrace();
    let own = scene.database.text("SELECT current_database()").await?.context("a name")?;
    let role = format!("verifier_{own}");
    scene
        .database
        .sql(&format!(
            "CREATE ROLE {role} LOGIN;
             GRANT USAGE ON SCHEMA public, tailrace TO {role};
             GRANT SELECT ON ALL TABLES IN SCHEMA public, tailrace TO {role};
             REVOKE SELECT ON hog_snapshot_change, tailrace.drop_receipt FROM {role}"
        ))
        .await?;
    let database = Database { options: database.options.username(&role), ..database };
    let report = verify(&database, &settings(), &Scope::default()).await?;
    scene.database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await?;
    let incomplete = of_status(&report, Status::Incomplete);
    assert_eq!(incomplete, [Check::DropHistory, Check::Receipts], "{report:#?}");
    for (check, table) in
        [(Check::DropHistory, "hog_snapshot_change"), (Check::Receipts, "drop_receipt")]
    {
        let expected =
            format!("the database says: permission denied for table {table} (SQLSTATE 42501)");
        assert_eq!(of(&report, check)?.notes, [expected]);
    }
    Ok(())
}
