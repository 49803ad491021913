//! The lake of the demo: four tables, written day by day through real commits, whose times
//! are then set back to the days that they are of.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use chrono::{DateTime, Utc};
use sqlx::PgPool;

use tailrace::rules::instant::UtcInstant;
use tailrace::rules::transform::TimeTransform;
use tailrace_kit::lake::{Catalog, CatalogOptions, Column, Field, Lake, NewFile, Table};

/// The catalog's name.
pub const CATALOG: &str = "demo";
/// The namespace of its tables.
pub const NAMESPACE: &str = "web";
/// How long the catalog keeps old snapshots readable.
pub const RETENTION: Duration = Duration::from_secs(3_600);

/// How many days of `events_raw` there are, today included.
pub const DAYS: i128 = 30;
/// How many days of `audit_log` there are.
pub const UNGOVERNED_DAYS: i128 = 14;
/// How many days of `team_events` there are, today included.
pub const TEAM_DAYS: i128 = 4;
/// The day, counted back from today, with which `orders` came to be partitioned by day.
pub const SPEC_CHANGE: i128 = 5;
/// How many months of `orders` there are from before.
const MONTHS: i128 = 4;

/// A policy of the demo.
#[derive(Clone, Copy, Debug)]
pub struct Governed {
    /// The table.
    pub table: &'static str,
    /// Its policy's field.
    pub field: &'static str,
    /// Its policy's keep.
    pub keep: &'static str,
}

/// The policies that the demo sets.
pub const POLICIES: [Governed; 3] = [
    Governed { table: "events_raw", field: "day(timestamp)", keep: "7d" },
    Governed { table: "orders", field: "placed_at", keep: "45d" },
    Governed { table: "team_events", field: "day(timestamp)", keep: "2d" },
];

/// The place of `events_raw` among the policies.
pub const EVENTS: usize = 0;
/// The place of `orders`.
pub const ORDERS: usize = 1;
/// The place of `team_events`.
pub const TEAMS: usize = 2;

/// The table without a policy.
pub const UNGOVERNED: &str = "audit_log";

/// How many files are undatable: one without a time, and the stray one.
pub const UNDATABLE: i64 = 2;

/// The lake as it was made.
#[derive(Debug)]
pub struct DemoLake {
    /// The kit's lake.
    pub lake: Lake,
    /// The one catalog.
    pub catalog: Catalog,
    /// In the order of [`POLICIES`].
    pub governed: [Table; 3],
    /// The table without a policy.
    pub ungoverned: Table,
    /// What a stale writer stored in `orders`: a month under the spec of days.
    pub stray: String,
}

impl DemoLake {
    /// Makes the lake, with its objects in a folder, as of a time.
    pub async fn build(pool: &PgPool, objects: &Path, now: UtcInstant) -> Result<Self> {
        let lake = Lake::install(pool, "public").await?.with_objects(objects);
        let options = CatalogOptions { retention: Some(RETENTION), ..CatalogOptions::default() };
        let catalog = lake.catalog(CATALOG, options).await?;
        let today = now.days();
        let month_of = |day: i128| ordinal(TimeTransform::Month, UtcInstant::from_days(day));

        let mut clock = Clock { catalog: catalog.clone(), stamped: 0 };
        let web = catalog.namespace(NAMESPACE).await?;
        let columns =
            |time: &str| [Column::new("team_id", "long"), Column::new(time, "timestamptz")];
        let events = columns("timestamp");
        let by_day = [Field::day("timestamp")];
        let raw = catalog.create_table(&web, POLICIES[EVENTS].table, &events, &by_day).await?;
        let by_team = [Field::identity("team_id"), Field::day("timestamp")];
        let teams = catalog.create_table(&web, POLICIES[TEAMS].table, &events, &by_team).await?;
        let by_month = [Field::month("placed_at")];
        let orders = catalog
            .create_table(&web, POLICIES[ORDERS].table, &columns("placed_at"), &by_month)
            .await?;
        let ungoverned = catalog.create_table(&web, UNGOVERNED, &events, &by_day).await?;

        let last_month = month_of(today - SPEC_CHANGE - 1);
        for month in last_month - MONTHS + 1..=last_month {
            orders.append(files(&[Some(month.to_string())], 3 + month.rem_euclid(3))).await?;
        }
        clock.set(today - DAYS - 1).await?;

        for age in (0..DAYS).rev() {
            let day = today - age;
            let text = Some(day.to_string());
            let appended = raw.append(files(std::slice::from_ref(&text), of_day(day))).await?;
            if day.rem_euclid(3) == 0 {
                for file in appended.file_ids.iter().take(2) {
                    raw.register_vector(*file, 40, None).await?;
                }
            }
            if age < UNGOVERNED_DAYS {
                ungoverned
                    .append(files(std::slice::from_ref(&text), 1 + day.rem_euclid(3)))
                    .await?;
            }
            if age < TEAM_DAYS {
                let mut all = Vec::new();
                for (team, more) in [(Some("7"), 0), (Some("42"), 2), (None, 1)] {
                    let values = [team.map(str::to_owned), text.clone()];
                    all.extend(files(&values, 1 + (day + more).rem_euclid(3)));
                }
                teams.append(all).await?;
            }
            if age == SPEC_CHANGE {
                orders.evolve_spec(&[Field::day("placed_at")]).await?;
            }
            if age <= SPEC_CHANGE {
                orders.append(files(&[text], 1 + day.rem_euclid(2))).await?;
            }
            // What is of today has been committed just now.
            if age > 0 {
                clock.set(day).await?;
            }
        }
        teams.append(files(&[Some("42".to_owned()), None], 1)).await?;
        let stray = month_of(today).to_string();
        orders.append(files(&[Some(stray.clone())], 1)).await?;
        hand_over(objects)?;
        Ok(Self { lake, catalog, governed: [raw, orders, teams], ungoverned, stray })
    }
}

/// Sets the times of commits back.
struct Clock {
    catalog: Catalog,
    stamped: i64,
}

impl Clock {
    /// Gives all commits since the last call the evening of a day.
    async fn set(&mut self, day: i128) -> Result<()> {
        let evening: Option<DateTime<Utc>> = UtcInstant::from_hours(day * 24 + 20).to_chrono();
        let head = self.catalog.head().await?;
        for snapshot_id in self.stamped + 1..=head {
            let time = evening.unwrap_or(DateTime::UNIX_EPOCH);
            self.catalog.backdate_snapshot(snapshot_id, time).await?;
        }
        self.stamped = head;
        Ok(())
    }
}

fn ordinal(transform: TimeTransform, at: UtcInstant) -> i128 {
    // What encode gives for an ordinal is a number.
    transform.encode(at).parse().unwrap_or_default()
}

/// How many files a day of `events_raw` has: a week has its quiet days.
fn of_day(day: i128) -> i128 {
    [6, 7, 9, 8, 7, 3, 4][day.rem_euclid(7) as usize]
}

/// Files of one partition, each of another size.
fn files(values: &[Option<String>], count: i128) -> Vec<NewFile> {
    (0..count as i64)
        .map(|at| NewFile::new(values.to_vec()).records(1_000 + 250 * at).bytes(4_096 + 512 * at))
        .collect()
}

/// Gives the folders of the objects to whoever owns the one around them: the server's
/// supervisor, who may be another user, removes all of it when we are killed.
fn hand_over(objects: &Path) -> Result<()> {
    let owner = fs::metadata(objects.parent().unwrap_or(objects))?;
    let mut folders = vec![objects.to_owned()];
    while let Some(folder) = folders.pop() {
        chown(&folder, Some(owner.uid()), Some(owner.gid()))?;
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    Ok(())
}
