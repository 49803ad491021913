//! The program of the demo. `cargo test` builds the tests of an example and not the example itself,
//! so the demo is built here as `make demo` builds it. Little is left to compile by then.

use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Where the demo is, built once by each run of the tests.
pub fn program() -> Result<PathBuf> {
    static BUILT: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let built = BUILT.get_or_init(|| build().map_err(|error| format!("{error:#}")));
    built.clone().map_err(anyhow::Error::msg)
}

fn build() -> Result<PathBuf> {
    let mut command = Command::new(env!("CARGO"));
    command
        .args(["build", "--locked", "--bin", "tailrace", "--example", "demo"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stdin(Stdio::null());
    // What cargo tells a test of its package makes the scripts of some dependencies run again.
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    let output = command.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "no demo: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout)?
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == "demo")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
        .context("cargo names no program of the demo")
}
