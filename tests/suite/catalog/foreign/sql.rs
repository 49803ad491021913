//! Collects the SQL of the program: the committed queries, the migrations, and the sources.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

/// A statement that was checked at compile time.
pub struct Statement {
    /// The first digits of the name of its file.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The types of its parameters, as the server inferred them where there is nobody else's
    /// object.
    pub parameters: Vec<&'static str>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The committed queries.
pub fn statements() -> Result<Vec<Statement>> {
    let mut statements = Vec::new();
    for entry in fs::read_dir(root().join(".sqlx"))? {
        let path = entry?.path();
        let query: Value = serde_json::from_str(&fs::read_to_string(&path)?)?;
        let name = path.file_stem().and_then(|stem| stem.to_str()).context("a name")?;
        let list = query["describe"]["parameters"]["Left"].as_array().cloned().unwrap_or_default();
        let parameters = list.iter().map(type_of).collect::<Result<_>>()?;
        let text = query["query"].as_str().context("a text")?.to_owned();
        statements.push(Statement { name: name.chars().take(14).collect(), text, parameters });
    }
    statements.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(statements)
}

/// As SQL has the type that the driver calls so.
fn type_of(name: &Value) -> Result<&'static str> {
    Ok(match name.as_str().context("a type")? {
        "Bool" => "boolean",
        "Bytea" => "bytea",
        "ByteaArray" => "bytea[]",
        "Float8" => "double precision",
        "BoolArray" => "boolean[]",
        "Int4" => "integer",
        "Int4Array" => "integer[]",
        "Int8" => "bigint",
        "Int8Array" => "bigint[]",
        "Jsonb" => "jsonb",
        "JsonbArray" => "jsonb[]",
        "Name" => "name",
        "Text" => "text",
        "TextArray" => "text[]",
        "Timestamptz" => "timestamp with time zone",
        "TimestamptzArray" => "timestamp with time zone[]",
        "Uuid" => "uuid",
        "UuidArray" => "uuid[]",
        other => anyhow::bail!("no name in SQL for the type {other}"),
    })
}

/// All texts in which calls and operators of ours stand: the committed queries, the migrations, and
/// what the sources say to `pg_catalog` in statements that are put together.
pub fn texts() -> Result<Vec<String>> {
    let mut texts: Vec<String> =
        statements()?.into_iter().map(|statement| statement.text).collect();
    for entry in fs::read_dir(root().join("migrations"))? {
        texts.push(fs::read_to_string(entry?.path())?);
    }
    calls_in(&root().join("src"), &mut texts)?;
    Ok(texts)
}

fn calls_in(folder: &Path, texts: &mut Vec<String>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            calls_in(&path, texts)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = fs::read_to_string(&path)?;
            let calls = source.split("pg_catalog.").skip(1);
            texts.extend(
                calls.filter_map(|rest| rest.split_once('(')).map(|(name, _)| format!("{name}(")),
            );
        }
    }
    Ok(())
}
