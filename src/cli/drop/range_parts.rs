//! Refuses a range that is too large for one drop, and cuts it into parts that are not. Pure.

use anyhow::bail;

use super::DropArgs;
use crate::cli::Usage;
use crate::cli::text::{count, counted};
use crate::explicit::validate::MOST_TUPLES;
use crate::policy::command::shell_word;
use crate::rules::expiry::within::Span;
use crate::rules::instant::UtcInstant;
use crate::rules::transform::TimeRange;

/// A partition that lies in the range.
pub struct Inside {
    pub spec_id: i64,
    pub values: Vec<Option<String>>,
    pub range: TimeRange,
    pub files: i64,
}

/// The table as it was named.
pub fn name(args: &DropArgs) -> String {
    format!("{}.{}", args.table.namespace, args.table.table)
}

/// Refuses more than one commit takes, with commands that take it in parts.
pub fn refuse_too_many(
    args: &DropArgs,
    span: &Span,
    inside: &[Inside],
    most_files: i64,
) -> anyhow::Result<()> {
    let files = inside.iter().fold(0_i64, |sum, one| sum.saturating_add(one.files));
    if inside.len() <= MOST_TUPLES && files <= most_files {
        return Ok(());
    }
    let parts: Vec<_> = inside.iter().map(|one| (one.range, one.files)).collect();
    let too_many = format!(
        "the range has {} with {}, and one drop takes {} and {} files (drop.max_files)",
        counted(inside.len() as i64, "partition"),
        counted(files, "file"),
        count(MOST_TUPLES as i64),
        count(most_files)
    );
    let Some(spans) = split(&parts, span, MOST_TUPLES, most_files) else {
        bail!(
            "{too_many}; a single time has more than that: choose by --where, or name partitions by --from-file"
        )
    };
    let value = args
        .value_of
        .as_ref()
        .map(|(column, value)| format!(" --where {}", shell_word(&format!("{column}={value}"))));
    let (catalog, table) = (shell_word(&args.catalog), shell_word(&name(args)));
    let commands: Vec<_> = spans
        .iter()
        .map(|Span { from, to }| {
            let value = value.as_deref().unwrap_or_default();
            format!("\n  tailrace drop {catalog} {table} --from {from} --to {to}{value}")
        })
        .collect();
    Err(Usage(anyhow::anyhow!("{too_many}; drop it in parts:{}", commands.concat())).into())
}

/// Cuts a range where no partition lies across, so that each part has at most so many partitions and files; `None`
/// where it cannot be cut so. `parts` are in the order of their starts.
fn split(
    parts: &[(TimeRange, i64)],
    span: &Span,
    most_tuples: usize,
    most_files: i64,
) -> Option<Vec<Span>> {
    // What lies between two places at which no partition lies across.
    let mut blocks: Vec<(UtcInstant, usize, i64)> = Vec::new();
    let mut end: Option<UtcInstant> = None;
    for (range, files) in parts {
        // An instant lies across no other place than its own.
        let is_across = end.is_some_and(|end| range.start < end)
            || blocks.last().is_some_and(|(start, ..)| *start == range.start);
        match blocks.last_mut().filter(|_| is_across) {
            Some((_, tuples, of_block)) => (*tuples, *of_block) = (*tuples + 1, *of_block + files),
            None => blocks.push((range.start, 1, *files)),
        }
        end = end.max(Some(range.end));
    }
    let (mut spans, mut from, mut held) = (Vec::new(), span.from, (0_usize, 0_i64));
    for (start, tuples, files) in blocks {
        if tuples > most_tuples || files > most_files {
            return None;
        }
        if held.0 + tuples > most_tuples || held.1 + files > most_files {
            spans.push(Span { from, to: start });
            (from, held) = (start, (0, 0));
        }
        held = (held.0 + tuples, held.1 + files);
    }
    spans.push(Span { from, to: span.to });
    Some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn day(number: i128) -> UtcInstant {
        UtcInstant::from_days(number)
    }

    fn days(from: i128, to: i128) -> TimeRange {
        TimeRange { start: day(from), end: day(to) }
    }

    fn cut(
        parts: &[(TimeRange, i64)],
        most: (usize, i64),
    ) -> Option<Vec<(UtcInstant, UtcInstant)>> {
        let span = Span { from: day(0), to: day(10) };
        let spans = split(parts, &span, most.0, most.1)?;
        Some(spans.into_iter().map(|span| (span.from, span.to)).collect())
    }

    #[test]
    fn a_range_is_cut_where_no_partition_lies_across() {
        let parts = [(days(1, 2), 3), (days(2, 3), 3), (days(3, 4), 3), (days(5, 6), 3)];
        let by_files = [(day(0), day(3)), (day(3), day(10))];
        assert_eq!(cut(&parts, (9, 6)).as_deref(), Some(&by_files[..]));
        assert_eq!(cut(&parts, (2, 99)).as_deref(), Some(&by_files[..]));
        assert_eq!(cut(&parts, (9, 99)).as_deref(), Some(&[(day(0), day(10))][..]));
        // The month lies across the days.
        let across = [(days(1, 4), 3), (days(2, 3), 3), (days(4, 5), 3)];
        let whole = [(day(0), day(4)), (day(4), day(10))];
        assert_eq!(cut(&across, (2, 6)).as_deref(), Some(&whole[..]));
        assert_eq!(cut(&across, (9, 5)), None);
        // Several of one instant are not cut either.
        let instants = [(days(1, 1), 3), (days(1, 1), 3), (days(2, 2), 3)];
        assert_eq!(cut(&instants, (9, 5)), None);
        let apart = [(day(0), day(2)), (day(2), day(10))];
        assert_eq!(cut(&instants, (9, 6)).as_deref(), Some(&apart[..]));
    }
}
