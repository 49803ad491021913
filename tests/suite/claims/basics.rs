//! Tests that the files of the drop window, and no others, are claimed and left alone by
//! compaction.

use anyhow::Result;
use tailrace::claims::renew;
use tailrace::policy::Mode;
use tailrace_kit::lake::{Field, differences};
use tailrace_kit::simulated_loops::Compaction;

use super::{Scene, append, rows_of, settings};

/// With a keep of 7 days and a lead of one: day 7 (by its age) ends 6 days ago and goes in less
/// than a day, day 8 has expired, day 6 is not yet about to.
#[tokio::test]
async fn what_has_expired_or_will_within_compaction_lead_is_claimed() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[0, 6, 7, 8, 9, 7, 6]).await?;
    let null = scene.table.append(vec![tailrace_kit::lake::NewFile::new(vec![None])]).await?;
    let before = scene.database.lake.dump().await?;

    let renewed = scene.renew().await?;

    let expected = vec![ids[2], ids[3], ids[4], ids[5]];
    assert_eq!(scene.rows().await?, [("tailrace/0".to_owned(), expected)]);
    assert_eq!((renewed.tables, renewed.files, renewed.rows), (1, 4, 1));
    assert!(!scene.claimed().await?.contains(&null.file_ids[0]));
    let changed = differences(&before, &scene.database.lake.dump().await?);
    assert_eq!(changed.keys().collect::<Vec<_>>(), ["hog_compaction_claim"]);
    Ok(())
}

#[tokio::test]
async fn the_servers_planner_leaves_them_alone_as_it_is() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[0, 0, 7, 7, 8, 8]).await?;
    let compaction = Compaction::new(&scene.catalog, 1_000);
    scene.renew().await?;

    let planned = compaction.plan(&scene.table).await?;

    let inputs: Vec<_> = planned.iter().map(|group| group.inputs.clone()).collect();
    assert_eq!(inputs, [[ids[0], ids[1]]]);
    // A claim is none of ours to heed: what has expired goes all the same, and so do its ids.
    assert_eq!(scene.database.sweep_one().await?.counts().files, 2);
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, [ids[2], ids[3]]);
    Ok(())
}

/// A compaction that planned before we claimed may win or lose; claims of both lie side by side.
#[tokio::test]
async fn a_claim_of_the_servers_own_on_the_same_files_is_no_conflict() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[7, 7]).await?;
    let compaction = Compaction::new(&scene.catalog, 1_000);
    let mut planned = compaction.plan(&scene.table).await?;
    scene.renew().await?;
    assert_eq!(scene.claimed().await?, ids);
    assert_eq!(scene.all_rows().await?.len(), 2);

    let done = compaction.commit(planned.remove(0)).await?;
    let tailrace_kit::simulated_loops::Compacted::Done { output, .. } = done else {
        panic!("{done:?}")
    };
    scene.renew().await?;
    // Its output is of the same partition.
    assert_eq!(scene.claimed().await?, [output]);
    Ok(())
}

#[tokio::test]
async fn only_policies_that_drop_claim() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[8]).await?;
    for (name, mode) in [("observed", Mode::Observe), ("paused", Mode::Paused)] {
        let table = scene.database.table(&scene.catalog, name, &[Field::day("at")]).await?;
        append(&table, &[8]).await?;
        scene.database.govern_as(&table, "at", "7d", mode).await?;
    }
    let free = scene.database.table(&scene.catalog, "free", &[Field::day("at")]).await?;
    append(&free, &[8]).await?;
    // By its property, which no pass has seen yet.
    let own = scene.database.table(&scene.catalog, "own", &[Field::day("at")]).await?;
    let by_property = append(&own, &[8]).await?;
    let property = r#"{"field": "at", "keep": "7d"}"#;
    own.set_property("partition_retention", Some(property)).await?;
    let pond = scene.database.catalog("pond").await?;
    let far = scene.database.table(&pond, "raw", &[Field::day("at")]).await?;
    let elsewhere = append(&far, &[9]).await?;
    scene.database.govern(&far, "at", "7d").await?;

    assert_eq!(scene.renew().await?.tables, 3);

    assert_eq!(scene.claimed().await?, ids);
    assert_eq!(rows_of(&scene.database, &own).await?, [("tailrace/0".to_owned(), by_property)]);
    assert_eq!(rows_of(&scene.database, &far).await?, [("tailrace/0".to_owned(), elsewhere)]);
    assert_eq!(scene.all_rows().await?.len(), 3);
    let claimants = scene.database.text("SELECT count(DISTINCT claimant) FROM tailrace.claimant");
    assert_eq!(claimants.await?.as_deref(), Some("2"));
    Ok(())
}

/// What another `now` says comes and goes, and each renewal writes what is true by its own.
#[tokio::test]
async fn files_come_and_go_with_the_window() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.table.append(
        ["20000", "20001", "20002"].map(|day| tailrace_kit::lake::NewFile::of([day])).to_vec(),
    );
    let ids = ids.await?.file_ids;
    // Day 20000 is 2024-10-04: a week after its end, less `compaction.lead`, is 2024-10-11.
    for (now, claimed) in [
        ("2024-10-10T23:59:59.999999Z", 0),
        ("2024-10-11T00:00:00Z", 1),
        ("2024-10-12T23:59:59.999999Z", 2),
        ("2024-10-13T00:00:00Z", 3),
        ("2024-10-11T00:00:00Z", 1),
        ("2024-10-10T00:00:00Z", 0),
    ] {
        renew(&scene.database.tailrace(), &settings(), Some(now.parse()?)).await?;
        assert_eq!(scene.claimed().await?, ids[..claimed], "{now}");
    }
    assert_eq!(scene.all_rows().await?, Vec::<String>::new());
    Ok(())
}

#[tokio::test]
async fn rows_of_other_claimants_are_never_touched() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[8]).await?;
    // One has the key that ours would be.
    scene
        .database
        .sql(&format!(
            "INSERT INTO hog_compaction_claim (catalog_id, table_id, group_key, input_file_ids,
                                               claimant, expires_at)
             SELECT {}, {}, key, '{{1,2}}', gen_random_uuid(), '2020-01-01'
               FROM unnest(array['tailrace/0', '1:{{}}']) AS key",
            scene.catalog.catalog_id, scene.table.table_id
        ))
        .await?;
    let before = scene.all_rows().await?;
    let renewed = scene.renew().await?;
    assert_eq!((renewed.files, renewed.rows), (1, 1));
    assert_eq!(scene.rows().await?, [("tailrace/1".to_owned(), ids)]);
    let ours =
        scene.database.sql("DELETE FROM hog_compaction_claim WHERE group_key = 'tailrace/1'");
    ours.await?;
    assert_eq!(scene.all_rows().await?, before);
    Ok(())
}

/// The schema is dropped, with the claimant's id, and made anew: the rows from before are as those of
/// anybody else. What a renewal says that it has claimed is claimed.
#[tokio::test]
async fn a_schema_made_anew_claims_beside_earlier_claims() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[8, 7]).await?;
    scene.renew().await?;
    let before = scene.all_rows().await?;
    scene.database.sql("DROP SCHEMA tailrace CASCADE").await?;
    assert_eq!(scene.database.ran(&["migrate"]).await?.code, 0);
    scene.database.govern(&scene.table, "at", "7d").await?;
    for _ in ["the first", "the next"] {
        let renewed = scene.renew().await?;
        assert_eq!((renewed.tables, renewed.files, renewed.rows), (1, 2, 1));
        assert_eq!(scene.rows().await?, [("tailrace/1".to_owned(), ids.clone())]);
        let rows = scene.all_rows().await?;
        assert_eq!((rows.len(), &rows[..1]), (2, &before[..]));
    }
    // They lapse, and the server purges them.
    scene
        .database
        .sql(
            "DELETE FROM hog_compaction_claim c
             WHERE NOT EXISTS (SELECT FROM tailrace.claimant o WHERE o.claimant = c.claimant)",
        )
        .await?;
    scene.renew().await?;
    assert_eq!(scene.rows().await?, [("tailrace/1".to_owned(), ids)]);
    Ok(())
}

/// What another daemon left is renewed by its claimant, and what the server purged comes again.
#[tokio::test]
async fn any_daemon_renews_what_another_one_left() -> Result<()> {
    let scene = Scene::new().await?;
    let ids = scene.files(&[8, 7]).await?;
    scene.renew().await?;
    for left in [
        "UPDATE hog_compaction_claim SET expires_at = now() - interval '1 hour'",
        "UPDATE hog_compaction_claim SET expires_at = now() + interval '1 minute'",
        "DELETE FROM hog_compaction_claim",
    ] {
        scene.database.sql(left).await?;
        scene.renew().await?;
        assert_eq!(scene.rows().await?, [("tailrace/0".to_owned(), ids.clone())], "{left}");
    }
    Ok(())
}
