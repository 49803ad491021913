//! The secrets that a configuration gives access to, for code that writes a file for others and has
//! to mask them.

use super::Config;
use super::passfile::every_password;

impl Config {
    /// Each password and key in the database URL, `database.password_file` and `PGPASSWORD`, and the password of each
    /// line of libpq's password file, whether or not it is used. A file that cannot be read is skipped.
    pub fn secrets(&self) -> Vec<String> {
        let mut secrets: Vec<String> = std::env::var("PGPASSWORD").into_iter().collect();
        if let Some(path) = &self.database.password_file {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            secrets.push(text.trim_end_matches(['\n', '\r']).to_owned());
        }
        if let Some(url) = &self.database.url {
            secrets.extend(url.secrets());
        }
        secrets.extend(every_password());
        secrets.retain(|secret| !secret.is_empty());
        secrets
    }
}
