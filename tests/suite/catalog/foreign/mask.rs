//! Masks what differs between two runs of the same commands: generated ids, and times.

use serde_json::Value;
use uuid::Uuid;

/// The value without them. Lengths of time are told by the names of their fields.
pub fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(masked_text(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(masked).collect()),
        Value::Object(fields) => {
            let of_field = |(name, value): (String, Value)| match is_length_of_time(&name) {
                true => (name, Value::Null),
                false => (name, masked(value)),
            };
            Value::Object(fields.into_iter().map(of_field).collect())
        }
        other => other,
    }
}

fn is_length_of_time(name: &str) -> bool {
    name.ends_with("_ms") || name == "execution_time" || name == "seconds"
}

fn masked_text(text: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if let Some(after) = after_uuid(rest) {
            masked.push_str("<uuid>");
            rest = after;
        } else if let Some(after) = after_time(rest) {
            masked.push_str("<time>");
            rest = after;
        } else {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    masked
}

fn after_uuid(text: &str) -> Option<&str> {
    let (uuid, rest) = text.split_at_checked(36)?;
    uuid.parse::<Uuid>().ok().map(|_| rest)
}

/// An instant to the second, with whatever follows of it.
fn after_time(text: &str) -> Option<&str> {
    let (instant, rest) = text.split_at_checked(19)?;
    let instant = instant.replace(' ', "T");
    let is_instant = chrono::NaiveDateTime::parse_from_str(&instant, "%Y-%m-%dT%H:%M:%S").is_ok();
    is_instant.then(|| rest.trim_start_matches(|c: char| c.is_ascii_digit() || ".:+-Z".contains(c)))
}
