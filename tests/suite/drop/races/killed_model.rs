//! Tests of a pass and of a daemon that are killed (`kill -9`) at random points, on a table with
//! everything that a table may have. The result must be that of a model that was never killed.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::report::Outcome;
use tailrace_kit::lake::NewFile;

use crate::support::gate::leases;
use crate::support::program::days_ago;
use crate::support::wait::until;

use super::{Scene, whole};

const SEEDS: [u64; 3] = [1, 2, 3];
/// Of one pass, then of the daemon.
const KILLS: usize = 5;
const AGES: std::ops::Range<i64> = 8..100;

/// One file of each tuple in a commit, so that a pass has many of them.
const ENV: [(&str, &str); 6] = [
    ("TAILRACE__SWEEP__MAX_FILES_PER_COMMIT", "2"),
    ("TAILRACE__SWEEP__MAX_FILES_PER_TUPLE", "100"),
    ("TAILRACE__SWEEP__LOCK_DUTY", "1.0"),
    ("TAILRACE__SCHEDULE__EVERY", "1s"),
    ("TAILRACE__SCHEDULE__JITTER", "0s"),
    ("TAILRACE__HEALTH__FILE", ""),
];

/// What stays, each file with what its vector takes away; and the tuples that wait.
#[derive(Default)]
struct Model {
    kept: BTreeMap<i64, Option<i64>>,
    waiting: Vec<String>,
}

struct Killed {
    scene: Scene,
    model: Model,
    random: Rng,
}

impl Killed {
    /// Files of which passes know when they fall due: that was far away until now.
    async fn new(seed: u64) -> Result<Self> {
        let scene = Scene::new(&[0]).await?;
        let mut killed = Killed { scene, model: Model::default(), random: Rng::with_seed(seed) };
        killed.model.kept.insert(killed.scene.files[0], None);
        killed.scene.database.govern(&killed.scene.table, "at", "1000d").await?;
        for age in AGES {
            killed.append(age).await?;
        }
        let first = killed.scene.database.sweep_one().await?;
        assert_eq!((first.outcome, first.full), (Outcome::NothingToDo, Some(true)));
        killed.scene.database.govern(&killed.scene.table, "at", "7d").await?;
        Ok(killed)
    }

    /// Files of one age: some expired, some with a vector, some that no time is known of, some whose rows are
    /// newer than their values say.
    async fn append(&mut self, age: i64) -> Result<()> {
        let day = days_ago(age);
        let newer = age % 10 == 9;
        let newest = UtcInstant::from(chrono::Utc::now()).nanos() / 1_000;
        let bound = i64::try_from(newest)?.to_le_bytes();
        let mut files = vec![NewFile::of([day.clone()]), NewFile::of([day.clone()])];
        if newer {
            files[0] = files[0].clone().upper("at", &bound);
            let waits = format!("1 {day} newer_rows_than_partition");
            if !self.model.waiting.contains(&waits) {
                self.model.waiting.push(waits);
            }
        }
        let stay = self.random.u8(0..4) == 0;
        if stay {
            files.extend([NewFile::new(vec![None]), NewFile::of([days_ago(3)])]);
        }
        let ids = self.scene.table.append(files).await?.file_ids;
        let (of_day, others) = ids.split_at(2);
        if newer {
            self.model.kept.extend(of_day.iter().map(|id| (*id, None)));
        }
        self.model.kept.extend(others.iter().map(|id| (*id, None)));
        // A vector of a file that goes, and of one that stays.
        for id in [Some(of_day[1]), others.last().copied()].into_iter().flatten() {
            if self.random.u8(0..3) == 0 {
                self.scene.table.register_vector(id, 5, None).await?;
                self.model.kept.entry(id).and_modify(|vector| *vector = Some(5));
            }
        }
        Ok(())
    }

    /// Starts the program, and kills it after so many of its commits, or before any.
    async fn kill(&mut self, command: &str) -> Result<()> {
        let mut run = self.scene.database.start(&[command], &ENV)?;
        run.event("pass_started", 1).await?;
        let commits = self.random.usize(0..4);
        if commits > 0 {
            run.event("drop_committed", commits).await?;
        }
        tokio::time::sleep(Duration::from_micros(self.random.u64(0..10_000))).await;
        run.kill().await?;
        // The session of the killed one may have a commit in its hands, which is its last.
        let catalog = &self.scene.catalog;
        until("the lease is free", async || Ok(leases(catalog).await? == 0)).await?;
        whole::drops(catalog, self.scene.table.table_id).await?;
        Ok(())
    }

    /// Passes until one finds nothing; none of them is a full one.
    async fn to_the_end(&self) -> Result<()> {
        for _ in 0..3 {
            let report = self.scene.database.sweep_one().await?;
            assert_eq!(report.full, Some(false), "{report:?}");
            if report.outcome == Outcome::NothingToDo {
                return Ok(());
            }
        }
        anyhow::bail!("no end")
    }

    async fn check(&mut self, when: &str) -> Result<()> {
        let live = self.scene.table.live_files().await?;
        let live: BTreeMap<i64, Option<i64>> = live
            .into_iter()
            .map(|file| (file.data_file_id, file.vector.map(|vector| vector.delete_count)))
            .collect();
        assert_eq!(live, self.model.kept, "{when}");
        let waiting = "SELECT spec_id || ' ' || (tuple -> 'values' ->> 0) || ' ' || reason
                         FROM tailrace.waiting";
        let pool = self.scene.catalog.pool();
        let mut waiting: Vec<String> = sqlx::query_scalar(waiting).fetch_all(pool).await?;
        waiting.sort_unstable();
        self.model.waiting.sort_unstable();
        assert_eq!(waiting, self.model.waiting, "{when}");
        Ok(())
    }
}

#[tokio::test]
async fn whatever_was_killed_the_end_is_that_of_the_model() -> Result<()> {
    for seed in SEEDS {
        let mut killed = Killed::new(seed).await?;
        for command in ["sweep", "run"] {
            for _ in 0..KILLS {
                killed.kill(command).await?;
                // Late files, while nobody is there.
                let age = killed.random.i64(AGES);
                killed.append(age).await?;
            }
        }
        killed.to_the_end().await?;
        killed.check(&format!("seed {seed}")).await?;
    }
    Ok(())
}
