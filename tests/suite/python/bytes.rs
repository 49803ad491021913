//! Tests, as bytes, of every error in the contract's table that needs a catalog. `http/errors.rs`
//! tests the errors that come before a catalog is asked.

use anyhow::Result;
use uuid::Uuid;

use super::scene::{Scene, USED_KEY};
use crate::http::client::Answer;
use crate::support::gate::in_order;

fn body(key: &str, day: &str, rest: &str) -> String {
    format!(
        r#"{{"idempotency_key": "{key}", "partitions": [{{"partition_values": ["{day}"]}}]{rest}}}"#
    )
}

fn path(catalog: &str, table: &str, rest: &str) -> String {
    format!("/v1/catalogs/{catalog}/namespaces/events/tables/{table}/{rest}")
}

async fn drop_day(
    scene: &Scene,
    catalog: &str,
    table: &str,
    day: &str,
    rest: &str,
) -> Result<Answer> {
    let body = body(&Uuid::new_v4().to_string(), day, rest);
    scene.client.json("POST", &path(catalog, table, "partitions/drop"), &body).await
}

#[tokio::test]
async fn each_refused_drop_and_truncate_has_its_bytes() -> Result<()> {
    let scene = Scene::new().await?;
    let read = scene.read_snapshot;
    let since = format!(r#", "read_snapshot": {read}"#);
    let came = read + 1;
    let uuid = scene.old_uuid;
    let expected_uuid = format!(r#", "expected_table_uuid": "{uuid}""#);
    let head = scene.lake.head().await?;
    let floor = 3;
    let recreated = r#"{"detail":"table events.twice has another UUID than the expected one","error":"table_recreated","retry":"re-prepare","tables":["events.twice"]}"#;
    let locked = r#"{"detail":"somebody else has locked rows of the named partitions (drop.row_lock_timeout); nothing was written, try again","error":"commit_queue_timeout"}"#;
    let refused = r#"{"detail":"the database refuses to end these files of table events.broken, for a trigger, a constraint or what a row holds; nothing was written, the server's log says which, and the same request fails until that is mended","error":"internal_error"}"#;
    for (catalog, table, day, rest, status, expected) in [
        ("nowhere", "raw", "1", "", 404, r#"{"detail":"there is no catalog \"nowhere\"","error":"not_found"}"#.to_owned()),
        ("lake", "nothing", "1", "", 404, r#"{"detail":"there is no table events.nothing in catalog \"lake\"","error":"not_found"}"#.to_owned()),
        ("lake", "raw", "20720", &*since, 409, format!(r#"{{"detail":"files came to the named partitions of events.raw in snapshot {came}, after read_snapshot {read}","error":"commit_conflict"}}"#)),
        ("lake", "twice", "1", &*expected_uuid, 409, recreated.to_owned()),
        ("lake", "altered", "1", &*since, 409, format!(r#"{{"detail":"table events.altered was altered or dropped after snapshot {read}","error":"ddl_since_read_snapshot","read_snapshot":{read},"retry":"re-prepare","tables":["events.altered"]}}"#)),
        ("old", "raw", "1", r#", "read_snapshot": 1"#, 410, format!(r#"{{"detail":"read_snapshot 1 is below the floor, {floor}","error":"expired"}}"#)),
        ("lake", "raw", "1", r#", "read_snapshot": 1000000"#, 422, format!(r#"{{"detail":"read_snapshot 1000000 is ahead of the head, {head}","error":"validation"}}"#)),
        ("lake", "raw", "*", "", 422, r#"{"detail":"partitions[0] [\"*\"] has a wildcard at key 0, and there are none: name each partition (or say literal, if the text * is meant)","error":"validation"}"#.to_owned()),
        ("lake", "broken", "1", "", 500, refused.to_owned()),
        ("busy", "raw", "1", "", 503, r#"{"detail":"the commit lock could not be acquired in time (drop.lock_timeout); nothing was written, try again","error":"commit_queue_timeout"}"#.to_owned()),
        ("lake", "locked", "1", "", 503, locked.to_owned()),
    ] {
        let answer = drop_day(&scene, catalog, table, day, rest).await?;
        assert_eq!(answer.told(), (status, expected.as_str()), "{catalog} {table} {day} {rest}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
        assert_eq!(answer.header("retry-after"), (status == 503).then_some("1"), "{answer:?}");
    }
    let drop = path("lake", "raw", "partitions/drop");
    let answer = scene.client.json("POST", &drop, &body(USED_KEY, "1", "")).await?;
    let taken = r#"{"detail":"idempotency_key was used by another request: a key names one request","error":"validation"}"#;
    assert_eq!(answer.told(), (422, taken));

    let truncate_of = |table: &str| {
        format!("{table}/truncate?expected_table_uuid={}", scene.tables[table].table_uuid)
    };
    for (catalog, rest, status, expected) in [
        ("lake", format!("twice/truncate?expected_table_uuid={uuid}"), 409, recreated),
        ("lake", truncate_of("broken"), 500, refused),
        ("lake", truncate_of("locked"), 503, locked),
    ] {
        let path = format!("/v1/catalogs/{catalog}/namespaces/events/tables/{rest}");
        let answer = scene.client.send("POST", &path, b"").await?;
        assert_eq!(answer.told(), (status, expected), "{path}");
    }
    assert_eq!(scene.lake.head().await?, head, "nothing was written");
    Ok(())
}

#[tokio::test]
async fn a_table_that_is_dropped_while_a_drop_waits() -> Result<()> {
    let scene = Scene::new().await?;
    let waiting = drop_day(&scene, "race", "raw", "1", "");
    let (_, answer) = in_order(&scene.race.catalog, scene.race.drop_table(), waiting).await?;
    let expected = r#"{"detail":"table events.raw was dropped","error":"table_dropped"}"#;
    assert_eq!(answer.told(), (409, expected));
    Ok(())
}

#[tokio::test]
async fn each_window_that_is_not_told_has_its_bytes() -> Result<()> {
    let scene = Scene::new().await?;
    let (read, head) = (scene.read_snapshot, scene.lake.head().await?);
    let truncated = scene
        .database
        .text(&format!(
            "SELECT max(end_snapshot) FROM hog_data_file WHERE catalog_id = {} AND table_id = {}",
            scene.lake.catalog_id, scene.tables["fenced"].table_id
        ))
        .await?
        .unwrap_or_default();
    for (catalog, rest, status, expected) in [
        ("lake", "nothing/changes?from_snapshot=0".to_owned(), 404, r#"{"detail":"there is no table events.nothing in catalog \"lake\"","error":"not_found"}"#.to_owned()),
        ("lake", format!("fenced/changes?from_snapshot={read}"), 409, format!(r#"{{"detail":"snapshot {truncated} ended files of events.fenced that this answer cannot list: ask with ended_files=true, or reconcile from a full scan","error":"reconciliation_required"}}"#)),
        ("old", "raw/changes?from_snapshot=1".to_owned(), 410, r#"{"detail":"changes after snapshot 1 have expired: the oldest snapshot is 3; reconcile from a full scan","error":"expired"}"#.to_owned()),
        ("lake", "raw/changes?from_snapshot=0&to_snapshot=1000000".to_owned(), 422, format!(r#"{{"detail":"snapshot 1000000 is ahead of the head {head}","error":"validation"}}"#)),
        ("lake", "raw/changes?from_snapshot=0&limit=0".to_owned(), 422, r#"{"detail":"limit is 0, not between 1 and 10000","error":"validation"}"#.to_owned()),
        ("lake", "raw/changes?from_snapshot=0&limit=1&cursor=x".to_owned(), 400, r#"{"detail":"cursor is not one that was given out","error":"bad_request"}"#.to_owned()),
        ("lake", "raw/changes".to_owned(), 400, r#"{"detail":"Failed to deserialize query string: missing field `from_snapshot`","error":"bad_request"}"#.to_owned()),
    ] {
        let path = format!("/v1/catalogs/{catalog}/namespaces/events/tables/{rest}");
        assert_eq!(scene.client.get(&path).await?.told(), (status, expected.as_str()), "{path}");
    }
    Ok(())
}
