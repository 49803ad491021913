//! Tests that a command whose output nobody reads ends as other programs do.

use std::process::Stdio;

use anyhow::Result;

use super::{full, unread};
use crate::drop::races::{Scene, file};
use crate::support::process::program;

/// The exit code and stdout of the program, with its log there.
async fn ran(scene: &Scene, args: &[&str], log: impl Into<Stdio>) -> Result<(i32, String)> {
    let mut program = program(&scene.database.url(), args, &[]);
    let output = program.stdout(Stdio::piped()).stderr(log).spawn()?.wait_with_output().await?;
    Ok((output.status.code().unwrap_or(-1), String::from_utf8(output.stdout)?))
}

#[tokio::test]
async fn without_a_log_they_do_and_answer_the_same() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    let (code, answer) = ran(&scene, &["sweep"], unread()?).await?;
    assert_eq!((code, answer.lines().nth(1)), (0, Some("lake events.raw: dropped")), "{answer}");
    scene.table.append(vec![file(9)]).await?;
    let (code, answer) = ran(&scene, &["sweep"], full()?).await?;
    assert_eq!((code, answer.lines().nth(1)), (0, Some("lake events.raw: dropped")), "{answer}");
    Ok(())
}

/// What they would say on stderr is said to nobody, and their exit codes stay.
#[tokio::test]
async fn refusals_that_nobody_can_read_keep_their_exit_codes() -> Result<()> {
    let scene = Scene::new(&[0]).await?;
    for (args, code) in [
        (&["plan", "--catalog", "pond"][..], 1),
        (&["--config", "/nowhere.toml", "plan"], 2),
        (&["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "x"], 2),
        (&["drop", "lake", "events.raw", "--partition", "[\"1\"]"], 2),
        (&["health"], 1),
    ] {
        assert_eq!(ran(&scene, args, unread()?).await?, (code, String::new()), "{args:?}");
        assert_eq!(ran(&scene, args, full()?).await?, (code, String::new()), "{args:?}");
    }
    Ok(())
}

/// As `tailrace sweep | head -1` may.
#[tokio::test]
async fn a_reader_of_results_that_has_seen_enough_is_no_failure() -> Result<()> {
    let scene = Scene::new(&[0, 8]).await?;
    for args in [&["sweep"][..], &["sweep", "--output", "json"], &["plan"], &["config"]] {
        let mut program = program(&scene.database.url(), args, &[]);
        let ended = program.stdout(unread()?).stderr(Stdio::piped()).spawn()?;
        let ended = ended.wait_with_output().await?;
        let log = String::from_utf8(ended.stderr)?;
        assert_eq!(ended.status.code(), Some(0), "{args:?}: {log}");
        assert!(log.lines().all(|line| line.starts_with('{')), "{args:?}: {log}");
    }
    Ok(())
}
