//! Tests of a pass that is cut off between any two of its statements. The next passes have
//! everything that they need: they drop nothing that must be kept, and leave nothing that has
//! expired.

use std::time::Duration;

use anyhow::Result;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{Field, NewFile};

use super::broken::{ENDS, end_at};
use super::model::{File, Model};
use super::{DAY, Scene};

const KEEP: Duration = Duration::from_secs(7 * 86_400);

/// A pass has far fewer statements.
const MOST: usize = 400;

/// A table in which each day something falls due, comes late and waits.
struct Daily {
    scene: Scene,
    model: Model,
}

impl Daily {
    /// One whose passes have looked at everything, in many small steps or at once.
    async fn new(is_large: bool) -> Result<Self> {
        let fields = [Field::day("at")];
        let mut scene = match is_large {
            true => Scene::large(&fields).await?,
            false => Scene::new(&fields).await?,
        };
        // What a pass overlooked would be found by a full one.
        scene.settings = Settings { full_pass_every: DAY * 10_000, ..scene.settings };
        let mut daily = Daily { scene, model: Model::default() };
        let young = (0..8).flat_map(|age| [age; 4]).map(|age| (age, None));
        daily.append(&young.collect::<Vec<_>>()).await?;
        let newest = daily.scene.now.plus(DAY * 3_000);
        daily.append(&[(30, Some(newest))]).await?;
        let reports = daily.scene.to_the_end(3).await?;
        assert_eq!(reports[0].full, Some(true));
        daily.check("at first").await?;
        Ok(daily)
    }

    /// Files of these ages, with when their newest rows were.
    async fn append(&mut self, files: &[(i64, Option<UtcInstant>)]) -> Result<()> {
        let new = files.iter().map(|(age, newest)| {
            let file = self.scene.file(*age);
            match newest {
                Some(newest) => file.upper("at", &micros(*newest)),
                None => file,
            }
        });
        let ids = self.scene.table.append(new.collect::<Vec<NewFile>>()).await?.file_ids;
        for (id, (age, newest)) in ids.into_iter().zip(files) {
            let value = Some(self.scene.day(*age));
            let end = UtcInstant::from_days(self.scene.now.days() + 1 - i128::from(*age));
            let file = File { spec_id: 1, value, end: Some(end), newest: *newest, vector: None };
            self.model.0.insert(id, file);
        }
        Ok(())
    }

    /// A day later: four files fall due, others come late, one waits for half a day, one for three.
    async fn next_day(&mut self) -> Result<()> {
        self.scene.now = self.scene.now.plus(DAY);
        let before = |hours: u64| {
            let age = KEEP.saturating_sub(Duration::from_secs(3_600 * hours));
            Some(self.scene.now.minus(age))
        };
        let (soon, later) = (before(12), before(66));
        let files = [(0, None), (0, None), (0, None), (0, None), (3, None), (20, None), (40, None)];
        self.append(&files).await?;
        let late = *self.model.0.keys().next_back().expect("it was appended");
        self.scene.table.register_vector(late, 7, None).await?;
        self.model.0.entry(late).and_modify(|file| file.vector = Some(7));
        self.append(&[(15, soon), (16, later), (16, None)]).await
    }

    /// Compares what is there with what must be.
    async fn check(&mut self, when: &str) -> Result<()> {
        let cutoff = self.scene.now.minus(KEEP);
        self.model.expire(cutoff);
        assert_eq!(self.scene.kept().await?, self.model.kept(), "{when}");
        assert_eq!(self.scene.waiting().await?, self.model.waiting(cutoff), "{when}");
        assert_eq!(self.scene.orphans().await?, 0, "{when}");
        Ok(())
    }

    /// Each day a pass that is cut off so many statements later than the day before, then passes that are not,
    /// until one is not cut off any more.
    async fn cut_everywhere(&mut self, step: usize, ends: (bool, bool)) -> Result<usize> {
        for number in (1..MOST).step_by(step) {
            self.next_day().await?;
            let has_broken = self.scene.broken_sweep(end_at(number, ends)).await?;
            let reports = self.scene.to_the_end(3).await?;
            let when = format!("{ends:?}, cut at {number}");
            assert!(reports.iter().all(|report| report.full == Some(false)), "{when}: {reports:?}");
            self.check(&when).await?;
            if !has_broken {
                return Ok(number);
            }
        }
        anyhow::bail!("a pass of more than {MOST} statements")
    }
}

/// As a bound is stored.
pub fn micros(at: UtcInstant) -> [u8; 8] {
    i64::try_from(at.nanos() / 1_000).unwrap_or(i64::MAX).to_le_bytes()
}

/// It was cut in the middle of its work, and not only on its way in.
async fn cut_everywhere(is_large: bool, usual: usize, ends: (bool, bool)) -> Result<()> {
    let step = super::step(usual);
    let statements = Daily::new(is_large).await?.cut_everywhere(step, ends).await?;
    assert!(statements > 60, "{statements}");
    Ok(())
}

#[tokio::test]
async fn a_small_table_is_as_it_must_be_wherever_a_pass_was_killed() -> Result<()> {
    cut_everywhere(false, 4, ENDS[0]).await
}

#[tokio::test]
async fn a_large_table_is_as_it_must_be_wherever_a_pass_was_killed() -> Result<()> {
    cut_everywhere(true, 7, ENDS[0]).await
}

/// The pass goes on in another session, if it can.
#[tokio::test]
async fn a_small_table_is_as_it_must_be_wherever_an_answer_was_lost() -> Result<()> {
    cut_everywhere(false, 9, ENDS[2]).await
}

#[tokio::test]
async fn a_large_table_is_as_it_must_be_wherever_a_statement_was_lost() -> Result<()> {
    cut_everywhere(true, 11, ENDS[1]).await
}
