//! Tests of the commands.

use anyhow::Result;
use serde_json::json;

use crate::explicit::{Scene, file};

#[tokio::test]
async fn pause_and_resume_say_what_they_did() -> Result<()> {
    let scene = Scene::new().await?;
    let by = ["--reason", "repair", "--by", "anna"];
    let paused = scene.database.ran(&[&["pause", "lake", "events.raw"], &by[..]].concat()).await?;
    assert_eq!(paused.code, 0, "{paused:?}");
    let begins = "table events.raw of catalog lake is paused by anna since 2";
    assert!(paused.out.starts_with(begins), "{paused:?}");
    assert!(paused.out.contains(": repair\nNo pass, drop or truncate of tailrace"), "{paused:?}");
    let again = scene.database.ran(&[&["pause", "lake", "events.raw"], &by[..]].concat()).await?;
    assert!(again.out.starts_with("It is paused already, and that pause stays: "), "{again:?}");
    scene.database.done(&["pause", "--reason", "all", "--by", "ben", "--output", "json"]).await?;
    let listed = scene.database.done(&["pause", "--list", "--output", "json"]).await?;
    let whole: Vec<_> = listed["pauses"].as_array().into_iter().flatten().collect();
    assert_eq!(whole.len(), 2);
    assert_eq!((&whole[0]["catalog"], &whole[0]["paused_by"]), (&json!(null), &json!("ben")));
    let resumed =
        scene.database.done(&["resume", "lake", "events.raw", "--output", "json"]).await?;
    assert_eq!(resumed["pauses"][0]["reason"], "repair");
    assert_eq!(resumed["still"][0]["reason"], "all");
    let none = scene.database.ran(&["resume", "lake", "events.raw"]).await?;
    assert_eq!(none.code, 1);
    assert!(
        none.err.contains("there is no pause of that scope; every catalog is paused by ben"),
        "{none:?}"
    );
    scene.database.ran(&["resume"]).await?;
    let list = scene.database.ran(&["pause", "--list"]).await?;
    assert_eq!((list.code, list.out.as_str()), (0, "Nothing is paused\n"));
    Ok(())
}

#[tokio::test]
async fn what_is_not_there_is_named_and_paused_by_nobody() -> Result<()> {
    let scene = Scene::new().await?;
    for (args, code, says) in [
        (vec!["pause"], 2, "--reason <TEXT>"),
        (vec!["pause", "lake", "--reason", " "], 2, "the reason is empty"),
        (vec!["pause", "pond", "--reason", "x"], 1, "there is no catalog \"pond\""),
        (
            vec!["pause", "lake", "events.calm", "--reason", "x"],
            1,
            "there is no table events.calm in catalog \"lake\"",
        ),
        (vec!["hold", "release", "7"], 1, "there is no hold 7: see `tailrace hold list`"),
        (
            vec!["hold", "add", "lake", "events.raw", "--where", "team_id=1", "--reason", "x"],
            2,
            "the table has no column \"team_id\"",
        ),
        (
            vec!["hold", "add", "lake", "events.raw", "--partition", "[\"x\"]", "--reason", "x"],
            2,
            "which is no day",
        ),
        (
            vec!["hold", "add", "lake", "events.raw", "--until", "2020-01-01", "--reason", "x"],
            2,
            "which has passed",
        ),
    ] {
        let ran = scene.database.ran(&args).await?;
        assert_eq!(ran.code, code, "{args:?}: {ran:?}");
        assert!(ran.err.contains(says), "{args:?}: {ran:?}");
    }
    assert_eq!(scene.database.text("select 1::text from tailrace.pause").await?, None);
    assert_eq!(scene.database.text("select 1::text from tailrace.hold").await?, None);
    Ok(())
}

#[tokio::test]
async fn a_hold_is_made_listed_and_released() -> Result<()> {
    let scene = Scene::new().await?;
    scene.table.append(vec![file("20713"), file("20714")]).await?;
    let args = ["hold", "add", "lake", "events.raw", "--partition", "day=2026-09-17"];
    let args = [&args[..], &["--reason", "case 7", "--by", "anna"]].concat();
    let added = scene.database.ran(&args).await?;
    assert_eq!(added.code, 0, "{added:?}");
    assert!(
        added.out.starts_with("lake events.raw: hold 1 by anna since 2")
            && added.out.contains(" keeps partition [\"20713\"] of spec 1: case 7\n")
            && added.out.contains("It keeps 1 partition, 1 file, ")
            && added.out.ends_with("DROP TABLE do not heed it\n"),
        "{added:?}"
    );
    let dropped = scene
        .database
        .ran(&["drop", "lake", "events.raw", "--partition", "day=2026-09-17", "--yes"])
        .await?;
    assert_eq!(dropped.code, 1);
    assert!(dropped.err.contains("1 of the 1 named partitions are held"), "{dropped:?}");
    let released = scene.database.done(&["hold", "release", "1", "--output", "json"]).await?;
    assert_eq!(released["released"]["hold_id"], 1);
    let list = scene.database.ran(&["hold", "list"]).await?;
    assert_eq!((list.code, list.out.as_str()), (0, "Nothing is held\n"));
    // A table that is gone keeps its hold in the list.
    scene
        .database
        .done(&["hold", "add", "lake", "events.raw", "--reason", "x", "--output", "json"])
        .await?;
    scene.table.drop_table().await?;
    let list = scene.database.ran(&["hold", "list"]).await?;
    assert!(list.out.ends_with("  keeps nothing: the table is gone; release it\n"), "{list:?}");
    Ok(())
}
