//! Tests of `tailrace clock accept`.

use anyhow::Result;
use serde_json::json;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use super::{HOUR, OTHER, Scene, THIS, YEAR};

const ACCEPT: [&str; 5] = ["clock", "accept", "lake", "--reason", "the host has no NTP"];

async fn accepted(scene: &Scene) -> Result<()> {
    let ran = scene.database.ran(&[&ACCEPT[..], &["--yes"]].concat()).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    Ok(())
}

#[tokio::test]
async fn one_pass_goes_through_and_the_rule_is_as_before() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    let files = scene.files().await?;
    let apart = scene.clock(YEAR, HOUR, Some((HOUR, THIS)));
    assert_eq!(scene.outcome(apart).await?, Outcome::ClockSkew);
    accepted(&scene).await?;
    // By a year ahead the day before yesterday has expired too.
    assert_eq!(scene.outcome(apart).await?, Outcome::Dropped);
    assert_eq!(scene.live().await?, files[2..]);
    assert_eq!(scene.epoch().await?, (1, Some(YEAR)));
    let head = scene.catalog.head().await?;
    let later = scene.clock(YEAR + HOUR, 2 * HOUR, Some((2 * HOUR, THIS)));
    assert_eq!(scene.outcome(later).await?, Outcome::ClockSkew);
    assert_eq!(scene.catalog.head().await?, head);
    // It ends by itself when the clocks agree again.
    assert_eq!(scene.outcome(scene.agreed(3 * HOUR)).await?, Outcome::NothingToDo);
    assert_eq!(scene.epoch().await?, (2, Some(3 * HOUR)));
    Ok(())
}

/// Of a clock that jumped and is right, against this process and another one.
#[tokio::test]
async fn a_jump_is_accepted_for_good() -> Result<()> {
    for process in [THIS, OTHER] {
        let scene = Scene::new().await?;
        scene.outcome(scene.agreed(0)).await?;
        scene.files().await?;
        let jumped = scene.clock(YEAR, YEAR, Some((HOUR, THIS)));
        assert_eq!(scene.outcome(jumped).await?, Outcome::ClockSkew);
        accepted(&scene).await?;
        let clock = scene.clock(YEAR, YEAR, Some((HOUR, process)));
        assert_eq!(scene.outcome(clock).await?, Outcome::Dropped);
        let later = scene.clock(YEAR + HOUR, YEAR + HOUR, Some((2 * HOUR, process)));
        assert_eq!(scene.outcome(later).await?, Outcome::NothingToDo);
        assert_eq!(scene.epoch().await?, (1, Some(YEAR)));
        // And the next jump is one again.
        let again = scene.clock(2 * YEAR, 2 * YEAR, Some((3 * HOUR, process)));
        assert_eq!(scene.outcome(again).await?, Outcome::ClockSkew);
    }
    Ok(())
}

/// The snapshots up to the head no longer count, whoever wrote them; those after it do.
#[tokio::test]
async fn snapshots_from_the_future_are_left_out() -> Result<()> {
    let scene = Scene::new().await?;
    let files = scene.files().await?;
    let ahead = chrono::Utc::now() + chrono::TimeDelta::days(365);
    let head = scene.catalog.head().await?;
    scene.catalog.backdate_snapshot(head, ahead).await?;
    scene.catalog.backdate_snapshot(head - 1, ahead).await?;
    assert_eq!(scene.outcome(scene.agreed(0)).await?, Outcome::ClockBehind);
    let ran = scene.database.ran(&[&ACCEPT[..], &["--yes", "--output", "json"]].concat()).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let answer: serde_json::Value = serde_json::from_str(&ran.out)?;
    assert_eq!((&answer["accepted"], &answer["trusted_head"]), (&json!(true), &json!(head)));
    assert!(answer["newest_snapshot_time"].is_string(), "{answer}");
    let told = ran.events("clock_accepted");
    assert_eq!((told.len(), &told[0]["trusted_head"]), (1, &json!(head)));
    assert_eq!(scene.outcome(scene.agreed(60)).await?, Outcome::Dropped);
    assert_eq!(scene.live().await?, files[1..]);
    // Clocks that were in doubt begin an epoch.
    assert_eq!(scene.epoch().await?, (1, Some(60)));

    scene.table.append(vec![NewFile::of(["18000"])]).await?;
    scene.catalog.backdate_snapshot(scene.catalog.head().await?, ahead).await?;
    assert_eq!(scene.outcome(scene.agreed(120)).await?, Outcome::ClockBehind);
    accepted(&scene).await?;
    assert_eq!(scene.outcome(scene.agreed(180)).await?, Outcome::Dropped);
    Ok(())
}

#[tokio::test]
async fn where_nothing_is_refused_nothing_is_recorded() -> Result<()> {
    let scene = Scene::new().await?;
    let nothing = "lake: no pass is refused, and the clock is not behind any snapshot: nothing to \
                   accept\n";
    for args in [ACCEPT.to_vec(), [&ACCEPT[..], &["--yes"]].concat()] {
        let before = scene.everything().await?;
        let ran = scene.database.ran(&args).await?;
        assert_eq!((ran.code, ran.out.as_str()), (0, nothing), "{ran:?}");
        assert_eq!(scene.everything().await?, before);
        scene.outcome(scene.agreed(0)).await?;
    }
    for (args, words) in [
        (vec!["clock", "accept", "lake"], "--reason"),
        (vec!["clock", "accept", "lake", "--reason", " "], "say why the clock is right"),
        (vec!["clock", "accept"], "CATALOG"),
    ] {
        let ran = scene.database.ran(&args).await?;
        assert!(ran.code == 2 && ran.err.contains(words), "{args:?}: {ran:?}");
    }
    let ran = scene.database.ran(&["clock", "accept", "pond", "--reason", "x", "--yes"]).await?;
    assert_eq!((ran.code, ran.err.as_str()), (1, "tailrace: there is no catalog \"pond\"\n"));
    Ok(())
}

/// Without a terminal and without --yes it only shows what it would accept.
#[tokio::test]
async fn it_shows_and_asks_and_records_who_and_why() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    scene.outcome(scene.clock(YEAR, YEAR, Some((HOUR, THIS)))).await?;
    let before = scene.everything().await?;
    let ran = scene.database.ran(&ACCEPT).await?;
    assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{ran:?}");
    for words in [
        "lake: the clocks say\n  database  20",
        "\n  host      20",
        "the database's clock went on by 365 days, and CLOCK_BOOTTIME went on by 60 minutes",
        "there is no terminal to ask on: say --yes",
    ] {
        assert!(ran.err.contains(words), "{words}: {}", ran.err);
    }
    assert_eq!(scene.everything().await?, before);
    let ran = scene.database.ran(&[&ACCEPT[..], &["--yes", "--by", "Ada"]].concat()).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let head = scene.catalog.head().await?;
    let expected = format!(
        "Accepted by Ada: the next pass goes through, whatever the clocks say then, and the \
         snapshots up to {head} count no more\n"
    );
    assert!(ran.out.ends_with(&expected), "{}", ran.out);
    let is = scene.remembered().await?;
    assert_eq!(
        [&is["accepted_by"], &is["accept_reason"], &is["is_accepted_once"], &is["trusted_head"]],
        [&json!("Ada"), &json!("the host has no NTP"), &json!(true), &json!(head)]
    );
    assert!(is["accept_at"].is_string());
    Ok(())
}
