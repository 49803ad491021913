//! Prints the configuration as TOML: the defaults with their help, and the settings in force.

use std::fmt;

use serde::Serialize;

use super::Config;
use super::keys::{KEYS, Key, Preset, SECTIONS};

/// The text of `config/default.toml`: every key with its help, what it accepts and its
/// default, commented out where it is unset.
pub fn document() -> String {
    let mut out = String::from(
        "# Every setting of tailrace with its default. A file given with --config, or that of\n\
         # the environment (TAILRACE_ENV), states only what differs. The variable\n\
         # TAILRACE__SECTION__KEY sets a key too and wins over every file; an empty text unsets\n\
         # a key that can be unset. Lengths of time are exact: no months, no years.\n",
    );
    for (section, about) in SECTIONS {
        out.push('\n');
        about.iter().for_each(|line| out.push_str(&format!("#{line}\n")));
        out.push_str(&format!("[{section}]\n"));
        for key in KEYS.iter().filter(|key| key.section == *section) {
            out.push('\n');
            key.help.iter().for_each(|line| out.push_str(&format!("#{line}\n")));
            out.push_str(&format!("# Accepted: {}\n", (key.accepts)()));
            out.push_str(&match key.preset {
                Preset::Default(value) => format!("{} = {value}\n", key.name),
                Preset::Unset(example) => format!("# {} = {example}\n", key.name),
            });
        }
    }
    out
}

/// The settings in force, with masked secrets; its [`fmt::Display`] is TOML.
#[derive(Debug, Serialize)]
pub struct InForce {
    /// The places that were read; each overrides those before it.
    pub read: Vec<String>,
    /// Every key, in the order of `config/default.toml`.
    pub settings: Vec<Setting>,
}

/// A key and its value in force.
#[derive(Debug, Serialize)]
pub struct Setting {
    /// `section.name`.
    pub key: String,
    /// Its value as a file has it; null where it is unset.
    pub value: Option<toml::Value>,
    /// The place that the value comes from.
    pub origin: String,
}

pub(super) fn in_force(config: &Config) -> InForce {
    // A configuration is made of tables of plain values: it always has a TOML form.
    let values = toml::Table::try_from(config).unwrap_or_default();
    let setting = |key: &Key| Setting {
        key: key.path(),
        value: values.get(key.section).and_then(|section| section.get(key.name)).cloned(),
        origin: config.origin(&key.path()).to_owned(),
    };
    let settings = SECTIONS
        .iter()
        .flat_map(|(section, _)| KEYS.iter().filter(|key| key.section == *section).map(setting));
    InForce { read: config.read.clone(), settings: settings.collect() }
}

impl fmt::Display for InForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("# Read, each over those above it:\n")?;
        self.read.iter().try_for_each(|place| writeln!(f, "# - {place}"))?;
        let mut within = "";
        for Setting { key, value, origin } in &self.settings {
            let (section, name) = key.split_once('.').unwrap_or(("", key));
            if section != within {
                writeln!(f, "\n[{section}]")?;
                within = section;
            }
            match value {
                Some(value) => writeln!(f, "{name} = {value} # {origin}")?,
                None => writeln!(f, "# {name} is unset")?,
            }
        }
        Ok(())
    }
}
