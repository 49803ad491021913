//! Compares passes over random weeks of a table's life with a model that forgets nothing.

use std::time::Duration;

use anyhow::Result;
use fastrand::Rng;
use tailrace::policy::Mode;
use tailrace::rules::instant::UtcInstant;
use tailrace::rules::scan_limits::ScanLimits;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{Field, NewFile, Table};
use tailrace_kit::simulated_loops::Compaction;

use super::broken::{ENDS, end_at};
use super::cut::micros;
use super::model::{File, Model};
use super::{DAY, Scene, small_steps};
use crate::support::restore::Backup;

const SEEDS: [u64; 5] = [1, 2, 3, 4, 8];
const STEPS: usize = 40;

/// So many passes are enough for whatever was left, if nothing cuts them short.
const PASSES: usize = 4;

/// A table, and all that happened to it.
struct History {
    random: Rng,
    scene: Scene,
    neighbour: Table,
    by_hour: bool,
    keep: u64,
    mode: Mode,
    model: Model,
    /// The catalog at an earlier time, with the model and the transform of then.
    backup: Option<(Backup, Model, bool)>,
    backups: usize,
}

impl History {
    async fn new(seed: u64) -> Result<Self> {
        let scene = Scene::new(&[Field::day("at")]).await?;
        let neighbour =
            scene.database.table(&scene.catalog, "neighbour", &[Field::day("at")]).await?;
        let random = Rng::with_seed(seed);
        let (model, mode) = (Model::default(), Mode::Enforce);
        let (by_hour, keep, backup, backups) = (false, 7, None, 0);
        Ok(History { random, scene, neighbour, by_hour, keep, mode, model, backup, backups })
    }

    fn one_in(&mut self, times: u8) -> bool {
        self.random.u8(0..times) == 0
    }

    fn cutoff(&self) -> UtcInstant {
        self.scene.now.minus(DAY * u32::try_from(self.keep).unwrap_or_default())
    }

    /// A file that nobody has written yet: of this day or of long ago, of no time at all, or with rows that are
    /// newer than its value says.
    fn file(&mut self, spec_id: i64) -> File {
        let value = match self.random.u8(0..20) {
            0 => return File { spec_id, value: None, end: None, newest: None, vector: None },
            1 => Some("x".to_owned()),
            _ => None,
        };
        if value.is_some() {
            return File { spec_id, value, end: None, newest: None, vector: None };
        }
        let ago = if self.one_in(5) { self.random.i64(0..9_000) } else { self.random.i64(0..72) };
        let hour = self.scene.now.hours() as i64 - ago;
        // An hour under a table that had days may be read as a day that lies ahead.
        let (value, end) = match self.by_hour {
            true => (hour, UtcInstant::from_hours(i128::from(hour) + 1)),
            false => {
                let day = hour.div_euclid(24);
                (day, UtcInstant::from_days(i128::from(day) + 1))
            }
        };
        let later = Duration::from_secs(self.random.u64(0..10 * 86_400));
        let newest = self.one_in(8).then(|| end.plus(later));
        File { spec_id, value: Some(value.to_string()), end: Some(end), newest, vector: None }
    }

    async fn append(&mut self) -> Result<()> {
        let spec_id = self.scene.table.live_spec().await?.unwrap_or_default();
        let number = self.random.usize(0..12);
        let files: Vec<File> = (0..number).map(|_| self.file(spec_id)).collect();
        if files.is_empty() {
            return Ok(());
        }
        let new = files.iter().map(|file| {
            let new = NewFile::new(vec![file.value.clone()]);
            match file.newest {
                Some(newest) => new.upper("at", &micros(newest)),
                None => new,
            }
        });
        let ids = self.scene.table.append(new.collect()).await?.file_ids;
        self.model.0.extend(ids.into_iter().zip(files));
        let texts: Vec<_> =
            (0..self.random.usize(0..40)).map(|n| self.scene.file(n as i64)).collect();
        if !texts.is_empty() {
            self.neighbour.append(texts).await?;
        }
        Ok(())
    }

    async fn change_the_spec(&mut self) -> Result<()> {
        self.by_hour = !self.by_hour;
        let field = if self.by_hour { Field::hour("at") } else { Field::day("at") };
        self.scene.table.evolve_spec(&[field]).await?;
        Ok(())
    }

    /// The output of files knows of their newest row what all of them knew.
    async fn compact(&mut self) -> Result<()> {
        Compaction::new(&self.scene.catalog, 1 << 30).run(&self.scene.table).await?;
        let after = self.scene.table.live_files().await?;
        let is_live = |id: &i64| after.iter().any(|file| file.data_file_id == *id);
        let known: Vec<i64> = self.model.0.keys().copied().collect();
        for output in after.iter().filter(|file| !known.contains(&file.data_file_id)) {
            let is_input = |(id, file): &(&i64, &File)| {
                !is_live(id)
                    && Some(file.spec_id) == output.spec_id
                    && file.value == output.values[0]
            };
            let inputs: Vec<File> =
                self.model.0.iter().filter(is_input).map(|(_, file)| file.clone()).collect();
            let newest = inputs.iter().map(|file| file.newest).collect::<Option<Vec<_>>>();
            let newest = newest.and_then(|all| all.into_iter().max());
            let file = File { newest, vector: None, ..inputs[0].clone() };
            self.model.0.insert(output.data_file_id, file);
        }
        self.model.0.retain(|id, _| is_live(id));
        Ok(())
    }

    async fn delete_rows(&mut self) -> Result<()> {
        let bare: Vec<i64> = self
            .model
            .0
            .iter()
            .filter(|(_, file)| file.vector.is_none())
            .map(|(id, _)| *id)
            .collect();
        if let Some(id) = self.random.choice(bare) {
            let rows = self.random.i64(1..50);
            self.scene.table.register_vector(id, rows, None).await?;
            self.model.0.entry(id).and_modify(|file| file.vector = Some(rows));
        }
        Ok(())
    }

    async fn change_the_policy(&mut self) -> Result<()> {
        self.keep = [3, 7, 12][self.random.usize(..3)];
        self.mode = match self.random.u8(0..6) {
            0 => Mode::Paused,
            1 | 2 => Mode::Observe,
            _ => Mode::Enforce,
        };
        let keep = format!("{}d", self.keep);
        self.scene.database.govern_as(&self.scene.table, "at", &keep, self.mode).await?;
        Ok(())
    }

    async fn back_up(&mut self) -> Result<()> {
        self.backups += 1;
        let backup = self.scene.database.back_up(&format!("backup_{}", self.backups)).await?;
        self.backup = Some((backup, self.model.clone(), self.by_hour));
        Ok(())
    }

    /// The catalog, and nothing of ours, is what it was.
    async fn restore(&mut self) -> Result<()> {
        let Some((backup, model, by_hour)) = &self.backup else { return Ok(()) };
        self.scene.database.restore(backup).await?;
        (self.model, self.by_hour) = (model.clone(), *by_hour);
        Ok(())
    }

    /// How the next passes work, and when.
    fn go_on(&mut self, trusts_the_calendar: bool) {
        let random = &mut self.random;
        let scan_limits = match random.u8(0..3) {
            0 => ScanLimits::default(),
            1 => ScanLimits { small_table: random.i64(0..30), ..small_steps() },
            _ => small_steps(),
        };
        let hours = random.u64(1..200);
        // Where none comes that is due, no full pass finds what the others overlooked.
        let full_pass_every = match trusts_the_calendar {
            true => DAY * 10_000,
            false => Duration::from_secs(3_600 * hours),
        };
        let max_values = if random.u8(0..4) == 0 { 3 } else { 100_000 };
        let settings = self.scene.settings;
        self.scene.settings = Settings { scan_limits, full_pass_every, max_values, ..settings };
        self.scene.now = self.scene.now.plus(Duration::from_secs(random.u64(0..100_000)));
    }

    /// Whatever happens between two passes, some of which are cut off anywhere.
    async fn step(&mut self, trusts_the_calendar: bool) -> Result<()> {
        self.append().await?;
        if self.one_in(12) {
            self.change_the_spec().await?;
        }
        if self.one_in(3) {
            self.delete_rows().await?;
        }
        if self.one_in(6) {
            self.compact().await?;
        }
        if self.one_in(6) {
            self.change_the_policy().await?;
        }
        match self.random.u8(0..24) {
            0 | 1 => self.back_up().await?,
            2 | 3 => self.restore().await?,
            _ => {}
        }
        self.go_on(trusts_the_calendar);
        for _ in 0..self.random.u8(0..3) {
            let ends = ENDS[self.random.usize(..ENDS.len())];
            let planned = end_at(self.random.usize(1..110), ends);
            self.scene.broken_sweep(planned).await?;
        }
        Ok(())
    }

    async fn check(&mut self, when: &str) -> Result<()> {
        self.scene.to_the_end(PASSES).await?;
        let cutoff = self.cutoff();
        if self.mode == Mode::Enforce {
            self.model.expire(cutoff);
            assert_eq!(self.scene.waiting().await?, self.model.waiting(cutoff), "{when}");
        }
        assert_eq!(self.scene.kept().await?, self.model.kept(), "{when}");
        assert_eq!(self.scene.orphans().await?, 0, "{when}");
        Ok(())
    }
}

/// Passes without a time limit, until one has nothing to do, leave exactly what has not expired, and what waits
/// with its reason; whether or not full passes come to their help.
#[tokio::test]
async fn passes_leave_exactly_what_has_not_expired() -> Result<()> {
    for seed in SEEDS {
        let mut history = History::new(seed).await?;
        for step in 0..STEPS {
            history.step(seed % 2 == 0).await?;
            history.check(&format!("seed {seed}, step {step}, {}", history.scene.now)).await?;
        }
    }
    Ok(())
}
