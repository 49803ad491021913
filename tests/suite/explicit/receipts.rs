//! Tests of receipts: a key names one request, and the answer to a retry is the first answer.

use std::time::Duration;

use anyhow::Result;
use chrono::{TimeDelta, Utc};
use tailrace::explicit::call::{DropAnswer, DropBody, PartitionItem, TableRef, TruncateBody};
use tailrace::explicit::drop_partitions;
use tailrace::explicit::problem::Problem;
use tailrace_kit::lake::{CatalogOptions, Column, Field};
use tailrace_kit::simulated_loops::Expiry;
use uuid::Uuid;

use crate::support::TestDatabase;

use super::{Scene, days, drop_of, file, first, item, ledger, of_spec, patient, raw};

/// A request that ended two files of two days, and its answer.
async fn answered(scene: &Scene) -> Result<(DropBody, DropAnswer)> {
    let ids = scene.table.append(vec![file("1"), file("2"), file("3")]).await?.file_ids;
    scene.table.register_vector(ids[0], 1, None).await?;
    let body = days(["2", "7", "1"]);
    let answer = scene.done(&body).await?;
    assert_eq!((answer.files_ended, answer.replayed), (2, false));
    Ok((body, answer))
}

/// The same answer again, and nothing written.
async fn replays(scene: &Scene, body: &DropBody, answer: &DropAnswer) -> Result<()> {
    let before = scene.everything().await?;
    let again = scene.done(body).await?;
    assert_eq!(again, DropAnswer { replayed: true, ..answer.clone() });
    assert_eq!(scene.everything().await?, before);
    Ok(())
}

#[tokio::test]
async fn a_retry_is_answered_whatever_happened_to_the_table() -> Result<()> {
    let scene = Scene::new().await?;
    let (body, answer) = answered(&scene).await?;
    replays(&scene, &body, &answer).await?;
    scene.table.append(vec![file("1")]).await?;
    replays(&scene, &body, &answer).await?;
    scene.table.rename("other").await?;
    replays(&scene, &body, &answer).await?;
    let columns = [Column::new("at", "timestamptz")];
    let namespace = scene.catalog.namespace("events").await?;
    let taken =
        scene.catalog.create_table(&namespace, "raw", &columns, &[Field::hour("at")]).await?;
    replays(&scene, &body, &answer).await?;
    taken.append(vec![file("1")]).await?;
    let replaced = taken.replace_table(&columns, &[]).await?;
    replays(&scene, &body, &answer).await?;
    replaced.drop_table().await?;
    replays(&scene, &body, &answer).await?;
    namespace.drop_namespace().await?;
    replays(&scene, &body, &answer).await?;
    ledger::agrees(&scene.catalog).await
}

/// A retry without `spec_id` means what the first request meant.
#[tokio::test]
async fn an_omitted_spec_reads_as_the_one_of_the_first_request() -> Result<()> {
    let scene = Scene::new().await?;
    let (body, answer) = answered(&scene).await?;
    scene.table.evolve_spec(&[Field::identity("kind"), Field::day("at")]).await?;
    replays(&scene, &body, &answer).await?;
    let mut named = body.clone();
    named.partitions.iter_mut().for_each(|item| item.spec_id = Some(1));
    replays(&scene, &named, &answer).await?;
    named.partitions[1].spec_id = Some(2);
    assert_eq!(scene.refused(&named).await?, other_request());
    scene.table.drop_spec().await?;
    replays(&scene, &body, &answer).await?;

    // The other way round: named first, then left out.
    let named = drop_of(vec![of_spec(1, [Some("3")])]);
    let answer = scene.done(&named).await?;
    assert_eq!(answer.files_ended, 1);
    replays(&scene, &named, &answer).await?;
    let omitted = DropBody { partitions: vec![item([Some("3")])], ..named };
    assert_eq!(scene.refused(&omitted).await?, other_request(), "there was no live spec");
    Ok(())
}

#[tokio::test]
async fn a_retry_is_answered_after_expiry_has_removed_the_snapshot() -> Result<()> {
    let database = TestDatabase::new().await?;
    let retention = Some(Duration::from_secs(3600));
    let options = CatalogOptions { retention, ..CatalogOptions::default() };
    let catalog = database.lake.catalog("lake", options).await?;
    let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
    let scene = Scene { database, catalog, table };
    let (body, answer) = answered(&scene).await?;
    scene.table.append(vec![file("1")]).await?;
    let later = Utc::now() + TimeDelta::hours(2);
    let expiry = Expiry::new(&scene.catalog);
    assert_eq!(expiry.advance_floor(Some(later)).await?.to, answer.snapshot_id + 1);
    assert_eq!(expiry.purge().await?.files, 2);
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM hog_snapshot WHERE snapshot_id = $1")
        .bind(answer.snapshot_id)
        .fetch_one(scene.catalog.pool())
        .await?;
    assert_eq!(left, 0);
    replays(&scene, &body, &answer).await
}

fn other_request() -> Problem {
    let text = "idempotency_key was used by another request: a key names one request";
    Problem::Validation(text.to_owned())
}

#[tokio::test]
async fn each_part_of_a_request_that_counts_makes_it_another() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("2"), file("3")]).await?;
    let read = scene.catalog.head().await?;
    scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    scene.database.catalog("pond").await?;
    let body = DropBody {
        expected_table_uuid: Some(scene.table.table_uuid),
        read_snapshot: Some(read),
        author: Some("somebody".to_owned()),
        ..drop_of(vec![item([Some("1")]), item([Some("2")]), item([None])])
    };
    let answer = scene.done(&body).await?;
    let with = |change: fn(&mut DropBody)| {
        let mut changed = body.clone();
        change(&mut changed);
        changed
    };
    for same in [
        with(|b| b.author = None),
        with(|b| b.message = Some("again".to_owned())),
        with(|b| b.partitions.reverse()),
        with(|b| b.partitions[1].spec_id = Some(1)),
    ] {
        replays(&scene, &same, &answer).await?;
    }
    for other in [
        with(|b| b.partitions[0] = item([Some("3")])),
        with(|b| b.partitions[0] = item([None::<&str>; 2])),
        with(|b| b.partitions[2] = item([Some("null")])),
        with(|b| b.partitions.push(item([Some("3")]))),
        with(|b| drop(b.partitions.pop())),
        with(|b| b.partitions[0] = PartitionItem { literal: true, ..item([Some("1")]) }),
        with(|b| b.partitions[0].spec_id = Some(2)),
        with(|b| b.fence = true),
        with(|b| b.expected_table_uuid = None),
        with(|b| b.expected_table_uuid = Some(Uuid::nil())),
        with(|b| b.read_snapshot = None),
        with(|b| b.read_snapshot = Some(1)),
    ] {
        assert_eq!(scene.refused(&other).await?, other_request(), "{other:?}");
    }
    let mut session = scene.session().await?;
    for other in [
        TableRef { table: "other".to_owned(), ..raw() },
        TableRef { namespace: "raw".to_owned(), table: "events".to_owned(), ..raw() },
    ] {
        let refused = drop_partitions(&mut session, &other, &body, "me", &patient()).await;
        assert_eq!(refused, Err(other_request()));
    }
    // Keys are the catalog's: elsewhere it is free, and the table is looked for.
    let pond = TableRef { catalog: "pond".to_owned(), ..raw() };
    let refused = drop_partitions(&mut session, &pond, &body, "me", &patient()).await;
    assert_eq!(refused.expect_err("no such table").status(), 404);
    let truncate =
        TruncateBody { idempotency_key: Some(body.idempotency_key), ..TruncateBody::default() };
    assert_eq!(scene.truncate(&truncate).await?, Err(other_request()));
    assert_eq!(scene.receipts().await?, 1);
    ledger::agrees(&scene.catalog).await
}

#[tokio::test]
async fn a_dry_run_consumes_no_key_and_answers_of_now() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1")]).await?;
    let before = scene.everything().await?;
    let body = DropBody { dry_run: true, ..days(["1", "2"]) };
    let told = scene.done(&body).await?;
    assert_eq!(told, scene.done(&body).await?);
    assert_eq!(scene.everything().await?, before, "nothing is written, no receipt either");
    let answer = scene.done(&DropBody { dry_run: false, ..body.clone() }).await?;
    assert!(answer.committed && !answer.replayed);
    let snapshot_id = told.snapshot_id + 1;
    assert_eq!(DropAnswer { committed: true, snapshot_id, ..told }, answer);
    // Even with a key that is taken, it reports this moment.
    let after = scene.done(&body).await?;
    assert_eq!((after.files_ended, after.replayed, after.committed), (0, false, false));
    let bad = DropBody { dry_run: true, ..days(["x"]) };
    assert_eq!(scene.refused(&bad).await?.status(), 422);
    assert_eq!(first(after).snapshot_id, snapshot_id);
    Ok(())
}

/// What has failed can be repeated with the same key, once it can be done.
#[tokio::test]
async fn a_refusal_uses_no_key() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("1"), file("1")]).await?;
    let read = scene.catalog.head().await?;
    scene.table.append(vec![file("1")]).await?;
    let body = days(["1"]);
    let conflicting = DropBody { read_snapshot: Some(read), ..body.clone() };
    assert_eq!(scene.refused(&conflicting).await?.status(), 409);
    let recreated = DropBody { expected_table_uuid: Some(Uuid::nil()), ..body.clone() };
    assert_eq!(scene.refused(&recreated).await?.status(), 409);
    let ahead = DropBody { read_snapshot: Some(99), ..body.clone() };
    assert_eq!(scene.refused(&ahead).await?.status(), 422);
    let mut bounds = patient();
    bounds.max_files = 2;
    assert_eq!(scene.call_with(&body, &bounds).await?.expect_err("too many").status(), 422);
    assert_eq!(scene.receipts().await?, 0);
    assert_eq!(scene.done(&body).await?.files_ended, 3);
    ledger::agrees(&scene.catalog).await
}
