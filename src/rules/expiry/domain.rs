//! Which partition values a field of a spec can have stored. Pure.
//!
//! Writers compute partition values and nobody checks them. A writer with a cached older spec of the
//! same number of fields stores values of the old field under the id of the live spec (contract,
//! "Partitions"), so a value that the old field can have stored says nothing of time by itself.

use super::book::{SpecBook, SpecField};
use crate::rules::transform::{TimeTransform, TimeType, Undatable, canonical_integer};

/// A set of partition values.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    /// Every text.
    Any,
    /// Canonical decimal integers from the first to the last.
    Integers(i128, i128),
    /// ISO 8601 texts of this type.
    Iso(TimeType),
    /// Times of a day without a date: no partition value with a time range is one.
    TimeOfDay,
}

impl Domain {
    /// What a field can have stored: one set for each type that its column was seen to have.
    pub fn of(field: &SpecField, book: &SpecBook) -> Vec<Domain> {
        match (field.transform.as_str(), field.transform_param) {
            ("year" | "month" | "day" | "hour", _) => vec![Self::integers(i64::MIN, i64::MAX)],
            ("bucket", Some(count)) => vec![Self::integers(0, i64::from(count) - 1)],
            ("identity", _) => match book.column_types.get(&field.source_field_id) {
                Some(types) if !types.is_empty() => {
                    types.iter().map(|col_type| Self::of_identity(col_type)).collect()
                }
                _ => vec![Self::Any],
            },
            _ => vec![Self::Any],
        }
    }

    /// The same without what is read as a time of the field's own column.
    pub fn beside_times(field: &SpecField, book: &SpecBook) -> Vec<Domain> {
        let types = book.column_types.get(&field.source_field_id);
        match (field.transform.as_str(), types) {
            ("year" | "month" | "day" | "hour", _) => Vec::new(),
            ("identity", Some(types)) if !types.is_empty() => types
                .iter()
                .filter(|col_type| TimeType::of_column(col_type).is_none())
                .map(|col_type| Self::of_identity(col_type))
                .collect(),
            _ => Self::of(field, book),
        }
    }

    fn of_identity(col_type: &str) -> Domain {
        match col_type {
            "int8" => Self::integers(i8::MIN, i8::MAX),
            "int16" => Self::integers(i16::MIN, i16::MAX),
            "int" => Self::integers(i32::MIN, i32::MAX),
            "long" | "timestamp_ns" => Self::integers(i64::MIN, i64::MAX),
            "uint8" => Self::integers(u8::MIN, u8::MAX),
            "uint16" => Self::integers(u16::MIN, u16::MAX),
            "uint32" => Self::integers(u32::MIN, u32::MAX),
            "uint64" => Self::integers(u64::MIN, u64::MAX),
            "time" => Self::TimeOfDay,
            other => TimeType::of_column(other).map_or(Self::Any, Self::Iso),
        }
    }

    fn integers(first: impl Into<i128>, last: impl Into<i128>) -> Domain {
        Self::Integers(first.into(), last.into())
    }

    /// Whether a partition value that has a time range may be one of the set.
    pub fn has(&self, value: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Integers(first, last) => {
                canonical_integer(value).is_ok_and(|number| (*first..=*last).contains(&number))
            }
            Self::Iso(time_type) => {
                let read = TimeTransform::Identity(*time_type).decode(Some(value));
                !matches!(read, Err(Undatable::Malformed | Undatable::Null))
            }
            Self::TimeOfDay => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn domains(transform: &str, param: Option<i32>, types: &[&str]) -> Vec<Domain> {
        let mut book = SpecBook::default();
        for col_type in types {
            book.column_types.entry(7).or_default().insert((*col_type).to_owned());
        }
        let field = SpecField {
            key_index: 0,
            source_field_id: 7,
            transform: transform.to_owned(),
            transform_param: param,
        };
        Domain::of(&field, &book)
    }

    /// Each field, values that it can have stored, and values that it cannot.
    #[test]
    fn what_a_field_can_have_stored() {
        let date = "2026-09-17";
        let timestamp = "2026-09-17T05:00:00";
        let with_zone = "2026-09-17T05:00:00+00:00";
        for (transform, param, types, can, cannot) in [
            ("day", None, &[][..], &["0", "-1", "20713"][..], &[date, "x", "01", "+1", ""][..]),
            ("year", None, &[], &["56"], &[date]),
            ("month", None, &[], &["682", "9223372036854775807"], &["9223372036854775808"]),
            ("hour", None, &[], &["497117"], &[timestamp]),
            ("bucket", Some(16), &["string"], &["0", "15"], &["16", "-1", "x"]),
            ("identity", None, &["int8"], &["-128", "127"], &["128", "-129", date]),
            ("identity", None, &["int16"], &["-32768", "32767"], &["32768", "-32769"]),
            ("identity", None, &["int"], &["2147483647"], &["2147483648", "-2147483649"]),
            ("identity", None, &["long"], &["-9223372036854775808"], &["x", date]),
            ("identity", None, &["uint8"], &["0", "255"], &["256", "-1"]),
            ("identity", None, &["uint16"], &["65535"], &["65536", "-1"]),
            ("identity", None, &["uint32"], &["4294967295"], &["4294967296", "-1"]),
            ("identity", None, &["uint64"], &["9223372036854775807"], &["-1"]),
            ("identity", None, &["date"], &[date], &["20713", timestamp, "2026-02-30"]),
            ("identity", None, &["timestamp"], &[timestamp], &["20713", date, with_zone]),
            ("identity", None, &["timestamptz"], &[with_zone], &["20713", timestamp]),
            ("identity", None, &["timestamp_ns"], &["20713"], &[timestamp]),
            ("identity", None, &["time"], &[], &["20713", date, timestamp, with_zone]),
            ("identity", None, &["int8", "date"], &["5", date], &["128", timestamp]),
            ("identity", None, &["string"], &["20713", date, "", "x"], &[]),
            ("identity", None, &["uuid"], &["20713"], &[]),
            ("identity", None, &["decimal"], &["20713"], &[]),
            ("identity", None, &[], &["20713", date], &[]),
            ("truncate", None, &["int"], &["20713", date], &[]),
        ] {
            let domains = domains(transform, param, types);
            let has = |value: &&str| domains.iter().any(|domain| domain.has(value));
            assert!(can.iter().all(has), "{transform} {types:?} can {can:?}: {domains:?}");
            assert!(
                !cannot.iter().any(has),
                "{transform} {types:?} cannot {cannot:?}: {domains:?}"
            );
        }
    }

    /// A column of which no type was seen can have stored anything, and one of several types what one of them can.
    #[test]
    fn a_column_without_a_type_can_have_stored_anything() {
        let field = SpecField {
            key_index: 0,
            source_field_id: 7,
            transform: "identity".to_owned(),
            transform_param: None,
        };
        let both = |types: Option<&[&str]>| {
            let mut book = SpecBook::default();
            if let Some(types) = types {
                let types = types.iter().map(|col_type| (*col_type).to_owned()).collect();
                book.column_types.insert(7, types);
            }
            (Domain::of(&field, &book), Domain::beside_times(&field, &book))
        };
        let any = || (vec![Domain::Any], vec![Domain::Any]);
        assert_eq!(both(None), any());
        assert_eq!(both(Some(&[])), any());
        let (int, date) = (Domain::integers(i32::MIN, i32::MAX), Domain::Iso(TimeType::Date));
        assert_eq!(both(Some(&["int"])), (vec![int.clone()], vec![int.clone()]));
        assert_eq!(both(Some(&["date", "int"])), (vec![date.clone(), int.clone()], vec![int]));
        assert_eq!(both(Some(&["date"])), (vec![date], Vec::new()));
    }
}
