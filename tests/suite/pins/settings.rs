//! Pins the keys of the configuration, as `tailrace config` lists them, set or not.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use super::golden;
use crate::support::TestDatabase;

#[tokio::test]
async fn the_keys_are_these() -> Result<()> {
    let database = TestDatabase::new().await?;
    let shown = database.ran(&["config"]).await?.out;
    let (mut section, mut keys) = ("", Vec::new());
    let listed = shown.lines().skip_while(|line| !line.starts_with('['));
    for line in listed.filter(|line| !line.is_empty()) {
        match line.strip_prefix('[') {
            Some(name) => section = name.trim_end_matches(']'),
            None => {
                let key = line.trim_start_matches("# ").split(' ').next().context("a key")?;
                keys.push(format!("{section}.{key}"));
            }
        }
    }
    golden::holds("keys.txt", &(keys.join("\n") + "\n"));
    let unique: BTreeSet<&String> = keys.iter().collect();
    assert_eq!(unique.len(), keys.len());
    Ok(())
}

/// Each can be set by its variable: what is refused names the key.
#[tokio::test]
async fn each_key_has_its_variable() -> Result<()> {
    let database = TestDatabase::new().await?;
    for key in golden::read("keys.txt").lines() {
        let variable = format!("TAILRACE__{}", key.to_uppercase().replace('.', "__"));
        // No key accepts this text but those that accept any.
        let ran = database.ran_with(&["config"], &[(&variable, "\u{1}")]).await?;
        let is_known = match ran.code {
            0 => ran.out.contains(&format!("# the variable {variable}")),
            code => code == 2 && ran.err.contains(key) && !ran.err.contains("unknown key"),
        };
        assert!(is_known, "{variable}: {ran:?}");
    }
    Ok(())
}
