//! What the lines of the server's log say was spent (pure).

/// What was spent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spent {
    /// In the server, over all statements, in milliseconds.
    pub ms: f64,
    /// How many statements were executed.
    pub statements: usize,
}

impl Spent {
    /// Adds what a line says of a database, in a log with the prefix `%d `: nothing, if it is of another one
    /// or no duration.
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
