//! The shape of JSON: the path of each field with the types of its values. A text that is a code
//! (lower-case words, joined by `_`) is part of the shape, other texts are not.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::Value;

/// The types and codes of each field, over any number of values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shape(BTreeMap<String, BTreeSet<String>>);

impl Shape {
    /// The shape of one value.
    pub fn of(value: &Value) -> Self {
        let mut shape = Shape::default();
        shape.add(value);
        shape
    }

    /// Takes in another value.
    pub fn add(&mut self, value: &Value) {
        self.at("", value);
    }

    fn at(&mut self, path: &str, value: &Value) {
        let kind = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "boolean".to_owned(),
            Value::Number(number) if number.is_f64() => "float".to_owned(),
            Value::Number(_) => "integer".to_owned(),
            Value::String(text) if is_code(text) => format!("{text:?}"),
            Value::String(_) => "text".to_owned(),
            Value::Array(values) => {
                values.iter().for_each(|value| self.at(&format!("{path}[]"), value));
                "array".to_owned()
            }
            Value::Object(fields) => {
                let dot = if path.is_empty() { "" } else { "." };
                let mut field = |(key, value)| self.at(&format!("{path}{dot}{key}"), value);
                fields.iter().for_each(&mut field);
                "object".to_owned()
            }
        };
        self.0.entry(path.to_owned()).or_default().insert(kind);
    }
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// One line per field.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, kinds) in &self.0 {
            let kinds: Vec<&str> = kinds.iter().map(String::as_str).collect();
            let path = if path.is_empty() { "." } else { path };
            writeln!(f, "{path}: {}", kinds.join(" | "))?;
        }
        Ok(())
    }
}

#[test]
fn each_field_is_a_line_with_all_of_its_types() {
    let value = serde_json::json!({
        "outcome": "dropped", "tables": [{"a": 1, "b": null}, {"a": 1.5, "b": "7d"}], "none": [],
    });
    let expected = ".: object\nnone: array\noutcome: \"dropped\"\ntables: array\ntables[]: object\n\
                    tables[].a: float | integer\ntables[].b: null | text\n";
    assert_eq!(Shape::of(&value).to_string(), expected);
}
