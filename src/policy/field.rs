//! `field`: finds the column of time that a person named.

use std::fmt;

use crate::catalog::specs::TableShape;
use crate::rules::expiry::SpecField;
use crate::rules::transform::TimeTransform;

/// A column (`timestamp`, `meta.ts`) or a partition field (`day(timestamp)`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldExpression {
    transform: Option<String>,
    pub(super) column: String,
}

/// Why a text names no time field of the table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// The text is no field expression.
    #[error(
        "field {0:?} is neither a column (`timestamp`, `meta.ts`) nor a partition field (`day(timestamp)`)"
    )]
    Malformed(String),
    /// The text is one, but not of this table.
    #[error("field {field:?} {reason}; {partition_fields}")]
    NoTimeField {
        /// As written.
        field: String,
        /// What is wrong with it.
        reason: String,
        /// A sentence that lists what the table is partitioned by.
        partition_fields: String,
    },
}

impl FieldExpression {
    /// Reads the text; no table is asked.
    pub fn parse(text: &str) -> Result<Self, FieldError> {
        let malformed = || FieldError::Malformed(text.to_owned());
        let trimmed = text.trim();
        let (transform, column) = match trimmed.split_once('(') {
            Some((transform, rest)) => {
                let column = rest.strip_suffix(')').ok_or_else(malformed)?;
                (Some(transform.trim()), column.trim())
            }
            None => (None, trimmed),
        };
        let is_name = |part: &str| {
            !part.is_empty()
                && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        // `bucket(16, id)` is a partition field too, if never one of time: let it be refused
        // as such and not as a typing error.
        let column = match transform {
            Some("bucket") => column.rsplit(',').next().unwrap_or(column).trim(),
            _ => column,
        };
        if !column.split('.').all(is_name) || transform.is_some_and(|name| !is_name(name)) {
            return Err(malformed());
        }
        Ok(FieldExpression { transform: transform.map(str::to_owned), column: column.to_owned() })
    }

    /// The id of the live leaf column that the text names, whether or not the table is
    /// partitioned by it.
    pub fn column_id(&self, shape: &TableShape) -> Option<i64> {
        shape.leaf_by_path(&self.column).map(|column| column.field_id)
    }

    /// The id of the column, which must be the source of a time field of the live spec: the
    /// named one where the text names a transform, else any.
    pub fn resolve(&self, shape: &TableShape) -> Result<i64, FieldError> {
        let refuse = |reason: String| FieldError::NoTimeField {
            field: self.to_string(),
            reason,
            partition_fields: describe_spec(shape),
        };
        let column = shape
            .leaf_by_path(&self.column)
            .ok_or_else(|| refuse(format!("names no column {:?} of the table", self.column)))?;
        let fields: Vec<_> = shape
            .live_spec_fields()
            .iter()
            .filter(|field| field.source_field_id == column.field_id)
            .filter(|field| self.transform.as_ref().is_none_or(|name| *name == field.transform))
            .collect();
        if fields.is_empty() {
            return Err(refuse(match &self.transform {
                Some(transform) => {
                    format!(
                        "is not what the table is partitioned by (no {transform} of {})",
                        self.column
                    )
                }
                None => "is not what the table is partitioned by".to_owned(),
            }));
        }
        let is_time = |field: &&&SpecField| {
            TimeTransform::of_field(&field.transform, Some(&column.col_type)).is_some()
        };
        if fields.iter().any(|field| is_time(&field)) {
            return Ok(column.field_id);
        }
        Err(refuse(match fields[0].transform.as_str() {
            "bucket" => "is a bucket, which gives no date".to_owned(),
            _ => format!("is the identity of a {} column, which gives no date", column.col_type),
        }))
    }
}

impl fmt::Display for FieldExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.transform {
            Some(transform) => write!(f, "{transform}({})", self.column),
            None => f.write_str(&self.column),
        }
    }
}

fn describe_spec(shape: &TableShape) -> String {
    if shape.live_spec_fields().is_empty() {
        return "the table is not partitioned".to_owned();
    }
    let fields: Vec<_> =
        shape.live_spec_fields().iter().map(|field| shape.describe_field(field)).collect();
    format!("the table is partitioned by {}", fields.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::specs::Column;

    fn column(field_id: i64, name: &str, col_type: &str, parent: Option<i64>) -> Column {
        Column {
            field_id,
            name: name.to_owned(),
            col_type: col_type.to_owned(),
            parent_field_id: parent,
        }
    }

    fn field(key_index: i32, source_field_id: i64, transform: &str) -> SpecField {
        let transform_param = (transform == "bucket").then_some(16);
        SpecField { key_index, source_field_id, transform: transform.to_owned(), transform_param }
    }

    fn shape(fields: Vec<SpecField>) -> TableShape {
        TableShape {
            columns: vec![
                column(1, "timestamp", "timestamptz", None),
                column(2, "team_id", "long", None),
                column(3, "meta", "struct", None),
                column(4, "ts", "timestamp", Some(3)),
                column(5, "tags", "list", None),
                column(6, "element", "date", Some(5)),
                column(7, "name", "string", None),
            ],
            live_spec: Some((1, fields)),
        }
    }

    #[test]
    fn columns_and_partition_fields() {
        let shape = shape(vec![
            field(0, 2, "bucket"),
            field(1, 1, "day"),
            field(2, 4, "identity"),
            field(3, 7, "identity"),
        ]);
        for (text, expected) in [
            ("timestamp", 1),
            ("day(timestamp)", 1),
            (" day( timestamp ) ", 1),
            ("meta.ts", 4),
            ("identity(meta.ts)", 4),
        ] {
            assert_eq!(
                FieldExpression::parse(text).unwrap().resolve(&shape),
                Ok(expected),
                "{text}"
            );
        }
        let all = "the table is partitioned by bucket(16, team_id), day(timestamp), identity(meta.ts), identity(name)";
        for (text, reason) in [
            ("nope", "names no column \"nope\" of the table"),
            ("meta", "names no column \"meta\" of the table"),
            ("tags.element", "names no column \"tags.element\" of the table"),
            ("Timestamp", "names no column \"Timestamp\" of the table"),
            ("month(timestamp)", "is not what the table is partitioned by (no month of timestamp)"),
            ("team_id", "is a bucket, which gives no date"),
            ("bucket(team_id)", "is a bucket, which gives no date"),
            ("name", "is the identity of a string column, which gives no date"),
        ] {
            let error = FieldExpression::parse(text).unwrap().resolve(&shape).unwrap_err();
            assert_eq!(error.to_string(), format!("field {text:?} {reason}; {all}"));
        }
        let bucket = FieldExpression::parse("bucket(16, team_id)").unwrap().resolve(&shape);
        assert!(bucket.unwrap_err().to_string().contains("is a bucket"));
    }

    #[test]
    fn an_unpartitioned_table_says_so() {
        let bare = TableShape { live_spec: None, ..shape(Vec::new()) };
        for shape in [bare, shape(Vec::new())] {
            assert_eq!(
                FieldExpression::parse("timestamp")
                    .unwrap()
                    .resolve(&shape)
                    .unwrap_err()
                    .to_string(),
                "field \"timestamp\" is not what the table is partitioned by; the table is not partitioned"
            );
        }
    }

    #[test]
    fn no_field_at_all() {
        for text in
            ["", "day(", "day(timestamp", "day()", "a b", "day(timestamp) x", "(ts)", "a..b", "é"]
        {
            assert_eq!(
                FieldExpression::parse(text),
                Err(FieldError::Malformed(text.to_owned())),
                "{text}"
            );
        }
    }
}
