//! Tests that, without the grants on statistics, unambiguous values are dropped by the value alone,
//! and files with ambiguous values are kept.

use anyhow::Result;
use tailrace_kit::lake::NewFile;

use super::{Scene, file};

#[tokio::test]
async fn without_the_grants_only_certain_values_go() -> Result<()> {
    let scene = Scene::with_tenants().await?;
    // A string is no tenant's number: the table's `name` is not in doubt, 18000 as a tenant is.
    let ambiguous = scene.append(vec![file(&["42"], "2020-01-01T00:00:00Z")]).await?;
    let plain = scene.database.table(&scene.catalog, "plain", &[super::Field::day("at")]).await?;
    plain
        .append(vec![NewFile::of(["100"]).upper("at", &super::micros("2026-11-29T00:00:00Z"))])
        .await?;
    scene.database.govern(&plain, "at", "7d").await?;
    let role = format!(
        "blind_{}",
        scene.database.text("SELECT current_database()").await?.unwrap_or_default()
    );
    scene
        .database
        .sql(&format!(
            "CREATE ROLE {role} LOGIN;
             GRANT USAGE ON SCHEMA public, tailrace TO {role};
             GRANT ALL ON ALL TABLES IN SCHEMA public, tailrace TO {role};
             GRANT USAGE ON ALL SEQUENCES IN SCHEMA tailrace TO {role};
             REVOKE ALL ON hog_file_column_stats, hog_table_stats FROM {role}"
        ))
        .await?;
    let url = scene.database.url().replace("//postgres@", &format!("//{role}@"));
    let env = [("TAILRACE__DATABASE__URL", url.as_str())];
    let ran = scene.database.ran_with(&["sweep"], &env).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(crate::support::governed::live_ids(&plain).await?, [0_i64; 0]);
    assert_eq!(scene.live().await?, ambiguous);
    // One alone is not enough: where nothing can contradict it, order proves nothing.
    scene.database.sql(&format!("GRANT SELECT ON hog_table_stats TO {role}")).await?;
    scene
        .database
        .sql("UPDATE tailrace.spec_copy SET copied_at = now() - interval '9 days'")
        .await?;
    scene.database.ran_with(&["sweep"], &env).await?;
    let marked = "SELECT count(mark_row_id) FROM tailrace.spec_copy WHERE table_id = 1";
    assert_eq!(scene.database.text(marked).await?.as_deref(), Some("2"));
    let later = scene.append(vec![NewFile::of(["100"])]).await?;
    scene.database.ran_with(&["sweep"], &env).await?;
    assert_eq!(scene.live().await?, [ambiguous[0], later[0]]);
    scene.database.sql(&format!("REVOKE SELECT ON hog_table_stats FROM {role}")).await?;
    let doctor = scene.database.ran_with(&["doctor", "--output", "json"], &env).await?;
    assert_eq!(doctor.code, 3);
    let report: serde_json::Value = serde_json::from_str(&doctor.out)?;
    let findings = report["findings"].as_array().cloned().unwrap_or_default();
    let of_rights: Vec<_> = findings
        .iter()
        .filter(|finding| finding["level"] == "problem")
        .map(|finding| finding["statements"].clone())
        .collect();
    assert_eq!(
        of_rights,
        [serde_json::json!([
            format!("grant select on public.hog_file_column_stats to {role};"),
            format!("grant select on public.hog_table_stats to {role};"),
        ])],
        "{findings:#?}"
    );
    scene.database.sql(&format!("DROP OWNED BY {role}; DROP ROLE {role}")).await
}
