//! Measures the time that the sessions of a database spend in the server, by the server's log. With
//! `log_min_duration_statement = 0` every parse, bind and execute is a line with its duration. This
//! works in every build of Postgres. `pg_stat_statements` is an extension, and does not count
//! parsing.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek, SeekFrom};

use anyhow::Result;

use super::bench::{Bench, Db};
use super::spent::Spent;

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

/// The present end of the log.
pub fn mark(bench: &Bench) -> Result<u64> {
    Ok(log(bench)?.seek(SeekFrom::End(0))?)
}

/// What the sessions of a database have spent since a position in the log. Sessions that were opened before
/// [`log_statements`] are not logged, and so not included.
pub fn since(bench: &Bench, db: &Db, mark: u64) -> Result<Spent> {
    let mut log = log(bench)?;
    log.seek(SeekFrom::Start(mark))?;
    let mut log = BufReader::new(log);
    let mut spent = Spent::default();
    // A pass over many tables logs more than should be in memory at once.
    let mut line = Vec::new();
    while log.read_until(b'\n', &mut line)? > 0 {
        spent.add_line(&String::from_utf8_lossy(&line), &db.name);
        line.clear();
    }
    Ok(spent)
}

fn log(bench: &Bench) -> Result<File> {
    Ok(File::open(bench.server.folder().join("log"))?)
}
