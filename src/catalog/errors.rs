//! The one place that translates an SQLSTATE into what it means for tailrace.

use sqlx::postgres::{PgDatabaseError, PgSeverity};

/// What a database error means for the work that met it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// 55P03: a lock was not acquired in time, or not at once where NOWAIT was asked.
    LockNotAvailable,
    /// 57014: the statement ran into `statement_timeout`, or was cancelled by an operator. 25P04: the
    /// transaction ran into `transaction_timeout`; then the session is over too.
    StatementCancelled,
    /// 40P01 or 40001: the server chose us as the victim; the same work may be tried again.
    TryAgain,
    /// 3F000, 42P01, 42703: a schema, table or column is not there.
    MissingObject,
    /// 42501: the role may not.
    NotPermitted,
    /// 28*, 3D000, 57P0*, 08*, a broken or refused connection: no session.
    ConnectionLost,
    /// 22*, 23*, P0* and others of `OF_CONTENT`: what a row holds, a constraint, a trigger that
    /// raises, or a damaged page. The same statement fails again, others may not.
    Content,
    /// Anything else.
    Other,
}

/// What a row can be the reason for: beside data, constraints and PL/pgSQL, the states with which a trigger
/// may raise or fail (21, 38, 39, 44, 45, 54), and a damaged page or index (XX001, XX002).
const OF_CONTENT: [&str; 11] =
    ["21", "22", "23", "38", "39", "44", "45", "54", "P0", "XX001", "XX002"];

impl Failure {
    /// Classifies an error of sqlx.
    pub fn of(error: &sqlx::Error) -> Self {
        match error {
            sqlx::Error::Database(database) => {
                Self::of_sqlstate(database.code().as_deref().unwrap_or_default())
            }
            sqlx::Error::Io(_)
            | sqlx::Error::Tls(_)
            | sqlx::Error::PoolTimedOut
            | sqlx::Error::PoolClosed
            | sqlx::Error::WorkerCrashed => Self::ConnectionLost,
            // A connection that broke in the middle of a message reports what it misread.
            sqlx::Error::Protocol(_) => Self::ConnectionLost,
            _ => Self::Other,
        }
    }

    fn of_sqlstate(code: &str) -> Self {
        match code {
            "55P03" => Self::LockNotAvailable,
            "57014" | "25P04" => Self::StatementCancelled,
            "40P01" | "40001" => Self::TryAgain,
            "3F000" | "42P01" | "42703" => Self::MissingObject,
            "42501" => Self::NotPermitted,
            // 25P03 ends a session that sat idle in its transaction; 53300 and 57P03 are a
            // server that takes nobody in at the moment.
            "25P03" | "53300" | "3D000" => Self::ConnectionLost,
            _ if code.starts_with("08") || code.starts_with("57P") || code.starts_with("28") => {
                Self::ConnectionLost
            }
            _ if OF_CONTENT.iter().any(|class| code.starts_with(class)) => Self::Content,
            _ => Self::Other,
        }
    }
}

/// Whether a lock that could not be acquired ([`Failure::LockNotAvailable`]) was waited for, and for none of a row:
/// then it was a table's. Of a row's the server says first where it is, and of others at most in which
/// function; NOWAIT waits for nothing, and is refused elsewhere than a wait that ran out.
pub fn is_wait_for_table(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(database) = error else { return false };
    database.try_downcast_ref::<PgDatabaseError>().is_some_and(|error| {
        let first = error.r#where().and_then(|context| context.lines().next());
        error.routine() == Some("ProcessInterrupts") && !first.is_some_and(names_a_row)
    })
}

/// Whether a lock that could not be acquired ([`Failure::LockNotAvailable`]) was waited for, and was of a row of this
/// table: the server names the table beside the row's place.
pub fn is_wait_for_row_of(error: &sqlx::Error, table: &str) -> bool {
    let sqlx::Error::Database(database) = error else { return false };
    database.try_downcast_ref::<PgDatabaseError>().is_some_and(|error| {
        let first = error.r#where().and_then(|context| context.lines().next());
        first.is_some_and(|first| names_a_row(first) && first.contains(table))
    })
}

/// Whether a row of this table is locked, which was asked for `NOWAIT`: the message names it in any language.
pub fn is_locked_row_of(error: &sqlx::Error, table: &str) -> bool {
    let sqlx::Error::Database(database) = error else { return false };
    Failure::of(error) == Failure::LockNotAvailable && database.message().contains(table)
}

/// Whether words have the place of a row in them, as in `tuple (0,12) in relation`; all else is translated.
fn names_a_row(words: &str) -> bool {
    let places = words.split('(').skip(1).filter_map(|rest| rest.split_once(')'));
    places
        .filter_map(|(place, _)| place.split_once(','))
        .any(|(page, item)| page.parse::<u32>().is_ok() && item.parse::<u16>().is_ok())
}

/// Whether the server refused a statement, and the session goes on: nothing of it was done. An error that
/// ends the session may come after a COMMIT too.
pub fn is_refusal(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(database) = error else { return false };
    database
        .try_downcast_ref::<PgDatabaseError>()
        .is_some_and(|error| error.severity() == PgSeverity::Error)
}

/// Whether an error comes from a database that could not be reached, or was lost on the way.
pub fn is_connection_error(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<sqlx::Error>())
        .any(|error| Failure::of(error) == Failure::ConnectionLost)
}

/// An error and its causes in one line, each said once. What the database said comes with its
/// SQLSTATE, and without the line of Postgres's own source that the driver adds.
pub fn describe(error: &anyhow::Error) -> String {
    let mut words: Vec<String> = Vec::new();
    for cause in error.chain() {
        if let Some(error @ sqlx::Error::Database(_)) = cause.downcast_ref::<sqlx::Error>() {
            words.push(said(error));
            break;
        }
        let text = cause.to_string();
        if !words.iter().any(|said| said.contains(&text)) {
            words.push(text);
        }
    }
    words.join(": ")
}

/// What the database said, with its SQLSTATE: one line, of a message at most 400 letters. Whoever may
/// create a trigger writes it.
pub fn said(error: &sqlx::Error) -> String {
    match error {
        sqlx::Error::Database(database) => {
            let code = database.code().unwrap_or_default();
            format!("the database says: {} (SQLSTATE {code})", bounded(database.message()))
        }
        other => other.to_string(),
    }
}

/// The longest part of what the server says; a row has a path, and may have much more.
const PART: usize = 400;

/// As [`said`], with all that the server says of the row that it failed for:
/// constraint, table, detail, and where in a function, each of at most 400 letters.
pub fn with_row(error: &sqlx::Error) -> String {
    let mut words = said(error);
    let sqlx::Error::Database(database) = error else { return words };
    let Some(database) = database.try_downcast_ref::<PgDatabaseError>() else { return words };
    for (what, part) in [
        ("constraint ", database.constraint()),
        ("table ", database.table()),
        ("", database.detail()),
        ("in ", database.r#where()),
    ] {
        if let Some(part) = part {
            words.push_str(&format!("; {what}{}", bounded(part)));
        }
    }
    words
}

/// The text in one line, without the control characters that a terminal obeys.
pub fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().filter(|letter| !letter.is_control()).collect()
}

/// In one line, and cut where it is too long.
fn bounded(part: &str) -> String {
    let line = one_line(part);
    match line.char_indices().nth(PART) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_said_once() {
        let io = std::io::Error::other("Connection refused");
        let error = anyhow::Error::new(sqlx::Error::Io(io)).context("opening a session");
        assert_eq!(
            describe(&error),
            "opening a session: error communicating with database: Connection refused"
        );
        assert_eq!(describe(&anyhow::anyhow!("inner").context("outer")), "outer: inner");
    }

    #[test]
    fn what_is_said_of_a_row_is_one_line_and_bounded() {
        assert_eq!(
            bounded("Failing row contains\n  (1,  \u{fc})."),
            "Failing row contains (1, \u{fc})."
        );
        assert_eq!(bounded("a\r\n\tb\u{1b}[31m\u{0}\u{9b}c\u{85}d"), "a b[31mc d");
        assert_eq!(bounded(&"\u{fc}".repeat(PART)), "\u{fc}".repeat(PART));
        assert_eq!(bounded(&"\u{fc}".repeat(PART + 1)), format!("{}...", "\u{fc}".repeat(PART)));
    }

    #[test]
    fn a_row_is_known_by_its_place() {
        for (words, expected) in [
            ("while updating tuple (0,1) in relation \"hog_data_file\"", true),
            ("beim Sperren von Tupel (4294967295,291) in Relation \u{bb}hog_catalog\u{ab}", true),
            ("PL/pgSQL function tailrace.latest_row(bigint,boolean) line 3 at RETURN", false),
            ("SQL statement \"select f(1)\"", false),
            ("(0,", false),
            ("", false),
        ] {
            assert_eq!(names_a_row(words), expected, "{words}");
        }
    }

    #[test]
    fn sqlstates() {
        for (code, expected) in [
            ("55P03", Failure::LockNotAvailable),
            ("57014", Failure::StatementCancelled),
            ("40P01", Failure::TryAgain),
            ("40001", Failure::TryAgain),
            ("42P01", Failure::MissingObject),
            ("3F000", Failure::MissingObject),
            ("42501", Failure::NotPermitted),
            ("57P01", Failure::ConnectionLost),
            ("57P03", Failure::ConnectionLost),
            ("25P03", Failure::ConnectionLost),
            ("08006", Failure::ConnectionLost),
            ("28P01", Failure::ConnectionLost),
            ("22003", Failure::Content),
            ("23505", Failure::Content),
            ("23514", Failure::Content),
            ("P0001", Failure::Content),
            ("21000", Failure::Content),
            ("38001", Failure::Content),
            ("39004", Failure::Content),
            ("44000", Failure::Content),
            ("45000", Failure::Content),
            ("54000", Failure::Content),
            ("XX001", Failure::Content),
            ("XX002", Failure::Content),
            ("42601", Failure::Other),
            ("XX000", Failure::Other),
            ("", Failure::Other),
        ] {
            assert_eq!(Failure::of_sqlstate(code), expected, "{code}");
        }
        assert_eq!(Failure::of(&sqlx::Error::RowNotFound), Failure::Other);
    }
}
