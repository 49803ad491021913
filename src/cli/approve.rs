//! `tailrace approve`

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::ArgGroup;

use super::arguments::{author, message, session_user};
use super::text::counted;
use super::{DONE, Output, Usage, database, out};
use crate::approvals::{ApprovalScope, Approved, Approver, SavedPlan, Seen, approve};
use crate::catalog::connect::Access;
use crate::config::Config;
use crate::explicit::problem::Problem;
use crate::guards::approval::{self, Approval};
use crate::sweep::Settings;
use crate::telemetry::{line, say};

#[derive(Debug, clap::Args)]
#[command(group(ArgGroup::new("seen").required(true).args(["plan", "digest", "list"])))]
pub struct ApproveArgs {
    /// The catalog.
    #[arg(value_name = "CATALOG")]
    catalog: String,
    /// The table, or all of a namespace; all of the catalog's if not given.
    #[arg(value_name = "NS.TABLE | NS.*")]
    table: Option<String>,
    /// The file that `tailrace plan --save` wrote: approve what it has.
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Approve what `tailrace plan` shows with this digest.
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Only show the approvals that are valid.
    #[arg(long)]
    list: bool,
    /// Why.
    #[arg(long, value_name = "TEXT", value_parser = message)]
    reason: Option<String>,
    /// Who approves; the user of this session if not given.
    #[arg(long, value_name = "NAME", value_parser = author)]
    by: Option<String>,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

pub async fn run(config: &Config, args: &ApproveArgs) -> anyhow::Result<u8> {
    let (namespace, table) = scope_of(args.table.as_deref())?;
    let scope = ApprovalScope { catalog: &args.catalog, namespace, table };
    if args.list {
        let list = async |session: &mut _| Ok(approval::of_catalog(session, &args.catalog).await?);
        let approvals = database(config)?.in_session(Access::ReadOnly, list).await?;
        out::show(args.output, &Approved { approvals }, text)?;
        return Ok(DONE);
    }
    if config.guard.four_eyes {
        let why = "guard.four_eyes is on: approve over HTTP, with a token that says who you are";
        return Err(Problem::FourEyes(why.to_owned()).into());
    }
    let plan = match &args.plan {
        Some(file) => Some(read(file)?),
        None => None,
    };
    let seen = match (&plan, &args.digest) {
        (Some(plan), _) => Seen::Plan(plan),
        (None, digest) => Seen::Digest(digest.as_deref().unwrap_or_default()),
    };
    let user = session_user();
    let approver = Approver {
        name: args.by.as_ref().unwrap_or(&user),
        reason: args.reason.as_deref(),
        ttl: config.guard.approval_ttl.get(),
        needs_another: false,
    };
    let settings = Settings::from_config(config);
    let approved = database(config)?
        .in_session(Access::ReadWrite, async |session| {
            approve(session, &settings, scope, seen, approver).await
        })
        .await?;
    out::show(args.output, &approved, text)?;
    Ok(DONE)
}

/// Writes a plan to a file that must not exist.
pub fn save(file: &Path, plan: &SavedPlan) -> anyhow::Result<()> {
    let mut text = serde_json::to_string_pretty(plan)?;
    text.push('\n');
    let mut new = File::create_new(file)?;
    new.write_all(text.as_bytes()).with_context(|| format!("writing {}", file.display()))?;
    let (tables, name) = (counted(plan.tables.len() as i64, "table"), file.display().to_string());
    say(&format!(
        "tailrace: what is held of {tables} is in {}, digest {}\n",
        line(&name),
        plan.digest
    ));
    Ok(())
}

fn read(file: &Path) -> anyhow::Result<SavedPlan> {
    let name = file.display();
    let text = std::fs::read_to_string(file).with_context(|| format!("reading {name}"));
    let text = text.map_err(Usage)?;
    let plan = serde_json::from_str(&text);
    plan.with_context(|| format!("{name} is no plan that `tailrace plan --save` wrote"))
        .map_err(|error| Usage(error).into())
}

/// Namespace and table of `NS.TABLE` or `NS.*`.
fn scope_of(text: Option<&str>) -> anyhow::Result<(Option<&str>, Option<&str>)> {
    let Some(text) = text else { return Ok((None, None)) };
    match text.split_once('.') {
        Some((namespace, "*")) if !namespace.is_empty() => Ok((Some(namespace), None)),
        Some((namespace, table)) if !namespace.is_empty() && !table.is_empty() => {
            Ok((Some(namespace), Some(table)))
        }
        _ => Err(Usage(anyhow::anyhow!("{text:?} is neither NS.TABLE nor NS.*")).into()),
    }
}

fn text(approved: &Approved) -> String {
    if approved.approvals.is_empty() {
        return "No approval is valid\n".to_owned();
    }
    let words = |one: &Approval| {
        let Approval { catalog, namespace, table, partitions, files, approved_by, until, .. } = one;
        let what = format!("{}, {}", counted(*partitions, "partition"), counted(*files, "file"));
        let reason = one.reason.as_ref().map(|reason| format!(": {reason}"));
        let reason = reason.unwrap_or_default();
        let text = format!(
            "{catalog} {namespace}.{table}: {what}, approved by {approved_by} until {until}{reason}"
        );
        format!("{}\n", line(&text))
    };
    approved.approvals.iter().map(words).collect()
}
