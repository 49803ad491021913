//! The program: parses the arguments, runs the command, and returns its exit code.

use std::process::ExitCode;

use clap::Parser;
use tailrace::cli::{Cli, run};

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("tailrace: no thread could be had: {error}");
            return ExitCode::FAILURE;
        }
    };
    let code = runtime.block_on(run(cli));
    // The look-up of a host's name is a call that nobody can end: whoever has given it up does not wait for
    // the resolver here either.
    runtime.shutdown_background();
    code
}
