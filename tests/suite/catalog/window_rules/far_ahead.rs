//! Tests of another interpretation of a value of the policy's own column: it is ignored only if its
//! range starts far in the future.

use std::time::Duration;

use anyhow::{Context, Result};
use tailrace::rules::instant::UtcInstant;
use tailrace_kit::lake::{Column, Field};

use super::asked::{Answers, DAY, Question, agree};
use crate::support::TestDatabase;
use crate::support::governed::values;

/// Asks for one month's number under a day spec that was a month spec before.
async fn answer(at: UtcInstant, month: &str) -> Result<bool> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "timestamptz")];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::month("at")]).await?;
    let spec_id = table.evolve_spec(&[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let asked = [Question { spec_id, values: values([month]), at }];
    let answers =
        agree(&database, &table, &asked).await.with_context(|| format!("{month} {at}"))?;
    assert_eq!(answers.ambiguous, 0, "another interpretation is no doubt: {month} {at}");
    Ok(answers.yes == 1)
}

/// Month 683 is 2026-12, 695 is 2027-12, 696 is 2028-01: stale writers may write rows of the months
/// ahead.
#[tokio::test]
async fn a_month_soon_to_come_is_in_no_window() -> Result<()> {
    let now: UtcInstant = "2026-11-30T12:00:00Z".parse()?;
    for (month, is_in) in [
        ("670", true),
        ("682", false),
        ("683", false),
        ("694", false),
        ("695", false),
        ("696", true),
    ] {
        assert_eq!(answer(now.minus(DAY), month).await?, is_in, "{month}");
    }
    Ok(())
}

/// Asked 366 days and `compaction.lead` before a month begins, its number may be one of it; a microsecond
/// earlier not.
#[tokio::test]
async fn it_is_told_to_the_microsecond() -> Result<()> {
    let begins: UtcInstant = "2028-01-01T00:00:00Z".parse()?;
    let last = begins.minus(366 * DAY).minus(DAY);
    assert_eq!(last.to_string(), "2026-12-30T00:00:00Z");
    let micro = Duration::from_micros(1);
    for (at, is_in) in [(last.minus(micro), true), (last, false), (last.plus(micro), false)] {
        assert_eq!(answer(at, "696").await?, is_in, "{at}");
    }
    Ok(())
}

/// An instant between two microseconds begins with the later one: -400 is the day 1968-11-27, or the
/// instant 400 nanoseconds before 1970.
#[tokio::test]
async fn a_beginning_between_two_microseconds_is_the_later_one() -> Result<()> {
    let database = TestDatabase::new().await?;
    let catalog = database.catalog("lake").await?;
    let columns = [Column::new("at", "timestamp_ns")];
    let table = database.table_of(&catalog, "raw", &columns, &[Field::identity("at")]).await?;
    let spec_id = table.evolve_spec(&[Field::day("at")]).await?;
    database.govern(&table, "at", "7d").await?;
    let last = UtcInstant::from_days(0).minus(366 * DAY).minus(DAY);
    for (micros, is_in) in [(-1, true), (0, false), (1, false)] {
        let at = last.plus_nanos(micros * 1_000);
        let asked = [Question { spec_id, values: values(["-400"]), at }];
        let expected = Answers { yes: usize::from(is_in), ambiguous: 0 };
        assert_eq!(agree(&database, &table, &asked).await?, expected, "{micros}");
    }
    Ok(())
}
