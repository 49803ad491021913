//! Tests of policies that keep the newest time values whatever their age.

mod races;
mod shown;
mod stalled;

use anyhow::Result;
use tailrace::sweep::Settings;
use tailrace::sweep::report::TableReport;
use tailrace_kit::lake::{Field, NewFile};

use crate::explicit::{Scene, days, file};
use crate::support::governed::live_values;
use crate::support::program::{days_ago, settings};

impl Scene {
    /// Files of these days before today, and a policy that keeps a week and the newest.
    async fn of_days(ages: &[i64], keep_last: &str) -> Result<Self> {
        let scene = Scene::new().await?;
        scene.add(ages).await?;
        scene.keeps(&["--keep-last", keep_last]).await?;
        Ok(scene)
    }

    async fn add(&self, ages: &[i64]) -> Result<()> {
        let files = ages.iter().map(|age| file(&days_ago(*age)));
        self.table.append(files.collect()).await?;
        Ok(())
    }

    /// Sets the policy: a week, with these arguments beside.
    async fn keeps(&self, rest: &[&str]) -> Result<()> {
        let set = ["policy", "set", "lake", "events.raw", "--field", "at", "--keep", "7d"];
        let ran = self.database.ran(&[&set[..], rest].concat()).await?;
        anyhow::ensure!(ran.code == 0, "{ran:?}");
        Ok(())
    }

    /// The ages of the live files in days, the oldest first.
    async fn ages(&self) -> Result<Vec<i64>> {
        let today: i64 = days_ago(0).parse()?;
        let days = live_values(&self.table).await?.into_iter().flatten().flatten();
        let mut ages = Vec::new();
        for day in days {
            ages.push(today - day.parse::<i64>()?);
        }
        ages.sort_by(|one, other| other.cmp(one));
        Ok(ages)
    }

    /// A pass that heeds no pause of what waits.
    async fn swept(&self, settings: &Settings) -> Result<TableReport> {
        let mut report = self.database.sweep_with(&heedless(settings)).await?;
        Ok(report.tables.pop().expect("one table"))
    }
}

fn heedless(settings: &Settings) -> Settings {
    Settings { heeds_pauses: false, ..*settings }
}

/// The ways in which the newest are found: the table at once, by its values one by one, in pieces.
fn ways() -> [Settings; 3] {
    let mut by_value = settings();
    by_value.scan_limits.small_table = 0;
    by_value.scan_limits.values_at_once = 1;
    by_value.scan_limits.values_listed = 2;
    let mut in_pieces = by_value;
    in_pieces.max_values = 0;
    in_pieces.scan_limits.piece = 2;
    [settings(), by_value, in_pieces]
}

#[tokio::test]
async fn a_stalled_feed_keeps_its_newest_whatever_their_age() -> Result<()> {
    for settings in ways() {
        let scene = Scene::of_days(&[40, 39, 38, 37, 36], "3").await?;
        let plan = scene.plan().await?;
        assert_eq!(plan["keep_last"], 3);
        let values = |key: &str| {
            let found = plan[key].as_array().cloned().unwrap_or_default().into_iter();
            found.map(|one| one["partition_values"][0].clone()).collect::<Vec<_>>()
        };
        assert_eq!(values("expired"), [40, 39].map(days_ago));
        assert_eq!(values("among_newest"), [38, 37, 36].map(days_ago));
        assert_eq!(plan["kept"]["among_newest"], 3);
        for _ in 0..3 {
            scene.swept(&settings).await?;
            assert_eq!(scene.ages().await?, [38, 37, 36]);
        }
        assert_eq!(scene.plan().await?["waiting"][0]["reason"], "among_newest");
        // A newer one comes: the oldest goes.
        scene.add(&[20, 20]).await?;
        scene.swept(&settings).await?;
        assert_eq!(scene.ages().await?, [37, 36, 20, 20]);
    }
    Ok(())
}

/// Neither what has ended, nor what begins after now, nor what has no time.
#[tokio::test]
async fn only_live_values_that_have_begun_count() -> Result<()> {
    for settings in ways() {
        let scene = Scene::of_days(&[40, 39, 38, 37, 36, -20], "2").await?;
        let (newest, other) = (days_ago(36), days_ago(37));
        scene.done(&days([newest.as_str(), other.as_str()])).await?;
        scene.table.append(vec![NewFile::new(vec![None]), file("x")]).await?;
        // Other tables of the catalog have them all the same.
        let other = scene.database.table(&scene.catalog, "other", &[Field::day("at")]).await?;
        other.append([36, 37, 1].map(|age| file(&days_ago(age))).to_vec()).await?;
        scene.swept(&settings).await?;
        let values = live_values(&scene.table).await?.into_iter().flatten();
        let mut values: Vec<_> = values.map(Option::unwrap_or_default).collect();
        values.sort();
        let mut expected =
            [days_ago(39), days_ago(38), days_ago(-20), "x".to_owned(), String::new()];
        expected.sort();
        assert_eq!(values, expected);
    }
    Ok(())
}

#[tokio::test]
async fn a_day_counts_once_however_many_partitions_it_has() -> Result<()> {
    for settings in ways() {
        let scene = Scene::of(&[Field::identity("kind"), Field::day("at")]).await?;
        let files = [40, 39, 38]
            .map(days_ago)
            .into_iter()
            .flat_map(|day| ["a", "b"].map(|kind| NewFile::of([kind.to_owned(), day.clone()])));
        scene.table.append(files.collect()).await?;
        scene.keeps(&["--keep-last", "2"]).await?;
        let report = scene.swept(&settings).await?;
        assert_eq!(report.counts().files, 2, "{report:?}");
        let mut days: Vec<_> =
            live_values(&scene.table).await?.into_iter().filter_map(|of| of[1].clone()).collect();
        days.sort();
        assert_eq!(days, [39, 39, 38, 38].map(days_ago));
    }
    Ok(())
}

/// A day may be the text of an hour of 1972: it counts from then, and nothing goes, before its spec is trusted.
#[tokio::test]
async fn values_of_every_spec_count_by_what_keeps_most() -> Result<()> {
    for settings in ways() {
        let scene = Scene::of_days(&[40, 39], "3").await?;
        scene.table.evolve_spec(&[Field::hour("at")]).await?;
        let hour = days_ago(38).parse::<i64>()? * 24;
        let hours = [0, 1].map(|number| file(&(hour + number).to_string()));
        scene.table.append(hours.to_vec()).await?;
        scene.swept(&settings).await?;
        assert_eq!(scene.live().await?.len(), 4);
        let trust = ["spec", "trust", "lake", "events.raw", "1", "--reason", "known", "--yes"];
        assert_eq!(scene.database.ran(&trust).await?.code, 0);
        scene.swept(&settings).await?;
        assert_eq!(scene.live().await?.len(), 3, "the older day goes");
        // The two hours are the newest two, and the day ended before them.
        scene.keeps(&["--keep-last", "2"]).await?;
        scene.swept(&settings).await?;
        assert_eq!(scene.live().await?.len(), 2);
    }
    Ok(())
}

/// Instants, each its own value, of which the oldest that counts ends when it starts.
#[tokio::test]
async fn instants_count_each() -> Result<()> {
    let scene = Scene::of(&[Field::identity("at")]).await?;
    let texts = ["2019-04-14T05:00:00+00:00", "2019-04-14T06:00:00+00:00", "2019-04-14T07:00:00Z"];
    scene.table.append(texts.map(file).to_vec()).await?;
    scene.keeps(&["--keep-last", "2"]).await?;
    scene.swept(&settings()).await?;
    let mut left: Vec<_> = live_values(&scene.table).await?.into_iter().flatten().collect();
    left.sort();
    assert_eq!(left, [texts[1], texts[2]].map(|text| Some(text.to_owned())));
    Ok(())
}

/// Where there are no more values than are kept nothing goes; without the option the age alone decides.
#[tokio::test]
async fn few_values_stay_all_and_zero_takes_it_back() -> Result<()> {
    let scene = Scene::of_days(&[40, 39], "3").await?;
    scene.swept(&settings()).await?;
    assert_eq!(scene.ages().await?, [40, 39]);
    scene.keeps(&["--keep-last", "0"]).await?;
    assert_eq!(scene.plan().await?["keep_last"], serde_json::Value::Null);
    // What waited under the policy before is looked at at once.
    scene.database.sweep().await?;
    assert_eq!(scene.ages().await?, [0_i64; 0]);
    Ok(())
}

/// An explicit drop goes by no policy.
#[tokio::test]
async fn an_operators_drop_does_not_heed_it() -> Result<()> {
    let scene = Scene::of_days(&[40, 39], "3").await?;
    let newest = days_ago(39);
    assert_eq!(scene.done(&days([newest.as_str()])).await?.files_ended, 1);
    Ok(())
}
