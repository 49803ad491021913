//! The commands of a page: its blocks of `sh` and `sql`, as they are written there.

use anyhow::{Context, Result, bail, ensure};

/// In which language a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// Commands of a shell.
    Sh,
    /// Statements for psql.
    Sql,
}

/// A block of commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// The line of its first command.
    pub line: usize,
    pub language: Language,
    /// What stands in it, without the indent of its fence.
    pub text: String,
    /// Why nobody runs it, where its page says so.
    pub not_run: Option<String>,
}

/// What every other block may be written in: output, settings, queries and code that others run.
const OTHERS: [&str; 3] = ["text", "python", "logql"];

/// The blocks of a page, in its order. A comment `<!-- not-run: REASON -->` before a fence is its mark.
///
/// # Errors
/// A fence that does not end, a language that is neither run nor known, a mark without a block.
pub fn blocks(page: &str) -> Result<Vec<Block>> {
    let mut found = Vec::new();
    let mut mark: Option<String> = None;
    let mut lines = page.lines().enumerate();
    while let Some((number, line)) = lines.next() {
        let (indent, rest) = line.split_at(line.len() - line.trim_start().len());
        if let Some(reason) = rest.strip_prefix("<!-- not-run: ") {
            mark = Some(reason.strip_suffix(" -->").context("a mark is one line")?.to_owned());
            continue;
        }
        let Some(name) = rest.strip_prefix("```") else {
            ensure!(mark.is_none(), "line {number}: a mark is right before its block");
            continue;
        };
        let mut text = String::new();
        loop {
            let (_, line) = lines.next().with_context(|| format!("line {number}: no end"))?;
            let line = line.strip_prefix(indent).unwrap_or(line);
            if line == "```" {
                break;
            }
            text.push_str(line);
            text.push('\n');
        }
        let language = match name {
            "sh" => Language::Sh,
            "sql" => Language::Sql,
            name if OTHERS.contains(&name) && mark.is_none() => continue,
            name => bail!("line {number}: a block of {name:?}"),
        };
        found.push(Block { line: number + 2, language, text, not_run: mark.take() });
    }
    ensure!(mark.is_none(), "a mark has no block");
    Ok(found)
}

#[test]
fn blocks_are_read_as_they_stand() -> Result<()> {
    let page = "# A\n```text\n```sh\n```\n<!-- not-run: no server -->\n```sh\na\n\n  b\n```\n1. item\n\n   ```sql\n   select 1\n   ```\n";
    let block = |line, language, text: &str, not_run: Option<&str>| Block {
        line,
        language,
        text: text.to_owned(),
        not_run: not_run.map(str::to_owned),
    };
    assert_eq!(
        blocks(page)?,
        [
            block(7, Language::Sh, "a\n\n  b\n", Some("no server")),
            block(14, Language::Sql, "select 1\n", None)
        ]
    );
    for (page, why) in [
        ("```bash\n```\n", "line 0: a block of \"bash\""),
        ("```sh\n", "line 0: no end"),
        ("<!-- not-run: x -->\n", "a mark has no block"),
        ("<!-- not-run: x -->\n\n```sh\n```\n", "line 1: a mark is right before its block"),
    ] {
        assert_eq!(blocks(page).unwrap_err().to_string(), why);
    }
    Ok(())
}
