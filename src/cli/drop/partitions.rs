//! Reads partitions as people write them: stored values as JSON, or named values with dates and
//! instants. Pure.

use anyhow::{Context, bail, ensure};
use serde_json::Value;

use crate::catalog::specs::TableShape;
use crate::explicit::call::PartitionItem;
use crate::rules::expiry::SpecField;
use crate::rules::instant::UtcInstant;
use crate::rules::transform::TimeTransform;

/// A partition as it was typed, or as it is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The partition values. An instant of an identity field is here as it was typed.
    pub item: PartitionItem,
    /// The names and values as typed; `None` if the partition was given by its stored values.
    pub typed: Option<String>,
    /// The positions of the values that are instants of identity fields. Each matches every stored value that
    /// means this instant ([`super::stored`]).
    pub instants: Vec<(usize, UtcInstant)>,
}

impl From<PartitionItem> for Written {
    fn from(item: PartitionItem) -> Self {
        Written { item, typed: None, instants: Vec::new() }
    }
}

/// Reads one partition of the command line: `["20713"]`, a JSON object as the HTTP body has it, or
/// `team_id=42,day=2026-09-17`.
pub fn read_one(text: &str, shape: &TableShape) -> anyhow::Result<Written> {
    let trimmed = text.trim();
    if trimmed.starts_with(['[', '{']) {
        return Ok(read_json(trimmed)?.into());
    }
    let pairs = trimmed
        .split(',')
        .map(|pair| pair.split_once('=').map(|(name, value)| (name.trim(), value.trim())))
        .collect::<Option<Vec<_>>>()
        .with_context(|| {
            format!("partition {trimmed:?} is neither JSON ([\"20713\"]) nor names with values (day=2026-09-17)")
        })?;
    from_names(&pairs, shape)
}

/// Reads a whole file: JSON lines if it begins with `[` or `{`, else CSV whose header names the
/// partition fields.
pub fn read_all(text: &str, shape: &TableShape) -> anyhow::Result<Vec<Written>> {
    if text.trim_start().starts_with(['[', '{']) {
        return text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(|(at, line)| {
                let item = read_json(line.trim()).with_context(|| format!("line {}", at + 1))?;
                Ok(item.into())
            })
            .collect();
    }
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
    let names = reader.headers().context("the CSV's header")?.clone();
    reader
        .records()
        .enumerate()
        .map(|(at, record)| {
            let record = record?;
            let pairs: Vec<_> = names.iter().zip(record.iter()).collect();
            from_names(&pairs, shape).with_context(|| format!("CSV row {}", at + 1))
        })
        .collect()
}

fn read_json(text: &str) -> anyhow::Result<PartitionItem> {
    let value: Value = serde_json::from_str(text).with_context(|| format!("partition {text}"))?;
    match value {
        Value::Array(_) => Ok(PartitionItem {
            partition_values: serde_json::from_value(value)
                .with_context(|| format!("partition {text}: stored values are strings or null"))?,
            spec_id: None,
            literal: false,
        }),
        _ => serde_json::from_value(value).with_context(|| format!("partition {text}")),
    }
}

/// Reads a value for each field of the live spec, each named once. The field decides what its value means. The
/// item has the id of this spec, because under a spec that becomes live meanwhile the values would mean
/// something else.
fn from_names(pairs: &[(&str, &str)], shape: &TableShape) -> anyhow::Result<Written> {
    let fields = shape.live_spec_fields();
    ensure!(!fields.is_empty(), "the table is not partitioned");
    let described = || {
        let all: Vec<_> = fields.iter().map(|field| shape.describe_field(field)).collect();
        format!("the table is partitioned by {}", all.join(", "))
    };
    let mut values: Vec<Option<String>> = vec![None; fields.len()];
    let mut instants = Vec::new();
    for (name, value) in pairs {
        let named: Vec<_> =
            fields.iter().enumerate().filter(|(_, field)| is_called(field, name, shape)).collect();
        let (at, field) = match named.as_slice() {
            [(at, field)] => (*at, *field),
            [] => bail!("{name:?} names no partition field; {}", described()),
            _ => bail!("{name:?} names several partition fields; {}", described()),
        };
        ensure!(values[at].is_none(), "{name:?} is given twice");
        let (text, instant) = partition_value(field, value, shape)?;
        values[at] = Some(text);
        instants.extend(instant.map(|instant| (at, instant)));
    }
    if let Some((field, _)) = fields.iter().zip(&values).find(|(_, value)| value.is_none()) {
        bail!(
            "no value for {}: every partition field needs one; {}",
            shape.describe_field(field),
            described()
        );
    }
    let typed: Vec<_> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let spec_id = shape.live_spec.as_ref().map(|(spec_id, _)| *spec_id);
    let item = PartitionItem { partition_values: values, spec_id, literal: false };
    Ok(Written { item, typed: Some(typed.join(",")), instants })
}

/// `day`, `timestamp` and `day(timestamp)` all name the field of that transform and column.
fn is_called(field: &SpecField, name: &str, shape: &TableShape) -> bool {
    name == field.transform
        || name == shape.path_of(field.source_field_id)
        || name == shape.describe_field(field)
}

/// The value that a writer stores for what a person typed. For an identity field this is what was typed, with
/// the instant that it means, if it means one.
fn partition_value(
    field: &SpecField,
    value: &str,
    shape: &TableShape,
) -> anyhow::Result<(String, Option<UtcInstant>)> {
    let transform = TimeTransform::of_field(&field.transform, shape.type_of(field.source_field_id));
    let transform = match transform {
        None => return Ok((value.to_owned(), None)),
        Some(TimeTransform::Identity(of)) => return Ok((value.to_owned(), of.read(value))),
        Some(transform) => transform,
    };
    let (rest, example) = match transform {
        TimeTransform::Year => ("-01-01T00:00:00Z", "2026"),
        TimeTransform::Month => ("-01T00:00:00Z", "2026-09"),
        TimeTransform::Hour => (":00:00Z", "2026-09-17T05"),
        _ => ("T00:00:00Z", "2026-09-17"),
    };
    let at: Option<UtcInstant> = format!("{value}{rest}").parse().ok();
    let stored = at.map(|at| transform.encode(at));
    match stored {
        // Only one form is accepted: no date with a time, and no additional digits.
        Some(stored) if transform.display(Some(&stored)) == value => Ok((stored, None)),
        _ => bail!(
            "{value:?} is no {transform} such as {example} (stored values are given as JSON: [\"20713\"])"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::specs::Column;

    fn shape(fields: &[(i64, &str)]) -> TableShape {
        let column = |field_id, name: &str, col_type: &str| Column {
            field_id,
            name: name.to_owned(),
            col_type: col_type.to_owned(),
            parent_field_id: None,
        };
        let fields = fields.iter().enumerate().map(|(at, (source, transform))| SpecField {
            key_index: at as i32,
            source_field_id: *source,
            transform: (*transform).to_owned(),
            transform_param: (*transform == "bucket").then_some(16),
        });
        TableShape {
            columns: vec![
                column(1, "timestamp", "timestamptz"),
                column(2, "team_id", "long"),
                column(3, "born", "date"),
            ],
            live_spec: Some((1, fields.collect())),
        }
    }

    fn values(written: &Written) -> Vec<Option<&str>> {
        written.item.partition_values.iter().map(Option::as_deref).collect()
    }

    #[test]
    fn dates_become_partition_values_by_the_tables_own_fields() {
        for (fields, text, expected) in [
            (vec![(1, "day")], "day=2026-09-17", vec!["20713"]),
            (vec![(1, "day")], "timestamp=2026-09-17", vec!["20713"]),
            (vec![(1, "day")], "day(timestamp)=1969-12-31", vec!["-1"]),
            (vec![(1, "month")], "month=2026-09", vec!["680"]),
            (vec![(1, "year")], "year=2026", vec!["56"]),
            (vec![(1, "hour")], "hour=2026-09-17T05", vec!["497117"]),
            (vec![(3, "identity")], "born=2026-09-17", vec!["2026-09-17"]),
            (vec![(2, "identity"), (1, "day")], "day=2026-09-17, team_id=42", vec!["42", "20713"]),
            (vec![(2, "bucket"), (1, "day")], "bucket=3,day=2026-09-17", vec!["3", "20713"]),
        ] {
            let item = read_one(text, &shape(&fields)).unwrap();
            let expected: Vec<_> = expected.into_iter().map(Some).collect();
            assert_eq!(values(&item), expected, "{text}");
            assert_eq!((item.item.spec_id, item.instants), (Some(1), Vec::new()), "{text}");
        }
    }

    #[test]
    fn an_instant_of_an_identity_field_keeps_its_written_text() {
        let by_instant = shape(&[(2, "identity"), (1, "identity")]);
        let five: UtcInstant = "2026-10-31T05:00:00Z".parse().unwrap();
        for (text, typed, stored, expected) in [
            (
                "timestamp=2026-10-31T07:00:00+02:00, team_id=42",
                "timestamp=2026-10-31T07:00:00+02:00,team_id=42",
                "2026-10-31T07:00:00+02:00",
                vec![(1, five)],
            ),
            // A value without an offset is not an instant.
            (
                "timestamp=2026-10-31T05:00:00,team_id=42",
                "timestamp=2026-10-31T05:00:00,team_id=42",
                "2026-10-31T05:00:00",
                vec![],
            ),
        ] {
            let written = read_one(text, &by_instant).unwrap();
            assert_eq!(values(&written), [Some("42"), Some(stored)]);
            assert_eq!((written.typed.as_deref(), written.instants), (Some(typed), expected));
        }
        let json = read_one("[\"42\",\"2026-10-31T05:00:00Z\"]", &by_instant).unwrap();
        assert_eq!((json.typed, json.instants, json.item.spec_id), (None, Vec::new(), None));
    }

    #[test]
    fn what_names_no_one_partition_says_why() {
        let by_team_and_day = shape(&[(2, "identity"), (1, "day")]);
        for (text, part) in [
            ("day=2026-09-17", "no value for identity(team_id)"),
            ("team_id=1,day=20713", "\"20713\" is no day such as 2026-09-17"),
            ("team_id=1,day=2026-09-31", "is no day"),
            ("team_id=1,day=2026-09-17T00", "is no day"),
            ("team_id=1,day=2026-09-17T00:00:00Z", "is no day"),
            ("team_id=1,day=2026-09-17Z", "is no day"),
            ("team_id=1,day=2026-09-17+02:00", "is no day"),
            ("team_id=1,month=2026-09", "\"month\" names no partition field"),
            ("team_id=1,team_id=2,day=2026-09-17", "\"team_id\" is given twice"),
            ("2026-09-17", "is neither JSON"),
            ("[1]", "stored values are strings or null"),
            ("{\"values\":[]}", "unknown field"),
        ] {
            let error = format!("{:#}", read_one(text, &by_team_and_day).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
        let twice = shape(&[(1, "day"), (3, "day")]);
        let error = read_one("day=2026-09-17,born=2026-09-17", &twice).unwrap_err();
        assert!(error.to_string().contains("names several partition fields"), "{error}");
    }

    #[test]
    fn files_are_json_lines_or_csv() {
        let shape = shape(&[(2, "identity"), (1, "day")]);
        let json = "[\"42\", null]\n\n{\"partition_values\": [\"7\", \"x\"], \"literal\": true}\n";
        let items = read_all(json, &shape).unwrap();
        assert_eq!(values(&items[0]), [Some("42"), None]);
        assert_eq!((values(&items[1]), items[1].item.literal), (vec![Some("7"), Some("x")], true));
        let csv = "day,team_id\n2026-09-17,42\n2026-09-18, 7\n";
        let items = read_all(csv, &shape).unwrap();
        assert_eq!(values(&items[1]), [Some("7"), Some("20714")]);
        let error =
            format!("{:#}", read_all("day,team_id\n2026-09-17,1\nx,1\n", &shape).unwrap_err());
        assert!(error.starts_with("CSV row 2"), "{error}");
        let error = format!("{:#}", read_all("[\"1\",\"2\"]\n[1]", &shape).unwrap_err());
        assert!(error.starts_with("line 2"), "{error}");
    }
}
