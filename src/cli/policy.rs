//! `tailrace policy set | get | list | history | unset`

mod history;
mod set;
mod show;
mod unset;

use super::arguments::{TableName, table_name};
use super::database;
use crate::catalog::connect::Access;
use crate::catalog::session::Session;
use crate::catalog::tables::{LiveTable, find_table};
use crate::claims;
use crate::config::Config;
use crate::sweep::Settings;

#[derive(Debug, clap::Subcommand)]
pub enum PolicyCommand {
    /// Set a table's policy, or change it.
    Set(set::SetArgs),
    /// Show a table's policy.
    Get(show::GetArgs),
    /// Show the policies of all tables.
    List(show::ListArgs),
    /// Show who changed a table's policies, when, from what to what, and why.
    History(history::HistoryArgs),
    /// Take a table's stored policy away, or those of tables of its name that are gone.
    Unset(unset::UnsetArgs),
}

#[derive(Debug, clap::Args)]
struct TableArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// The table.
    #[arg(value_name = "NS.TABLE", value_parser = table_name)]
    table: TableName,
}

pub async fn run(config: &Config, command: &PolicyCommand) -> anyhow::Result<u8> {
    let access = match command {
        PolicyCommand::Get(_) | PolicyCommand::List(_) | PolicyCommand::History(_) => {
            Access::ReadOnly
        }
        PolicyCommand::Set(_) | PolicyCommand::Unset(_) => Access::ReadWrite,
    };
    let settings = Settings::from_config(config);
    let claims = claims::Settings::from_config(config);
    let work = async |session: &mut Session| match command {
        PolicyCommand::Set(args) => set::set(session, args, &settings, &claims).await,
        PolicyCommand::Get(args) => show::get(session, args).await,
        PolicyCommand::History(args) => history::history(session, args).await,
        PolicyCommand::List(args) => show::list(session, args).await,
        PolicyCommand::Unset(args) => unset::unset(session, args, &settings, &claims).await,
    };
    database(config)?.in_session(access, work).await
}

async fn find(connection: &mut Session, args: &TableArgs) -> anyhow::Result<LiveTable> {
    find_table(connection, &args.catalog, &args.table.namespace, &args.table.table).await
}
