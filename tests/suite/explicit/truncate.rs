//! Tests of the truncate of a whole table.

use anyhow::Result;
use serde_json::Value;
use tailrace::explicit::call::{TruncateAnswer, TruncateBody};
use tailrace::explicit::fingerprint::of_truncate;
use tailrace::explicit::problem::Problem;
use tailrace::explicit::truncate;
use tailrace_kit::lake::{Difference, Field, NewFile, differences};
use tailrace_kit::simulated_loops;
use uuid::Uuid;

use super::{Scene, file, ledger, patient, raw};

fn keyed() -> TruncateBody {
    TruncateBody { idempotency_key: Some(Uuid::new_v4()), ..TruncateBody::default() }
}

/// A table with files of two specs and of none, vectors, ended rows, damage, and neighbours.
async fn motley() -> Result<Scene> {
    let scene = Scene::of(&[]).await?;
    let bare = scene.table.append(vec![NewFile::of::<&str>([])]).await?.file_ids;
    scene.table.evolve_spec(&[Field::day("at")]).await?;
    let days = scene.table.append(vec![file("1"), file("2"), file("x")]).await?.file_ids;
    scene.table.evolve_spec(&[Field::identity("kind"), Field::bucket("at", 4)]).await?;
    let kinds = vec![NewFile::of(["a", "1"]), NewFile::of(["b", "2"]).missing(0).pending()];
    let kinds = scene.table.append(kinds).await?.file_ids;
    for target in [bare[0], days[1], kinds[0]] {
        scene.table.register_vector(target, 1, None).await?;
    }
    scene.table.register_vector(bare[0], 2, None).await?;
    let read = scene.catalog.head().await?;
    scene.table.overwrite(read, &[days[0], days[1]], vec![]).await?;
    let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
    let others = other.append(vec![file("1")]).await?.file_ids;
    other.register_vector(others[0], 1, None).await?;
    let pond = scene.database.catalog("pond").await?;
    scene.database.table(&pond, "raw", &[Field::day("at")]).await?.append(vec![file("1")]).await?;
    Ok(scene)
}

/// The rows without what two lakes, two moments and two authors cannot share.
fn comparable(rows: &[String]) -> Result<Vec<Value>> {
    let told = ["snapshot_time", "author", "commit_message", "path", "table_uuid", "created_at"];
    rows.iter()
        .map(|row| {
            let mut row: Value = serde_json::from_str(row)?;
            if let Some(row) = row.as_object_mut() {
                told.iter().for_each(|name| drop(row.remove(*name)));
            }
            Ok(row)
        })
        .collect()
}

type Rows = Vec<Value>;

async fn difference_of<T>(
    scene: &Scene,
    act: impl Future<Output = Result<T>>,
) -> Result<Vec<(String, Rows, Rows)>> {
    let before = scene.database.lake.dump().await?;
    act.await?;
    let after = scene.database.lake.dump().await?;
    let by_id = |rows: &[String]| -> Result<Rows> {
        let mut rows = comparable(rows)?;
        rows.sort_by_key(Value::to_string);
        Ok(rows)
    };
    differences(&before, &after)
        .into_iter()
        .map(|(table, Difference { gone, new })| Ok((table, by_id(&gone)?, by_id(&new)?)))
        .collect()
}

#[tokio::test]
async fn it_writes_row_for_row_what_the_servers_truncate_writes() -> Result<()> {
    let (ours, theirs) = (motley().await?, motley().await?);
    let call = keyed();
    let by_us = difference_of(&ours, async { Ok(ours.truncate(&call).await??) }).await?;
    let by_them =
        difference_of(&theirs, async { Ok(simulated_loops::truncate(&theirs.table).await?) })
            .await?;
    assert_eq!(by_us, by_them);
    let changed: Vec<_> =
        by_us.iter().map(|(table, gone, new)| (table.as_str(), gone.len(), new.len())).collect();
    assert_eq!(
        changed,
        [
            ("hog_catalog", 1, 1),
            ("hog_data_file", 4, 4),
            ("hog_delete_file", 2, 2),
            ("hog_snapshot", 0, 1),
            ("hog_snapshot_change", 0, 2),
        ]
    );
    assert_eq!(ours.live().await?, Vec::<i64>::new());
    ledger::agrees(&ours.catalog).await
}

#[tokio::test]
async fn a_keyed_one_is_done_once() -> Result<()> {
    let scene = motley().await?;
    let (head, version) = (scene.catalog.head().await?, scene.catalog.schema_version().await?);
    let call = keyed();
    let done = scene.truncate(&call).await??;
    let (snapshot_id, schema_version) = (head + 1, version + 1);
    assert_eq!(done, TruncateAnswer { snapshot_id, schema_version, undone: false });
    scene.table.append(vec![NewFile::of(["a", "1"])]).await?;
    scene.table.rename("other_name").await?;
    let before = scene.everything().await?;
    let noted = TruncateBody { author: Some("me".to_owned()), ..call.clone() };
    assert_eq!(scene.truncate(&noted).await?, Ok(done));
    scene.table.rename("raw").await?;
    for other in [
        TruncateBody { read_snapshot: Some(head), ..call.clone() },
        TruncateBody { read_snapshot: Some(0), ..call.clone() },
    ] {
        assert_eq!(scene.truncate(&other).await?.expect_err("another request").status(), 422);
    }
    let mut session = scene.session().await?;
    let uuid = Some(Uuid::nil());
    let other = truncate(&mut session, &raw(), uuid, &call, "me", &patient()).await;
    assert_eq!(other.expect_err("another request").status(), 422);
    assert_eq!((scene.everything().await?.1, scene.live().await?.len()), (before.1, 1));

    // Without a key each one is a new one, and leaves no receipt.
    let unkeyed = TruncateBody::default();
    let third = scene.truncate(&unkeyed).await??;
    assert_eq!(scene.truncate(&unkeyed).await??, third, "nothing was left: the head");
    assert_eq!(scene.receipts().await?, 1);
    Ok(())
}

#[tokio::test]
async fn without_a_table_uuid_nothing_is_dropped() -> Result<()> {
    let scene = motley().await?;
    let mut session = scene.session().await?;
    let missing = "expected_table_uuid is missing: a truncate names the UUID of the table \
                   that it empties";
    let before = scene.everything().await?;
    for call in [TruncateBody::default(), keyed()] {
        let refused = truncate(&mut session, &raw(), None, &call, "me", &patient()).await;
        assert_eq!(refused, Err(Problem::BadRequest(missing.to_owned())));
    }
    assert_eq!(scene.everything().await?, before);

    // A request of before that was demanded is answered as it was: it ends nothing.
    let call = keyed();
    let done = scene.truncate(&call).await??;
    sqlx::query("UPDATE tailrace.drop_receipt SET fingerprint = $1")
        .bind(of_truncate(&raw(), None, &call))
        .execute(&scene.database.pool)
        .await?;
    let again = truncate(&mut session, &raw(), None, &call, "me", &patient()).await;
    assert_eq!(again, Ok(done));
    Ok(())
}

#[tokio::test]
async fn an_empty_table_makes_no_snapshot_but_a_receipt() -> Result<()> {
    let scene = Scene::new().await?;
    let (head, version) = (scene.catalog.head().await?, scene.catalog.schema_version().await?);
    let before = scene.database.lake.dump().await?;
    let call = keyed();
    let nothing = TruncateAnswer { snapshot_id: head, schema_version: version, undone: false };
    assert_eq!(scene.truncate(&call).await?, Ok(nothing));
    assert_eq!(scene.truncate(&TruncateBody::default()).await?, Ok(nothing));
    assert_eq!(scene.database.lake.dump().await?, before);
    scene.table.append(vec![file("1")]).await?;
    assert_eq!(scene.truncate(&call).await?, Ok(nothing), "that is what the key has done");
    assert_eq!(scene.live().await?.len(), 1);
    ledger::agrees(&scene.catalog).await
}

#[tokio::test]
async fn its_guards_look_at_the_whole_table() -> Result<()> {
    let scene = motley().await?;
    let mut session = scene.session().await?;
    let read = scene.catalog.head().await?;
    let since = |read| TruncateBody { read_snapshot: Some(read), ..TruncateBody::default() };
    let before = scene.everything().await?;
    let wrong = Some(Uuid::nil());
    let refused =
        truncate(&mut session, &raw(), wrong, &TruncateBody::default(), "me", &patient()).await;
    assert_eq!(refused, Err(Problem::TableRecreated { table: "events.raw".to_owned() }));
    assert_eq!(scene.truncate(&since(read + 1)).await?.expect_err("ahead").status(), 422);
    assert_eq!(scene.truncate(&since(-1)).await?.expect_err("below").status(), 410);
    assert_eq!(scene.everything().await?, before);

    // A file of no spec at all counts, as any other.
    let bare = scene.table.append(vec![NewFile::of::<&str>([]).spec(77)]).await?;
    let refused = scene.truncate(&since(read)).await?.expect_err("it came since");
    assert_eq!(refused.code(), "commit_conflict");
    scene.table.register_vector(bare.file_ids[0], 1, None).await?;
    let uuid = Some(scene.table.table_uuid);
    let call = since(bare.snapshot_id);
    let done = truncate(&mut session, &raw(), uuid, &call, "me", &patient()).await?;
    assert_eq!((scene.live().await?, done.snapshot_id), (vec![], bare.snapshot_id + 2));
    // What it did is itself DDL for whoever looked before it.
    let refused = scene.truncate(&since(read)).await?.expect_err("truncated since");
    assert_eq!(refused.code(), "ddl_since_read_snapshot");
    let author: String = sqlx::query_scalar(
        "SELECT concat(author, ': ', commit_message) FROM hog_snapshot
          WHERE catalog_id = 1 AND snapshot_id = $1",
    )
    .bind(done.snapshot_id)
    .fetch_one(scene.catalog.pool())
    .await?;
    assert_eq!(author, "me: truncate");
    Ok(())
}
