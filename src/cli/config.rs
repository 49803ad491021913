//! `tailrace config`

use super::{DONE, out};
use crate::config::Config;

pub fn run(config: &Config) -> anyhow::Result<u8> {
    out::text(&config.render_masked().to_string())?;
    Ok(DONE)
}
