//! `tailrace policy set | get | list | unset`

use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use anyhow::bail;

use super::arguments::{TableName, author, table_name};
use super::plan::table_text;
use super::text::{columns, counted};
use super::{DONE, FAILED, Output, database, out};
use crate::catalog::clock;
use crate::catalog::connect::Access;
use crate::catalog::errors::in_words;
use crate::catalog::session::{Session, within};
use crate::catalog::tables::{LiveTable, catalogs, find_table, live_tables};
use crate::claims::{self, policy_changed};
use crate::config::Config;
use crate::policy::command::shell_word;
use crate::policy::listing::{ListedPolicy, listed};
use crate::policy::set::{Set, Wanted, set_policy};
use crate::policy::unset::unset_gone;
use crate::policy::{self, Mode, store, tombstones};
use crate::sweep::Settings;
use crate::sweep::plan::plan_table;
use crate::sweep::plan_report::TablePlanReport;
use crate::sweep::planning::plan_of_property;
use crate::telemetry::{line, say};

/// Who sets a policy waits no longer to be told what it drops.
const TELLING: Duration = Duration::from_secs(60);

#[derive(Debug, clap::Subcommand)]
pub enum PolicyCommand {
    /// Set a table's policy, or change it.
    Set(SetArgs),
    /// Show a table's policy.
    Get(GetArgs),
    /// Show the policies of all tables.
    List(ListArgs),
    /// Take a table's stored policy away, or those of tables of its name that are gone.
    Unset(UnsetArgs),
}

#[derive(Debug, clap::Args)]
pub struct SetArgs {
    #[command(flatten)]
    table: TableArgs,
    /// A column (`timestamp`, `meta.ts`) or a partition field (`day(timestamp)`).
    #[arg(long)]
    field: String,
    /// How long a partition stays after its last instant: s, m (minutes), h, d or w, such as 7d.
    #[arg(long, allow_hyphen_values = true)]
    keep: String,
    /// What the policy does. Left as it is if not given; a new policy is enforced.
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Tell consumers of the server's own feed to reconcile after each drop; every append that was
    /// prepared before conflicts once. Left as it is if not given; `--fence=false` takes it back.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    fence: Option<bool>,
    /// Who sets it; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
}

#[derive(Debug, clap::Args)]
pub struct GetArgs {
    #[command(flatten)]
    table: TableArgs,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// Only this catalog.
    #[arg(long, value_name = "CATALOG")]
    catalog: Option<String>,
    /// Also the policies of tables that are gone: not in force, and kept for history.keep.
    #[arg(long)]
    all: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Debug, clap::Args)]
pub struct UnsetArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Do it even though the table's property takes over.
    #[arg(long)]
    yes: bool,
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
        PolicyCommand::Get(_) | PolicyCommand::List(_) => Access::ReadOnly,
        PolicyCommand::Set(_) | PolicyCommand::Unset(_) => Access::ReadWrite,
    };
    let settings = Settings::from_config(config);
    let shield = claims::Settings::from_config(config);
    let work = async |session: &mut Session| match command {
        PolicyCommand::Set(args) => set(session, args, &settings, &shield).await,
        PolicyCommand::Get(args) => get(session, args).await,
        PolicyCommand::List(args) => list(session, args).await,
        PolicyCommand::Unset(args) => unset(session, args, &settings, &shield).await,
    };
    database(config)?.in_session(access, work).await
}

async fn set(
    connection: &mut Session,
    args: &SetArgs,
    settings: &Settings,
    shield: &claims::Settings,
) -> anyhow::Result<u8> {
    let user = session_user();
    let wanted = Wanted {
        catalog: &args.table.catalog,
        namespace: &args.table.table.namespace,
        table: &args.table.table.table,
        field: &args.field,
        keep: &args.keep,
        mode: args.mode,
        fence: args.fence,
        by: args.by.as_ref().unwrap_or(&user),
    };
    let Set { table, before, policy } = set_policy(connection, wanted, settings.min_keep).await?;
    policy_changed(connection, &table, shield).await;
    let name = format!("{}.{}", table.namespace, table.table);
    out::line(&format!(
        "{} {name}: {} keep {}, {} (revision {})",
        table.catalog, policy.field, policy.keep, policy.mode, policy.revision
    ))?;
    if let Some(before) = before {
        out::line(&format!("Before: {} keep {}, {}", before.field, before.keep, before.mode))?;
    }
    let words = policy.keep.in_words();
    out::line(&format!("Keeps each partition for {words} after its last instant"))?;
    // The policy is set: that it cannot be told what goes is no failure.
    let planned = async {
        let now = clock::now(connection).await?;
        plan_table(connection, &table, &policy, now, settings).await
    };
    let plan = match within(TELLING, planned).await {
        Ok(plan) => plan,
        Err(error) => {
            out::line(&format!("What it drops could not be found out: {}", in_words(&error)))?;
            return Ok(DONE);
        }
    };
    let would = match policy.mode {
        Mode::Enforce => "The next pass drops",
        Mode::Observe | Mode::Paused => "Expired, and kept by the mode:",
    };
    out::line(&format!(
        "{would} {}, {}; see tailrace plan --catalog {} --table {}",
        counted(plan.expired.len() as i64, "partition"),
        counted(plan.expired_counts().files, "file"),
        shell_word(&table.catalog),
        shell_word(&name)
    ))?;
    Ok(DONE)
}

async fn get(connection: &mut Session, args: &GetArgs) -> anyhow::Result<u8> {
    let table = match find(connection, &args.table).await {
        Ok(table) => table,
        Err(error) => {
            let TableArgs { catalog, table: TableName { namespace, table }, .. } = &args.table;
            let names = (namespace.as_str(), table.as_str());
            if tombstones::of_name(connection, catalog, names, None).await?.is_empty() {
                return Err(error);
            }
            bail!(
                "{error}; one that had the name is gone, and its policy with it: \
                 `tailrace policy list --all` shows it"
            )
        }
    };
    let listed = listed(connection, &table).await?;
    if listed.is_empty() {
        bail!("table {}.{} has no policy", table.identity.namespace, table.identity.table);
    }
    show(&listed, args.output, false)
}

async fn list(connection: &mut Session, args: &ListArgs) -> anyhow::Result<u8> {
    let mut all = Vec::new();
    let mut known = false;
    for catalog in catalogs(connection).await? {
        if args.catalog.as_ref().is_some_and(|name| *name != catalog.name) {
            continue;
        }
        known = true;
        for table in live_tables(connection, &catalog, true).await? {
            all.extend(listed(connection, &table).await?);
        }
    }
    if args.all {
        // A catalog that is gone is named by its policies.
        for tombstone in tombstones::tombstones(connection).await? {
            if args.catalog.as_ref().is_none_or(|name| *name == tombstone.catalog) {
                known = true;
                all.push(ListedPolicy::gone(tombstone));
            }
        }
    }
    if let (Some(name), false) = (&args.catalog, known) {
        bail!("there is no catalog {name:?}");
    }
    show(&all, args.output, args.all)
}

async fn unset(
    connection: &mut Session,
    args: &UnsetArgs,
    settings: &Settings,
    shield: &claims::Settings,
) -> anyhow::Result<u8> {
    let table = match find(connection, &args.table).await {
        Ok(table) => table,
        // What could not be asked tells of no table that it is gone.
        Err(error) if error.chain().any(|cause| cause.is::<sqlx::Error>()) => return Err(error),
        Err(error) => {
            return match forget_gone(connection, &args.table, None).await? {
                true => Ok(DONE),
                false => Err(error),
            };
        }
    };
    let identity = &table.identity;
    let name = format!("{}.{}", identity.namespace, identity.table);
    let rows = store::rows(connection, identity).await?;
    if rows.stored.is_none() {
        if forget_gone(connection, &args.table, Some(&table)).await? {
            return Ok(DONE);
        }
        let hint = if table.property.is_some() {
            "; its property partition_retention is the table's own: change the table to take it away"
        } else {
            ""
        };
        bail!("table {name} has no stored policy{hint}");
    }
    // Nothing is open or locked while somebody reads this.
    let would = match plan_of_property(connection, &table, settings).await {
        // Whoever says --yes has decided, whether or not it can be told what goes.
        Err(error) if args.yes => Some(Err(in_words(&error))),
        other => other?,
    };
    match would {
        None => {}
        Some(Err(problem)) => out::line(&problem)?,
        Some(Ok((policy, plan))) => {
            out::line(&format!(
                "The table's property partition_retention takes over: {} keep {}, {}",
                policy.field, policy.keep, policy.mode
            ))?;
            out::text(&table_text(&TablePlanReport::of(&plan)))?;
            if !args.yes {
                say("tailrace: the stored policy stays; say --yes to let the property take over\n");
                return Ok(FAILED);
            }
        }
    }
    policy::unset::unset(connection, &table, &session_user()).await?;
    policy_changed(connection, identity, shield).await;
    out::line(&format!("{} {name}: the stored policy is gone", identity.catalog))?;
    Ok(DONE)
}

async fn find(connection: &mut Session, args: &TableArgs) -> anyhow::Result<LiveTable> {
    find_table(connection, &args.catalog, &args.table.namespace, &args.table.table).await
}

/// Takes away the policies of tables of the name that are gone, or whose place the live table took, and says so;
/// false where there is none.
async fn forget_gone(
    connection: &mut Session,
    args: &TableArgs,
    live: Option<&LiveTable>,
) -> anyhow::Result<bool> {
    let TableArgs { catalog, table: TableName { namespace, table }, .. } = args;
    let gone = unset_gone(connection, catalog, (namespace, table), live, &session_user()).await?;
    for tombstone in &gone {
        let (namespace, table) = tombstone.names();
        let row = &tombstone.kept.row;
        out::line(&format!(
            "{} {namespace}.{table}: the policy {} keep {} of the table that is gone (uuid {}) is \
             forgotten",
            tombstone.catalog, row.field, row.keep, row.table_uuid
        ))?;
    }
    Ok(!gone.is_empty())
}

fn show(listed: &[ListedPolicy], output: Output, all: bool) -> anyhow::Result<u8> {
    out::show(output, listed, |listed| text(listed, all))?;
    Ok(DONE)
}

/// The policies for people; `all` where some may be of tables that are gone.
fn text(listed: &[ListedPolicy], all: bool) -> String {
    if listed.is_empty() {
        return "No table has a policy: see `tailrace policy set --help`\n".to_owned();
    }
    let heading = [
        "CATALOG", "TABLE", "FIELD", "KEEP", "MODE", "SOURCE", "IN FORCE", "REVISION", "SINCE",
        "BY",
    ];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    if all {
        rows[0].push("TABLE IS".to_owned());
    }
    rows.extend(listed.iter().map(|policy| {
        let mut row = vec![
            policy.catalog.clone(),
            format!("{}.{}", policy.namespace, policy.table),
            policy.shown_field.clone(),
            policy.keep.clone(),
            policy.mode.clone(),
            policy.source.to_string(),
            if policy.in_force { "yes" } else { "no" }.to_owned(),
            policy.revision.to_string(),
            policy.updated_at.format("%Y-%m-%dT%H:%M:%SZ").to_string(),
            policy.updated_by.clone(),
        ];
        if all {
            row.push(match (policy.gone, policy.gone_since) {
                (false, _) => "there".to_owned(),
                (true, None) => "gone".to_owned(),
                (true, Some(at)) => format!("gone since {}", at.format("%Y-%m-%dT%H:%M:%SZ")),
            });
        }
        row
    }));
    let mut text = columns(&rows, &[7], "");
    for policy in listed {
        if let Some(problem) = &policy.problem {
            let ListedPolicy { namespace, table, .. } = policy;
            text.push_str(&line(&format!("{namespace}.{table}: {problem}")));
            text.push('\n');
        }
    }
    text
}

/// Who is at the keyboard, as far as the session tells.
pub fn session_user() -> String {
    ["SUDO_USER", "USER", "LOGNAME"]
        .iter()
        .find_map(|name| {
            std::env::var(name).ok().filter(|user| !user.is_empty() && author(user).is_ok())
        })
        .unwrap_or_else(|| match std::fs::metadata("/proc/self") {
            Ok(process) => format!("uid {}", process.uid()),
            Err(_) => "unknown".to_owned(),
        })
}
