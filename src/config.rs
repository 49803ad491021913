//! The configuration: typed settings in layers. Mistakes are errors.
//!
//! The layers, the lowest first:
//!
//! 1. the built-in defaults (`config/default.toml`);
//! 2. one file: that of `--config FILE`, else that of the environment `TAILRACE_ENV` (`development`
//!    if unset), in the folder `TAILRACE_CONFIG_DIR` if that is set, else in `./config` if it
//!    exists, else the built-in one;
//! 3. `DATABASE_URL` and `RUST_LOG`;
//! 4. `TAILRACE__SECTION__KEY`.
//!
//! An unknown key and a bad value are errors in every layer.

mod bind;
mod choices;
mod database_url;
mod error;
mod keys;
mod layers;
mod passfile;
mod render;
mod secrets;
#[cfg(test)]
mod tests;
mod texts;
mod types;

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::Utc;
use serde::{Deserialize, Serialize};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

pub use bind::Bind;
pub use choices::{CrossCheck, LogFilter, LogFormat, Oversize};
pub use database_url::DatabaseUrl;
pub use error::ConfigError;
pub use keys::{
    Compaction, Database, Discovery, Drop, Guard, Health, History, Http, KEYS, Key, Log, Preset,
    Schedule, Shutdown, Sweep, Verify,
};
pub use layers::LoadOptions;
pub use render::{InForce, document};
pub use texts::{Cron, SchemaName};
pub use types::{Accepts, Count, Share, Span};

/// The time between two passes where neither `schedule.every` nor `schedule.cron` is set.
pub const DEFAULT_EVERY: Duration = Duration::from_secs(600);

/// Everything that can be set, checked. [`fmt::Debug`](std::fmt::Debug) shows no secret.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The Postgres database that holds the catalogs.
    pub database: Database,
    /// When a pass runs.
    pub schedule: Schedule,
    /// How a pass works.
    pub sweep: Sweep,
    /// What bounds the hold of the commit lock.
    pub drop: Drop,
    /// Finding out what is expired.
    pub discovery: Discovery,
    /// What keeps compaction from files about to be dropped.
    pub compaction: Compaction,
    /// What is remembered of past drops.
    pub history: History,
    /// What `tailrace verify` goes by.
    pub verify: Verify,
    /// What protects from mistakes.
    pub guard: Guard,
    /// The HTTP interface of the daemon.
    pub http: Http,
    /// How the daemon stops.
    pub shutdown: Shutdown,
    /// What `tailrace health` looks at.
    pub health: Health,
    /// The form and the level of log lines.
    pub log: Log,
    #[serde(skip)]
    origins: BTreeMap<String, String>,
    /// What was read, lowest first, a line for each.
    #[serde(skip)]
    read: Vec<String>,
}

impl Config {
    /// Loads and checks every layer. Reads the environment's file and nothing else: that the
    /// database URL is there is for the commands to ask that need it, see
    /// [`Config::connect_options`].
    pub fn load(options: &LoadOptions) -> Result<Self, ConfigError> {
        let mut builder = config::Config::builder();
        let mut given = BTreeMap::new();
        let mut read = Vec::new();
        for place in layers::places(options)? {
            given.extend(place.layer.0.clone());
            builder = builder.add_source(place.layer);
            read.push(place.told);
        }
        let merged = builder.build().map_err(|why| ConfigError::Library(why.to_string()))?;
        let mut config: Self = serde_path_to_error::deserialize(merged)
            .map_err(|why| bad_value(&given, &why.path().to_string(), why.inner()))?;
        config.origins = given
            .iter()
            .filter_map(|(path, value)| Some((path.clone(), value.origin()?.to_owned())))
            .collect();
        config.read = read;
        config.check()?;
        Ok(config)
    }

    /// What no single key can know.
    fn check(&self) -> Result<(), ConfigError> {
        let refuse = |text: String| Err(ConfigError::Together(text));
        let origin = |path| self.origin(path);
        if let (Some(every), Some(cron)) = (&self.schedule.every, &self.schedule.cron) {
            return refuse(format!(
                "schedule.every = {every} ({}) and schedule.cron = \"{cron}\" ({}) are both set: \
                 set one, or unset the other with an empty text",
                origin("schedule.every"),
                origin("schedule.cron"),
            ));
        }
        if self.schedule.cron.is_none() && self.schedule.jitter.get() >= self.every() {
            return refuse(format!(
                "schedule.jitter = {} ({}) must be less than schedule.every, which is {}",
                self.schedule.jitter,
                origin("schedule.jitter"),
                humantime::format_duration(self.every()),
            ));
        }
        let (commit, tuple) = (self.sweep.max_files_per_commit, self.sweep.max_files_per_tuple);
        if tuple.get() < commit.get() {
            return refuse(format!(
                "sweep.max_files_per_tuple = {} ({}) must be at least sweep.max_files_per_commit, \
                 which is {}",
                tuple.get(),
                origin("sweep.max_files_per_tuple"),
                commit.get(),
            ));
        }
        if self.drop.row_lock_timeout.get() > self.drop.max_hold.get() {
            return refuse(format!(
                "drop.row_lock_timeout = {} ({}) must be at most drop.max_hold, which is {}",
                self.drop.row_lock_timeout,
                origin("drop.row_lock_timeout"),
                self.drop.max_hold,
            ));
        }
        let (drops, sessions) = (self.http.max_concurrent_drops, self.http.max_sessions);
        if drops.get() >= sessions.get() {
            return refuse(format!(
                "http.max_concurrent_drops = {} ({}) must be less than http.max_sessions, which \
                 is {}",
                drops.get(),
                origin("http.max_concurrent_drops"),
                sessions.get(),
            ));
        }
        if self.http.bind.is_exposed() && self.http.tokens_file.is_none() {
            return refuse(format!(
                "http.bind = {} ({}) is not a loopback address: set http.tokens_file, or anybody \
                 who can reach it could drop data",
                self.http.bind,
                origin("http.bind"),
            ));
        }
        Ok(())
    }

    /// The time between the starts of two passes, if `schedule.cron` does not say.
    pub fn every(&self) -> Duration {
        self.schedule.every.map_or(DEFAULT_EVERY, Span::get)
    }

    /// The longest time between the starts of two passes.
    pub fn distance_of_passes(&self) -> Duration {
        let cron = self.schedule.cron.as_ref();
        cron.and_then(|cron| cron.longest_distance(Utc::now())).unwrap_or_else(|| self.every())
    }

    /// How long opening a session may take: `connect_timeout` of the URL, else `database.connect_timeout`.
    pub fn connect_timeout(&self) -> Duration {
        let of_url = self.database.url.as_ref().and_then(DatabaseUrl::connect_timeout);
        of_url.unwrap_or(self.database.connect_timeout.get())
    }

    /// How to connect: the URL, and `tailrace` as the application's name if the URL has none. The password
    /// is that of `database.password_file`, else of the URL, of `PGPASSWORD`, or of libpq's password file.
    /// Files are read anew each time, so that a rotated password is found.
    ///
    /// Fails if `database.url` is not set, or the file cannot be used.
    pub fn connect_options(&self) -> Result<PgConnectOptions, ConfigError> {
        let url = self.database.url.as_ref().ok_or(ConfigError::Missing {
            path: "database.url",
            variables: "TAILRACE__DATABASE__URL or DATABASE_URL",
        })?;
        let (mut options, wanted) = url.connect_options().map_err(ConfigError::Library)?;
        if let Some(path) = &self.database.password_file {
            let refuse = |why| ConfigError::Password { path: path.clone(), why };
            let text = std::fs::read_to_string(path).map_err(|why| refuse(why.to_string()))?;
            let password = text.trim_end_matches(['\n', '\r']);
            if password.is_empty() {
                return Err(refuse("it is empty".into()));
            }
            options = options.password(password);
        } else if let Some(password) = wanted.and_then(|wanted| wanted.look()) {
            options = options.password(&password);
        }
        if options.get_application_name().is_none() {
            options = options.application_name("tailrace");
        }
        // Poolers refuse what they do not know at the beginning of a session, and this changes nothing of
        // what we read.
        options = options.extra_float_digits(None);
        // Slow statements are told by our own events, which carry the waits.
        Ok(options.disable_statement_logging())
    }

    /// What is in force, secrets masked: what was read, and each key with the place that it came from. Its
    /// text is TOML that can be loaded again but for the secrets.
    pub fn render_masked(&self) -> InForce {
        render::in_force(self)
    }

    /// Who gave a key its value.
    fn origin(&self, path: &str) -> &str {
        self.origins.get(path).map_or("the built-in default", String::as_str)
    }
}

/// Names the key, the value and its origin, which the library's message does only in part.
fn bad_value(
    given: &BTreeMap<String, config::Value>,
    path: &str,
    why: &config::ConfigError,
) -> ConfigError {
    let key = KEYS.iter().find(|key| key.path() == path);
    let (Some(key), Some(value)) = (key, given.get(path)) else {
        return ConfigError::Library(format!("{path}: {why}"));
    };
    let shown = match &value.kind {
        _ if key.is_secret() => String::new(),
        config::ValueKind::Array(_) => " = [...]".into(),
        config::ValueKind::Table(_) => " = {...}".into(),
        plain => format!(" = {:?}", plain.to_string()),
    };
    ConfigError::Value {
        path: path.into(),
        value: shown,
        origin: value.origin().unwrap_or("the built-in default").into(),
        why: reason(why),
        accepts: (key.accepts)(),
    }
}

/// The innermost message, without the library's own talk of keys.
fn reason(why: &config::ConfigError) -> String {
    match why {
        config::ConfigError::At { error, .. } => reason(error),
        config::ConfigError::Message(text) => text.clone(),
        _ => "it is of another type".into(),
    }
}
