//! Arguments in, exit code out.

use std::process::ExitCode;

use clap::Parser;

#[tokio::main]
async fn main() -> ExitCode {
    tailrace::cli::run(tailrace::cli::Cli::parse()).await
}
