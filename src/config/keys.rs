//! The list of all settings: the name, help, type with its range, and default of each.
//! `config/default.toml` is this list in TOML, and a test compares the two.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::bind::Bind;
use super::choices::{CrossCheck, LogFilter, LogFormat, Oversize};
use super::database_url::DatabaseUrl;
use super::texts::{Cron, SchemaName};
use super::types::{Accepts, Count, DAY, HOUR, MINUTE, SECOND, Share, Span};

/// What stands in the place of a value that nobody gave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// This TOML value.
    Default(&'static str),
    /// Nothing; this TOML value is an example of what could stand there.
    Unset(&'static str),
}

/// A setting, as help and error messages speak of it.
#[derive(Debug)]
pub struct Key {
    /// The table of the TOML file that it is in.
    pub section: &'static str,
    /// Its name in that table.
    pub name: &'static str,
    /// What it does, one line of text each.
    pub help: &'static [&'static str],
    pub preset: Preset,
    /// A phrase that says what it can be.
    pub accepts: fn() -> String,
}

impl Key {
    /// `section.name`
    pub fn path(&self) -> String {
        format!("{}.{}", self.section, self.name)
    }

    /// The environment variable that sets it.
    pub fn variable(&self) -> String {
        format!("TAILRACE__{}__{}", self.section.to_uppercase(), self.name.to_uppercase())
    }

    /// Whether no message may repeat its value.
    pub fn is_secret(&self) -> bool {
        self.section == "database" && self.name == "url"
    }
}

macro_rules! settings {
    ($($(#[doc = $about:literal])* $section:ident = $table:literal {
        $($(#[doc = $help:literal])* $name:ident: $type:ty = $preset:ident($toml:expr),)*
    })*) => {
        $(
            $(#[doc = $about])*
            #[derive(Debug, Clone, Deserialize, Serialize)]
            #[serde(deny_unknown_fields)]
            pub struct $section {
                $($(#[doc = $help])* pub $name: $type,)*
            }
        )*

        /// Every setting, in the order of the file.
        pub static KEYS: &[Key] = &[$($(Key {
            section: $table,
            name: stringify!($name),
            help: &[$($help),*],
            preset: Preset::$preset(stringify!($toml)),
            accepts: <$type as Accepts>::accepts,
        },)*)*];

        /// Every section, with what it is about.
        pub static SECTIONS: &[(&str, &[&str])] = &[$(($table, &[$($about),*])),*];
    };
}

settings! {
    /// The Postgres database that holds the catalogs.
    Database = "database" {
        /// Where the database is. DATABASE_URL sets it too, below TAILRACE__DATABASE__URL.
        /// TLS is asked for by its parameters: sslmode, sslrootcert, sslcert, sslkey.
        url: Option<DatabaseUrl> = Unset("postgres://tailrace@localhost:5432/lake?sslmode=prefer"),
        /// A file that holds the password and nothing else; it replaces one in the URL. Without
        /// any, PGPASSWORD counts, and then libpq's password file (PGPASSFILE, ~/.pgpass).
        password_file: Option<PathBuf> = Unset("/run/secrets/tailrace-password"),
        /// The schema of the server's hog_* tables. Recorded by the first migration; another
        /// one is refused afterwards.
        schema: SchemaName = Default("public"),
        /// How long to wait for a connection.
        connect_timeout: Span<100, { 5 * MINUTE }> = Default("10s"),
        /// Whether the daemon brings its own schema up to date when it starts.
        migrate_on_start: bool = Default(true),
    }

    /// When a pass runs. Give every or cron, not both; with neither, every is 10m.
    Schedule = "schedule" {
        /// From the start of one pass to the start of the next.
        every: Option<Span<SECOND, { 30 * DAY }>> = Unset("10m"),
        /// The instants at which a pass starts, in UTC.
        cron: Option<Cron> = Unset("0 */10 * * * *"),
        /// The upper bound of a random delay, added anew to each tick, so that many daemons
        /// do not all start at once. Less than every.
        jitter: Span<0, DAY> = Default("30s"),
        /// With every, a pass also starts when partitions fall due between two of them. Those that do
        /// so within this of one another wait for the last, and no table has two such passes within it.
        lag: Span<SECOND, { 10 * MINUTE }> = Default("30s"),
    }

    /// How a pass works.
    Sweep = "sweep" {
        /// How long a commit waits in the queue for the catalog's commit lock. After that it leaves
        /// the queue, and tries again after a pause a few times before it gives up.
        lock_timeout: Span<1, MINUTE> = Default("2s"),
        /// Whole tuples are grouped into commits of at most this many files.
        max_files_per_commit: Count<1, 1_000_000> = Default(8000),
        /// A larger tuple is a commit of its own up to this many files. At least
        /// max_files_per_commit.
        max_files_per_tuple: Count<1, 1_000_000> = Default(20000),
        /// What happens to a tuple beyond that: "split" into several snapshots, or "skip".
        oversize: Oversize = Default("split"),
        /// The share of any minute for which passes may hold a catalog's commit lock: after a
        /// hold of 1s, a duty cycle of 0.2 pauses for 4s.
        lock_duty: Share = Default(0.2),
        /// How often a pass over a table looks at all of it, and counts what stays. In between it
        /// looks at what came to expire, and at files that came, since the pass before.
        full_pass_every: Span<MINUTE, { 30 * DAY }> = Default("24h"),
        /// No commit of a pass starts after it has run for so long; the next pass goes on. The
        /// tables share the time, the most overdue first.
        max_duration: Span<SECOND, DAY> = Default("10m"),
        /// More files than this that wait for the server to delete their objects hold a
        /// catalog's drops back until there are fewer. Unset: nothing is held back.
        removal_queue_ceiling: Option<Count<1, 100_000_000>> = Unset(100000),
        /// So many catalogs are worked on side by side in a pass, each with a session of its own.
        parallel_catalogs: Count<1, 64> = Default(4),
    }

    /// What bounds the hold of the commit lock, enforced by Postgres; and the explicit drop.
    Drop = "drop" {
        /// How long an explicit drop or truncate waits for the catalog's commit lock. (A pass
        /// waits for sweep.lock_timeout.)
        lock_timeout: Span<1, MINUTE> = Default("10s"),
        /// An explicit drop or truncate of more files than this is refused.
        max_files: Count<1, 1_000_000> = Default(20000),
        /// How long the receipt of an explicit drop is kept: a retry with the same key gets
        /// the first answer again for so long.
        receipt_retention: Span<HOUR, { 365 * DAY }> = Default("7d"),
        /// How long a drop waits, while it holds the commit lock, for a row that somebody else has locked;
        /// its tuple is then busy, and the others go on. Or for a table that DDL has locked: then it
        /// tries again later. At most max_hold.
        row_lock_timeout: Span<1, { 30 * SECOND }> = Default("500ms"),
        /// The longest that the commit lock may be held before COMMIT; what takes longer is rolled back.
        /// The server raises an alarm at 5s. With cold pages 20000 files take about as long as the
        /// default, so who raises max_files or sweep.max_files_per_tuple raises this too.
        max_hold: Span<10, MINUTE> = Default("4s"),
    }

    /// Finding out what is expired.
    Discovery = "discovery" {
        /// The limit for counts that need a read of a whole table; beyond it they are unknown.
        count_timeout: Span<10, { 10 * MINUTE }> = Default("5s"),
        /// Where a table cannot be counted in that time, the distinct partition values of its
        /// catalog are listed instead, up to this many.
        max_values: Count<1, 10_000_000> = Default(100000),
    }

    /// What keeps the server's compaction from rewriting files that are about to be dropped.
    Compaction = "compaction" {
        /// Whether those files are claimed in hog_compaction_claim, as the server's planner heeds it.
        claims: bool = Default(true),
        /// How long before they expire.
        lead: Span<0, { 30 * DAY }> = Default("1d"),
        /// From the start of one renewal of the claims to the start of the next. An unrenewed claim
        /// lapses after 30m.
        renew_every: Span<SECOND, { 15 * MINUTE }> = Default("5m"),
        /// At most so many files of a table are claimed, the soonest to expire first.
        max_claimed_files: Count<1, 10_000_000> = Default(200000),
    }

    /// What is remembered of past drops.
    History = "history" {
        /// How long after the last object of a drop was seen gone. Before that none is forgotten:
        /// it is what tells where dropped data is, and of a drop whose answer was lost. And how long
        /// policies and copies of specs are kept of a table that is gone.
        keep: Span<DAY, { 3650 * DAY }> = Default("90d"),
    }

    /// What `tailrace verify` goes by.
    Verify = "verify" {
        /// How long after its expiry a file may still be live. Unset: two passes' worth, which is
        /// twice schedule.every, or twice the longest distance of two ticks of schedule.cron.
        grace: Option<Span<SECOND, { 30 * DAY }>> = Unset("20m"),
        /// How long each check may take for a catalog. One that needs longer is incomplete.
        budget: Span<10, { 10 * MINUTE }> = Default("10s"),
    }

    /// What protects from mistakes.
    Guard = "guard" {
        /// The shortest keep that a policy can have.
        min_keep: Span<SECOND, { 365 * DAY }> = Default("1h"),
        /// What becomes of an expired partition whose column statistics name newer rows than its
        /// value: block keeps it until these rows have expired too, warn drops it and says so,
        /// off looks up no statistics.
        cross_check: CrossCheck = Default("block"),
        /// How long a writer may go on with a partition spec that has ended. A value that an
        /// earlier spec may have meant otherwise proves nothing before that, unless statistics do.
        stale_writer_window: Span<MINUTE, { 365 * DAY }> = Default("7d"),
        /// So many files of a table may always go at once. What expires by time alone always goes, and
        /// is not counted.
        min_drop_files: Count<0, 1_000_000_000> = Default(100),
        /// More files than that, and more than this share of the table's live files, do not go at once
        /// because the rule changed, or because they came late: they are held until somebody lets
        /// them go.
        max_drop_fraction: Share = Default(0.5),
        /// Whether a table's property is believed whatever it ends: then max_drop_fraction holds for
        /// what comes late alone.
        trust_properties: bool = Default(false),
        /// How long a change waits by which partitions may go earlier than before: of a policy, a pause that is
        /// resumed, a hold that is released. What is confirmed waits for nothing, what keeps longer acts at once.
        policy_grace: Span<0, { 30 * DAY }> = Default("1h"),
        /// How long an approval of held partitions is valid.
        approval_ttl: Span<MINUTE, { 30 * DAY }> = Default("24h"),
        /// Whether whoever set a policy, or saved a plan, may not approve what is held, by the tokens of the HTTP
        /// interface. Then nobody confirms a policy that they set, and the command line approves nothing.
        four_eyes: bool = Default(false),
        /// The farthest that the clocks of host and database may be apart. Beyond it, or where
        /// the database's clock jumped by more than twice that, passes drop nothing.
        max_clock_skew: Span<SECOND, DAY> = Default("5m"),
    }

    /// The HTTP interface of the daemon (docs/http.md).
    Http = "http" {
        /// Where it listens; "off" for not at all. Port 0 takes a free one, which the log
        /// tells. An address that is not loopback needs tokens_file.
        bind: Bind = Default("127.0.0.1:8917"),
        /// Who may: one line per token, its name, its role (reader or operator) and the
        /// SHA-256 of its text in hex. Read anew on SIGHUP.
        tokens_file: Option<PathBuf> = Unset("/etc/tailrace/tokens"),
        /// How long a client may take for the head of a request, and be idle between two.
        header_timeout: Span<100, { 5 * MINUTE }> = Default("10s"),
        /// How long a client may take for the body of a request.
        body_timeout: Span<100, { 10 * MINUTE }> = Default("30s"),
        /// How long a client may take nothing of its answer.
        write_timeout: Span<100, { 10 * MINUTE }> = Default("30s"),
        /// For one connection more than this the one is closed that has waited longest for its client;
        /// where a request is in flight on each, the new one waits until one of them is answered.
        max_connections: Count<1, 100_000> = Default(512),
        /// More requests than this do not use the database at once: they wait, and after
        /// database.connect_timeout are told to come again. max_concurrent_drops of them are kept
        /// from those who only look. The pass has sessions of its own.
        max_sessions: Count<2, 1000> = Default(8),
        /// More drops and truncates than this at once are told to come again; dry runs do not count.
        /// Less than max_sessions.
        max_concurrent_drops: Count<1, 999> = Default(4),
    }

    /// How the daemon stops.
    Shutdown = "shutdown" {
        /// How long the commit in flight may take to end after SIGTERM. What supervises the
        /// daemon has to wait longer than that before it kills.
        grace: Span<0, { 10 * MINUTE }> = Default("15s"),
    }

    /// What `tailrace health` looks at.
    Health = "health" {
        /// The heartbeat file. Unset: health.json in the folder tailrace-UID, of the daemon's user UID
        /// alone, among the temporary files. `tailrace health` takes a file of its own user, of root, or
        /// of the user who alone may write in its folder.
        file: Option<PathBuf> = Unset("/run/tailrace/health.json"),
        /// A heartbeat older than this is a dead daemon. It is written every 5s.
        max_age: Span<{ 10 * SECOND }, DAY> = Default("60s"),
    }

    /// Log lines, on stderr.
    Log = "log" {
        /// "auto" is pretty on a terminal and JSON elsewhere.
        format: LogFormat = Default("auto"),
        /// Which lines of `tailrace run`. RUST_LOG sets it too, below TAILRACE__LOG__FILTER.
        filter: LogFilter = Default("info"),
        /// Which lines of the commands that end by themselves, whose result is on stdout: all but `tailrace run`.
        /// RUST_LOG sets it too, below TAILRACE__LOG__COMMAND_FILTER.
        command_filter: LogFilter = Default("warn"),
    }
}
