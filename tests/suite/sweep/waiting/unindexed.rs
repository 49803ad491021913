//! Tests of servers without the index by partition value (before V23), whose larger tables are read
//! in pieces.

use anyhow::Result;
use tailrace::catalog::connect::close;
use tailrace::explicit::drop_partitions;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{Field, NewFile, Table};
use tailrace_kit::simulated_loops::HeldFiles;

use super::Scene;
use crate::explicit::{drop_of, item, patient, raw};
use crate::support::governed::live_ids;
use crate::support::program::settings;

/// Pieces of two files, each remembered.
fn full_scan() -> Settings {
    let mut settings = settings();
    settings.scan_limits.small_table = 0;
    (settings.scan_limits.piece, settings.scan_limits.pieces_remembered) = (2, 1);
    settings
}

/// A refused tuple of one tenant keeps no other tenant's files of its day.
#[tokio::test]
async fn the_same_day_of_another_tenant_goes_beside_a_refused_one() -> Result<()> {
    let (scene, table, files) = tenants(NewFile::of(["18000", "a"])).await?;
    scene.refuse(&[0], "no").await?;
    only_the_first_stays(&scene, &table, &files).await
}

/// Nor does one that its evidence keeps: it has a row of 2026-11-28.
#[tokio::test]
async fn so_it_does_beside_one_kept_for_its_evidence() -> Result<()> {
    let newer = 1_795_867_200_000_000_i64.to_le_bytes();
    let (scene, table, files) = tenants(NewFile::of(["18000", "a"]).upper("at", &newer)).await?;
    only_the_first_stays(&scene, &table, &files).await
}

/// Of two refused tuples one goes by other hands: the next full scan that comes to its end forgets it.
#[tokio::test]
async fn what_is_gone_waits_no_more() -> Result<()> {
    let scene = Scene::days(6).await?;
    scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
    scene.refuse(&[1, 3], "no").await?;
    scene.sweep_with(&full_scan(), "2026-11-30T12:00:00Z").await?;
    let poisoned = |day: &str| (day.to_owned(), "poisoned".to_owned());
    assert_eq!(scene.waits().await?, [poisoned("2019-04-15"), poisoned("2019-04-17")]);
    scene.refuse(&[3], "no").await?;
    let mut session = scene.database.tailrace().session().await?;
    let body = drop_of(vec![item([Some("18001")])]);
    drop_partitions(&mut session, &raw(), &body, "me", &patient()).await?;
    close(session).await;
    assert_eq!(scene.live().await?, [3]);
    scene.sweep_with(&full_scan(), "2026-11-30T12:15:00Z").await?;
    assert_eq!(scene.waits().await?, [poisoned("2019-04-17")]);
    Ok(())
}

/// A later piece of the same full scan has a file of the same day that is young, for it has a younger hour: what an
/// earlier piece left of that day is due all the same.
#[tokio::test]
async fn what_waits_of_a_day_is_due_whatever_later_pieces_have_of_it() -> Result<()> {
    let scene = Scene::days(0).await?;
    scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
    let spec = [Field::day("at"), Field::hour("at")];
    let table = scene.database.table(&scene.catalog, "hours", &spec).await?;
    scene.database.govern(&table, "at", "7d").await?;
    // 2026-11-20, and the last hours of 2026-11-29.
    let file = |hour: i64| NewFile::of(["20777".to_owned(), hour.to_string()]);
    let files = vec![file(498_648).pending(), file(498_886), file(498_887), file(498_886)];
    let ids = table.append(files).await?.file_ids;
    let held = HeldFiles::hold(&scene.catalog, 10).await?;
    scene.sweep_with(&full_scan(), "2026-11-30T12:00:00Z").await?;
    held.release().await?;
    assert_eq!(live_ids(&table).await?, ids);
    scene.sweep_with(&full_scan(), "2026-11-30T12:10:00Z").await?;
    assert_eq!(live_ids(&table).await?, ids[1..]);
    Ok(())
}

/// A table by day and tenant, without the index: `first`, four others, and one of the first one's day
/// that lies in another piece.
async fn tenants(first: NewFile) -> Result<(Scene, Table, Vec<i64>)> {
    let mut scene = Scene::days(0).await?;
    scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
    let spec = [Field::day("at"), Field::identity("kind")];
    let table = scene.database.table(&scene.catalog, "tenants", &spec).await?;
    scene.database.govern(&table, "day(at)", "7d").await?;
    let others = [("18001", "a"), ("18002", "a"), ("18003", "a"), ("18000", "b"), ("18004", "a")];
    let mut files = vec![first];
    files.extend(others.map(|(day, kind)| NewFile::of([day, kind])));
    scene.files = table.append(files).await?.file_ids;
    let files = scene.files.clone();
    Ok((scene, table, files))
}

/// The first pass ends all but the first file.
async fn only_the_first_stays(scene: &Scene, table: &Table, files: &[i64]) -> Result<()> {
    for at in ["2026-11-30T12:00:00Z", "2026-11-30T12:10:00Z"] {
        scene.sweep_with(&full_scan(), at).await?;
        assert_eq!(live_ids(table).await?, files[..1], "{at}");
    }
    Ok(())
}
