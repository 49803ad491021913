//! `tailrace config`

use std::io::Write;

use super::DONE;
use crate::config::Config;

pub fn run(config: &Config) -> anyhow::Result<u8> {
    write!(std::io::stdout(), "{}", config.render_masked())?;
    Ok(DONE)
}
