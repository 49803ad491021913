//! Older servers, and roles that may not see everything.

use anyhow::{Context, Result};
use tailrace::catalog::connect::Database;
use tailrace::sweep::Scope;
use tailrace::verify::report::{Check, Status};
use tailrace::verify::verify;

use super::{Scene, of, of_status, settings};

#[tokio::test]
async fn older_servers_are_verified_as_far_as_they_can_be() -> Result<()> {
    for version in [22, 18, 14, 13, 10, 9] {
        let (scene, _) = Scene::swept().await?;
        scene.database.lake.downgrade(version).await?;
        scene.age().await?;
        let report = scene.report().await?;
        let incomplete = of_status(&report, Status::Incomplete);
        let expected = if version < 19 { vec![Check::DropHistory] } else { Vec::new() };
        assert_eq!(incomplete, expected, "V{version}: {report:#?}");
        let others = of_status(&report, Status::Ok);
        assert_eq!(others.len(), Check::ALL.len() - expected.len(), "V{version}");
        let leases = of(&report, Check::Leases)?;
        let old = leases.notes.iter().any(|note| note.contains("older than V15"));
        assert_eq!(old, version < 15, "V{version}: {leases:?}");
    }
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
