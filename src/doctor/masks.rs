//! Keeps secrets out of what an operator hands on: those that are known, and what looks like one in a text that
//! others wrote, such as a connection string in what a trigger of the database says.

use regex::{NoExpand, Regex};
use serde_json::{Value, json};

/// What stands in the place of a secret.
pub const MASK: &str = "***";

/// A known secret of fewer letters is masked only where it looks like one: a text is full of such words.
const SHORTEST: usize = 4;

/// What looks like a secret, and what is put in its place.
const PATTERNS: [(&str, &str); 8] = [
    // A URL with a password: all up to the last @, for one in a password may not be escaped.
    (r#"(?i)([a-z][a-z0-9+.-]*://[^\s:/@'"<>]*):[^\s'"<>]*@"#, "${1}:***@"),
    // name=value and name: value, also within JSON and the parameters of a URL.
    (
        r#"(?i)((?:password|passwd|pwd|passphrase|secret|token|credential|signature|\bsig|(?:api|access|account|secret|private)[_-]?key)s?\\?["']?\s*[=:]\s*)(?:\[[^\]]*\]|\{[^}]*\}|"(?:[^"\\]|\\.)*"|\\"(?:[^"\\]|\\[^"])*\\"|'[^']*'|[^\s&;,"'<>\[{]+)"#,
        "${1}***",
    ),
    // As SQL sets one.
    (r"(?i)(password\s+)'[^']*'", "${1}'***'"),
    (r#"(?i)(authorization\\?["']?\s*[=:]\s*\\?["']?)(?:[a-z]+\s+)?[^\s"']+"#, "${1}***"),
    (r"(?i)\b(bearer\s+)[a-z0-9+/=._~-]+", "${1}***"),
    // Tokens of GitHub, and JSON Web Tokens.
    (r"\b(?:gh[a-z]_[A-Za-z0-9]{20,}|eyJ[\w-]+\.[\w-]+\.[\w-]*)", "***"),
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b", "***"),
    (r"(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\z)", "***"),
];

/// What is masked.
#[derive(Debug)]
pub struct Masks {
    /// Any of the known secrets.
    known: Option<Regex>,
    patterns: Vec<(Regex, &'static str)>,
}

impl Masks {
    /// Masks these secrets wherever they stand, and whatever looks like one.
    ///
    /// # Errors
    /// The known ones are too long to be looked for.
    pub fn new(mut secrets: Vec<String>) -> Result<Self, regex::Error> {
        secrets.retain(|secret| secret.chars().count() >= SHORTEST);
        // As each stands within a text that is JSON itself, such as a table's property.
        let within_json = |secret: &String| {
            let quoted = json!(secret).to_string();
            Some(quoted.strip_prefix('"')?.strip_suffix('"')?.to_owned())
        };
        secrets.extend(secrets.iter().filter_map(within_json).collect::<Vec<_>>());
        // Of two that begin alike the longer one is tried first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        let any: Vec<String> = secrets.iter().map(|secret| regex::escape(secret)).collect();
        let known = match any.as_slice() {
            [] => None,
            any => Some(Regex::new(&any.join("|"))?),
        };
        let patterns = PATTERNS.iter().map(|(pattern, by)| Ok((Regex::new(pattern)?, *by)));
        Ok(Masks { known, patterns: patterns.collect::<Result<_, regex::Error>>()? })
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        for (pattern, by) in &self.patterns {
            masked = pattern.replace_all(&masked, *by).into_owned();
        }
        if let Some(known) = &self.known {
            masked = known.replace_all(&masked, NoExpand(MASK)).into_owned();
        }
        masked
    }

    /// The same of every text in a value, at any depth, keys among them.
    pub fn value(&self, value: Value) -> Value {
        match value {
            Value::String(text) => self.text(&text).into(),
            Value::Array(values) => values.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(key, value)| (self.text(&key), self.value(value))).collect()
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn masks(secrets: &[&str]) -> Masks {
        Masks::new(secrets.iter().map(|secret| (*secret).to_owned()).collect()).expect("masks")
    }

    #[test]
    fn what_looks_like_a_secret_is_masked() {
        for (text, expected) in [
            ("at postgres://u:pw@h:5432/db?a=b now", "at postgres://u:***@h:5432/db?a=b now"),
            ("(postgresql://u:p@ss/w@h/db)", "(postgresql://u:***@h/db)"),
            ("postgres://u@h/db?password=pw&a=b", "postgres://u@h/db?password=***&a=b"),
            ("host=h password='p w' dbname=x", "host=h password=*** dbname=x"),
            ("PGPASSWORD=pw psql", "PGPASSWORD=*** psql"),
            (
                "create user MAPPING (user 'u', password 'pw')",
                "create user MAPPING (user 'u', password '***')",
            ),
            (r#"{"secret_key": "pw", "b": 1}"#, r#"{"secret_key": ***, "b": 1}"#),
            (r#"{"secret": "a\"b c", "b": 1}"#, r#"{"secret": ***, "b": 1}"#),
            (r#"{\"secret\": \"a b\", \"b\": 1}"#, r#"{\"secret\": ***, \"b\": 1}"#),
            (r#"{"secrets": ["a", "b"], "b": 1}"#, r#"{"secrets": ***, "b": 1}"#),
            (r#"{"password": {"a": "b"}, "b": 1}"#, r#"{"password": ***, "b": 1}"#),
            ("from ghp_abcdefghij0123456789 on", "from *** on"),
            ("Cookie: eyJhbGci.eyJzdWIi.c2ln;", "Cookie: ***;"),
            (
                "https://h/o?X-Amz-Credential=AK%2Fx&X-Amz-Signature=0f&n=1",
                "https://h/o?X-Amz-Credential=***&X-Amz-Signature=***&n=1",
            ),
            ("https://h/o?sv=1&sig=0f%3D", "https://h/o?sv=1&sig=***"),
            ("Authorization: Basic dTpwdw==", "Authorization: ***"),
            ("curl -H 'Bearer abc.def'", "curl -H 'Bearer ***'"),
            ("key AKIAIOSFODNN7EXAMPLE.", "key ***."),
            ("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n", "a\n***"),
        ] {
            assert_eq!(masks(&[]).text(text), expected);
        }
    }

    #[test]
    fn ordinary_words_stay() {
        for text in [
            "s3://bucket/events/day=2026-09-17/a@b:c.parquet",
            "password_file = \"/run/secrets/tailrace-password\" # /etc/tailrace.toml",
            "tokens_file is unset",
            "http://127.0.0.1:8917/metrics",
            "see the role in database.url, its password in database.password_file, or ~/.pgpass",
            "postgres://tailrace@db.example.com/lake",
        ] {
            assert_eq!(masks(&["abc"]).text(text), text);
        }
    }

    #[test]
    fn known_secrets_are_masked_wherever_they_are() {
        assert_eq!(masks(&["p'\"w"]).text(r#"{"a": "p'\"w"}"#), r#"{"a": "***"}"#);
        assert_eq!(
            masks(&["quote\""]).text(r#"{"a": "quote\"", "b": 1}"#),
            r#"{"a": "***", "b": 1}"#
        );
        let masks = masks(&["hunter", "hunter2", "$1.*", "web"]);
        let value =
            json!({"a": ["xhunter2x", 1, null], "hunter": {"b": "$1.* or $1x"}, "c": "web"});
        let expected = json!({"a": ["x***x", 1, null], "***": {"b": "*** or $1x"}, "c": "web"});
        assert_eq!(masks.value(value), expected);
    }
}
