//! Tests of files and vectors that begin or end between planning and the grant of the lock.

use anyhow::Result;
use tailrace::drop::{DropOutcome, DropRequest, drop_tuples};
use tailrace_kit::lake::Field;
use tailrace_kit::simulated_loops::truncate;

use super::{Scene, days_of, file, per_tuple, receipt, request};
use crate::explicit::patient;
use crate::explicit::wire::Wire;

#[tokio::test]
async fn a_vector_that_is_registered_on_a_planned_file_ends_with_it() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "2", "2", "3"]).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let others = other.append(vec![file("2")]).await?.file_ids;
    let registering = async {
        other.register_vector(others[0], 1, None).await?;
        let kept = scene.table.register_vector(files[3], 1, None).await?;
        Ok((scene.table.register_vector(files[2], 1, None).await?, kept))
    };
    let (outcome, (new, kept)) = scene.drop_while(&["1", "2"], registering).await?;
    let receipt = receipt(outcome)?;
    assert_eq!(per_tuple(&receipt), [(1, 0), (2, 1)]);
    assert_eq!((receipt.counts.files, receipt.counts.delete_files), (3, 1));
    assert_eq!(scene.end_of_vector(new).await?, Some(receipt.snapshot_id));
    assert_eq!(scene.live().await?, (vec![files[3]], vec![(kept, files[3])]));
    let vectors = other.all_vectors().await?;
    assert_eq!(vectors.iter().filter(|vector| vector.end_snapshot.is_none()).count(), 1);
    Ok(())
}

#[tokio::test]
async fn of_a_vector_that_is_replaced_the_new_one_ends() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "2"]).await?;
    let untouched = scene.table.register_vector(files[0], 1, None).await?;
    let old = scene.table.register_vector(files[1], 1, None).await?;
    let replacing = async { Ok(scene.table.register_vector(files[1], 3, None).await?) };
    let (outcome, new) = scene.drop_while(&["1", "2"], replacing).await?;
    let receipt = receipt(outcome)?;
    assert_eq!(per_tuple(&receipt), [(1, 1), (1, 1)]);
    let drop = receipt.snapshot_id;
    assert_eq!(scene.end_of_vector(untouched).await?, Some(drop));
    assert_eq!(scene.end_of_vector(old).await?, Some(drop - 1));
    assert_eq!(scene.end_of_vector(new).await?, Some(drop));
    assert_eq!(scene.live().await?, (vec![], vec![]));
    Ok(())
}

#[tokio::test]
async fn a_planned_vector_that_ended_is_not_ended_again() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "2"]).await?;
    let vector = scene.table.register_vector(files[1], 1, None).await?;
    let head = scene.catalog.head().await?;
    let ending = async {
        scene
            .database
            .sql(&format!(
                "UPDATE hog_catalog SET last_snapshot_id = {snapshot};
                 INSERT INTO hog_snapshot (catalog_id, snapshot_id, schema_version)
                   SELECT catalog_id, {snapshot}, schema_version FROM hog_catalog;
                 UPDATE hog_delete_file SET end_snapshot = {snapshot}",
                snapshot = head + 1
            ))
            .await
    };
    let (outcome, ()) = scene.drop_while(&["1", "2"], ending).await?;
    let receipt = receipt(outcome)?;
    assert_eq!((receipt.snapshot_id, per_tuple(&receipt)), (head + 2, vec![(1, 0), (1, 0)]));
    assert_eq!(scene.end_of_vector(vector).await?, Some(head + 1));
    assert_eq!(scene.live().await?, (vec![], vec![]));
    Ok(())
}

#[tokio::test]
async fn a_late_file_is_dropped_with_its_late_vector() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "3"]).await?;
    let landing = async {
        let late = scene.append(["2", "3", "1"]).await?;
        let kept = scene.table.register_vector(late[1], 1, None).await?;
        Ok((late[1], kept, scene.table.register_vector(late[0], 1, None).await?))
    };
    let (outcome, (stays, kept, new)) = scene.drop_while(&["1", "2"], landing).await?;
    let receipt = receipt(outcome)?;
    assert_eq!(per_tuple(&receipt), [(2, 0), (1, 1)]);
    assert_eq!(scene.end_of_vector(new).await?, Some(receipt.snapshot_id));
    assert_eq!(scene.live().await?, (vec![files[1], stays], vec![(kept, stays)]));
    Ok(())
}

#[tokio::test]
async fn where_all_has_ended_no_snapshot_is_made() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "2"]).await?;
    scene.table.register_vector(files[0], 1, None).await?;
    let truncating = async { Ok(truncate(&scene.table).await?) };
    let (outcome, truncated) = scene.drop_while(&["1", "2"], truncating).await?;
    assert_eq!(outcome, DropOutcome::NothingMatches { busy: vec![] });
    assert_eq!(scene.catalog.head().await?, truncated);
    assert_eq!(
        scene.database.text("SELECT count(*) FROM tailrace.drop_history").await?.as_deref(),
        Some("0")
    );
    Ok(())
}

/// A piece leaves late files to a later piece, but not the vectors of its own.
#[tokio::test]
async fn a_new_vector_ends_with_a_file_of_a_piece() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.append(["1", "1", "1"]).await?;
    let below = files[2] + 1;
    let (wire, through) = Wire::to(&scene.database).await?;
    let mut session = through.session().await?;
    let tuples = days_of(&["1"]);
    // Out of order, as a list of another making may be.
    let found = [(files[1], 0), (files[0], 0)];
    let piece = DropRequest {
        lookup_keys: &[0],
        found: &found,
        found_below: below,
        late: None,
        is_piece: true,
        ..request(&scene.identity, &tuples)
    };
    let limits = patient().limits;
    let call = async { Ok(drop_tuples(&mut session, &piece, &limits).await.result?) };
    let registering = async {
        let late = scene.append(["1"]).await?;
        Ok((late[0], scene.table.register_vector(files[0], 1, None).await?))
    };
    let (outcome, (late, new)) = wire.meanwhile("pg_advisory_xact_lock", call, registering).await?;
    let receipt = receipt(outcome)?;
    assert_eq!(per_tuple(&receipt), [(2, 1)]);
    assert_eq!(scene.end_of_vector(new).await?, Some(receipt.snapshot_id));
    assert_eq!(scene.live().await?, (vec![files[2], late], vec![]));
    Ok(())
}
