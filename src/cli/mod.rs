//! The command line: one file per command. Results go to stdout, the log to stderr.

mod arguments;
mod clock;
mod config;
mod debt;
mod doctor;
mod drop;
mod health;
mod migrate;
mod out;
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
use crate::catalog::errors::in_words;
use crate::catalog::session::Patience;
use crate::config::{Config, LoadOptions};
use crate::daemon::Hangups;
use crate::installation::Unfit;
use crate::policy::field::FieldError;
use crate::rules::keep::KeepError;
use crate::telemetry::{self, line, say};

/// The work is done.
const DONE: u8 = 0;
/// It failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong, or the hoglake server is none to work with.
const USAGE: u8 = 2;
/// `tailrace doctor` found a problem.
const PROBLEM_FOUND: u8 = 3;
/// It went through, and some tables failed.
const SOME_TABLES_FAILED: u8 = 3;

/// Retention for hoglake tables: drops expired partitions, each batch in one snapshot, and
/// leaves the objects to the server's expiry and cleanup.
///
/// Exit codes: 0 done, 1 failed, 2 usage, configuration or a hoglake server that is refused, 3 some tables
/// failed, other daemons kept a sweep from everything, or a problem or violation was found.
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
    /// Run the daemon: passes by the schedule, until SIGTERM or SIGINT.
    Run,
    /// Run one pass, then exit.
    Sweep(sweep::SweepArgs),
    /// Show what a pass would drop, when the next partition goes, what is kept and why. Never writes.
    Plan(plan::PlanArgs),
    /// Set, show and unset the policies of tables.
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Accept the database's clock where passes refuse it.
    #[command(subcommand)]
    Clock(clock::ClockCommand),
    /// Show the partition specs of a table, and vouch for the values of one.
    #[command(subcommand)]
    Spec(spec::SpecCommand),
    /// Drop an enumerated list of partitions in one commit.
    Drop(drop::DropArgs),
    /// Show what became of each drop: kept, purged, queued or gone, since when, and why not yet.
    Trace(trace::TraceArgs),
    /// Tell what to know of the server, the database and the policies before trusting all this.
    /// Never writes.
    Doctor(doctor::DoctorArgs),
    /// Show compaction debt by the server's sample, with and without what is about to be dropped.
    /// Never writes.
    Debt(debt::DebtArgs),
    /// Make sure that what must hold does: nothing overdue, nothing half dropped. Never writes.
    Verify(verify::VerifyArgs),
    /// Bring tailrace's own schema up to date.
    Migrate,
    /// Tell whether the daemon on this host is alive, for probes. Never asks the database.
    Health,
    /// Print the configuration in force, secrets masked.
    Config,
}

/// How a result is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// Runs a command line to its exit code.
pub async fn run(cli: Cli) -> ExitCode {
    let _flush = telemetry::FlushAtEnd;
    // A daemon is asked to reload from here on, and no hangup ends it; one that comes before it is up
    // waits. Every other command ends with its terminal.
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
        say(&format!("tailrace: {}\n", in_words(&error)));
        return ExitCode::from(FAILED);
    }
    let needs_url = match &cli.command {
        Command::Health | Command::Config => false,
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
        Command::Policy(command) => policy::run(&config, &command).await,
        Command::Clock(command) => clock::run(&config, &command).await,
        Command::Spec(command) => spec::run(&config, &command).await,
        Command::Doctor(args) => doctor::run(&config, &args).await,
        Command::Debt(args) => debt::run(&config, &args).await,
        Command::Verify(args) => verify::run(&config, &args).await,
        Command::Migrate => migrate::run(&config).await,
        Command::Health => health::run(&config),
        Command::Config => config::run(&config),
    })
}

fn finish(result: anyhow::Result<u8>) -> ExitCode {
    match result {
        Ok(code) => ExitCode::from(code),
        // A reader that has seen enough (`| head`) is no failure.
        Err(error) if is_broken_pipe(&error) => ExitCode::from(DONE),
        Err(error) => {
            say(&format!("tailrace: {}\n", line(&in_words(&error))));
            ExitCode::from(if is_usage(&error) { USAGE } else { FAILED })
        }
    }
}

/// Arguments that no table could make right, or a server that no further try does.
fn is_usage(error: &anyhow::Error) -> bool {
    let malformed_field =
        matches!(error.downcast_ref::<FieldError>(), Some(FieldError::Malformed(_)));
    let refused_server = matches!(error.downcast_ref(), Some(Unfit::Server(_)));
    malformed_field || error.is::<KeepError>() || refused_server
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// The database that the configuration names. Each session in it makes sure that our schema is the
/// one that this program works with.
fn database(config: &Config) -> anyhow::Result<Database> {
    Ok(Database {
        options: config.connect_options()?,
        schema: config.database.schema.as_str().to_owned(),
        connect_timeout: config.connect_timeout(),
        patience: Patience::default(),
    })
}
