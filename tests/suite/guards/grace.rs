//! Tests of what waits for `guard.policy_grace`: what lets partitions be dropped earlier than before.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tailrace::policy::grace::PolicyLimits;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{Column, Field};

use super::TABLE;
use super::radius::of_days;
use crate::explicit::Scene;
use crate::http;
use crate::support::governed::Ran;
use crate::support::program::{days_ago, settings};

const GRACE: &str = "TAILRACE__GUARD__POLICY_GRACE";

/// Passes after so many minutes, with a grace of an hour.
fn after(minutes: u64) -> Settings {
    let settings = settings();
    let hour = Duration::from_secs(3_600);
    let policy_limits = PolicyLimits { grace: hour, ..settings.policy_limits };
    let now = UtcInstant::from(chrono::Utc::now()).plus(Duration::from_secs(60 * minutes));
    Settings { policy_limits, as_of: Some(now), ..settings }
}

impl Scene {
    /// The program, with a grace of an hour.
    async fn in_grace(&self, args: &[&str]) -> Result<Ran> {
        self.database.ran_with(args, &[(GRACE, "1h")]).await
    }

    async fn set(&self, keep: &str, arguments: &[&str]) -> Result<Ran> {
        let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", keep];
        let ran = self.in_grace(&[&set[..], arguments].concat()).await?;
        anyhow::ensure!(ran.code == 0, "{ran:?}");
        Ok(ran)
    }

    /// How many files are live after a pass after so many minutes.
    async fn left(&self, minutes: u64) -> Result<usize> {
        self.database.sweep_with(&after(minutes)).await?;
        Ok(self.live().await?.len())
    }

    /// What is in force of the table's policies: source, keep and mode, and what waits: keep, mode.
    async fn policies(&self) -> Result<Vec<String>> {
        let answer =
            self.database.done(&["policy", "get", "lake", "events.raw", "--output", "json"]);
        let answer = answer.await?;
        let words = |one: &serde_json::Value| {
            let of = |of: &serde_json::Value| format!("{} {}", of["keep"], of["mode"]);
            let pending = one.get("pending").map(|pending| format!(", then {}", of(pending)));
            format!("{} {}{}", one["source"], of(one), pending.unwrap_or_default()).replace('"', "")
        };
        let policies = answer["policies"].as_array().context("policies")?;
        Ok(policies.iter().map(words).collect())
    }

    /// What waits has waited long enough.
    async fn over(&self) -> Result<()> {
        self.database.sql("update tailrace.policy set pending_until = now()").await
    }

    /// Gives the table the property with this keep, or takes it away.
    async fn say(&self, keep: Option<&str>) -> Result<()> {
        let text = keep.map(|keep| format!(r#"{{"field": "day(at)", "keep": "{keep}"}}"#));
        self.table.set_property("partition_retention", text.as_deref()).await?;
        Ok(())
    }

    async fn is_in_window(&self, day: &str) -> Result<bool> {
        let asked = sqlx::query_scalar("select tailrace.in_drop_window($1, $2, 1, array[$3])");
        let asked = asked.bind(self.catalog.catalog_id).bind(self.table.table_id).bind(day);
        Ok(asked.fetch_one(&self.database.pool).await?)
    }
}

#[tokio::test]
async fn a_shorter_keep_waits_and_the_longer_one_goes_on() -> Result<()> {
    let scene = of_days([20, 10, 1]).await?;
    scene.set("15d", &["--yes"]).await?;
    assert_eq!(scene.left(0).await?, 2);
    let set = scene.set("7d", &[]).await?;
    assert!(set.out.contains("keep 15d, enforce (revision"), "{set:?}");
    assert!(set.out.contains("Waits: keep 7d, enforce from 2"), "{set:?}");
    assert!(set.events("policy_set")[0]["waits"].as_str().is_some_and(|it| it.contains("7d")));
    assert_eq!(scene.policies().await?, ["stored 15d enforce, then 7d enforce"]);
    scene.table.append(vec![crate::explicit::file(&days_ago(16))]).await?;
    assert_eq!(scene.left(59).await?, 2, "the longer keep goes on");
    assert!(!scene.is_in_window(&days_ago(10)).await?);
    let swept = scene.in_grace(&["sweep"]).await?;
    assert_eq!(swept.events("pass_finished")[0]["pending_policies"], 1, "{swept:?}");
    let list = scene.in_grace(&["policy", "list"]).await?;
    assert!(list.out.contains("15d   enforce, a change waits  stored"), "{list:?}");
    let doctor = scene.in_grace(&["doctor"]).await?;
    assert!(
        doctor.out.contains("a change of the policy waits: keep 7d, enforce from 2"),
        "{doctor:?}"
    );
    let plan = scene.plan().await?;
    assert_eq!((&plan["keep"], &plan["pending"]["keep"]), (&json!("15d"), &json!("7d")));
    assert_eq!(plan["expired"], json!([]));
    assert_eq!(scene.left(61).await?, 1);
    assert_eq!(scene.policies().await?, ["stored 7d enforce"]);
    assert!(scene.is_in_window(&days_ago(10)).await?);
    Ok(())
}

#[tokio::test]
async fn a_first_policy_and_one_that_comes_to_enforce_wait() -> Result<()> {
    for mode in [None, Some("observe"), Some("paused")] {
        let scene = of_days([10, 1]).await?;
        if let Some(mode) = mode {
            scene.set("7d", &["--mode", mode]).await?;
            assert_eq!(scene.policies().await?, [format!("stored 7d {mode}")]);
        }
        scene.set("7d", &["--mode", "enforce"]).await?;
        let meanwhile = if mode == Some("paused") { "paused" } else { "observe" };
        assert_eq!(scene.policies().await?, [format!("stored 7d {meanwhile}, then 7d enforce")]);
        assert_eq!(scene.left(59).await?, 2, "{mode:?}");
        assert_eq!(scene.left(61).await?, 1, "{mode:?}");
    }
    Ok(())
}

#[tokio::test]
async fn what_is_confirmed_goes_at_once_and_what_keeps_longer_too() -> Result<()> {
    let scene = of_days([20, 10, 1]).await?;
    scene.set("15d", &[]).await?;
    // Whoever saw what is dropped need not wait for what somebody else has set.
    scene.set("15d", &["--yes"]).await?;
    assert_eq!(scene.policies().await?, ["stored 15d enforce"]);
    assert_eq!(scene.left(0).await?, 2);
    scene.set("7d", &[]).await?;
    scene.set("30d", &[]).await?;
    assert_eq!(scene.policies().await?, ["stored 30d enforce"]);
    assert_eq!(scene.left(61).await?, 2);
    Ok(())
}

/// A policy that is set again every minute, as by a tool, comes into force all the same.
#[tokio::test]
async fn the_same_policy_again_waits_no_longer() -> Result<()> {
    let scene = of_days([10, 1]).await?;
    let until = "select pending_until::text from tailrace.policy";
    scene.set("7d", &[]).await?;
    let first = scene.database.text(until).await?;
    scene.set("7d", &[]).await?;
    assert_eq!(scene.database.text(until).await?, first);
    scene.set("6d", &[]).await?;
    assert_ne!(scene.database.text(until).await?, first);
    Ok(())
}

/// The old text is gone, and what it said is in force.
#[tokio::test]
async fn a_property_that_keeps_shorter_waits() -> Result<()> {
    let scene = of_days([20, 10, 1]).await?;
    scene.say(Some("15d")).await?;
    // As the next pass reads it.
    let plan = scene.in_grace(&["plan"]).await?;
    assert!(plan.out.contains("keep 15d, observe (property policy)"), "{plan:?}");
    let waits = "waits        keep 15d, enforce, guard.policy_grace after a pass has read it";
    assert!(plan.out.contains(waits), "{plan:?}");
    assert_eq!(scene.left(0).await?, 3);
    assert_eq!(scene.policies().await?, ["property 15d observe, then 15d enforce"]);
    // An hour later: plans go by it before a pass has brought it in.
    scene.over().await?;
    assert!(scene.in_grace(&["plan"]).await?.out.contains("keep 15d, enforce (property policy)"));
    assert_eq!(scene.left(0).await?, 2);
    assert_eq!(scene.policies().await?, ["property 15d enforce"]);
    scene.say(Some("7d")).await?;
    assert_eq!(scene.left(0).await?, 2);
    assert_eq!(scene.policies().await?, ["property 15d enforce, then 7d enforce"]);
    scene.table.append(vec![crate::explicit::file(&days_ago(16))]).await?;
    assert_eq!(scene.left(59).await?, 2, "the longer keep goes on");
    assert!(!scene.is_in_window(&days_ago(10)).await?);
    assert_eq!(scene.left(61).await?, 1);
    Ok(())
}

/// An earlier program that sets a policy says nothing of what waits.
#[tokio::test]
async fn what_an_earlier_program_sets_is_not_overtaken() -> Result<()> {
    let scene = of_days([20, 10, 1]).await?;
    scene.set("15d", &["--yes"]).await?;
    scene.set("7d", &[]).await?;
    let set = "update tailrace.policy set keep = '30d', keep_seconds = 30 * 86400,
                   revision = nextval('tailrace.policy_revision')";
    scene.database.sql(set).await?;
    assert_eq!(scene.policies().await?, ["stored 30d enforce"]);
    assert_eq!(scene.left(61).await?, 3);
    assert_eq!(scene.policies().await?, ["stored 30d enforce"]);
    Ok(())
}

/// Whether or not a pass has brought it in.
#[tokio::test]
async fn nothing_is_overdue_when_a_policy_comes_into_force() -> Result<()> {
    let scene = of_days([20, 10, 1]).await?;
    let verify = ["verify", "--catalog", "lake"];
    let code = async || anyhow::Ok(scene.database.ran(&verify).await?.code);
    scene.set("15d", &["--yes"]).await?;
    assert_eq!(scene.left(0).await?, 2);
    scene.set("7d", &[]).await?;
    let ago = "update hog_snapshot set snapshot_time = snapshot_time - interval '3 days';
               update tailrace.policy set updated_at = updated_at - interval '3 days'";
    scene.database.sql(ago).await?;
    assert_eq!(code().await?, 0, "by the longer keep");
    let over = |hours: u32| {
        format!("update tailrace.policy set pending_until = now() - interval '{hours} h'")
    };
    scene.database.sql(&over(0)).await?;
    assert_eq!(code().await?, 0, "passes need time");
    scene.database.sql(&over(72)).await?;
    assert_eq!(code().await?, 3, "no pass came");
    // By its snapshots the catalog was restored: the first pass settles that.
    assert_eq!(scene.left(0).await?, 2);
    assert_eq!(scene.left(0).await?, 1);
    assert_eq!(code().await?, 0);
    Ok(())
}

/// Of a policy that a restore paused nothing comes to enforce later.
#[tokio::test]
async fn what_a_restore_paused_stays_paused() -> Result<()> {
    for modes in [&["enforce"][..], &["paused", "enforce"]] {
        let scene = Scene::new().await?;
        let backup = scene.database.back_up("before").await?;
        scene.table.add_column(None, Column::new("seen", "timestamptz")).await?;
        scene.table.evolve_spec(&[Field::day("seen")]).await?;
        for mode in modes {
            let set = ["policy", "set", "lake", "events.raw", "--field", "seen", "--keep", "7d"];
            assert_eq!(scene.in_grace(&[&set[..], &["--mode", mode]].concat()).await?.code, 0);
        }
        scene.database.restore(&backup).await?;
        scene.left(0).await?;
        scene.left(61).await?;
        assert_eq!(scene.policies().await?, ["stored 7d paused"], "{modes:?}");
    }
    Ok(())
}

/// Not with what a pass has read of it, which may be of long ago.
#[tokio::test]
async fn a_policy_is_compared_with_the_property_as_it_is() -> Result<()> {
    for (property, expected) in [
        (Some("365d"), "stored 365d enforce, then 16d enforce"),
        (None, "stored 16d observe, then 16d enforce"),
    ] {
        let scene = of_days([18, 10, 1]).await?;
        scene.say(Some("15d")).await?;
        scene.left(0).await?;
        scene.over().await?;
        assert_eq!(scene.left(0).await?, 2);
        scene.say(property).await?;
        scene.set("16d", &[]).await?;
        assert_eq!(scene.policies().await?[0], expected);
    }
    Ok(())
}

/// Nobody was shown what it drops.
#[tokio::test]
async fn a_property_that_took_over_unseen_waits() -> Result<()> {
    for (while_unset, is_told_at_once) in [("oops", false), ("5d", true)] {
        let scene = of_days([20, 10, 1]).await?;
        scene.say(Some("5d")).await?;
        scene.set("30d", &["--yes"]).await?;
        scene.left(0).await?;
        scene.over().await?;
        scene.left(0).await?;
        scene.say(Some(while_unset)).await?;
        let eyes = ("TAILRACE__GUARD__FOUR_EYES", "true");
        let mut unset = vec!["policy", "unset", "lake", "events.raw"];
        let env: &[_] = if is_told_at_once { &[(GRACE, "1h"), eyes] } else { &[(GRACE, "1h")] };
        unset.extend(is_told_at_once.then_some("--yes"));
        let ran = scene.database.ran_with(&unset, env).await?;
        assert_eq!(ran.code, 0, "{ran:?}");
        scene.say(Some("5d")).await?;
        assert_eq!(scene.left(0).await?, 3, "{while_unset}");
        assert_eq!(scene.policies().await?, ["property 5d observe, then 5d enforce"]);
    }
    Ok(())
}

/// The mode that a text leaves out is the one that was asked for, not the one of meanwhile.
#[tokio::test]
async fn a_property_that_was_refused_for_a_while_enforces() -> Result<()> {
    let scene = of_days([20, 1]).await?;
    for keep in ["15d", "15 dd", "15d"] {
        scene.say(Some(keep)).await?;
        assert_eq!(scene.left(0).await?, 2);
    }
    assert_eq!(scene.policies().await?, ["property 15d observe, then 15d enforce"]);
    assert_eq!(scene.left(61).await?, 1);
    Ok(())
}

/// An approval is of a revision, and the pass that brings a change into force makes another one.
#[tokio::test]
async fn what_is_not_in_force_yet_is_not_approved() -> Result<()> {
    let scene = of_days([20, 19, 18, 10, 1]).await?;
    let few = ("TAILRACE__GUARD__MIN_DROP_FILES", "1");
    let ran = async |args: &[&str]| scene.database.ran_with(args, &[(GRACE, "1h"), few]).await;
    let digest = async || {
        let plan: serde_json::Value =
            serde_json::from_str(&ran(&["plan", "--output", "json"]).await?.out)?;
        let digest = plan["tables"][0]["blast_radius"]["digest"].as_str().context("a digest")?;
        anyhow::Ok(digest.to_owned())
    };
    let approve = async |digest: &str| {
        Ok::<_, anyhow::Error>(ran(&["approve", "lake", "--digest", digest]).await?.code)
    };
    scene.set("60d", &["--yes"]).await?;
    scene.set("7d", &[]).await?;
    scene.over().await?;
    assert_eq!(approve(&digest().await?).await?, 1);
    assert_eq!(ran(&["sweep"]).await?.code, 0);
    assert_eq!(scene.live().await?.len(), 5);
    assert_eq!(approve(&digest().await?).await?, 0);
    assert_eq!(ran(&["sweep"]).await?.code, 0);
    assert_eq!(scene.live().await?.len(), 1);
    Ok(())
}

#[tokio::test]
async fn a_clock_in_doubt_ends_no_wait() -> Result<()> {
    let scene = of_days([20, 10, 1]).await?;
    scene.set("30d", &["--yes"]).await?;
    assert_eq!(scene.in_grace(&["sweep"]).await?.code, 0);
    scene.set("7d", &[]).await?;
    scene.pause(super::PauseScope::All).await?;
    scene.in_grace(&["resume"]).await?;
    scene.over().await?;
    let sql = "update tailrace.pause set until = now();
               update tailrace.clock_memory set accepted_now = accepted_now - interval '2 h'";
    scene.database.sql(sql).await?;
    let swept = scene.in_grace(&["sweep"]).await?;
    assert_eq!(swept.events("clock_skew").len(), 1, "{swept:?}");
    assert_eq!(scene.policies().await?, ["stored 30d enforce, then 7d enforce"]);
    let pauses = scene.database.text("select count(*) from tailrace.pause").await?;
    assert_eq!(pauses.as_deref(), Some("1"));
    assert!(!scene.is_in_window(&days_ago(10)).await?);
    Ok(())
}

#[tokio::test]
async fn what_is_resumed_goes_on_after_the_grace() -> Result<()> {
    let scene = of_days([10, 1]).await?;
    scene.set("7d", &["--yes"]).await?;
    scene.pause(TABLE).await?;
    let resume = ["resume", "lake", "events.raw"];
    let ran = scene.in_grace(&resume).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains(" until 2"), "{ran:?}");
    assert!(ran.out.contains("repeat it with --yes"), "{ran:?}");
    assert_eq!(ran.events("resume_waits").len(), 1);
    assert_eq!(scene.left(0).await?, 2);
    assert!(!scene.is_in_window(&days_ago(10)).await?);
    // Paused again, it stays paused.
    scene.pause(TABLE).await?;
    assert_eq!(scene.left(61).await?, 2);
    scene.in_grace(&resume).await?;
    let ran = scene.in_grace(&[&resume[..], &["--yes"]].concat()).await?;
    assert_eq!((ran.code, ran.events("resumed").len()), (0, 1));
    assert_eq!(scene.left(0).await?, 1);
    Ok(())
}

/// The pass at the end of the pause looks at what it kept.
#[tokio::test]
async fn a_pause_that_was_resumed_ends_by_itself() -> Result<()> {
    for scope in [&[][..], &["lake"], &["lake", "events.raw"]] {
        let scene = of_days([10, 1]).await?;
        scene.set("7d", &["--yes"]).await?;
        scene.in_grace(&[&["pause"], scope, &["--reason", "audit"]].concat()).await?;
        assert_eq!(scene.left(0).await?, 2);
        scene.in_grace(&[&["resume"], scope].concat()).await?;
        // Its time is over, and no pass has taken it away.
        scene.database.sql("update tailrace.pause set until = now() - interval '1 s'").await?;
        let list = scene.in_grace(&["pause", "--list"]).await?;
        assert_eq!(list.out, "Nothing is paused\n");
        assert_eq!(scene.left(0).await?, 1, "{scope:?}");
        let left = scene.database.text("select count(*) from tailrace.pause").await?;
        assert_eq!(left.as_deref(), Some("0"));
    }
    Ok(())
}

/// It covered the name that the table had, and the table that has it now.
#[tokio::test]
async fn a_pause_that_is_made_again_covers_its_old_name() -> Result<()> {
    let scene = of_days([10, 1]).await?;
    scene.pause(TABLE).await?;
    scene.in_grace(&["resume", "lake", "events.raw"]).await?;
    scene.table.rename("old").await?;
    let again = ["pause", "lake", "events.old", "--reason", "audit"];
    assert_eq!(scene.in_grace(&again).await?.code, 0);
    let list = scene.in_grace(&["pause", "--list"]).await?;
    assert!(
        list.out.starts_with("table events.raw of catalog lake is paused by tester"),
        "{list:?}"
    );
    assert!(!list.out.contains(" until "), "{list:?}");
    Ok(())
}

#[tokio::test]
async fn what_was_held_goes_after_the_grace() -> Result<()> {
    let scene = of_days([10, 1]).await?;
    scene.set("7d", &["--yes"]).await?;
    let id = scene.hold(super::partitions([&days_ago(10)])).await?.to_string();
    let ran = scene.in_grace(&["hold", "release", &id]).await?;
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.out.contains("It keeps that until then; repeat it with --yes"), "{ran:?}");
    assert_eq!(ran.events("hold_release_waits").len(), 1);
    assert_eq!(scene.left(0).await?, 2);
    let ran = scene.in_grace(&["hold", "release", &id, "--yes"]).await?;
    assert_eq!((ran.code, ran.events("hold_released").len()), (0, 1));
    assert_eq!(scene.left(0).await?, 1);
    Ok(())
}

#[tokio::test]
async fn with_four_eyes_nobody_confirms_what_they_let_go() -> Result<()> {
    let scene = of_days([10, 1]).await?;
    scene.pause(TABLE).await?;
    let eyes = [("TAILRACE__GUARD__FOUR_EYES", "true"), (GRACE, "1h")];
    for args in [&["resume", "lake", "events.raw", "--yes"][..], &["hold", "release", "1", "--yes"]]
    {
        let ran = scene.database.ran_with(args, &eyes).await?;
        assert_eq!(ran.code, 1, "{ran:?}");
        assert!(ran.err.contains("guard.four_eyes is on"), "{ran:?}");
    }
    Ok(())
}

#[tokio::test]
async fn over_http_what_is_let_go_waits_unless_it_is_confirmed() -> Result<()> {
    let scene = http::Scene::with(&[(GRACE, "1h")]).await?;
    let pause = format!("{}/pause", http::TABLE);
    let put = scene.client.json("PUT", &pause, r#"{"reason": "repair"}"#).await?;
    assert_eq!(put.status, 200);
    let resumed = scene.client.send("DELETE", &pause, b"").await?;
    assert_eq!(resumed.status, 200);
    assert!(resumed.json()?["pauses"][0]["until"].is_string(), "{resumed:?}");
    let listed = scene.client.get("/v1/pauses").await?.json()?;
    assert_eq!(listed, resumed.json()?);
    let at_once = format!("{pause}?confirmed=true");
    assert_eq!(scene.client.send("DELETE", &at_once, b"").await?.status, 200);
    assert_eq!(scene.client.get("/v1/pauses").await?.json()?, json!({"pauses": []}));

    let body = r#"{"partitions": [{"partition_values": ["1"]}], "reason": "case 7"}"#;
    let made = scene.client.json("POST", &format!("{}/holds", http::TABLE), body).await?.json()?;
    let hold = format!("/v1/holds/{}", made["hold_id"]);
    let released = scene.client.send("DELETE", &hold, b"").await?;
    assert_eq!(released.status, 202, "{released:?}");
    assert!(released.json()?["released"]["until"].is_string(), "{released:?}");
    let at_once = format!("{hold}?confirmed=true");
    assert_eq!(scene.client.send("DELETE", &at_once, b"").await?.status, 204);
    assert_eq!(scene.client.send("DELETE", &at_once, b"").await?.status, 404);
    Ok(())
}
