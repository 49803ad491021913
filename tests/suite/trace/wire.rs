//! Tests of `tailrace trace`, and of the daemon's endpoint for drops.

use anyhow::Result;
use serde_json::json;
use tailrace_kit::simulated_loops::Cleanup;

use super::{Scene, second};
use crate::http::address;
use crate::http::client::Client;

const PATH: &str = "/v1/catalogs/lake/namespaces/events/tables/raw/partition-retention/drops";

#[tokio::test]
async fn the_program_prints_each_drop_in_lines_of_80_columns() -> Result<()> {
    let mut scene = Scene::new().await?;
    let nothing = scene.database.ran(&["trace", "lake", "events.raw"]).await?;
    assert_eq!(nothing.code, 0, "{nothing:?}");
    assert!(
        nothing.out.ends_with("\n  the objects of every drop that is remembered are deleted\n")
    );
    let gone = scene.drop(10, 2).await?;
    let queued = scene.drop(9, 1).await?;
    scene.floor_to(gone).await?;
    scene.expiry.purge().await?;
    Cleanup::new(&scene.catalog).run(10).await?;
    scene.floor_to(queued).await?;
    scene.expiry.purge().await?;
    scene.note("2031-01-01T00:00:00Z").await?;
    scene.database.sql(
        "UPDATE tailrace.drop_history SET gone_seen_at = '2031-01-02T00:00:00Z', last_removal_id = 2
          WHERE snapshot_id = (SELECT min(snapshot_id) FROM tailrace.drop_history)",
    ).await?;
    let retained = scene.drop(8, 1).await?;
    scene.database.sql("UPDATE hog_catalog SET snapshot_retention_seconds = NULL").await?;

    let report = scene.report().await?;
    let [c, b, a] = report.drops.as_slice() else { panic!("{report:?}") };
    assert_eq!([a.snapshot_id, b.snapshot_id, c.snapshot_id], [gone, queued, retained]);
    let day = |drop: &tailrace::trace::DropTrace| drop.partitions[0].display.clone();
    let ran = scene.database.ran(&["trace", "lake", "events.raw"]).await?;
    let (head, lines) = ran.out.split_once('\n').expect("a head");
    assert!(head.starts_with("lake as of ") && head.ends_with('Z'), "{head}");
    let lines: Vec<String> =
        lines.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    assert_eq!(
        lines,
        [
            format!(
                "expiry floor {queued}, head {retained}, no retention: nothing is ever purged, 1 \
                 object queued"
            ),
            format!("2 drops not complete yet, the oldest of {}", second(b.dropped_at)),
            "SNAPSHOT DROPPED AT FILES BYTES STATE TABLE".to_owned(),
            format!("{retained} {} 1 100 B retained events.raw", second(c.dropped_at)),
            day(c),
            "for ever: the catalog has no snapshot_retention_seconds".to_owned(),
            format!("{queued} {} 1 100 B queued events.raw", second(b.dropped_at)),
            day(b),
            "rows gone by 2031-01-01T00:00:00Z".to_owned(),
            "1 object up to its last in the server's queue".to_owned(),
            format!("{gone} {} 2 200 B gone events.raw", second(a.dropped_at)),
            day(a),
            "rows gone by 2031-01-01T00:00:00Z".to_owned(),
            "objects gone by 2031-01-02T00:00:00Z".to_owned(),
        ]
    );
    assert!(ran.out.lines().all(|line| line.len() <= 80), "{}", ran.out);
    let all = scene.database.done(&["trace", "--all", "--output", "json"]).await?;
    assert_eq!(all["catalogs"][0]["drops"], serde_json::to_value(&report.drops)?);
    let unknown = scene.database.ran(&["trace", "sea"]).await?;
    assert_eq!(
        (unknown.code, unknown.err.as_str()),
        (1, "tailrace: there is no catalog \"sea\"\n")
    );
    Ok(())
}

#[tokio::test]
async fn the_daemon_answers_by_the_page() -> Result<()> {
    let scene = Scene::new().await?;
    let mut dropped = Vec::new();
    for age in [10, 9, 8] {
        dropped.push(scene.drop(age, 1).await?);
    }
    let mut daemon = scene.database.start(&["run"], &[("TAILRACE__SCHEDULE__EVERY", "1d")])?;
    let client = Client { address: address(&mut daemon).await?, headers: Vec::new() };
    daemon.event("pass_finished", 1).await?;

    let all = client.get(PATH).await?;
    assert_eq!(all.status, 200, "{all:?}");
    let all = all.json()?;
    let ours = serde_json::to_value(scene.report().await?)?;
    assert_eq!((&all["drops"], &all["floor"]), (&ours["drops"], &json!(0)));
    assert_eq!((&all["next_before"], &all["not_gone"]), (&json!(null), &json!(3)));
    assert_eq!(all["drops"][0]["stage"], "retained");
    assert_eq!(all["drops"][0]["held_by"][0]["by"], "retention");

    let mut before = String::new();
    let mut pages = Vec::new();
    loop {
        let page = client.get(&format!("{PATH}?limit=2{before}")).await?.json()?;
        let ids = page["drops"].as_array().into_iter().flatten();
        pages.push(ids.filter_map(|drop| drop["snapshot_id"].as_i64()).collect::<Vec<_>>());
        let Some(next) = page["next_before"].as_i64() else { break };
        before = format!("&before={next}");
    }
    assert_eq!(pages, [vec![dropped[2], dropped[1]], vec![dropped[0]]]);

    for (path, status, told) in [
        (
            format!("{PATH}?limit=0"),
            422,
            r#"{"detail":"limit is 0, not between 1 and 1000","error":"validation"}"#,
        ),
        (
            PATH.replace("raw", "none"),
            404,
            r#"{"detail":"there is no table events.none in catalog \"lake\", and no drop of one that was","error":"not_found"}"#,
        ),
        (
            PATH.replace("lake", "sea"),
            404,
            r#"{"detail":"there is no catalog \"sea\"","error":"not_found"}"#,
        ),
    ] {
        assert_eq!(client.get(&path).await?.told(), (status, told), "{path}");
    }
    let document = client.get("/openapi.json").await?.json()?;
    let path = PATH.replace("lake", "{catalog}").replace("events", "{namespace}");
    let path = path.replace("raw", "{table}").replace("/v1", "");
    assert!(document["paths"][&path]["get"].is_object());
    Ok(())
}
