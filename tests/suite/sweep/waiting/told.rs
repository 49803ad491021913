//! Tests that plan, verify and doctor report waiting tuples as waiting.

use anyhow::Result;
use serde_json::json;
use tailrace::policy::Mode;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Scope;
use tailrace::sweep::report::Outcome;
use tailrace::verify::report::{Check, Report, Status};
use tailrace::verify::verify;

use super::{NOW, Scene};
use crate::support::program::settings;
use crate::verify::{of, of_status};

/// The time of this host, which the tests' server shares, to the second.
fn now() -> String {
    let now = UtcInstant::from(chrono::Utc::now());
    UtcInstant::from_days(0)
        .plus(std::time::Duration::from_secs(now.distance(UtcInstant::from_days(0)).as_secs()))
        .to_string()
}

/// Two refused days and one too large one; all that there is is older than any grace.
async fn scene() -> Result<(Scene, String)> {
    let scene = Scene::days(4).await?;
    scene.table.append(vec![tailrace_kit::lake::NewFile::of(["18009"]); 5]).await?;
    scene.refuse(&[1, 2], "no").await?;
    let day_ago = chrono::Utc::now() - chrono::TimeDelta::days(1);
    scene.catalog.backdate_through(scene.catalog.head().await?, day_ago).await?;
    let aged = "UPDATE tailrace.policy SET updated_at = clock_timestamp() - interval '1 day'";
    scene.database.sql(aged).await?;
    let mut skipping = settings();
    (skipping.batch.files_per_commit, skipping.batch.files_per_tuple) = (4, 4);
    skipping.batch.split_oversize = false;
    let at = now();
    let report = scene.sweep_with(&skipping, &at).await?;
    assert_eq!(report.outcome, Outcome::Oversize, "{report:?}");
    assert_eq!(scene.waits().await?.len(), 3);
    Ok((scene, at))
}

#[tokio::test]
async fn plan_lists_it_apart_from_what_is_dropped() -> Result<()> {
    let scene = Scene::days(3).await?;
    scene.refuse(&[1], "no").await?;
    scene.sweep_at(NOW).await?;
    scene.table.append(vec![tailrace_kit::lake::NewFile::of(["18002"])]).await?;
    let plan = scene.database.plan_json("2026-11-30T12:10:00Z").await?;
    let error = "the database says: no (SQLSTATE P0001); \
                 in PL/pgSQL function refuse_files() line 4 at RAISE";
    assert_eq!(
        plan["waiting"],
        json!([{
            "spec_id": 1, "partition_values": ["18001"], "display": "2019-04-15",
            "reason": "poisoned", "since": NOW, "next_look": "2026-11-30T12:15:00Z",
            "error": error, "files": 1, "range_end": "2019-04-16T00:00:00Z",
        }])
    );
    let expired = plan["expired"].as_array().cloned().unwrap_or_default();
    assert_eq!(expired.iter().map(|one| &one["display"]).collect::<Vec<_>>(), ["2019-04-16"]);
    assert_eq!(plan["health"], "healthy");

    let ran = scene.database.ran(&["plan", "--at", "2026-11-30T12:10:00Z"]).await?;
    let text = format!(
        "  waiting      1 partition: 1 file\n    2019-04-15  poisoned since {NOW}, next look \
         2026-11-30T12:15:00Z  1 file\n      {error}\n"
    );
    assert!(ran.out.contains(&text), "{}", ran.out);

    // Where nothing is enforced no pass keeps the memory up.
    scene.database.govern_as(&scene.table, "day(at)", "7d", Mode::Observe).await?;
    let plan = scene.database.plan_json("2026-11-30T12:10:00Z").await?;
    assert_eq!((&plan["waiting"], plan["expired"].as_array().map(Vec::len)), (&json!([]), Some(2)));
    Ok(())
}

/// What is too large is told so before any pass; what the settings would split by now goes.
#[tokio::test]
async fn a_plan_knows_what_is_too_large() -> Result<()> {
    let scene = Scene::days(1).await?;
    scene.table.append(vec![tailrace_kit::lake::NewFile::of(["18009"]); 5]).await?;
    let env = [
        ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "4"),
        ("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "4"),
        ("TAILRACE__SWEEP__OVERSIZE", "skip"),
    ];
    let args = ["plan", "--at", NOW, "--output", "json"];
    for (env, expired, waiting) in [(&env[..], 1, 1), (&[][..], 2, 0)] {
        let ran = scene.database.ran_with(&args, env).await?;
        let plan: serde_json::Value = serde_json::from_str(&ran.out)?;
        let table = &plan["tables"][0];
        assert_eq!(table["expired"].as_array().map(Vec::len), Some(expired), "{table}");
        assert_eq!(table["waiting"].as_array().map(Vec::len), Some(waiting), "{table}");
    }
    Ok(())
}

async fn verified(scene: &Scene) -> Result<Report> {
    verify(&scene.database.tailrace(), &crate::verify::settings(), &Scope::default()).await
}

/// Waiting is no violation, and nothing that is hidden; a memory that nobody keeps up hides nothing.
#[tokio::test]
async fn verify_tells_it_and_calls_it_overdue_only_where_no_pass_came() -> Result<()> {
    let (scene, at) = scene().await?;
    let report = verified(&scene).await?;
    assert_eq!(of_status(&report, Status::Violated), [], "{report:#?}");
    let told = of(&report, Check::WaitingPartitions)?;
    assert_eq!((told.status, told.count, told.complete), (Status::Information, 3, true));
    let next = at.parse::<UtcInstant>()?.plus(std::time::Duration::from_secs(15 * 60));
    let poisoned = format!(
        "poisoned since {at}, files: 1; the database says: no (SQLSTATE P0001); in PL/pgSQL function \
         refuse_files() line 4 at RAISE; next look {next}"
    );
    let samples: Vec<_> = told
        .samples
        .iter()
        .map(|sample| (sample.partition.as_deref().unwrap_or_default(), sample.problem.as_str()))
        .collect();
    let oversize = format!("oversize since {at}, files: 5");
    let expected = [
        ("2019-04-15", poisoned.as_str()),
        ("2019-04-16", poisoned.as_str()),
        ("2019-04-23", oversize.as_str()),
    ];
    assert_eq!(samples, expected);

    // Passes came last when the pause of the poisoned ones was not over; the other is overdue first.
    let moved = |by: &str| {
        let set = ["since", "last_look", "next_look"]
            .map(|column| format!("{column} = {column} - interval '{by}'"));
        format!("update tailrace.waiting set {}", set.join(", "))
    };
    for (by, waiting, overdue) in [("21 minutes", 2, 5), ("15 minutes", 0, 7)] {
        scene.database.sql(&moved(by)).await?;
        let report = verified(&scene).await?;
        assert_eq!(of(&report, Check::WaitingPartitions)?.count, waiting, "{by}");
        assert_eq!(of(&report, Check::OverdueFiles)?.count, overdue, "{by}");
    }
    Ok(())
}

#[tokio::test]
async fn doctor_warns_with_what_the_database_says() -> Result<()> {
    let (scene, at) = scene().await?;
    let said = scene.database.doctor().await?;
    let next = at.parse::<UtcInstant>()?.plus(std::time::Duration::from_secs(15 * 60));
    let error = "the database says: no (SQLSTATE P0001); in PL/pgSQL function refuse_files() line 4 at RAISE";
    let one = |day: &str| {
        format!("partition {day} waits (poisoned) since {at}: {error}; next look {next}")
    };
    let poisoned =
        format!("2 partitions cannot be dropped: {}; {}", one("2019-04-15"), one("2019-04-16"));
    let oversize = format!(
        "1 partition too large for one commit: partition 2019-04-23 waits (oversize) since {at}"
    );
    let expected = [("warning", poisoned.as_str()), ("warning", oversize.as_str())];
    assert_eq!(said.of("waiting"), expected);
    assert_eq!(said.whole("waiting")[0]["table"], "events.raw");

    // Of what is busy or kept for its evidence a day is no news.
    let busy = |ago: &str| {
        format!(
            "update tailrace.waiting
             set reason = 'busy', since = clock_timestamp() - interval '{ago}'
             where reason <> 'poisoned'"
        )
    };
    scene.database.sql(&busy("23 hours")).await?;
    assert_eq!(scene.database.doctor().await?.of("waiting").len(), 1);
    scene.database.sql(&busy("25 hours")).await?;
    let said = scene.database.doctor().await?;
    let [_, (level, what)] = said.of("waiting")[..] else { panic!("{:?}", said.findings) };
    assert_eq!(level, "note");
    assert!(what.starts_with("1 partition busy at each pass for a day or longer: "), "{what}");

    scene.database.sql("delete from tailrace.waiting").await?;
    let nothing = [("ok", "no expired partition is refused, too large or kept for long")];
    assert_eq!(scene.database.doctor().await?.of("waiting"), nothing);
    Ok(())
}
