//! `tailrace config`

use super::{DONE, OutputArgs, out};
use crate::config::Config;

pub fn run(config: &Config, args: &OutputArgs) -> anyhow::Result<u8> {
    out::show(args.output, &config.render_masked(), ToString::to_string)?;
    Ok(DONE)
}
