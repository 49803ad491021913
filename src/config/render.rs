//! The configuration as TOML: the defaults with their help, and what is in force.

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

/// What is in force, every key with where it came from; secrets masked.
pub(super) fn in_force(config: &Config) -> String {
    // A configuration is made of tables of plain values: it always has a TOML form.
    let values = toml::Table::try_from(config).unwrap_or_default();
    let value = |key: &Key| values.get(key.section)?.get(key.name).map(toml::Value::to_string);
    let mut out = String::from("# Read, each over those above it:\n");
    config.read.iter().for_each(|place| out.push_str(&format!("# - {place}\n")));
    for (section, _) in SECTIONS {
        out.push_str(&format!("\n[{section}]\n"));
        for key in KEYS.iter().filter(|key| key.section == *section) {
            out.push_str(&match value(key) {
                Some(value) => {
                    format!("{} = {value} # {}\n", key.name, config.origin(&key.path()))
                }
                None => format!("# {} is unset\n", key.name),
            });
        }
    }
    out
}
