//! Tests of waiting tuples: they have expired, but the database refuses to end their files, or they
//! are busy, too large, or kept for their evidence. They are reported as waiting, with the reason,
//! and do not delay other tuples.

pub mod copied;
mod due;
mod halving;
mod kept;
mod memory;
mod pauses;
mod poison;
mod told;
mod unindexed;
mod verified;
mod whose_fault;
mod words;

use anyhow::{Context, Result};
use serde_json::Value;
use tailrace::sweep::Settings;
use tailrace::sweep::report::TableReport;
use tailrace_kit::lake::{Catalog, Field, NewFile, Table};

use crate::support::TestDatabase;
use crate::support::governed::live_ids;
use crate::support::program::settings;

/// Long after all days of these tests have expired.
pub const NOW: &str = "2026-11-30T12:00:00Z";

/// What waits in tables, poisoned tuples first, then by the ends of their ranges.
pub async fn remembered(database: &TestDatabase, of: &str) -> Result<Vec<Value>> {
    let time = |column: &str| {
        format!(
            "rtrim(rtrim(to_char({column} at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US'), '0'), \
             '.') || 'Z'"
        )
    };
    let rows = format!(
        "select jsonb_build_object('spec_id', spec_id, 'tuple', tuple, 'display', display, 'reason',
                  reason, 'since', {}, 'seen_at', {}, 'next_look', {}, 'tries', attempts, 'said', said,
                  'error', error, 'files', files, 'range_end', {})::text as entry
         from tailrace.waiting where {of}
         order by reason <> 'poisoned', range_end, spec_id, tuple::text",
        time("since"),
        time("last_look"),
        time("next_look"),
        time("range_end")
    );
    let rows: Vec<String> =
        sqlx::query_scalar(sqlx::AssertSqlSafe(rows)).fetch_all(&database.pool).await?;
    rows.iter().map(|row| Ok(serde_json::from_str(row)?)).collect()
}

/// 2,600 bytes that nothing compresses.
fn long_value() -> String {
    let mut state = 1_u64;
    let digits = (0..2_600).map(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from_digit(u32::try_from(state >> 59).unwrap_or_default(), 36).unwrap_or('z')
    });
    digits.collect()
}

/// A lake with the table `events.raw` by day, which keeps 7 days, with one file of each day from
/// 2019-04-14 on.
pub struct Scene {
    pub database: TestDatabase,
    pub catalog: Catalog,
    pub table: Table,
    pub files: Vec<i64>,
}

impl Scene {
    pub async fn days(count: i64) -> Result<Self> {
        let database = TestDatabase::new().await?;
        let catalog = database.catalog("lake").await?;
        let table = database.table(&catalog, "raw", &[Field::day("at")]).await?;
        let days = (0..count).map(|day| NewFile::of([(18_000 + day).to_string()]));
        let files = match count {
            0 => Vec::new(),
            _ => table.append(days.collect()).await?.file_ids,
        };
        database.govern(&table, "day(at)", "7d").await?;
        database.sql("create sequence tries").await?;
        Ok(Scene { database, catalog, table, files })
    }

    /// Has the database refuse to end the files of these days, in these words; each refusal counts.
    pub async fn refuse(&self, days: &[usize], words: &str) -> Result<()> {
        self.refuse_slowly(days, words, "").await
    }

    /// The same, after statements of PL/pgSQL.
    pub async fn refuse_slowly(&self, days: &[usize], words: &str, before: &str) -> Result<()> {
        let ids: Vec<String> = days.iter().map(|day| self.files[*day].to_string()).collect();
        self.database
            .sql(&format!(
                "create or replace function refuse_files() returns trigger language plpgsql as $$
                 begin
                   perform nextval('tries');
                   {before}raise exception '{words}';
                 end $$;
                 drop trigger if exists refuse on hog_data_file;
                 create trigger refuse before update on hog_data_file for each row
                   when (new.end_snapshot is not null
                         and new.data_file_id = any('{{{}}}'::bigint[]))
                   execute function refuse_files()",
                ids.join(",")
            ))
            .await
    }

    /// Has it refuse nothing any more.
    pub async fn let_go(&self) -> Result<()> {
        self.database.sql("drop trigger refuse on hog_data_file").await
    }

    /// How many commits were refused since this was last asked.
    pub async fn refusals(&self) -> Result<i64> {
        let seen = "select case when is_called then last_value else 0 end from tries";
        let seen = self.database.text(seen).await?.context("a number")?.parse()?;
        self.database.sql("select setval('tries', 1, false)").await?;
        Ok(seen)
    }

    /// A pass by these settings at a time.
    pub async fn sweep_with(&self, settings: &Settings, at: &str) -> Result<TableReport> {
        let settings = Settings { as_of: Some(at.parse()?), lock_duty: 1.0, ..*settings };
        let mut report = self.database.sweep_with(&settings).await?;
        report.tables.pop().context("one table")
    }

    /// A pass at a time.
    pub async fn sweep_at(&self, at: &str) -> Result<TableReport> {
        self.sweep_with(&settings(), at).await
    }

    /// The days, counted from the first, whose file is live.
    pub async fn live(&self) -> Result<Vec<usize>> {
        let live = live_ids(&self.table).await?;
        let day = |id: &i64| self.files.iter().position(|file| file == id);
        Ok(live.iter().filter_map(day).collect())
    }

    /// What is remembered to wait.
    pub async fn waiting(&self) -> Result<Vec<Value>> {
        remembered(&self.database, "true").await
    }

    /// How many parts are remembered of what was refused and not halved to the end.
    pub async fn parts(&self) -> Result<usize> {
        let query = "select coalesce(sum(jsonb_array_length(waiting_parts)), 0)::text
                     from tailrace.table_state";
        Ok(self.database.text(query).await?.context("a number")?.parse()?)
    }

    /// What waits, as (display, reason).
    pub async fn waits(&self) -> Result<Vec<(String, String)>> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let waiting = self.waiting().await?;
        Ok(waiting.iter().map(|one| (text(&one["display"]), text(&one["reason"]))).collect())
    }
}
