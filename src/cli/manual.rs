//! `tailrace completions` and `tailrace manual`: shell completions and manual pages, generated from
//! the definition of the command line.

use std::path::PathBuf;

use anyhow::Context;
use clap::CommandFactory;
use clap_complete::Shell;

use super::{Cli, DONE, out};

#[derive(Debug, clap::Args)]
pub struct CompletionsArgs {
    /// The shell that is to complete commands.
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, clap::Args)]
pub struct ManualArgs {
    /// The folder, which is made if it is not there: tailrace.1 and a page for each command.
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

pub fn completions(args: &CompletionsArgs) -> anyhow::Result<u8> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "tailrace", &mut script);
    out::text(&String::from_utf8_lossy(&script))?;
    Ok(DONE)
}

pub fn pages(args: &ManualArgs) -> anyhow::Result<u8> {
    let folder = args.folder.display();
    std::fs::create_dir_all(&args.folder).with_context(|| format!("making {folder}"))?;
    clap_mangen::generate_to(Cli::command(), &args.folder)
        .with_context(|| format!("writing the manual pages into {folder}"))?;
    Ok(DONE)
}
