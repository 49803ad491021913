//! Tests of full passes over tables that need more than one pass.

use anyhow::Result;
use tailrace::sweep::report::Outcome;
use tailrace::sweep::{Progress, Scope, Settings, run_pass};
use tailrace_kit::lake::{Field, NewFile};
use tokio_util::sync::CancellationToken;

use super::Scene;

impl Scene {
    /// A pass that is told to stop at its first commit.
    async fn stopped_sweep(&self) -> Result<Outcome> {
        let settings = Settings { as_of: Some(self.now), ..self.settings };
        let stop = CancellationToken::new();
        let at_commit = |progress: Progress<'_>| {
            if let Progress::Dropped { .. } = progress {
                stop.cancel();
            }
        };
        let database = self.database.tailrace();
        let report = run_pass(&database, &settings, &Scope::default(), &stop, &at_commit).await?;
        Ok(report.tables[0].outcome)
    }
}

fn backlog(scene: &Scene) -> Vec<NewFile> {
    let old = (8..40).flat_map(|age| [scene.file(age), scene.file(age)]);
    let kept = [scene.file(0), scene.file(7), NewFile::new(vec![None])];
    kept.into_iter().chain(old).chain([scene.file(1)]).collect()
}

#[tokio::test]
async fn a_backlog_goes_on_where_it_stopped() -> Result<()> {
    let mut scene = Scene::large(&[Field::day("at")]).await?;
    scene.settings.batch.files_per_commit = 4;
    let ids = scene.table.append(backlog(&scene)).await?.file_ids;
    let mut left = 64;
    let mut passes = 0;
    while scene.live().await?.len() > 4 {
        passes += 1;
        left -= 4;
        let outcome = if left > 0 { Outcome::Partial } else { Outcome::Dropped };
        assert_eq!(scene.stopped_sweep().await?, outcome, "pass {passes}");
        assert_eq!(scene.live().await?.len(), left + 4, "pass {passes}");
        // Two days a commit, the oldest first: the listing goes on where it stopped, until all were looked up.
        let is_under_way = scene.state("reading ->> 'list_from'").await?;
        assert_eq!(is_under_way.is_some(), left > 4, "pass {passes}");
    }
    assert_eq!(passes, 16);
    let last = scene.sweep().await?;
    assert_eq!(last.outcome, Outcome::NothingToDo);
    assert_eq!(scene.live().await?, [&ids[..3], &ids[67..]].concat());
    let counted = last.counted.map(|counted| counted.undatable_files);
    assert_eq!((counted, scene.state("reading").await?), (Some(1), None));
    Ok(())
}

#[tokio::test]
async fn a_table_of_too_many_texts_is_read_over_several_passes() -> Result<()> {
    for has_index in [true, false] {
        let mut scene = Scene::large(&[Field::day("at")]).await?;
        if !has_index {
            scene.database.sql("DROP INDEX hog_file_partition_value_lookup").await?;
        }
        scene.settings.max_values = 2;
        scene.settings.batch.files_per_commit = 4;
        let ids = scene.table.append(backlog(&scene)).await?.file_ids;
        let mut passes = 0;
        while scene.live().await?.len() > 4 {
            assert_eq!(scene.stopped_sweep().await?, Outcome::Partial, "pass {passes}");
            assert_eq!(scene.state("full_pass_at").await?, None);
            passes += 1;
            assert!(passes <= 40, "no end");
        }
        let late = scene.table.append(vec![scene.file(20)]).await?.file_ids;
        let through = scene.sweep().await?;
        assert!(matches!(through.outcome, Outcome::NothingToDo | Outcome::Dropped));
        assert_eq!(scene.state("reading").await?, None);
        assert_eq!(through.counted.map(|counted| counted.undatable_files), Some(1));
        let next = scene.sweep().await?;
        assert_eq!(next.full, Some(false), "index {has_index}");
        assert_eq!(scene.live().await?, [&ids[..3], &ids[67..]].concat(), "{late:?} is gone");
    }
    Ok(())
}
