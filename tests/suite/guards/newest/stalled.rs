//! Tests of feeds that have stalled.

use anyhow::Result;
use serde_json::{Value, json};
use tailrace::sweep::Scope;
use tailrace::sweep::Settings;
use tailrace::sweep::planning::plan_all;
use tailrace_kit::lake::Field;

use super::ways;
use crate::explicit::{Scene, file};
use crate::support::program::{days_ago, settings};

impl Scene {
    /// What a plan says of the feed: the newest partition, where it has stalled.
    async fn stalled(&self, settings: &Settings) -> Result<Option<String>> {
        let plans = plan_all(&self.database.tailrace(), settings, &Scope::default(), None).await?;
        let (_, plan) = plans.tables.into_iter().next().expect("one table");
        let plan = plan.map_err(anyhow::Error::msg)?;
        Ok(plan.stalled.map(|stalled| stalled.newest))
    }
}

/// The day of 3 days ago ended 2 to 3 days ago, that of 5 days ago 4 to 5 days ago: half of a week lies between.
#[tokio::test]
async fn a_feed_has_stalled_past_half_of_its_keep() -> Result<()> {
    let [by_sample, by_value, in_pieces] = ways();
    for (ages, has_stalled) in
        [(&[6, 5][..], true), (&[6, 5, -20], true), (&[6, 5, 3], false), (&[3, 20, 30], false)]
    {
        let scene = Scene::of_days(ages, "0").await?;
        let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
        other.append(vec![file(&days_ago(0))]).await?;
        let newest = has_stalled.then(|| {
            let days: i64 = days_ago(5).parse().expect("a number");
            tailrace::rules::transform::TimeTransform::Day.display(Some(&days.to_string()))
        });
        assert_eq!(scene.stalled(&by_sample).await?, newest, "{ages:?}");
        assert_eq!(scene.stalled(&by_value).await?, newest, "{ages:?}");
        // Where that would take to read the whole of a large table it is not told.
        assert_eq!(scene.stalled(&in_pieces).await?, None, "{ages:?}");
    }
    Ok(())
}

/// A full pass says so once; `tailrace plan` and `tailrace doctor` as long as it is so.
#[tokio::test]
async fn a_stalled_feed_is_told_by_full_pass_plan_and_doctor() -> Result<()> {
    let scene = Scene::of_days(&[6, 5], "1").await?;
    let sweep = ["sweep", "--output", "json"];
    let ran = scene.database.ran(&sweep).await?;
    let [event] = &ran.events("feed_stalled")[..] else { panic!("{ran:?}") };
    assert_eq!((&event["keep"], &event["keep_last"]), (&json!("7d"), &json!(1)));
    assert_eq!(scene.database.ran(&sweep).await?.events("feed_stalled").len(), 0);
    let plan = scene.plan().await?;
    assert_eq!(
        (&plan["stalled"]["newest"], &plan["stalled"]["ended"]),
        (&event["newest"], &event["ended"])
    );
    let text = scene.database.ran(&["plan"]).await?.out;
    assert!(text.contains("  stalled      the newest partition "), "{text}");
    let told = async || -> Result<Vec<Value>> {
        let (doctor, _) = scene.database.json(&["doctor", "--output", "json"]).await?;
        let findings = doctor["findings"].as_array().cloned().unwrap_or_default();
        let is_it = |finding: &Value| {
            finding["what"].as_str().is_some_and(|what| what.contains("half of keep"))
        };
        Ok(findings.into_iter().filter(is_it).collect())
    };
    let [finding] = &told().await?[..] else { panic!("one finding") };
    assert_eq!(finding["level"], "warning");
    assert_eq!(finding["why"], "unless newer ones come, all but the newest 1 expire");
    scene.add(&[1]).await?;
    assert_eq!(told().await?.len(), 0);
    assert_eq!(scene.plan().await?["stalled"], Value::Null);
    assert_eq!(scene.stalled(&settings()).await?, None);
    Ok(())
}

#[tokio::test]
async fn a_table_without_files_has_not_stalled() -> Result<()> {
    let scene = Scene::new().await?;
    scene.keeps(&[]).await?;
    assert_eq!(scene.stalled(&settings()).await?, None);
    Ok(())
}
