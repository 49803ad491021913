//! `tailrace doctor --bundle FILE`: writes the file. Only its owner can read it, and it never
//! replaces an existing file.

use std::io::{self, Write};
use std::path::Path;

use tempfile::NamedTempFile;

use super::super::text::{bytes, columns, counted, spinner};
use super::super::{DONE, FAILED, PROBLEM_FOUND, new_file, out};
use super::levels;
use crate::config::Config;
use crate::doctor::Doctor;
use crate::doctor::bundle::{Bundle, Part};
use crate::doctor::masks::Masks;
use crate::telemetry::{line, plain, say};

/// The text for an operator about what the file has that is not masked.
const NOT_MASKED: &str = "\
Passwords, keys and tokens are masked. Names of hosts, catalogs, tables, columns,
roles and consumers, partition values, paths of objects, and what people typed
(authors, reasons) are in it. Look at it before you send it.
";

pub async fn run(config: &Config, doctor: &Doctor<'_>, file: &Path) -> anyhow::Result<u8> {
    // Checked first, because gathering takes minutes.
    if let Err(error) = new_file::check(file) {
        return Ok(new_file::refused("bundle", file, &error));
    }
    let masks = Masks::new(config.secrets())?;
    let bar = spinner("looking");
    let bundle = Bundle::gather(config, doctor, |part| bar.set_message(part)).await;
    bar.finish_and_clear();
    let mut text = plain(&bundle.masked(&masks)?).into_owned();
    text.push('\n');
    if let Err(error) = write(file, &text) {
        return Ok(new_file::refused("bundle", file, &error));
    }
    out::text(&masks.text(&told(file, text.len(), &bundle)))?;
    Ok(match &bundle.doctor {
        Part::Made(report) if report.has_problem() => PROBLEM_FOUND,
        Part::Made(_) => DONE,
        Part::Failed { error } => {
            say(&format!("tailrace: doctor failed: {}\n", line(&masks.text(error))));
            FAILED
        }
    })
}

/// Writes the whole file with mode 0600, or nothing. It never replaces another file.
fn write(file: &Path, text: &str) -> io::Result<()> {
    let mut written = NamedTempFile::new_in(new_file::folder(file))?;
    written.write_all(text.as_bytes())?;
    written.as_file().sync_all()?;
    written.persist_noclobber(file)?;
    Ok(())
}

/// The text about the written file: its path, its content, and what in it is not masked.
fn told(file: &Path, length: usize, bundle: &Bundle) -> String {
    let drops = bundle.trace.made().map(|trace| {
        let drops = trace.catalogs.iter().map(|catalog| catalog.drops.len()).sum::<usize>();
        let of = counted(trace.catalogs.len() as i64, "catalog");
        format!("the newest {} of {of}", counted(drops as i64, "drop"))
    });
    let plan = bundle.plan.made().map(|plan| counted(plan.tables.len() as i64, "table"));
    let rows = [
        ("config", Ok("the configuration, with where each key is from".to_owned())),
        ("database", bundle.database.made().map(|_| "versions".to_owned())),
        ("doctor", bundle.doctor.made().map(levels)),
        ("plan", plan),
        ("verify", bundle.verify.made().map(|verified| verified.status.name().to_owned())),
        ("trace", drops),
    ];
    let row = |(part, said): (&str, Result<String, &str>)| {
        vec![
            part.to_owned(),
            said.unwrap_or_else(|_| "failed: its error is in the file".to_owned()),
        ]
    };
    let name = file.display().to_string();
    format!(
        "{} is written ({}, readable by you alone). It has:\n{}{NOT_MASKED}",
        line(&name),
        bytes(length as i64),
        columns(&rows.map(row), &[], "  "),
    )
}
