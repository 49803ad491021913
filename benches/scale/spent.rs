//! Sums the time and the number of statements of a database from lines of the server's log (pure).

/// The time and the statements of a database.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// The time of all statements in the server, in milliseconds.
    pub ms: f64,
    /// How many statements were executed.
    pub statements: usize,
}

impl Spent {
    /// Adds the duration in a line of a log with the prefix `%d `. Lines of other databases and lines without a
    /// duration add nothing.
    pub fn add_line(&mut self, line: &str, database: &str) {
        let said = line
            .strip_prefix(database)
            .and_then(|line| line.strip_prefix(" LOG:  duration: "))
            .and_then(|line| line.split_once(" ms"));
        let Some((duration, rest)) = said else { return };
        self.ms += duration.trim().parse::<f64>().unwrap_or_default();
        let rest = rest.trim_start();
        let is_run = rest.starts_with("execute") || rest.starts_with("statement");
        self.statements += usize::from(is_run);
    }
}
