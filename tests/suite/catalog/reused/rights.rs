//! Tests that the documented rights are enough to settle a restore and to maintain tombstones.

use anyhow::{Context, Result};
use tailrace::installation::rights::{Purpose, needed};
use tailrace_kit::lake::Field;

use super::Scene;

#[tokio::test]
async fn the_readme_grants_are_enough_to_settle_a_restore() -> Result<()> {
    let scene = Scene::new().await?;
    scene.append([9, 3, 0]).await?;
    scene.sweep().await?;
    let own = scene.database.text("SELECT current_database()").await?.context("a name")?;
    let role = format!("attack_{own}");
    scene
        .database
        .sql(&format!(
            "DROP ROLE IF EXISTS {role}; CREATE ROLE {role} LOGIN;
             REVOKE ALL ON SCHEMA public FROM PUBLIC"
        ))
        .await?;
    for right in needed()
        .into_iter()
        .filter(|right| matches!(right.purpose, Purpose::Passes | Purpose::Inspection))
    {
        scene.database.sql(&right.grant("public", &role)).await?;
    }
    let url = scene.database.url().replace("//postgres@", &format!("//{role}@"));
    let ran = async |args: &[&str]| {
        scene.database.ran_with(args, &[("TAILRACE__DATABASE__URL", &url)]).await
    };
    let backup = scene.database.back_up("before").await?;
    scene.table.evolve_spec(&[Field::month("at")]).await?;
    let (_, _) = scene.request(3).await?;
    let args = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
    assert_eq!(ran(&args).await?.code, 0);
    assert_eq!(ran(&["sweep"]).await?.code, 0);
    scene.database.restore(&backup).await?;
    for args in [
        &["trace", "lake"][..],
        &["plan"],
        &["sweep"],
        &["trace", "lake"],
        &["policy", "list", "--all"],
    ] {
        let ran = ran(args).await?;
        assert_eq!(ran.code, 0, "{args:?}: {ran:?}");
        assert!(
            !ran.err.contains("purge_failed") && !ran.err.contains("trace_failed"),
            "{}",
            ran.err
        );
    }
    scene.table.drop_table().await?;
    let anew = scene.database.table(&scene.catalog, "raw", &[Field::day("at")]).await?;
    drop(anew);
    let swept = ran(&["sweep"]).await?;
    assert_eq!((swept.code, swept.events("policy_orphaned").len()), (0, 1), "{}", swept.err);
    assert_eq!(ran(&["policy", "unset", "lake", "events.raw", "--yes"]).await?.code, 0);
    scene.database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await?;
    Ok(())
}
