//! The address of the database, which carries a password and must not show it.

use std::fmt;
use std::str::FromStr;

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
    /// The driver's options for this URL. What it leaves out comes from libpq's `PG*` variables; the
    /// password is empty where neither has one, and is then looked for in libpq's password file.
    pub fn connect_options(&self) -> Result<(PgConnectOptions, Option<Wanted>), String> {
        let given = self.password().or_else(|| std::env::var("PGPASSWORD").ok());
        let is_given = given.is_some_and(|password| !password.is_empty());
        let mut url = self.0.clone();
        if !is_given {
            // With one, be it empty, the driver does not look into that file by itself.
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

    /// The password in it; the last one counts.
    fn password(&self) -> Option<String> {
        self.parameter("password").or_else(|| self.0.password().map(str::to_owned))
    }

    /// The host as libpq's password file knows it: a name before an address, and without either the one
    /// on which libpq looks for the server by itself.
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

    /// The last value of a query parameter.
    fn parameter(&self, wanted: &str) -> Option<String> {
        let found = self.0.query_pairs().filter(|(name, _)| name == wanted).last();
        found.map(|(_, value)| value.into_owned())
    }

    /// The URL with `***` for each secret.
    pub fn masked(&self) -> String {
        let mut url = self.0.clone();
        if url.password().is_some() {
            // Only refused for a URL that cannot have credentials, and this one has.
            let _ = url.set_password(Some(MASK));
        }
        if let Some(query) = self.0.query() {
            let shown: Vec<String> = query.split('&').map(mask_parameter).collect();
            url.set_query(Some(&shown.join("&")));
        }
        url.into()
    }
}

/// `sslkey` may carry the key itself instead of a path.
fn mask_parameter(pair: &str) -> String {
    let Some((name, value)) = url::form_urlencoded::parse(pair.as_bytes()).next() else {
        return String::new();
    };
    let secret = match &*name {
        "password" => true,
        "sslkey" | "ssl-key" => value.contains("PRIVATE"),
        _ => false,
    };
    if secret { format!("{name}={MASK}") } else { pair.to_owned() }
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
            let known = PARAMETERS.contains(&&*name)
                || name.strip_prefix("options[").is_some_and(|rest| rest.ends_with(']'));
            if !known {
                // With an unescaped ? in a password, the name is a piece of it.
                let plain = name.chars().all(|c| c.is_ascii_lowercase() || "_-".contains(c));
                let name = if plain { format!(" {name:?}") } else { String::new() };
                return Err(format!("it has a parameter{name} that nobody knows"));
            }
            if matches!(&*name, "sslmode" | "ssl-mode") && value.parse::<PgSslMode>().is_err() {
                return Err(format!("{name} cannot be {value:?}"));
            }
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
