//! Tests of what the log, the exit code, plan, doctor and verify say of a refused clock. The
//! program reads the real clocks here, so the tests change what tailrace remembers of them.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::sweep::Scope;
use tailrace::sweep::report::Outcome;
use tailrace::verify::report::{Check, Status};
use tailrace::verify::verify;

use super::{HOUR, Scene, THIS, YEAR, by};
use crate::verify::{of, settings as verifying};

impl Scene {
    /// The last accepted pass was at another time by the database's clock, and at the same one by the
    /// host's.
    async fn move_memory(&self, by: &str) -> Result<()> {
        let moved = "UPDATE tailrace.clock_memory SET accepted_now = accepted_now + interval";
        self.database.sql(&format!("{moved} '{by}'")).await
    }
}

const WHY: &str = "since the last accepted pass the database's clock went on by 365 days, and this \
                   host's clock went on by 0 seconds: more than twice guard.max_clock_skew (5m) lies \
                   between them";

/// The reason, whatever number of seconds the machine took.
fn is_why(text: &str) -> bool {
    let (start, end) = WHY.split_once("0 seconds").expect("it is in there");
    text.contains(start) && text.contains(end)
}

#[tokio::test]
async fn a_refused_sweep_exits_with_three_and_logs_what_to_do() -> Result<()> {
    let scene = Scene::new().await?;
    assert_eq!(scene.database.ran(&["sweep"]).await?.code, 0);
    let files = scene.files().await?;
    scene.move_memory("-365 days").await?;
    let ran = scene.database.ran(&["sweep", "--output", "json"]).await?;
    assert_eq!(ran.code, 3, "{ran:?}");
    let report: Value = serde_json::from_str(&ran.out)?;
    assert_eq!(report["tables"][0]["outcome"], "clock_skew");
    assert!(report["tables"][0]["error"].as_str().is_some_and(is_why), "{report}");
    let told = ran.events("clock_skew");
    assert_eq!(told.len(), 1, "{ran:?}");
    assert_eq!((&told[0]["level"], &told[0]["catalog"]), (&json!("ERROR"), &json!("lake")));
    assert!(told[0]["error"].as_str().is_some_and(is_why), "{told:?}");
    assert_eq!(ran.events("table_finished")[0]["outcome"], "clock_skew");
    let text = scene.database.ran(&["sweep"]).await?;
    assert!(text.code == 3 && text.out.contains("lake events.raw: clock_skew\n"), "{text:?}");
    assert_eq!(scene.live().await?, files);

    let accept = ["clock", "accept", "lake", "--reason", "moved", "--yes"];
    assert_eq!(scene.database.ran(&accept).await?.code, 0);
    let ran = scene.database.ran(&["sweep", "--output", "json"]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    let told = ran.events("clock_agreed");
    assert_eq!(told.len(), 1, "{ran:?}");
    assert_eq!(
        [&told[0]["catalog"], &told[0]["epoch"], &told[0]["accepted_by"], &told[0]["reason"]],
        [&json!("lake"), &json!(1), &json!("tester"), &json!("moved")]
    );
    assert_eq!(scene.live().await?, files[1..]);
    let ran = scene.database.ran(&["sweep"]).await?;
    assert_eq!((ran.code, ran.events("clock_agreed").len()), (0, 0));
    Ok(())
}

#[tokio::test]
async fn a_plan_says_that_nothing_would_be_dropped() -> Result<()> {
    let scene = Scene::new().await?;
    scene.database.sweep().await?;
    scene.files().await?;
    let plan = scene.database.done(&["plan", "--output", "json"]).await?;
    assert_eq!(plan["clock_refused"], Value::Null);
    scene.move_memory("-365 days").await?;
    let before = scene.everything().await?;
    let plan = scene.database.done(&["plan", "--output", "json"]).await?;
    assert_eq!(plan["clock_refused"][0]["catalog"], "lake");
    assert!(plan["clock_refused"][0]["reason"].as_str().is_some_and(is_why), "{plan}");
    assert_eq!(plan["tables"][0]["expired"].as_array().map(Vec::len), Some(1));
    let text = scene.database.ran(&["plan"]).await?;
    assert!(text.code == 0 && is_why(&text.out), "{text:?}");
    assert!(text.out.contains("lake: a pass would drop nothing now: since "), "{text:?}");
    assert_eq!(scene.everything().await?, before);
    // For another time nothing is said of the clocks.
    let at = ["plan", "--at", "2026-09-17T00:00:00Z", "--output", "json"];
    assert_eq!(scene.database.done(&at).await?["clock_refused"], Value::Null);
    // Once accepted, the next pass drops.
    scene.database.sweep().await?;
    let accept = ["clock", "accept", "lake", "--reason", "moved", "--yes"];
    assert_eq!(scene.database.ran(&accept).await?.code, 0);
    let plan = scene.database.done(&["plan", "--output", "json"]).await?;
    assert_eq!(plan["clock_refused"], Value::Null);
    Ok(())
}

#[tokio::test]
async fn doctor_tells_as_long_as_it_is_refused() -> Result<()> {
    let scene = Scene::new().await?;
    scene.database.sweep().await?;
    let fine = scene.database.doctor().await?;
    assert_eq!((fine.code, fine.of("clocks").len()), (0, 2));
    let of_memory = async || -> Result<(i32, Value)> {
        let said = scene.database.doctor().await?;
        let found = said.whole("clocks").into_iter().find(|one| {
            let what = one["what"].as_str().unwrap_or_default();
            one["catalog"] == "lake" && (what.contains("refused") || what.contains("accepted"))
        });
        Ok((said.code, found.cloned().unwrap_or_default()))
    };
    scene.move_memory("-365 days").await?;
    let (code, found) = of_memory().await?;
    assert_eq!((code, &found["level"]), (3, &json!("problem")));
    assert!(found["what"].as_str().is_some_and(|what| what.starts_with("the next pass will be")));
    scene.database.ran(&["sweep"]).await?;
    let (code, found) = of_memory().await?;
    assert_eq!((code, &found["level"]), (3, &json!("problem")));
    let what = found["what"].as_str().unwrap_or_default();
    assert!(what.starts_with("passes are refused since 20") && is_why(what), "{found}");
    let to_do = found["to_do"].as_str().unwrap_or_default();
    assert!(to_do.ends_with("`tailrace clock accept lake --reason TEXT`"), "{found}");

    let accept = ["clock", "accept", "lake", "--reason", "moved", "--yes", "--by", "Ada"];
    assert_eq!(scene.database.ran(&accept).await?.code, 0);
    let (code, found) = of_memory().await?;
    assert_eq!((code, &found["level"]), (0, &json!("warning")), "{found}");
    scene.database.ran(&["sweep"]).await?;
    let (code, found) = of_memory().await?;
    assert_eq!((code, &found["level"]), (0, &json!("ok")), "{found}");
    let what = found["what"].as_str().unwrap_or_default();
    assert!(
        what.starts_with("Ada accepted the clock at 20") && what.ends_with(": moved"),
        "{what}"
    );
    Ok(())
}

/// By a clock that passes refuse nothing is late.
#[tokio::test]
async fn verify_calls_nothing_late() -> Result<()> {
    let scene = Scene::new().await?;
    scene.outcome(scene.agreed(0)).await?;
    let status = async |clock| -> Result<Vec<(Status, usize)>> {
        let mut settings = verifying();
        settings.sweep = by(clock);
        let report = verify(&scene.database.tailrace(), &settings, &Scope::default()).await?;
        let checks = [Check::OverdueFiles, Check::Leases, Check::DropHistory];
        checks
            .into_iter()
            .map(|check| of(&report, check).map(|found| (found.status, found.notes.len())))
            .collect()
    };
    let (ok, unknown) = ((Status::Ok, 0), (Status::Incomplete, 1));
    assert_eq!(status(scene.agreed(HOUR)).await?, [ok, ok, ok]);
    let jumped = scene.clock(YEAR, YEAR, Some((HOUR, THIS)));
    for clock in [jumped, scene.clock(0, HOUR, None)] {
        assert_eq!(status(clock).await?, [unknown, unknown, ok], "{clock:?}");
    }
    // Nor where only the daemon knows.
    assert_eq!(scene.outcome(jumped).await?, Outcome::ClockSkew);
    assert_eq!(status(scene.clock(HOUR, HOUR, None)).await?, [unknown, unknown, ok]);
    Ok(())
}
