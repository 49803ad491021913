//! Tests of what the plan of a large table shows by the calendar: when the next partition expires.

use anyhow::{Context, Result};
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Scope;
use tailrace::sweep::find::NextExpiry;
use tailrace::sweep::planning::plan_all;
use tailrace_kit::lake::{Column, Field, NewFile};

use super::{Scene, small_steps};

impl Scene {
    /// When the next partition expires, by a plan of now.
    async fn next(&self) -> Result<Option<NextExpiry>> {
        let scope = Scope::default();
        let plans =
            plan_all(&self.database.tailrace(), &self.settings, &scope, Some(self.now)).await?;
        let (_, plan) = plans.tables.into_iter().next().context("a plan")?;
        Ok(plan.map_err(anyhow::Error::msg)?.next)
    }

    /// Ends files as another writer would.
    async fn end(&self, ids: &[i64]) -> Result<()> {
        let (catalog_id, ids) = (self.catalog.catalog_id, format!("{ids:?}"));
        self.database
            .sql(&format!(
                "UPDATE hog_data_file SET end_snapshot = begin_snapshot + 1
                 WHERE catalog_id = {catalog_id} AND data_file_id = ANY (ARRAY{ids})"
            ))
            .await
    }
}

/// A table by instants, which has rows for days whatever their number.
async fn instants() -> Result<Scene> {
    let mut scene = Scene::large(&[Field::day("at")]).await?;
    let (columns, spec) = ([Column::new("when", "timestamp")], [Field::identity("when")]);
    scene.table = scene.database.table_of(&scene.catalog, "a_named", &columns, &spec).await?;
    scene.database.govern(&scene.table, "when", "7d").await?;
    Ok(scene)
}

fn at(text: &str) -> Result<UtcInstant> {
    Ok(text.parse()?)
}

/// Rows of values that have no file left are passed over, as far as is looked.
#[tokio::test]
async fn the_next_value_with_a_file_tells_it() -> Result<()> {
    let scene = Scene::large(&[Field::day("at")]).await?;
    let ids = scene.table.append((0..5).map(|ago| scene.file(ago)).collect()).await?.file_ids;
    scene.sweep().await?;
    assert_eq!(scene.next().await?, Some(NextExpiry::At(at("2026-12-04T00:00:00Z")?)));
    scene.end(&ids[3..]).await?;
    assert_eq!(scene.next().await?, Some(NextExpiry::At(at("2026-12-06T00:00:00Z")?)));
    scene.end(&ids[..3]).await?;
    assert_eq!(scene.next().await?, None);
    Ok(())
}

/// A row of a day falls due with the first value of it; which of its values have files is asked.
#[tokio::test]
async fn of_a_day_the_first_value_with_a_file_tells_it() -> Result<()> {
    for is_hour in [true, false] {
        let mut scene = match is_hour {
            true => Scene::large(&[Field::hour("at")]).await?,
            false => instants().await?,
        };
        (scene.settings.scan_limits.most_rows, scene.settings.scan_limits.values_listed) = (0, 10);
        let text = |hour: &str| -> Result<NewFile> {
            let text = format!("2026-11-29T{hour}:00:00");
            Ok(NewFile::of([match is_hour {
                true => at(&format!("{text}Z"))?.hours().to_string(),
                false => text,
            }]))
        };
        let files = ["03", "05", "21"].map(text).into_iter().collect::<Result<Vec<_>>>()?;
        let ids = scene.table.append(files).await?.file_ids;
        scene.sweep().await?;
        assert_eq!(scene.rows().await?.len(), 1, "{is_hour}: a row for the day");
        let end = |hour: &str| at(&format!("2026-12-06T{hour}:00:00Z"));
        let ends = match is_hour {
            true => [end("04")?, end("06")?, end("22")?],
            false => [end("03")?, end("05")?, end("21")?],
        };
        for (place, expected) in ends.into_iter().enumerate() {
            assert_eq!(scene.next().await?, Some(NextExpiry::At(expected)), "{is_hour} {place}");
            scene.end(&ids[place..=place]).await?;
        }
        assert_eq!(scene.next().await?, None);
    }
    Ok(())
}

/// What cannot be found within bounds is reported as unknown: more values of a day than are listed at once, and
/// more values without files than are looked at.
#[tokio::test]
async fn beyond_the_bounds_it_is_told_as_not_before() -> Result<()> {
    let scene = instants().await?;
    assert_eq!(small_steps().values_listed, 3);
    let files = (3..7).map(|hour| NewFile::of([format!("2026-11-29T{hour:02}:00:00")])).collect();
    scene.table.append(files).await?;
    scene.sweep().await?;
    let not_before = Some(NextExpiry::NotBefore(at("2026-12-06T03:00:00Z")?));
    assert_eq!(scene.next().await?, not_before);

    let scene = Scene::large(&[Field::hour("at")]).await?;
    let hour = scene.now.hours() as i64;
    let files = (0..25).map(|ago| NewFile::of([(hour - ago).to_string()])).collect();
    let ids = scene.table.append(files).await?.file_ids;
    scene.sweep().await?;
    scene.end(&ids[5..]).await?;
    // The twentieth row is of the hour that began five hours ago.
    assert_eq!(scene.next().await?, Some(NextExpiry::NotBefore(at("2026-12-07T08:00:00Z")?)));
    Ok(())
}
