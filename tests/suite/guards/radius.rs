//! Tests of the blast radius: what is dropped otherwise than by time alone is dropped only where it is not too much.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::json;
use tailrace::config::CrossCheck;
use tailrace::rules::blast_radius::RadiusLimits;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace::sweep::plan::plan_table;
use tailrace::sweep::planning::plan_live_table;
use tailrace_kit::lake::Field;
use tailrace_kit::simulated_loops::Compaction;

use crate::explicit::{Scene, file};
use crate::support::program::{NO_LIMITS, days_ago, settings};

/// What the migration says of policies under which drops were made.
const CONFIRM: &str = include_str!("../../../migrations/0021_confirmed_by_drops.sql");

const DAY: Duration = Duration::from_secs(86_400);

/// Three files may always go, and half of the table, so many days from now.
pub(super) fn in_days(days: u32) -> Settings {
    let radius = RadiusLimits { min_drop_files: 3, max_drop_fraction: 0.5 };
    let now = UtcInstant::from(chrono::Utc::now()).plus(DAY * days);
    Settings { radius, as_of: Some(now), cross_check: CrossCheck::Off, ..settings() }
}

/// A table with one file of each of these days.
pub(super) async fn of_days(days: impl IntoIterator<Item = i64>) -> Result<Scene> {
    let scene = Scene::new().await?;
    let files = days.into_iter().map(|day| file(&days_ago(day))).collect();
    scene.table.append(files).await?;
    Ok(scene)
}

impl Scene {
    pub(super) async fn set_policy(&self, keep: &str, arguments: &[&str]) -> Result<()> {
        let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", keep];
        let ran = self.database.ran(&[&set[..], arguments].concat()).await?;
        anyhow::ensure!(ran.code == 0, "{ran:?}");
        Ok(())
    }

    /// How many files a pass of these settings ends, how many stay, and how many of those for their number.
    pub(super) async fn passes(&self, settings: &Settings) -> Result<(i64, usize, i64)> {
        let report = self.database.sweep_with(settings).await?;
        let held = "select coalesce(sum(files), 0)::text from tailrace.waiting \
                    where reason = 'blast_radius'";
        let held = self.database.text(held).await?.context("a sum")?.parse()?;
        Ok((report.counts().files, self.live().await?.len(), held))
    }

    /// How many partitions a plan of these settings drops, and how many files of how many it holds.
    async fn plans(&self, settings: &Settings) -> Result<(usize, Option<(i64, i64)>)> {
        let live = self.database.live(&self.table).await?;
        let mut session = self.session().await?;
        let plans = plan_live_table(&mut session, &live, settings, settings.as_of).await?;
        let plans = plans.context("a plan")?;
        let plan = plans.tables[0].1.as_ref().map_err(|error| anyhow::anyhow!("{error}"))?;
        let change = plan.kept_back.as_ref().map(|held| &held.change);
        let held = change.and_then(|change| change.held.or(change.late.held));
        Ok((plan.expired.len(), held.map(|held| (held.files, held.live_files))))
    }
}

#[tokio::test]
async fn a_new_policy_ends_no_more_than_half_of_its_table_at_once() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.plans(&in_days(0)).await?, (0, Some((6, 8))), "before any pass");
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    assert_eq!(scene.plans(&in_days(0)).await?, (0, Some((6, 8))));
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6), "nor in the next pass");
    let report = scene.database.sweep_with(&in_days(0)).await?;
    assert_eq!(report.waits.blast_radius_files, 6);
    Ok(())
}

#[tokio::test]
async fn what_comes_due_by_time_alone_goes_beside_what_is_held() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    // The days that ended two days ago and yesterday come due, and go.
    assert_eq!(scene.plans(&in_days(9)).await?, (2, Some((6, 8))));
    assert_eq!(scene.passes(&in_days(9)).await?, (2, 6, 6));
    Ok(())
}

/// All that came due in forty days without a pass goes, be it all of the table.
#[tokio::test]
async fn days_without_a_pass_are_no_reason_to_hold() -> Result<()> {
    let scene = of_days([9, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (1, 1, 0));
    scene.table.append((0..8).map(|_| file(&days_ago(0))).collect()).await?;
    assert_eq!(scene.plans(&in_days(40)).await?, (2, None));
    assert_eq!(scene.passes(&in_days(40)).await?, (9, 0, 0));
    Ok(())
}

#[tokio::test]
async fn a_shorter_keep_is_counted_anew_and_a_longer_one_lets_go_of_it() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("100d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 0));
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    // Of eight files four, which is half.
    scene.set_policy("16d", &[]).await?;
    assert_eq!(scene.plans(&in_days(0)).await?, (4, None));
    assert_eq!(scene.passes(&in_days(0)).await?, (4, 4, 0));
    Ok(())
}

/// What is held is claimed from no compaction. The output began late, has few files, and is held as its inputs were.
#[tokio::test]
async fn what_compaction_makes_of_held_partitions_is_held() -> Result<()> {
    let scene = of_days([20, 20, 20, 20, 20, 19, 19, 19, 19, 19, 2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 12, 10));
    Compaction::new(&scene.catalog, 1 << 30).run(&scene.table).await?;
    assert_eq!(scene.live().await?.len(), 4);
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 4, 2));
    assert_eq!(scene.plans(&in_days(0)).await?, (0, Some((10, 12))));
    Ok(())
}

/// What is there again was shown to nobody.
#[tokio::test]
async fn after_a_restore_no_policy_is_confirmed() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    let backup = scene.database.back_up("before").await?;
    scene.set_policy("7d", &["--yes"]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (6, 2, 0));
    scene.database.restore(&backup).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    Ok(())
}

/// What expired while a policy only observed, or was paused, did not expire under it.
#[tokio::test]
async fn a_policy_that_comes_to_enforce_again_is_counted_anew() -> Result<()> {
    for mode in ["observe", "paused"] {
        let scene = of_days([2, 1, 0]).await?;
        scene.table.append((0..5).map(|_| file(&days_ago(1))).collect()).await?;
        scene.set_policy("7d", &["--yes"]).await?;
        assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 0));
        scene.set_policy("7d", &["--mode", mode]).await?;
        assert_eq!(scene.passes(&in_days(8)).await?, (0, 8, 0), "{mode}");
        scene.set_policy("7d", &["--mode", "enforce"]).await?;
        assert_eq!(scene.plans(&in_days(8)).await?, (0, Some((8, 8))), "{mode}");
        assert_eq!(scene.passes(&in_days(8)).await?, (0, 8, 8), "{mode}");
    }
    Ok(())
}

#[tokio::test]
async fn a_confirmed_policy_is_not_held() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("7d", &["--yes"]).await?;
    assert_eq!(scene.plans(&in_days(0)).await?, (6, None));
    assert_eq!(scene.passes(&in_days(0)).await?, (6, 2, 0));
    Ok(())
}

#[tokio::test]
async fn the_command_of_the_plan_lets_go_what_is_held() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    let env = [("TAILRACE__GUARD__MIN_DROP_FILES", "3")];
    let ran = scene.database.ran_with(&["plan", "--output", "json"], &env).await?;
    let plan: serde_json::Value = serde_json::from_str(&ran.out)?;
    let held = &plan["tables"][0]["blast_radius"];
    assert_eq!((&held["change"]["files"], &held["change"]["live_files"]), (&json!(6), &json!(8)));
    assert_eq!(held["late"], json!(null));
    assert_eq!(held["samples"].as_array().map(Vec::len), Some(5));
    let digest = held["digest"].as_str().context("a digest")?;
    let command = held["command"].as_str().context("a command")?;
    assert_eq!(command, format!("tailrace approve lake events.raw --digest {digest}"));
    let text = scene.database.ran_with(&["plan"], &env).await?.out;
    assert!(
        text.contains(&format!(
            "  held         6 of 8 live files had expired when this policy or the table's specs were met \
             first\n    guard.max_drop_fraction holds 6 partitions; to let them go:\n      {command}\n"
        )),
        "{text}"
    );
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let approved = scene.database.ran_with(&words, &env).await?;
    assert_eq!(approved.code, 0, "{approved:?}");
    assert_eq!(scene.passes(&in_days(0)).await?, (6, 2, 0));
    Ok(())
}

/// A confirmation is of the policy as it was shown: what another spec lets go was not.
#[tokio::test]
async fn a_confirmation_covers_no_later_spec() -> Result<()> {
    let scene = of_days([2, 1]).await?;
    scene.set_policy("7d", &["--yes"]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 2, 0));
    let hours = |day: i64| {
        let hour = days_ago(day).parse::<i64>().unwrap_or_default() * 24;
        file(&hour.to_string())
    };
    scene.table.evolve_spec(&[Field::hour("at")]).await?;
    scene.table.append((20..26).map(hours).collect()).await?;
    let settings = Settings { stale_writer_window: Duration::ZERO, ..in_days(0) };
    assert_eq!(scene.passes(&settings).await?.0, 0);
    assert_eq!(scene.live().await?.len(), 8);
    Ok(())
}

#[tokio::test]
async fn late_files_are_held_when_they_are_too_many() -> Result<()> {
    let scene = of_days([2, 1, 0]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 3, 0));
    // Two of five, then as many again within the day: more than three, and more than half of three.
    scene.table.append(vec![file(&days_ago(20)), file(&days_ago(21))]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (2, 3, 0));
    scene.table.append(vec![file(&days_ago(20)), file(&days_ago(21))]).await?;
    assert_eq!(scene.plans(&in_days(0)).await?, (0, Some((4, 3))));
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 5, 2));
    // What comes due by time alone goes all the same.
    assert_eq!(scene.passes(&in_days(7)).await?, (2, 3, 2));
    // Whoever is shown it lets it go.
    scene.set_policy("7d", &["--yes"]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (2, 1, 0));
    Ok(())
}

#[tokio::test]
async fn late_files_of_another_day_are_counted_anew() -> Result<()> {
    let scene = of_days([0, 0, 0]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 3, 0));
    for day in 0..3 {
        scene.table.append((0..3).map(|_| file(&days_ago(20))).collect()).await?;
        assert_eq!(scene.passes(&in_days(day)).await?, (3, 3, 0), "day {day}");
    }
    Ok(())
}

#[tokio::test]
async fn a_property_is_believed_where_properties_are_trusted() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    let property = r#"{"field":"at","keep":"7d"}"#;
    scene.table.set_property("partition_retention", Some(property)).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    let trusting = Settings { trusts_properties: true, ..in_days(0) };
    assert_eq!(scene.plans(&trusting).await?, (6, None));
    // What waits is looked at again by a full pass.
    let trusting = Settings { heeds_pauses: false, full_pass_every: Duration::ZERO, ..trusting };
    assert_eq!(scene.passes(&trusting).await?, (6, 2, 0));
    Ok(())
}

#[tokio::test]
async fn what_is_held_is_logged_once_and_its_release_too() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    let env = [("TAILRACE__GUARD__MIN_DROP_FILES", "3")];
    let ran = scene.database.ran_with(&["sweep"], &env).await?;
    let [held] = &ran.events("blast_radius_held")[..] else { panic!("{ran:?}") };
    let told = |name: &str| held[name].clone();
    assert_eq!(
        json!([told("cause"), told("files"), told("live_files"), told("min_drop_files")]),
        json!(["change", 6, 8, 3])
    );
    let plan = scene.database.ran_with(&["plan", "--output", "json"], &env).await?;
    let plan: serde_json::Value = serde_json::from_str(&plan.out)?;
    assert_eq!(told("command"), plan["tables"][0]["blast_radius"]["command"]);
    assert_eq!(scene.live().await?.len(), 8);
    let again = scene.database.ran_with(&["sweep"], &env).await?;
    assert_eq!(again.events("blast_radius_held").len(), 0, "{again:?}");
    scene.set_policy("7d", &["--yes"]).await?;
    let then = scene.database.ran_with(&["sweep"], &env).await?;
    assert_eq!(then.events("blast_radius_released")[0]["why"], json!("confirmed"));
    assert_eq!(scene.live().await?.len(), 2);
    Ok(())
}

/// Nothing is claimed of it, nothing is overdue, and the reason is shown.
#[tokio::test]
async fn claims_verify_explain_and_doctor_know_what_is_held() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    let env = [
        ("TAILRACE__GUARD__MIN_DROP_FILES", "3"),
        ("TAILRACE__VERIFY__GRACE", "1s"),
        ("TAILRACE__GUARD__CROSS_CHECK", "off"),
    ];
    let verified = scene.database.ran_with(&["verify"], &env).await?;
    assert_eq!(verified.code, 0, "{verified:?}");
    let partition = format!("[\"{}\"]", days_ago(20));
    let explain = ["explain", "lake", "events.raw", "--partition", &partition, "--output", "json"];
    let explained = scene.database.ran_with(&explain, &env).await?;
    let explained: serde_json::Value = serde_json::from_str(&explained.out)?;
    assert_eq!(explained["blocked_by"][0]["by"], json!("blast_radius"), "{explained}");
    let doctor = scene.database.ran_with(&["doctor"], &env).await?;
    assert!(doctor.out.contains("6 partitions held for their number"), "{doctor:?}");
    Ok(())
}

/// A policy under which an earlier program made drops is not held for what is left.
#[tokio::test]
async fn what_an_earlier_program_dropped_by_is_known() -> Result<()> {
    let scene = of_days([2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 2, 0));
    scene.table.append(vec![file(&days_ago(9))]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (1, 2, 0));
    scene.database.sql("update tailrace.table_state set rule_change = null").await?;
    scene.database.sql(CONFIRM).await?;
    scene.table.append((10..16).map(|day| file(&days_ago(day))).collect()).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (6, 2, 0));
    // A policy that was set since is another one.
    scene.database.sql("update tailrace.table_state set rule_change = null").await?;
    scene.table.append((10..16).map(|day| file(&days_ago(day))).collect()).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    Ok(())
}

/// What was dropped by hand is held no more, and what comes then is counted anew.
#[tokio::test]
async fn what_an_operator_dropped_is_held_no_more() -> Result<()> {
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    scene.set_policy("7d", &[]).await?;
    assert_eq!(scene.passes(&in_days(0)).await?, (0, 8, 6));
    let all: Vec<String> = (15..21).map(days_ago).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let body = crate::explicit::days([all[0], all[1], all[2], all[3], all[4], all[5]]);
    assert_eq!(scene.done(&body).await?.files_ended, 6);
    let full = Settings { full_pass_every: Duration::ZERO, ..in_days(0) };
    assert_eq!(scene.passes(&full).await?, (0, 2, 0));
    let held = "select rule_change ->> 'held' from tailrace.table_state";
    assert_eq!(scene.database.text(held).await?, None);
    Ok(())
}

/// The plan of a policy that is not stored yet says what a confirmation lets go.
#[tokio::test]
async fn a_policy_is_shown_before_it_is_set() -> Result<()> {
    use tailrace::policy::set::{Wanted, would_set};
    let scene = of_days([20, 19, 18, 17, 16, 15, 2, 1]).await?;
    let mut session = scene.session().await?;
    let wanted = Wanted {
        catalog: "lake",
        namespace: "events",
        table: "raw",
        field: "at",
        keep: "7d",
        keep_last: None,
        mode: None,
        fence: None,
        is_confirmed: true,
        by: "anna",
        reason: None,
    };
    for (is_confirmed, goes) in [(true, 6), (false, 0)] {
        let wanted = Wanted { is_confirmed, ..wanted };
        let (table, policy) = would_set(&mut session, &wanted, NO_LIMITS).await?;
        let (now, settings) = (UtcInstant::from(chrono::Utc::now()), in_days(0));
        let plan = plan_table(&mut session, &table, &policy, now, &settings).await?;
        assert_eq!(plan.expired.len(), goes);
    }
    let stored = "select count(*)::text from tailrace.policy";
    assert_eq!(scene.database.text(stored).await?.as_deref(), Some("0"));
    Ok(())
}
