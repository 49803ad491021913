//! `tailrace policy unset`

use anyhow::bail;
use serde::Serialize;
use uuid::Uuid;

use super::{TableArgs, find};
use crate::catalog::errors::describe;
use crate::catalog::session::Session;
use crate::catalog::tables::LiveTable;
use crate::claims::{self, policy_changed};
use crate::cli::arguments::{TableName, author, message, session_user};
use crate::cli::plan::table_text;
use crate::cli::{DONE, FAILED, Output, out};
use crate::policy::history::Changer;
use crate::policy::unset::unset_gone;
use crate::policy::{self, Policy, store};
use crate::sweep::Settings;
use crate::sweep::plan_report::TablePlanReport;
use crate::sweep::planning::plan_of_property;
use crate::telemetry::{line, say};

#[derive(Debug, clap::Args)]
pub struct UnsetArgs {
    #[command(flatten)]
    table: TableArgs,
    /// Do it even though the table's property takes over.
    #[arg(long)]
    yes: bool,
    /// Who takes it away; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// Why, for whoever reads `tailrace policy history`.
    #[arg(long, value_name = "TEXT", value_parser = message)]
    reason: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// What was removed, as in the JSON output.
#[derive(Debug, Default, Serialize)]
struct Answer {
    /// The catalog's name.
    catalog: String,
    /// The namespace's name.
    namespace: String,
    /// The table's name.
    table: String,
    /// Whether the stored policy of the live table was removed.
    unset: bool,
    /// The policies of tables that had this name and no longer exist; these policies were deleted.
    forgotten: Vec<Forgotten>,
    /// What the table's property does once the stored policy is removed; null where the table has no property.
    takes_over: Option<TakesOver>,
}

#[derive(Debug, Serialize)]
struct Forgotten {
    field: String,
    keep: String,
    table_uuid: Uuid,
}

/// The property's policy, or why it is not followed.
#[derive(Debug, Default, Serialize)]
struct TakesOver {
    policy: Option<String>,
    plan: Option<TablePlanReport>,
    problem: Option<String>,
}

impl TakesOver {
    fn of(would: Result<(Policy, TablePlanReport), String>) -> Self {
        match would {
            Err(problem) => Self { problem: Some(problem), ..Self::default() },
            Ok((policy, plan)) => {
                let words = format!("{} keep {}, {}", policy.field, policy.keep, policy.mode);
                Self { policy: Some(words), plan: Some(plan), problem: None }
            }
        }
    }
}

pub async fn unset(
    connection: &mut Session,
    args: &UnsetArgs,
    settings: &Settings,
    claims: &claims::Settings,
) -> anyhow::Result<u8> {
    let TableArgs { catalog, table: TableName { namespace, table } } = &args.table;
    let user = session_user();
    let changer =
        Changer { name: args.by.as_ref().unwrap_or(&user), reason: args.reason.as_deref() };
    let mut answer = Answer {
        catalog: catalog.clone(),
        namespace: namespace.clone(),
        table: table.clone(),
        ..Answer::default()
    };
    let live = match find(connection, &args.table).await {
        Ok(live) => live,
        // If the database did not answer, it is not known whether a table no longer exists.
        Err(error) if error.chain().any(|cause| cause.is::<sqlx::Error>()) => return Err(error),
        Err(error) => {
            answer.forgotten = forget_gone(connection, args, changer, None).await?;
            return if answer.forgotten.is_empty() { Err(error) } else { show(args, &answer) };
        }
    };
    let rows = store::rows(connection, &live.identity).await?;
    if rows.stored.is_none() {
        answer.forgotten = forget_gone(connection, args, changer, Some(&live)).await?;
        if !answer.forgotten.is_empty() {
            return show(args, &answer);
        }
        let hint = if live.property.is_some() {
            "; its property partition_retention is the table's own: change the table to take it away"
        } else {
            ""
        };
        bail!("table {namespace}.{table} has no stored policy{hint}");
    }
    // No transaction is open and no lock is held while a person reads this.
    let would = match plan_of_property(connection, &live, settings).await {
        // With --yes nothing more is asked, whether or not it is known what is dropped.
        Err(error) if args.yes => Some(Err(describe(&error))),
        other => {
            other?.map(|would| would.map(|(policy, plan)| (policy, TablePlanReport::of(&plan))))
        }
    };
    let is_followed = matches!(would, Some(Ok(_)));
    answer.takes_over = would.map(TakesOver::of);
    if is_followed && !args.yes {
        show(args, &answer)?;
        say("tailrace: the stored policy stays; say --yes to let the property take over\n");
        return Ok(FAILED);
    }
    let is_confirmed = is_followed && !settings.four_eyes;
    policy::unset::unset(connection, &live, changer, is_confirmed).await?;
    policy_changed(connection, &live.identity, claims).await;
    answer.unset = true;
    show(args, &answer)
}

fn show(args: &UnsetArgs, answer: &Answer) -> anyhow::Result<u8> {
    out::show(args.output, answer, text)?;
    Ok(DONE)
}

/// The answer for people.
fn text(answer: &Answer) -> String {
    let Answer { catalog, namespace, table, unset, forgotten, takes_over } = answer;
    let name = format!("{catalog} {namespace}.{table}");
    let mut text = String::new();
    let mut say = |words: &str| text.push_str(&format!("{}\n", line(words)));
    if let Some(TakesOver { policy, plan, problem }) = takes_over {
        problem.iter().for_each(|problem| say(problem));
        if let Some(policy) = policy {
            say(&format!("The table's property partition_retention takes over: {policy}"));
        }
        text.push_str(&plan.as_ref().map(table_text).unwrap_or_default());
    }
    let mut say = |words: &str| text.push_str(&format!("{}\n", line(words)));
    if *unset {
        say(&format!("{name}: the stored policy is taken away"));
    }
    for Forgotten { field, keep, table_uuid } in forgotten {
        say(&format!(
            "{name}: the policy {field} keep {keep} of the table that is gone (uuid {table_uuid}) \
             is forgotten"
        ));
    }
    text
}

/// Deletes the policies of tables that had this name and no longer exist, or that the live table replaced.
/// Returns them.
async fn forget_gone(
    connection: &mut Session,
    args: &UnsetArgs,
    changer: Changer<'_>,
    live: Option<&LiveTable>,
) -> anyhow::Result<Vec<Forgotten>> {
    let TableArgs { catalog, table: TableName { namespace, table } } = &args.table;
    let gone = unset_gone(connection, catalog, (namespace, table), live, changer).await?;
    let forgotten = |row: policy::row::PolicyRow| Forgotten {
        field: row.field,
        keep: row.keep,
        table_uuid: row.table_uuid,
    };
    Ok(gone.into_iter().map(|tombstone| forgotten(tombstone.kept.row)).collect())
}
