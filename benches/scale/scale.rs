//! The sizes of the fixtures: in full, and small enough for a quick run that only tests the
//! benchmark.

use tailrace_kit::lake::{Column, Field};

use super::fixture::{DAY_COLUMN, Layout, TableOf};

/// A prepared lake. It is built once, and copied for rows that change it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixture {
    /// 1,000,000 files of one table in 400 days, 600,000 of another in the same days.
    Million,
    /// The same days, and five times the files in the first table.
    FiveMillion,
    /// [`Self::Million`] with another table, of as many distinct strings at the same key.
    Strings,
    /// One table by hour, 5 years of it.
    Hours,
    /// One table by day and kind, to be dropped by enumerated tuples.
    Tuples,
    /// One table of so many days, 1,000 files each.
    Days(i64),
    /// One table with a file for each of 5,000,000 instants in 10 years.
    Instants,
    /// 10,000 small tables by day in one catalog.
    Tables,
    /// The same tables, 5 in each of 2,000 catalogs.
    Catalogs,
}

impl Fixture {
    /// The name of its database.
    pub fn database(self) -> String {
        match self {
            Self::Days(days) => format!("days_{days}"),
            other => format!("{other:?}").to_lowercase(),
        }
    }

    /// The fixture of which this one is a copy with additional tables.
    pub fn base(self) -> Option<Fixture> {
        (self == Self::Strings).then_some(Self::Million)
    }
}

/// The name of the table that has the policy.
pub const SUBJECT: &str = "events_raw";
/// The name of the table with the same partition values, from which nothing is dropped.
pub const NEIGHBOUR: &str = "clicks";
/// The days of the large fixtures.
pub const DAYS: i64 = 400;
/// The hours of 5 years.
pub const HOURS: i64 = 43_800;
/// The days of [`Fixture::Instants`].
pub const DAYS_OF_INSTANTS: i64 = 3_650;
/// The tables of [`Fixture::Tables`] and of [`Fixture::Catalogs`].
pub const TABLES: i64 = 10_000;
/// The tables of each catalog of [`Fixture::Catalogs`].
pub const TABLES_OF_A_CATALOG: i64 = 5;
/// The days of each of them.
pub const DAYS_OF_MANY: i64 = 30;
/// The files of each of these days.
pub const FILES_OF_MANY: i64 = 2;
/// The kinds of each day of [`Fixture::Tuples`].
pub const KINDS: i64 = 100;
/// The days of [`Fixture::Tuples`] that one request drops: 1,000 tuples.
pub const DAYS_OF_A_REQUEST: i64 = 10;
/// How many such requests a copy of [`Fixture::Tuples`] has partitions for.
pub const REQUESTS: i64 = 4;

/// Full size, or small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    /// `BENCH=quick`.
    pub is_quick: bool,
    /// Today, in days since 1970.
    pub today: i64,
}

impl Scale {
    /// A number of files, reduced in a quick run.
    pub fn files(self, full: i64) -> i64 {
        if self.is_quick { (full / 20).max(1) } else { full }
    }

    /// A number of measurements, reduced in a quick run.
    pub fn times(self, full: usize) -> usize {
        if self.is_quick { full.min(2) } else { full }
    }

    /// The oldest day of a fixture with so many days; the newest is the day before yesterday.
    pub fn oldest_day(self, days: i64) -> i64 {
        self.today - 1 - days
    }

    /// The `keep` by which the oldest `expired` of so many days have expired, and no other.
    pub fn keep(self, days: i64, expired: i64) -> String {
        format!("{}d", days + 1 - expired)
    }

    /// The number of files that the day at this place, 0 for the oldest, has in the large
    /// fixtures: days of few and days of many in turn, 2,500 on average.
    pub fn files_of_day(self, place: i64) -> i64 {
        self.files(if place % 2 == 0 { 1_000 } else { 4_000 })
    }

    /// What a fixture consists of.
    pub fn layout(self, fixture: Fixture) -> Layout {
        let one = |tables: Vec<TableOf>| Layout { tables, catalogs: 1 };
        let (few, many) = (self.files_of_day(0), self.files_of_day(1));
        let uneven = |times: i64| {
            let (few, many) = (times * few, times * many);
            let oldest = self.oldest_day(DAYS);
            let files = format!("case when (d - {oldest}) % 2 = 0 then {few} else {many} end");
            by_day(SUBJECT, self.days(DAYS, &files))
        };
        let neighbour = || by_day(NEIGHBOUR, self.days(DAYS, &self.files(1_500).to_string()));
        let small = |times: i64| {
            let days = self.days(DAYS_OF_MANY, &FILES_OF_MANY.to_string());
            TableOf { times, ..by_day(SUBJECT, days) }
        };
        match fixture {
            Fixture::Million => one(vec![uneven(1), neighbour()]),
            Fixture::FiveMillion => one(vec![uneven(5), neighbour()]),
            Fixture::Strings => one(vec![strings(self.files(1_000_000))]),
            Fixture::Hours => one(vec![by_hour(self.today * 24 - 24 - HOURS, self.files(20))]),
            Fixture::Tuples => {
                let days = DAYS_OF_A_REQUEST * REQUESTS;
                one(vec![by_day_and_kind(self.oldest_day(days), days, self.files(100))])
            }
            Fixture::Days(days) => {
                one(vec![by_day(SUBJECT, self.days(days, &self.files(1_000).to_string()))])
            }
            Fixture::Instants => {
                one(vec![by_instant(self.oldest_day(DAYS_OF_INSTANTS), self.files(5_000_000))])
            }
            Fixture::Tables => one(vec![small(self.files(TABLES))]),
            Fixture::Catalogs => Layout {
                tables: vec![small(TABLES_OF_A_CATALOG)],
                catalogs: self.files(TABLES) / TABLES_OF_A_CATALOG,
            },
        }
    }

    /// A query for the tuples of so many days up to the day before yesterday, of which `d` has so many
    /// files.
    fn days(self, days: i64, files: &str) -> String {
        let oldest = self.oldest_day(days);
        let newest = oldest + days - 1;
        format!("select d, array[d::text], {files} from generate_series({oldest}, {newest}) d")
    }
}

fn columns() -> Vec<Column> {
    vec![Column::new(DAY_COLUMN, "timestamptz"), Column::new("kind", "string")]
}

fn by_day(name: &'static str, tuples: String) -> TableOf {
    TableOf { name, columns: columns(), spec: vec![Field::day(DAY_COLUMN)], tuples, times: 1 }
}

fn by_hour(oldest: i64, files: i64) -> TableOf {
    let newest = oldest + HOURS - 1;
    TableOf {
        name: SUBJECT,
        columns: columns(),
        spec: vec![Field::hour(DAY_COLUMN)],
        tuples: format!(
            "select h / 24.0, array[h::text], {files} from generate_series({oldest}, {newest}) h"
        ),
        times: 1,
    }
}

fn by_day_and_kind(oldest: i64, days: i64, files: i64) -> TableOf {
    let newest = oldest + days - 1;
    TableOf {
        name: SUBJECT,
        columns: columns(),
        spec: vec![Field::day(DAY_COLUMN), Field::identity("kind")],
        tuples: format!(
            "select d, array[d::text, 'kind ' || k], {files}
             from generate_series({oldest}, {newest}) d, generate_series(1, {KINDS}) k"
        ),
        times: 1,
    }
}

/// A table with one file for each of many strings, none of which is a day.
fn strings(count: i64) -> TableOf {
    TableOf {
        name: "sessions",
        columns: columns(),
        spec: vec![Field::identity("kind")],
        tuples: format!(
            "select random(), array[md5(n::text)], 1 from generate_series(1, {count}) n"
        ),
        times: 1,
    }
}

/// A table with one file for each of `count` instants, spread evenly over the days, partitioned by the instant.
/// Each file arrived two hours before its instant, so that no row is newer than it.
fn by_instant(oldest: i64, count: i64) -> TableOf {
    let step = DAYS_OF_INSTANTS * 86_400 / count;
    TableOf {
        name: SUBJECT,
        columns: vec![Column::new(DAY_COLUMN, "timestamp"), Column::new("kind", "string")],
        spec: vec![Field::identity(DAY_COLUMN)],
        tuples: format!(
            "select {oldest} + (n * {step} - 7200) / 86400.0,
                    array[to_char('epoch'::timestamp + make_interval(days => {oldest}, secs => n * {step}),
                                  'YYYY-MM-DD\"T\"HH24:MI:SS')], 1
             from generate_series(0, {count} - 1) n"
        ),
        times: 1,
    }
}
