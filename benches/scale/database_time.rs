//! The time that a database's sessions spend in the server, from the server's own log: with
//! `log_min_duration_statement = 0` every parse, bind and execute is a line with its duration. Every
//! build of Postgres has that, while pg_stat_statements is an extension and counts no parsing.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use anyhow::Result;

use super::bench::{Bench, Db};

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// In the server, over all statements.
    pub ms: f64,
    /// How many statements were executed.
    pub statements: usize,
}

/// Has the sessions that are opened from now on in this database log all their statements.
pub async fn log_statements(bench: &Bench, db: &Db) -> Result<()> {
    let name = &db.name;
    bench
        .administer(format!(
            "alter database \"{name}\" set log_min_duration_statement = 0;
             alter database \"{name}\" set log_parameter_max_length = 0"
        ))
        .await
}

/// The end of the log as it is now.
pub fn mark(bench: &Bench) -> Result<u64> {
    Ok(log(bench)?.seek(SeekFrom::End(0))?)
}

/// What the sessions of a database have spent since a mark, apart from those whose statements are
/// not logged because they are older.
pub fn since(bench: &Bench, db: &Db, mark: u64) -> Result<Spent> {
    let mut text = Vec::new();
    let mut log = log(bench)?;
    log.seek(SeekFrom::Start(mark))?;
    log.read_to_end(&mut text)?;
    Ok(spent(&String::from_utf8_lossy(&text), &db.name))
}

fn log(bench: &Bench) -> Result<File> {
    Ok(File::open(bench.server.folder().join("log"))?)
}

/// Sums up the lines of one database in a log with the prefix `%d `.
fn spent(log: &str, database: &str) -> Spent {
    let prefix = format!("{database} LOG:  duration: ");
    let mut spent = Spent::default();
    for line in log.lines().filter_map(|line| line.strip_prefix(&prefix)) {
        let Some((duration, rest)) = line.split_once(" ms") else { continue };
        spent.ms += duration.trim().parse::<f64>().unwrap_or_default();
        let is_run =
            rest.trim_start().starts_with("execute") || rest.trim_start().starts_with("statement");
        spent.statements += usize::from(is_run);
    }
    spent
}
