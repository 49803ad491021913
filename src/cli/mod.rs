//! The command line: one file per command. Results go to stdout, the log to stderr.

mod approve;
mod arguments;
mod ask;
mod clock;
mod config;
mod debt;
mod doctor;
mod drop;
mod explain;
mod health;
mod hold;
mod init;
mod manual;
mod migrate;
mod new_file;
mod out;
mod pause;
mod plan;
mod policy;
#[cfg(test)]
mod reference;
mod run;
mod spec;
mod sweep;
pub mod text;
mod trace;
mod verify;

pub use plan::text as plan_text;
pub use sweep::text as sweep_text;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

use crate::catalog::connect::Database;
use crate::catalog::errors::describe;
use crate::catalog::session::Patience;
use crate::config::{Config, LoadOptions};
use crate::daemon::Hangups;
use crate::explicit::problem::Problem;
use crate::installation::Unfit;
use crate::policy::field::FieldError;
use crate::rules::keep::KeepError;
use crate::telemetry::{self, line, say};

/// The command succeeded.
const DONE: u8 = 0;
/// The command failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong, or the hoglake server is refused.
const USAGE: u8 = 2;
/// `tailrace doctor` found a problem.
const PROBLEM_FOUND: u8 = 3;
/// The command finished, and some tables failed.
const SOME_TABLES_FAILED: u8 = 3;

/// Retention for hoglake tables: drops expired partitions, each batch in one snapshot, and
/// leaves the objects to the server's expiry and cleanup.
///
/// Exit codes: 0 done, 1 failed, 2 usage, configuration or a hoglake server that is refused, 3 some tables
/// failed, sweep did nothing because other passes run on its catalogs, or a problem or violation was found.
#[derive(Debug, Parser)]
#[command(name = "tailrace", version)]
pub struct Cli {
    /// The configuration file, in place of that of the environment TAILRACE_ENV.
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Set up a first installation: role, schema, rights, doctor and a configuration file.
    Init(init::InitArgs),
    /// Run the daemon: passes by the schedule, until SIGTERM or SIGINT.
    Run,
    /// Run one pass, then exit.
    Sweep(sweep::SweepArgs),
    /// Show what a pass would drop, when the next partition expires, what is kept and why. Never writes.
    Plan(plan::PlanArgs),
    /// Set, show and unset the policies of tables.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Pause drops: of every catalog, a catalog or a table, whatever the policies say.
    Pause(pause::PauseArgs),
    /// Take a pause away.
    Resume(pause::ResumeArgs),
    /// Approve partitions that are held because they are too many.
    Approve(approve::ApproveArgs),
    /// Hold partitions, so that no drop of tailrace ends them; list and release holds.
    #[command(subcommand)]
    Hold(hold::HoldCommand),
    /// Accept the database's clock where passes refuse it.
    #[command(subcommand)]
    Clock(clock::ClockCommand),
    /// Show the partition specs of a table, and trust the values of one.
    #[command(subcommand)]
    Spec(spec::SpecCommand),
    /// Drop an enumerated list of partitions in one commit.
    Drop(drop::DropArgs),
    /// Show what became of the files of each drop: retained, purged, queued or gone, since when, and why not yet.
    Trace(trace::TraceArgs),
    /// Explain one partition: why it is here, when it is dropped and what blocks that, or what ended its files. Never
    /// writes.
    Explain(explain::ExplainArgs),
    /// Examine the server, the database, the rights and the policies, and say what to mend. Never writes.
    Doctor(doctor::DoctorArgs),
    /// Show compaction debt by the server's sample, with and without what is about to be dropped.
    /// Never writes.
    Debt(debt::DebtArgs),
    /// Check that no partition is overdue and none is half dropped. Never writes.
    Verify(verify::VerifyArgs),
    /// Bring tailrace's own schema up to date.
    Migrate(OutputArgs),
    /// Report whether the daemon on this host is alive, for probes. Never asks the database.
    Health(OutputArgs),
    /// Print the configuration in force, secrets masked.
    Config(OutputArgs),
    /// Print the completions of a shell.
    Completions(manual::CompletionsArgs),
    /// Write the manual pages of all commands into a folder.
    Manual(manual::ManualArgs),
}

/// How a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

#[derive(Debug, clap::Args)]
pub(crate) struct OutputArgs {
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// Runs a command line and returns the exit code.
pub async fn run(cli: Cli) -> ExitCode {
    let _flush = telemetry::FlushAtEnd;
    // Commands about the command line itself need no configuration, so they do not read it.
    match &cli.command {
        Command::Completions(args) => return finish(manual::completions(args)),
        Command::Manual(args) => return finish(manual::pages(args)),
        _ => {}
    }
    // From here on SIGHUP makes a daemon reload and does not end it. A SIGHUP that arrives during the start is
    // handled after the start. SIGHUP ends every other command.
    let hangups = matches!(cli.command, Command::Run).then(Hangups::listen);
    let config = match Config::load(&LoadOptions::from_process(cli.config)) {
        Ok(config) => config,
        Err(error) => {
            say(&format!("tailrace: {error}\n"));
            return ExitCode::from(USAGE);
        }
    };
    let mut log = config.log.clone();
    if !matches!(cli.command, Command::Run) {
        log.filter = log.command_filter.clone();
    }
    if let Err(error) = telemetry::init(&log) {
        say(&format!("tailrace: {}\n", describe(&error)));
        return ExitCode::from(FAILED);
    }
    let needs_url = match &cli.command {
        Command::Health(_) | Command::Config(_) => false,
        Command::Doctor(args) => args.needs_url(),
        _ => true,
    };
    if needs_url && let Err(error) = config.connect_options() {
        say(&format!("tailrace: {error}\n"));
        return ExitCode::from(USAGE);
    }
    finish(match cli.command {
        Command::Run => match run::tokens(&config) {
            Ok(tokens) => match hangups.unwrap_or_else(Hangups::listen) {
                Ok(hangups) => run::run(config, tokens, hangups).await,
                Err(error) => Err(anyhow::Error::new(error).context("cannot listen to SIGHUP")),
            },
            Err(error) => {
                say(&format!("tailrace: {error}\n"));
                return ExitCode::from(USAGE);
            }
        },
        Command::Sweep(args) => sweep::run(&config, &args).await,
        Command::Plan(args) => plan::run(&config, &args).await,
        Command::Drop(args) => drop::run(&config, &args).await,
        Command::Trace(args) => trace::run(&config, &args).await,
        Command::Explain(args) => explain::run(&config, &args).await,
        Command::Policy(command) => policy::run(&config, &command).await,
        Command::Pause(args) => pause::pause(&config, &args).await,
        Command::Resume(args) => pause::resume(&config, &args).await,
        Command::Approve(args) => approve::run(&config, &args).await,
        Command::Hold(command) => hold::run(&config, &command).await,
        Command::Clock(command) => clock::run(&config, &command).await,
        Command::Spec(command) => spec::run(&config, &command).await,
        Command::Doctor(args) => doctor::run(&config, &args).await,
        Command::Debt(args) => debt::run(&config, &args).await,
        Command::Verify(args) => verify::run(&config, &args).await,
        Command::Init(args) => init::run(&config, &args).await,
        Command::Migrate(args) => migrate::run(&config, &args).await,
        Command::Health(args) => health::run(&config, &args),
        Command::Config(args) => config::run(&config, &args),
        Command::Completions(args) => manual::completions(&args),
        Command::Manual(args) => manual::pages(&args),
    })
}

fn finish(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        // It is no failure if the reader closes the pipe early (`| head`).
        Err(error) if is_broken_pipe(&error) => ExitCode::from(DONE),
        Err(error) => {
            say(&format!("tailrace: {}\n", line(&describe(&error))));
            ExitCode::from(if is_usage(&error) { USAGE } else { FAILED })
        }
    }
}

/// The command line, or a file that it names, is wrong.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
struct Usage(anyhow::Error);

/// Whether the error is one of usage: arguments that are wrong for any table, or a server that is refused.
fn is_usage(error: &anyhow::Error) -> bool {
    let malformed_field =
        matches!(error.downcast_ref::<FieldError>(), Some(FieldError::Malformed(_)));
    // The HTTP interface answers these with 422.
    let refused_request = matches!(error.downcast_ref(), Some(Problem::Validation(_)));
    let refused_server = matches!(error.downcast_ref(), Some(Unfit::Server(_)));
    malformed_field
        || refused_request
        || error.is::<KeepError>()
        || error.is::<Usage>()
        || refused_server
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The database that the configuration names. Each session checks that the schema `tailrace` fits this
/// program.
fn database(config: &Config) -> anyhow::Result<Database> {
    Ok(Database {
        options: config.connect_options()?,
        schema: config.database.schema.as_str().to_owned(),
        connect_timeout: config.connect_timeout(),
        patience: Patience::default(),
    })
}
