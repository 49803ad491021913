//! Tests of `tailrace doctor`: each finding is made where it applies, and nowhere else.

mod bounded;
mod bundle;
pub mod debt;
mod maintenance_state;
mod own_role;
mod policies;
mod rights;
mod row_security;
mod secrets;
mod server;
mod specs;

use anyhow::Result;
use serde_json::Value;

use crate::support::TestDatabase;

/// What doctor said.
pub struct Said {
    /// The exit code.
    pub code: i32,
    /// The findings, as JSON has them.
    pub findings: Vec<Value>,
}

impl Said {
    /// Those of a family, as (level, what).
    pub fn of(&self, check: &str) -> Vec<(&str, &str)> {
        self.whole(check)
            .into_iter()
            .map(|finding| (text(&finding["level"]), text(&finding["what"])))
            .collect()
    }

    /// Those of a family.
    pub fn whole(&self, check: &str) -> Vec<&Value> {
        self.findings.iter().filter(|finding| finding["check"] == check).collect()
    }

    /// Every finding that is not ok, as (check, level).
    pub fn told(&self) -> Vec<(&str, &str)> {
        let told = self.findings.iter().filter(|finding| finding["level"] != "ok");
        told.map(|finding| (text(&finding["check"]), text(&finding["level"]))).collect()
    }

    /// The statements of a family, in order.
    pub fn statements(&self, check: &str) -> Vec<&str> {
        let of = self.whole(check);
        of.iter().flat_map(|one| one["statements"].as_array()).flatten().map(text).collect()
    }
}

/// A text of JSON, empty where it is none.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

impl TestDatabase {
    /// What doctor says, as the database's owner unless another URL is given.
    pub async fn doctor_with(&self, env: &[(&str, &str)]) -> Result<Said> {
        let ran = self.ran_with(&["doctor", "--output", "json"], env).await?;
        anyhow::ensure!(matches!(ran.code, 0 | 3), "{ran:?}");
        let report: Value = serde_json::from_str(&ran.out)?;
        let findings = report["findings"].as_array().cloned().unwrap_or_default();
        Ok(Said { code: ran.code, findings })
    }

    /// What doctor says.
    pub async fn doctor(&self) -> Result<Said> {
        self.doctor_with(&[]).await
    }
}
