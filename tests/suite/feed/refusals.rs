//! Tests of requests that are refused, and of the reasons.

use std::pin::pin;

use anyhow::{Context, Result};
use futures_util::TryStreamExt;
use tailrace::explicit::problem::Problem;
use tailrace::feed::{self, ChangesQuery};
use tailrace_kit::lake::Field;

use super::{Scene, sessions, table_ref, window, with_ends};

#[tokio::test]
async fn windows_that_are_none() -> Result<()> {
    let scene = Scene::new().await?;
    for _ in 0..6 {
        scene.append(&["1"]).await?;
    }
    let head = scene.catalog.head().await?;
    scene.database.sql("UPDATE hog_catalog SET earliest_snapshot_id = 4").await?;
    for (from, to, expected) in [
        (4, Some(4), None),
        (4, None, None),
        (head, Some(head), None),
        (head, None, None),
        (3, Some(head), Some((410, "expired"))),
        (-1, None, Some((410, "expired"))),
        (i64::MIN, Some(i64::MAX), Some((410, "expired"))),
        (3, Some(2), Some((410, "expired"))),
        (4, Some(3), Some((422, "validation"))),
        (head, Some(head - 1), Some((422, "validation"))),
        (4, Some(head + 1), Some((422, "validation"))),
        (head + 1, Some(head + 1), Some((422, "validation"))),
        (head + 1, None, Some((422, "validation"))),
        (i64::MAX, Some(i64::MAX), Some((422, "validation"))),
    ] {
        for ended_files in [false, true] {
            let query = ChangesQuery { to_snapshot: to, ended_files, ..window(from, 0) };
            let refused = scene.open(&query).await?.err().map(|p| (p.status(), p.code()));
            assert_eq!(refused, expected, "({from}, {to:?}]");
        }
    }
    let text = |query| async move {
        anyhow::Ok(scene.open(&query).await?.err().context("refused")?.to_string())
    };
    let below = "changes after snapshot 3 have expired: the oldest snapshot is 4; \
                 reconcile from a full scan";
    assert_eq!(text(window(3, 4)).await?, below);
    Ok(())
}

#[tokio::test]
async fn tables_that_are_not_there() -> Result<()> {
    let scene = Scene::new().await?;
    let old = scene.database.table(&scene.catalog, "old", &[]).await?;
    old.drop_table().await?;
    let gone = scene.catalog.namespace("gone").await?;
    scene.catalog.create_table(&gone, "raw", &[], &[]).await?;
    gone.drop_namespace().await?;
    let mut session = scene.database.plain_session().await?;
    for (catalog, namespace, table) in [
        ("nowhere", "events", "raw"),
        ("lake", "nowhere", "raw"),
        ("lake", "gone", "raw"),
        ("lake", "events", "nothing"),
        ("lake", "events", "old"),
        ("lake", "events", "RAW"),
    ] {
        let table = table_ref(catalog, namespace, table);
        let refused = feed::open(&mut session, &table, &window(0, 0)).await.err();
        assert!(matches!(refused, Some(Problem::NotFound(_))), "{table:?}: {refused:?}");
    }
    let old = table_ref("lake", "events", "old");
    let refused = feed::open(&mut session, &old, &window(0, 0)).await;
    let refused = refused.err().context("refused")?.body();
    let detail = "there is no table events.old in catalog \"lake\"";
    assert_eq!(refused, serde_json::json!({"error": "not_found", "detail": detail}));
    Ok(())
}

#[tokio::test]
async fn limits_and_cursors_that_are_none() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    scene.append(&["1", "1", "2"]).await?;
    let head = scene.append(&["1"]).await?;
    for limit in [i64::MIN, -1, 0, 10_001, i64::MAX] {
        let query = ChangesQuery { limit: Some(limit), ..window(start, head) };
        assert_eq!(scene.refused(&query).await?, (422, "validation"), "{limit}");
    }
    for limit in [1, 10_000] {
        scene.page(&ChangesQuery { limit: Some(limit), ..window(start, head) }).await?;
    }
    let first = ChangesQuery { limit: Some(2), ..window(start, head) };
    let cursor = scene.page(&first).await?.next_cursor.context("there is more")?;
    let next = ChangesQuery { cursor: Some(cursor.clone()), ..first };
    assert_eq!(scene.page(&next).await?.files.len(), 2);
    let without_to = ChangesQuery { to_snapshot: None, ..next.clone() };
    scene.append(&["1"]).await?;
    assert_eq!(scene.page(&without_to).await?, scene.page(&next).await?, "the head has moved");
    for (odd, expected) in [
        (ChangesQuery { limit: None, ..next.clone() }, (422, "validation")),
        (ChangesQuery { from_snapshot: start + 1, ..next.clone() }, (422, "validation")),
        (ChangesQuery { to_snapshot: Some(head + 1), ..next.clone() }, (422, "validation")),
        (ChangesQuery { ended_files: true, ..next.clone() }, (422, "validation")),
        (ChangesQuery { cursor: Some(String::new()), ..next.clone() }, (400, "bad_request")),
        (ChangesQuery { cursor: Some(format!("{cursor}0")), ..next.clone() }, (400, "bad_request")),
    ] {
        assert_eq!(scene.refused(&odd).await?, expected, "{odd:?}");
    }
    // The floor holds for a later page as for the first.
    scene.database.sql(&format!("UPDATE hog_catalog SET earliest_snapshot_id = {head}")).await?;
    assert_eq!(scene.refused(&next).await?, (410, "expired"));
    scene.database.sql(&format!("UPDATE hog_catalog SET earliest_snapshot_id = {start}")).await?;
    scene.table.drop_table().await?;
    scene.database.table(&scene.catalog, "raw", &[Field::day("at")]).await?;
    assert_eq!(scene.refused(&next).await?, (409, "table_recreated"));
    Ok(())
}

#[tokio::test]
async fn an_error_of_the_database_shows_nothing_of_it() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    let head = scene.append(&["1"]).await?;
    let opened = scene.open(&with_ends(start, head)).await??;
    scene.database.sql("ALTER TABLE hog_delete_file RENAME TO away").await?;
    let mut session = scene.database.plain_session().await?;
    assert_eq!(opened.page(&mut session).await, Err(Problem::Internal));
    sqlx::raw_sql("SELECT").execute(&mut session).await?;
    scene.database.sql("ALTER TABLE hog_table_version RENAME TO away_too").await?;
    assert_eq!(scene.refused(&window(start, head)).await?, (500, "internal_error"));
    Ok(())
}

#[tokio::test]
async fn a_row_that_is_gone_for_no_reason_is_an_error() -> Result<()> {
    let scene = Scene::new().await?;
    let start = scene.catalog.head().await?;
    let many: Vec<&str> = std::iter::repeat_n("1", 1500).collect();
    let head = scene.append(&many).await?;
    let opened = scene.open(&window(start, head)).await??;
    let mut stream = pin!(opened.stream(sessions(scene.pool())));
    assert!(stream.try_next().await?.is_some());
    scene.database.sql("DELETE FROM hog_data_file WHERE data_file_id = 1400").await?;
    assert_eq!(stream.try_next().await, Err(Problem::Internal));
    assert_eq!(stream.try_next().await, Ok(None));
    Ok(())
}
