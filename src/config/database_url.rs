//! The URL of the database. It may hold a password, which is never shown.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::postgres::{PgConnectOptions, PgSslMode};
use url::Url;

use super::passfile::Wanted;
use super::types::{Accepts, by_text};

/// Query parameters that the driver knows. It would log any other one with its value, and
/// a misspelt `sslmode` would quietly mean no TLS.
const PARAMETERS: [&str; 18] = [
    "sslmode",
    "ssl-mode",
    "sslrootcert",
    "ssl-root-cert",
    "ssl-ca",
    "sslcert",
    "ssl-cert",
    "sslkey",
    "ssl-key",
    "statement-cache-capacity",
    "host",
    "hostaddr",
    "port",
    "dbname",
    "user",
    "password",
    "application_name",
    "options",
];

const KEEPALIVES: &str = "each session has its own: leave it out";

/// Parameters of libpq that the driver lacks: the values that change nothing, and why others are refused.
const OF_LIBPQ: [(&str, &[&str], &str); 8] = [
    (
        "target_session_attrs",
        &["any"],
        "the driver connects to one host: name the primary's, or a proxy's that \
      leads to it",
    ),
    (
        "channel_binding",
        &["disable", "prefer"],
        "the driver has none: ask for TLS by sslmode=verify-full",
    ),
    (
        "gssencmode",
        &["disable", "prefer"],
        "the driver has no GSSAPI: ask for TLS by sslmode=verify-full",
    ),
    ("keepalives", &["1"], KEEPALIVES),
    ("keepalives_idle", &[], KEEPALIVES),
    ("keepalives_interval", &[], KEEPALIVES),
    ("keepalives_count", &[], KEEPALIVES),
    ("tcp_user_timeout", &[], KEEPALIVES),
];

/// libpq's parameter in whole seconds, which the URL may have instead of `database.connect_timeout`.
const CONNECT_TIMEOUT: &str = "connect_timeout";

/// The largest value of this parameter, the same as that of `database.connect_timeout`.
const LONGEST_CONNECT_TIMEOUT: u64 = 300;

const MASK: &str = "***";

/// A `postgres://` URL. [`fmt::Debug`] and [`fmt::Display`] mask its passwords, and no error
/// repeats any part of it that can be one.
///
/// TLS is asked for by its parameters: `sslmode` (`disable`, `allow`, `prefer`, `require`,
/// `verify-ca`, `verify-full`), `sslrootcert`, `sslcert`, `sslkey`, the latter three being
/// paths of PEM files. A Unix socket is `postgres://user@localhost/db?host=/run/postgresql`.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl(Url);

impl DatabaseUrl {
    /// The driver's options for this URL. libpq's `PG*` variables give what the URL leaves out. Where
    /// neither has a password, it is empty here, and is then looked for in libpq's password file.
    pub fn connect_options(&self) -> Result<(PgConnectOptions, Option<Wanted>), String> {
        let given = self.password().or_else(|| std::env::var("PGPASSWORD").ok());
        let is_given = given.is_some_and(|password| !password.is_empty());
        let mut url = self.0.clone();
        // The driver would log parameters that it does not know.
        let known: Vec<_> = url.query_pairs().filter(|(name, _)| is_of_driver(name)).collect();
        let known: Vec<_> = known
            .into_iter()
            .map(|(name, value)| (name.into_owned(), value.into_owned()))
            .collect();
        url.query_pairs_mut().clear().extend_pairs(known);
        if !is_given {
            // With a password, even an empty one, the driver does not read the password file.
            url.query_pairs_mut().append_pair("password", "");
        }
        let options = PgConnectOptions::from_url(&url)
            .map_err(|_| "a parameter of it cannot be understood".to_owned())?;
        let wanted = (!is_given).then(|| Wanted {
            host: self.host(),
            port: options.get_port(),
            database: options.get_database().unwrap_or(options.get_username()).to_owned(),
            user: options.get_username().to_owned(),
        });
        Ok((options, wanted))
    }

    /// The password in the URL; the last one, if there are several.
    fn password(&self) -> Option<String> {
        self.parameter("password").or_else(|| self.0.password().map(str::to_owned))
    }

    /// The host that is looked up in libpq's password file: the host name, else the address, else
    /// `localhost`.
    fn host(&self) -> String {
        let variable = |name| std::env::var(name).ok();
        let of_url = || {
            self.0.host_str().filter(|host| !host.is_empty())?;
            let mut bare = self.0.clone();
            bare.set_query(Some("password="));
            let options = PgConnectOptions::from_url(&bare).ok()?;
            Some(match options.get_socket() {
                Some(folder) => folder.to_string_lossy().into_owned(),
                // The brackets of a numeric address are the URL's.
                None => options.get_host().trim_matches(['[', ']']).to_owned(),
            })
        };
        let given = |host: &String| !host.is_empty();
        (self.parameter("host").filter(given))
            .or_else(of_url)
            .or_else(|| variable("PGHOST").filter(given))
            .or_else(|| self.parameter("hostaddr").filter(given))
            .or_else(|| variable("PGHOSTADDR").filter(given))
            .unwrap_or_else(|| "localhost".to_owned())
    }

    /// How long opening a session may take; `None` where the URL does not set it.
    pub fn connect_timeout(&self) -> Option<Duration> {
        self.parameter(CONNECT_TIMEOUT)?.parse().ok().map(Duration::from_secs)
    }

    /// The last value of a query parameter.
    fn parameter(&self, wanted: &str) -> Option<String> {
        let found = self.0.query_pairs().filter(|(name, _)| name == wanted).last();
        found.map(|(_, value)| value.into_owned())
    }

    /// The URL without its secrets, for a file.
    pub fn without_secrets(&self) -> String {
        let mut url = self.0.clone();
        // See `masked` for why this cannot fail.
        let _ = url.set_password(None);
        if let Some(query) = self.0.query() {
            let kept: Vec<&str> = query.split('&').filter(|pair| !is_secret(pair)).collect();
            url.set_query(Some(&*kept.join("&")).filter(|query| !query.is_empty()));
        }
        url.into()
    }

    /// Each secret in the URL, as written there and with its percent escapes decoded.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> = self.0.password().map(str::to_owned).into_iter().collect();
        let pairs = self.0.query().unwrap_or_default().split('&');
        for pair in pairs.filter(|pair| is_secret(pair)) {
            secrets.extend(pair.split_once('=').map(|(_, value)| value.to_owned()));
        }
        let meant = |secret: &String| {
            let pair = format!("of={}", secret.replace('+', "%2B").replace('&', "%26"));
            let read = url::form_urlencoded::parse(pair.as_bytes()).next()?;
            Some(read.1.into_owned())
        };
        secrets.extend(secrets.iter().filter_map(meant).collect::<Vec<_>>());
        secrets
    }

    /// The URL with `***` for each secret.
    pub fn masked(&self) -> String {
        let mut url = self.0.clone();
        if url.password().is_some() {
            // This fails only for a URL that cannot have credentials, and this URL has some.
            let _ = url.set_password(Some(MASK));
        }
        if let Some(query) = self.0.query() {
            let shown: Vec<String> = query.split('&').map(mask_parameter).collect();
            url.set_query(Some(&shown.join("&")));
        }
        url.into()
    }
}

fn mask_parameter(pair: &str) -> String {
    match (is_secret(pair), pair.split_once('=')) {
        (true, Some((name, _))) => format!("{name}={MASK}"),
        _ => pair.to_owned(),
    }
}

/// `sslkey` may carry the key itself instead of a path.
fn is_secret(pair: &str) -> bool {
    let Some((name, value)) = url::form_urlencoded::parse(pair.as_bytes()).next() else {
        return false;
    };
    match &*name {
        "password" => true,
        "sslkey" | "ssl-key" => value.contains("PRIVATE"),
        _ => false,
    }
}

/// Whether the driver has a parameter.
fn is_of_driver(name: &str) -> bool {
    PARAMETERS.contains(&name)
        || name.strip_prefix("options[").is_some_and(|rest| rest.ends_with(']'))
}

/// Why a parameter is refused. The text never has the value of a parameter that may hold a secret.
fn check_parameter(name: &str, value: &str) -> Result<(), String> {
    if name == CONNECT_TIMEOUT {
        let seconds = value.parse::<u64>().ok();
        return match seconds.is_some_and(|seconds| (1..=LONGEST_CONNECT_TIMEOUT).contains(&seconds))
        {
            true => Ok(()),
            false => Err(format!(
                "{name} cannot be {value:?}: whole seconds from 1 to {LONGEST_CONNECT_TIMEOUT}"
            )),
        };
    }
    if let Some((_, values, why)) = OF_LIBPQ.iter().find(|(known, ..)| *known == name) {
        return match values.contains(&value) {
            true => Ok(()),
            false => Err(format!("{name} cannot be {value:?}: {why}")),
        };
    }
    if !is_of_driver(name) {
        // If a password has an unescaped ?, this name is a piece of the password.
        let plain = name.chars().all(|c| c.is_ascii_lowercase() || "_-".contains(c));
        let name = if plain { format!(" {name:?}") } else { String::new() };
        let known = PARAMETERS.iter().filter(|name| !name.contains('-'));
        let known: Vec<_> = known
            .chain([&CONNECT_TIMEOUT])
            .chain(OF_LIBPQ.iter().map(|(name, ..)| name))
            .copied()
            .collect();
        return Err(format!(
            "it has a parameter{name} that is not known; known: {}",
            known.join(", ")
        ));
    }
    if matches!(name, "sslmode" | "ssl-mode") && value.parse::<PgSslMode>().is_err() {
        return Err(format!("{name} cannot be {value:?}"));
    }
    Ok(())
}

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err("it does not start with postgres://".into());
        }
        let url = Url::parse(text).map_err(|why| {
            format!(
                "it is not a URL ({why}); write special characters of a name or a password as \
                 %XX, such as %40 for @"
            )
        })?;
        if url.fragment().is_some() {
            return Err("it has a # in it: write %23".into());
        }
        for (name, value) in url.query_pairs() {
            check_parameter(&name, &value)?;
        }
        let url = Self(url);
        url.connect_options()?;
        Ok(url)
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({})", self.masked())
    }
}

impl Accepts for DatabaseUrl {
    fn accepts() -> String {
        "postgres://user:password@host:5432/database?sslmode=verify-full&sslrootcert=ca.pem".into()
    }
}

by_text!(DatabaseUrl);
