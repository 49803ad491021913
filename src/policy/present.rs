//! The present name of a policy's field. A policy is bound to a column by its id, and names change.

use std::fmt;

use super::field::FieldExpression;
use crate::catalog::specs::TableShape;
use crate::rules::expiry::shortened;

/// The field of a policy as somebody wrote it, and the column that it means by the name that the
/// catalog has for it now. Shown to a person (`Display`), it is the column's name, and where the policy
/// says another one, that and whose that is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyField {
    text: String,
    /// What the text calls the column.
    says: String,
    column: Option<String>,
    /// Whether another column has the name that the text says.
    is_of_another: bool,
}

impl PolicyField {
    /// The field of a policy that is bound to a column of the table.
    pub fn of(text: &str, source_field_id: i64, shape: &TableShape) -> Self {
        // A text was read before it was stored; one that cannot be read names nothing.
        let says = FieldExpression::parse(text).map_or_else(|_| text.to_owned(), |it| it.column);
        let named = shape.column_by_path(&says);
        PolicyField {
            text: text.to_owned(),
            column: shape.live_path(source_field_id),
            is_of_another: named.is_some_and(|column| column.field_id != source_field_id),
            says,
        }
    }

    /// As somebody wrote it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The dotted path of the column that it means; `None` where that is no live column any more.
    pub fn column(&self) -> Option<&str> {
        self.column.as_deref()
    }
}

impl fmt::Display for PolicyField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PolicyField { text, says, column, is_of_another } = self;
        match column {
            Some(column) if column == says => f.write_str(text),
            Some(column) => {
                let which = match says == text {
                    true => "which".to_owned(),
                    false => format!("and {says:?}"),
                };
                let whose = if *is_of_another { "another column" } else { "no column" };
                write!(
                    f,
                    "{} (the policy says {text:?}, {which} is {whose} now)",
                    shortened(column)
                )
            }
            None if *is_of_another => {
                write!(f, "{text} (that column is gone, and {says:?} is another column now)")
            }
            None => write!(f, "{text} (that column is gone)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::specs::Column;

    fn shape(columns: &[(i64, &str, &str, Option<i64>)]) -> TableShape {
        let column = |(field_id, name, col_type, parent): &(i64, &str, &str, Option<i64>)| Column {
            field_id: *field_id,
            name: (*name).to_owned(),
            col_type: (*col_type).to_owned(),
            parent_field_id: *parent,
        };
        TableShape { columns: columns.iter().map(column).collect(), live_spec: None }
    }

    #[test]
    fn the_present_name_and_the_policys_text_where_they_differ() {
        let before = shape(&[(1, "ts", "timestamptz", None)]);
        let renamed = shape(&[(1, "ts_old", "timestamptz", None)]);
        let taken = shape(&[(1, "ts_old", "timestamptz", None), (2, "ts", "timestamptz", None)]);
        let by_a_struct = shape(&[(1, "ts_old", "timestamptz", None), (2, "ts", "struct", None)]);
        let gone = shape(&[(3, "kind", "string", None)]);
        let replaced = shape(&[(2, "ts", "timestamptz", None)]);
        for (text, shape, column, shown) in [
            ("ts", &before, Some("ts"), "ts"),
            ("day(ts)", &before, Some("ts"), "day(ts)"),
            (
                "ts",
                &renamed,
                Some("ts_old"),
                r#"ts_old (the policy says "ts", which is no column now)"#,
            ),
            (
                "ts",
                &taken,
                Some("ts_old"),
                r#"ts_old (the policy says "ts", which is another column now)"#,
            ),
            (
                "day(ts)",
                &taken,
                Some("ts_old"),
                r#"ts_old (the policy says "day(ts)", and "ts" is another column now)"#,
            ),
            (
                "ts",
                &by_a_struct,
                Some("ts_old"),
                r#"ts_old (the policy says "ts", which is another column now)"#,
            ),
            ("ts", &gone, None, "ts (that column is gone)"),
            (
                "day(ts)",
                &replaced,
                None,
                r#"day(ts) (that column is gone, and "ts" is another column now)"#,
            ),
        ] {
            let field = PolicyField::of(text, 1, shape);
            assert_eq!((field.text(), field.column()), (text, column));
            assert_eq!(field.to_string(), shown);
        }
    }

    #[test]
    fn a_leaf_of_a_struct_is_called_by_its_path() {
        let inside = |outer: &str, name: &str| {
            shape(&[(1, outer, "struct", None), (2, name, "timestamptz", Some(1))])
        };
        for (outer, name, shown) in [
            ("meta", "ts", "meta.ts"),
            ("info", "ts", r#"info.ts (the policy says "meta.ts", which is no column now)"#),
            ("meta", "at", r#"meta.at (the policy says "meta.ts", which is no column now)"#),
        ] {
            assert_eq!(PolicyField::of("meta.ts", 2, &inside(outer, name)).to_string(), shown);
        }
    }

    #[test]
    fn a_name_that_commands_a_terminal_is_shown_without_its_command() {
        let shape = shape(&[(1, "a\u{1b}[2J\nb", "timestamptz", None)]);
        let field = PolicyField::of("ts", 1, &shape);
        assert_eq!(field.column(), Some("a\u{1b}[2J\nb"));
        assert_eq!(
            field.to_string(),
            "a\u{fffd}[2J\u{fffd}b (the policy says \"ts\", which is no column now)"
        );
    }
}
