//! Tests of policies without a time field, undatable files, and leases and policies that were left
//! behind.

use std::time::Duration;

use anyhow::Result;
use tailrace::sweep::Scope;
use tailrace::verify::report::{Check, Status};
use tailrace::verify::{Settings, verify};
use tailrace_kit::lake::{Column, Field, NewFile};

use super::{Scene, of, of_status, problems};

#[tokio::test]
async fn a_policy_without_a_time_field_is_found() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.evolve_spec(&[Field::identity("kind")]).await?;
    let report = scene.violated(&[Check::PolicyFields]).await?;
    let expected = "the policy's field day(at) is no time field of the live partition spec: new \
                    files are not covered";
    assert_eq!(problems(&report, Check::PolicyFields)?, (1, vec![(None, expected)]));
    assert_eq!(of(&report, Check::PolicyFields)?.samples[0].table.as_deref(), Some("events.raw"));

    // A month of the column does as well as a day.
    scene.table.evolve_spec(&[Field::month("at")]).await?;
    scene.violated(&[]).await?;

    let broken = Some(r#"{"field": "day(at)"}"#);
    scene.database.sql("DELETE FROM tailrace.policy").await?;
    scene.table.set_property("partition_retention", broken).await?;
    let report = scene.violated(&[Check::PolicyFields]).await?;
    let (count, found) = problems(&report, Check::PolicyFields)?;
    assert_eq!(count, 1);
    assert!(found[0].1.contains("missing field `keep`"), "{found:?}");
    Ok(())
}

#[tokio::test]
async fn undated_files_are_told_and_no_violation() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![NewFile::of(["x"]), NewFile::new(vec![None])]).await?;
    let counted = |report: &tailrace::verify::report::Report| -> Result<(i64, Vec<String>)> {
        assert_eq!(of_status(report, Status::Information), [Check::UndatedFiles], "{report:#?}");
        let found = of(report, Check::UndatedFiles)?;
        let told = found.samples.iter().map(|sample| sample.problem.clone()).collect();
        Ok((found.count, told))
    };
    let expected = (2, vec!["files null: 1".to_owned(), "files malformed: 1".to_owned()]);
    let report = scene.violated(&[]).await?;
    assert_eq!(counted(&report)?, expected);
    assert_eq!(of(&report, Check::UndatedFiles)?.notes, Vec::<String>::new());

    // A pass has counted them: then it is that count, with its age.
    scene.database.sweep_one().await?;
    let report = scene.violated(&[]).await?;
    assert_eq!(counted(&report)?, expected);
    let notes = &of(&report, Check::UndatedFiles)?.notes;
    assert!(notes[0].starts_with("events.raw was counted at 20"), "{notes:?}");

    let (old, spec) = (scene.table.live_spec().await?, [Field::identity("kind")]);
    scene.table.evolve_spec(&spec).await?;
    assert_ne!(scene.table.live_spec().await?, old);
    scene.database.sql("DELETE FROM tailrace.table_state").await?;
    scene.table.append(vec![NewFile::of(["a"])]).await?;
    let report = scene.violated(&[Check::PolicyFields]).await?;
    assert_eq!(counted(&report)?.0, 3);
    Ok(())
}

#[tokio::test]
async fn stale_leases_of_ours_are_found() -> Result<()> {
    let scene = Scene::new().await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let none = of(&scene.violated(&[]).await?, Check::Leases)?.notes.clone();
    // The schema of another version has the table already.
    if none == ["no lease was ever taken"] {
        scene
            .database
            .sql(
                "CREATE TABLE tailrace.claimant
                    (catalog_id bigint PRIMARY KEY, claimant uuid NOT NULL)",
            )
            .await?;
    }
    let (raw, other) = (scene.table.table_id, other.table_id);
    let lease = |table: i64, key: &str, claimant: char, claimed: &str, expires: &str| {
        let claimant = claimant.to_string().repeat(32);
        format!(
            "INSERT INTO hog_compaction_claim
             SELECT catalog_id, {table}, '{key}', '{{1,2}}', '{claimant}', \
                    now() + interval '{claimed}', now() + interval '{expires}' FROM hog_catalog;"
        )
    };
    let all = [
        lease(raw, "a-good", 'a', "-5 minutes", "25 minutes"),
        lease(raw, "a-dead", 'a', "-40 minutes", "-10 minutes"),
        lease(raw, "b-dead", 'b', "-40 minutes", "-10 minutes"),
        lease(other, "a-new", 'a', "-19 minutes", "11 minutes"),
        lease(other, "a-old", 'a', "-21 minutes", "9 minutes"),
        lease(other, "b-old", 'b', "-21 minutes", "9 minutes"),
        // Taken long ago and renewed since; its policy went just now.
        lease(other, "a-renewed", 'a', "-3 hours", "29 minutes"),
        lease(raw, "a-good-renewed", 'a', "-3 hours", "1 minute"),
    ];
    scene.database.sql(&all.concat()).await?;
    scene
        .database
        .sql(&format!(
            "INSERT INTO tailrace.claimant SELECT catalog_id, '{}' FROM hog_catalog",
            "a".repeat(32)
        ))
        .await?;
    // They wait for the next renewal, however short the grace of files is.
    let settings = Settings { grace: Duration::from_secs(60), ..super::settings() };
    let report = verify(&scene.database.tailrace(), &settings, &Scope::default()).await?;
    let (count, found) = problems(&report, Check::Leases)?;
    assert_eq!((count, found.len()), (2, 2));
    assert!(found[0].1.starts_with("the lease a-dead of 2 files expired at "), "{found:?}");
    let expected = "the lease a-old keeps 2 files from compaction, and no policy is enforced on \
                    the table";
    assert_eq!(found[1].1, expected);
    Ok(())
}

#[tokio::test]
async fn a_policy_that_a_replacement_left_behind_is_found() -> Result<()> {
    let scene = Scene::new().await?;
    let columns = [Column::new("at", "timestamptz")];
    let second = scene.table.replace_table(&columns, &[Field::day("at")]).await?;
    let third = second.replace_table(&columns, &[Field::day("at")]).await?;
    let report = scene.violated(&[Check::ReplacedTables]).await?;
    let expected = format!(
        "it took the place of table {}, which had the policy day(at) keep 7d, and has none",
        scene.table.table_id
    );
    let found = problems(&report, Check::ReplacedTables)?;
    assert_eq!(found, (1, vec![(None, expected.as_str())]));
    assert_eq!(of(&report, Check::ReplacedTables)?.samples[0].table.as_deref(), Some("events.raw"));

    scene.database.govern(&third, "day(at)", "7d").await?;
    scene.violated(&[]).await?;
    scene
        .database
        .sql(&format!("DELETE FROM tailrace.policy WHERE table_id = {}", third.table_id))
        .await?;
    scene.violated(&[Check::ReplacedTables]).await?;
    let property = r#"{"field": "day(at)", "keep": "7d"}"#;
    third.set_property("partition_retention", Some(property)).await?;
    scene.violated(&[]).await?;
    Ok(())
}
