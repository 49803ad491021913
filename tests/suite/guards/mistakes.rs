//! A generator of operators' mistakes: wrong units, other columns, properties, specs, late feeds and lost days. None of
//! them may end more, otherwise than by time alone, than the blast radius lets go; nor, before the grace is over, anything that
//! the policy before it kept.
//!
//! What may be dropped is worked out here by itself: a file is dropped by time alone if a pass under the same rule has seen it before it
//! had expired. `TAILRACE_TEST_MISTAKES` says how many mistakes are made; `make mistakes` makes ten thousand.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tailrace::config::{Config, CrossCheck, LoadOptions};
use tailrace::policy::grace::PolicyLimits;
use tailrace::rules::blast_radius::RadiusLimits;
use tailrace::rules::instant::UtcInstant;
use tailrace::sweep::Settings;
use tailrace_kit::lake::{Catalog, Column, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::settings;

const DAY: Duration = Duration::from_secs(86_400);
const MOST: i64 = 3;
const GRACE: (&str, &str) = ("TAILRACE__GUARD__POLICY_GRACE", "1h");

/// What somebody does by mistake.
#[derive(Debug, Clone, Copy)]
enum Mistake {
    /// Says how long, with another unit or number.
    Keep(&'static str),
    /// Names the other column.
    OtherColumn,
    /// Takes the policy away, so that a property takes over.
    Property(&'static str),
    /// Adds so many files of so many days ago.
    Late(usize, i64),
    /// Partitions by something else from now on, and adds files by that.
    Spec(bool),
    /// Nobody runs a pass for so many days.
    Away(u32),
}

fn mistakes() -> impl Strategy<Value = Mistake> {
    const KEEPS: [&str; 8] = ["30m", "1h", "7h", "1d", "7d", "20d", "30h", "400d"];
    prop_oneof![
        4 => select(&KEEPS[..]).prop_map(Mistake::Keep),
        1 => Just(Mistake::OtherColumn),
        1 => select(&KEEPS[..]).prop_map(Mistake::Property),
        2 => (1..12_usize, 1..60_i64).prop_map(|(files, ago)| Mistake::Late(files, ago)),
        1 => any::<bool>().prop_map(Mistake::Spec),
        1 => (1..40_u32).prop_map(Mistake::Away),
    ]
}

/// One table, its operator, and what the passes have seen.
struct Case<'a> {
    database: &'a TestDatabase,
    table: Table,
    name: String,
    /// When a file's range ends, by the policy's first and second column.
    ends: BTreeMap<i64, [UtcInstant; 2]>,
    /// The rule that was in force at the last pass, as the operator sees it.
    rule: (usize, u64, usize),
    /// The files that were seen before they had expired, under this rule.
    seen: BTreeSet<i64>,
    column: usize,
    keep: Duration,
    specs: usize,
    now: UtcInstant,
}

impl Case<'_> {
    async fn run(&mut self, mistake: Mistake) -> Result<()> {
        let set = |field: &'static str, keep: String, name: String| {
            ["policy", "set", "lake", &name, "--field", field, "--keep", &keep].map(str::to_owned)
        };
        match mistake {
            Mistake::Keep(_) | Mistake::OtherColumn => {
                let (column, keep) = match mistake {
                    Mistake::Keep(keep) => (self.column, keep.to_owned()),
                    _ => (1 - self.column, format!("{}s", self.keep.as_secs())),
                };
                let field = ["at", "made"][column];
                let arguments = set(field, keep.clone(), self.name.clone());
                let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
                if self.database.ran_with(&arguments, &[GRACE]).await?.code == 0 {
                    (self.column, self.keep) = (column, length(&keep));
                }
            }
            Mistake::Property(keep) => {
                let text = format!(r#"{{"field":"at","keep":"{keep}"}}"#);
                self.table.set_property("partition_retention", Some(&text)).await?;
                let unset = ["policy", "unset", "lake", &self.name, "--yes"];
                self.database.ran(&unset).await?;
                (self.column, self.keep) = (0, length(keep));
            }
            Mistake::Late(files, ago) => self.append(files, ago).await?,
            Mistake::Spec(by_hour) => {
                let field = if by_hour { Field::hour("at") } else { Field::month("at") };
                self.table.evolve_spec(&[field]).await?;
                self.table.evolve_spec(&[Field::day("at"), Field::day("made")]).await?;
                self.specs += 2;
            }
            Mistake::Away(days) => self.now = self.now.plus(DAY * days),
        }
        Ok(())
    }

    /// Adds files of a day, made the day after.
    async fn append(&mut self, files: usize, ago: i64) -> Result<()> {
        let day = UtcInstant::from(chrono::Utc::now()).days() as i64 - ago;
        let file = NewFile::of([day.to_string(), (day + 1).to_string()]);
        let made = self.table.append(vec![file; files]).await?;
        let end = |day: i64| UtcInstant::from_days(i128::from(day) + 1);
        for id in made.file_ids {
            self.ends.insert(id, [end(day), end(day + 1)]);
        }
        Ok(())
    }

    /// Runs a pass in the grace of what was set after the policy of this column and keep, and then ends the grace. It says
    /// what [`Self::pass`] does.
    async fn in_grace(&mut self, (column, keep): (usize, Duration)) -> Result<(i64, i64)> {
        let before: BTreeSet<i64> = live_ids(&self.table).await?.into_iter().collect();
        let passed = self.pass().await?;
        let after: BTreeSet<i64> = live_ids(&self.table).await?.into_iter().collect();
        let cutoff = self.now.minus(keep);
        for id in before.difference(&after) {
            let end = self.ends.get(id).context("a file of ours")?[column];
            ensure!(end <= cutoff, "file {id} of {end} was dropped in the grace, before {cutoff}");
        }
        let over = "update tailrace.policy set pending_until = now() where pending is not null";
        self.database.sql(over).await?;
        Ok(passed)
    }

    /// Runs a pass, and says how many files it ended otherwise than by time alone, of how many.
    async fn pass(&mut self) -> Result<(i64, i64)> {
        let before: BTreeSet<i64> = live_ids(&self.table).await?.into_iter().collect();
        let rule = (self.column, self.keep.as_secs(), self.specs);
        if rule != self.rule {
            (self.rule, self.seen) = (rule, BTreeSet::new());
        }
        let radius = RadiusLimits { min_drop_files: MOST, max_drop_fraction: 0.5 };
        let policy_limits = PolicyLimits::from_config(&Config::load(&LoadOptions::default())?);
        let settings = Settings {
            radius,
            as_of: Some(self.now),
            cross_check: CrossCheck::Off,
            stale_writer_window: Duration::ZERO,
            policy_limits,
            ..settings()
        };
        self.database.sweep_with(&settings).await?;
        let after: BTreeSet<i64> = live_ids(&self.table).await?.into_iter().collect();
        let ended: Vec<i64> = before.difference(&after).copied().collect();
        let cutoff = self.now.minus(self.keep);
        for id in &ended {
            let end = self.ends.get(id).context("a file of ours")?[self.column];
            ensure!(end <= cutoff, "file {id} ended at {end}, and the cutoff is {cutoff}");
        }
        let otherwise = ended.iter().filter(|id| !self.seen.contains(id)).count() as i64;
        let is_young = |id: &&i64| self.ends.get(id).is_some_and(|ends| ends[self.column] > cutoff);
        self.seen.extend(after.iter().filter(is_young));
        Ok((otherwise, before.len() as i64))
    }
}

fn length(keep: &str) -> Duration {
    let (number, unit) = keep.split_at(keep.len() - 1);
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3_600,
        _ => 86_400,
    };
    Duration::from_secs(number.parse::<u64>().unwrap_or_default() * seconds)
}

#[tokio::test]
async fn no_mistake_ends_more_than_the_guard_allows() -> Result<()> {
    let wanted = std::env::var("TAILRACE_TEST_MISTAKES").ok();
    let wanted: usize = wanted.and_then(|text| text.parse().ok()).unwrap_or(60);
    let mut runner = TestRunner::deterministic();
    let feeds = proptest::collection::vec((1..8_usize, 0..25_i64), 1..6);
    let cases = (feeds, proptest::collection::vec(mistakes(), 1..6));
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let (mut made, mut ended) = (0, 0);
    while made < wanted {
        let tree = cases.new_tree(&mut runner).map_err(anyhow::Error::msg)?;
        let (feeds, mistakes) = tree.current();
        let mut case = begin(&database, &catalog, made, &feeds).await?;
        let mut story = Vec::new();
        for mistake in mistakes {
            story.push(mistake);
            let before = (case.column, case.keep);
            case.run(mistake).await?;
            // Whoever lets a property take over is shown what that drops.
            let before = match mistake {
                Mistake::Property(_) => (case.column, case.keep),
                _ => before,
            };
            for nth in 0..3 {
                let passed = match nth {
                    0 => case.in_grace(before).await.with_context(|| format!("{story:?}"))?,
                    _ => case.pass().await?,
                };
                let (otherwise, live) = passed;
                let most = MOST.max(live / 2);
                ensure!(otherwise <= most, "{otherwise} of {live} files by {story:?}");
                ended += otherwise;
            }
            made += 1;
        }
        case.table.drop_table().await?;
    }
    // Mistakes that end nothing would prove nothing.
    ensure!(ended > 0, "nothing was ended otherwise than by time alone");
    Ok(())
}

async fn begin<'a>(
    database: &'a TestDatabase,
    catalog: &Catalog,
    number: usize,
    feeds: &[(usize, i64)],
) -> Result<Case<'a>> {
    let name = format!("t{number}");
    let columns = [Column::new("at", "timestamptz"), Column::new("made", "timestamptz")];
    let spec = [Field::day("at"), Field::day("made")];
    let table = database.table_of(catalog, &name, &columns, &spec).await?;
    let mut case = Case {
        database,
        table,
        name: format!("events.{name}"),
        ends: BTreeMap::new(),
        rule: (0, 0, 0),
        seen: BTreeSet::new(),
        column: 0,
        keep: 30 * DAY,
        specs: 1,
        now: UtcInstant::from(chrono::Utc::now()),
    };
    for (files, ago) in feeds {
        case.append(*files, *ago).await?;
    }
    database.policy("lake", &case.name, "at", "30d").await?;
    let (otherwise, live) = case.pass().await?;
    ensure!(otherwise == 0, "{otherwise} of {live} files before any mistake");
    Ok(case)
}
