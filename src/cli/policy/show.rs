//! `tailrace policy get | list`

use anyhow::bail;
use chrono::{DateTime, Utc};

use super::{TableArgs, find};
use crate::catalog::session::Session;
use crate::catalog::tables::{catalogs, live_tables};
use crate::cli::arguments::TableName;
use crate::cli::text::{columns, last};
use crate::cli::{DONE, Output, out};
use crate::policy::listing::{ListedPolicy, PoliciesAnswer, listed};
use crate::policy::tombstones;
use crate::telemetry::line;

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

pub async fn get(connection: &mut Session, args: &GetArgs) -> anyhow::Result<u8> {
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
    out::show(args.output, &PoliciesAnswer { policies: listed }, |answer| {
        answer.policies.iter().map(details).collect()
    })?;
    Ok(DONE)
}

pub async fn list(connection: &mut Session, args: &ListArgs) -> anyhow::Result<u8> {
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
        // A catalog that no longer exists gets its name from its policies.
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
    out::show(args.output, &PoliciesAnswer { policies: all }, |answer| {
        table_of(&answer.policies, args.all)
    })?;
    Ok(DONE)
}

/// A policy with all that is known of it, for people.
fn details(policy: &ListedPolicy) -> String {
    let ListedPolicy { catalog, namespace, table, shown_field, keep, mode, .. } = policy;
    let last = last(policy.keep_last);
    let in_force = if policy.in_force { "in force" } else { "not in force" };
    let mut lines = vec![
        format!("{catalog} {namespace}.{table}: {shown_field} keep {keep}{last}, {mode}"),
        format!("  source    {}, {in_force}", policy.source),
        format!("  revision  {}", policy.revision),
        format!("  set       {} by {}", second(policy.updated_at), policy.updated_by),
        format!("  fence     {}", if policy.fence { "yes" } else { "no" }),
    ];
    lines.extend(
        policy.pending.as_ref().map(|pending| format!("  waits     {}", pending.describe())),
    );
    lines.extend(policy.pause.as_ref().map(|pause| format!("  paused    {}", pause.describe())));
    lines.extend(policy.problem.as_ref().map(|problem| format!("  problem   {problem}")));
    lines.iter().map(|text| format!("{}\n", line(text))).collect()
}

/// The policies for people, one a line; with `all` also those of tables that no longer exist.
fn table_of(listed: &[ListedPolicy], all: bool) -> String {
    if listed.is_empty() {
        return "No table has a policy: see `tailrace policy set --help`\n".to_owned();
    }
    let heading = ["CATALOG", "TABLE", "FIELD", "KEEP", "MODE", "SOURCE", "SET ON"];
    let mut rows = vec![heading.map(str::to_owned).to_vec()];
    if all {
        rows[0].push("TABLE IS".to_owned());
    }
    rows.extend(listed.iter().map(|policy| {
        let source = match policy.in_force || policy.gone {
            true => policy.source.to_string(),
            false => format!("{}, not in force", policy.source),
        };
        let mut row = vec![
            policy.catalog.clone(),
            format!("{}.{}", policy.namespace, policy.table),
            policy.shown_field.clone(),
            format!("{}{}", policy.keep, last(policy.keep_last)),
            mode_of(policy),
            source,
            policy.updated_at.format("%Y-%m-%d").to_string(),
        ];
        if all {
            row.push(match (policy.gone, policy.gone_since) {
                (false, _) => "there".to_owned(),
                (true, None) => "gone".to_owned(),
                (true, Some(at)) => format!("gone since {}", second(at)),
            });
        }
        row
    }));
    let mut text = columns(&rows, &[], "");
    for policy in listed {
        if let Some(problem) = &policy.problem {
            let ListedPolicy { namespace, table, .. } = policy;
            text.push_str(&line(&format!("{namespace}.{table}: {problem}")));
            text.push('\n');
        }
    }
    text
}

/// The mode, and whether a pause or a change that waits says otherwise; `get` shows which.
fn mode_of(policy: &ListedPolicy) -> String {
    let mut mode = policy.mode.clone();
    if policy.pause.is_some() {
        mode.push_str(", a pause covers it");
    }
    if policy.pending.is_some() {
        mode.push_str(", a change waits");
    }
    mode
}

fn second(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
