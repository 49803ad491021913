//! `tailrace policy set`

use std::time::Duration;

use serde::Serialize;

use super::TableArgs;
use crate::catalog::clock;
use crate::catalog::errors::describe;
use crate::catalog::session::{Session, within};
use crate::catalog::tables::find_table;
use crate::claims::{self, policy_changed};
use crate::cli::arguments::{author, message, session_user};
use crate::cli::ask::{can_ask, confirmed};
use crate::cli::plan::table_text;
use crate::cli::text::{counted, last};
use crate::cli::{DONE, FAILED, Output, out};
use crate::explicit::problem::Problem;
use crate::guards::Guards;
use crate::policy::command::shell_word;
use crate::policy::listing::{PoliciesAnswer, listed};
use crate::policy::set::{Set, Wanted, set_policy, would_set};
use crate::policy::{Mode, Policy};
use crate::sweep::Settings;
use crate::sweep::plan::plan_table;
use crate::sweep::plan_report::TablePlanReport;
use crate::telemetry::{line, say};

/// The longest that the command looks for what a policy drops, after it set the policy.
const PLANNING: Duration = Duration::from_secs(60);

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
    /// Keep the newest so many time values (days, for a partition by day) that have a live file, whatever their
    /// age; at most 10000. Left as it is if not given; 0 takes it back.
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    keep_last: Option<i64>,
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
    /// Why, for whoever reads `tailrace policy history`.
    #[arg(long, value_name = "TEXT", value_parser = message)]
    reason: Option<String>,
    /// Confirm what it drops, without being asked: it is in force at once and not after guard.policy_grace, and what expires by
    /// it is not held for its number.
    #[arg(long)]
    yes: bool,
    /// How to show it.
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// What was set, as in the JSON output.
#[derive(Debug, Serialize)]
struct Answer {
    #[serde(flatten)]
    policies: PoliciesAnswer,
    /// The stored policy that was replaced.
    before: Option<Before>,
    /// What has expired under the policy; null where it could not be determined.
    expired: Option<Expired>,
    /// Why it could not be determined.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct Before {
    field: String,
    keep: String,
    keep_last: Option<i32>,
    mode: Mode,
}

#[derive(Debug, Clone, Copy, Serialize)]
struct Expired {
    partitions: i64,
    files: i64,
}

pub async fn set(
    connection: &mut Session,
    args: &SetArgs,
    settings: &Settings,
    claims: &claims::Settings,
) -> anyhow::Result<u8> {
    let user = session_user();
    let mut wanted = Wanted {
        catalog: &args.table.catalog,
        namespace: &args.table.table.namespace,
        table: &args.table.table.table,
        field: &args.field,
        keep: &args.keep,
        keep_last: args.keep_last,
        mode: args.mode,
        fence: args.fence,
        is_confirmed: args.yes,
        by: args.by.as_ref().unwrap_or(&user),
        reason: args.reason.as_deref(),
    };
    if args.yes && settings.four_eyes {
        return Err(Problem::FourEyes(
            "guard.four_eyes is on: set the policy without --yes, and let somebody else approve what it drops \
             over HTTP"
                .to_owned(),
        )
        .into());
    }
    if !args.yes && !settings.four_eyes && can_ask() {
        match asked(connection, &wanted, settings).await? {
            Some(is_confirmed) => wanted.is_confirmed = is_confirmed,
            None => return Ok(FAILED),
        }
    }
    let Set { table, before, policy } =
        set_policy(connection, wanted, settings.policy_limits).await?;
    policy_changed(connection, &table, claims).await;
    let in_force = policy.clone().under(Guards::read(connection, &table).await?);
    // The policy is set now, so an error after this point does not make the command fail.
    let planned = async {
        let now = clock::now(connection).await?;
        plan_table(connection, &table, &in_force, now, settings).await
    };
    let (expired, problem) = match within(PLANNING, planned).await {
        Ok(plan) => {
            let partitions = plan.expired.len() as i64;
            (Some(Expired { partitions, files: plan.expired_counts().files }), None)
        }
        Err(error) => (None, Some(describe(&error))),
    };
    let before = before.map(|before| Before {
        field: before.field.to_string(),
        keep: before.keep.to_string(),
        keep_last: before.keep_last,
        mode: before.mode,
    });
    let name = format!("{}.{}", table.namespace, table.table);
    let policies = match args.output {
        Output::Text => Vec::new(),
        Output::Json => {
            let live =
                find_table(connection, &table.catalog, &table.namespace, &table.table).await?;
            listed(connection, &live).await?
        }
    };
    let answer = Answer { policies: PoliciesAnswer { policies }, before, expired, problem };
    out::show(args.output, &answer, |answer| {
        text(answer, &table.catalog, &name, &policy, in_force.mode)
    })?;
    Ok(DONE)
}

/// Asks a person whether what a policy drops may be dropped; `None` where it may not, and nothing is set then. Nothing is
/// asked where nothing goes at once. What the person is not shown is not confirmed.
async fn asked(
    connection: &mut Session,
    wanted: &Wanted<'_>,
    settings: &Settings,
) -> anyhow::Result<Option<bool>> {
    let shown = Wanted { is_confirmed: true, ..*wanted };
    let (table, policy) = would_set(connection, &shown, settings.policy_limits).await?;
    if policy.mode != Mode::Enforce {
        return Ok(Some(false));
    }
    let policy = policy.under(Guards::read(connection, &table).await?);
    // No transaction is open and no lock is held while a person reads this.
    let planned = async {
        let now = clock::now(connection).await?;
        plan_table(connection, &table, &policy, now, settings).await
    };
    let (is_shown, question) = match within(PLANNING, planned).await {
        Ok(plan) if plan.expired.is_empty() => return Ok(Some(false)),
        Ok(plan) => {
            say(&table_text(&TablePlanReport::of(&plan)));
            (true, "The next pass drops what has expired. Set the policy?")
        }
        Err(error) => {
            say(&format!("Not known what has expired: {}\n", line(&describe(&error))));
            (false, "It is not known what the next pass drops. Set the policy all the same?")
        }
    };
    match confirmed(question)? {
        true => Ok(Some(is_shown)),
        false => {
            say("tailrace: nothing was changed\n");
            Ok(None)
        }
    }
}

/// The answer for people; a pause may have set another mode in force than the policy's.
fn text(answer: &Answer, catalog: &str, table: &str, policy: &Policy, in_force: Mode) -> String {
    let mut lines = vec![format!(
        "{catalog} {table}: {} keep {}{}, {} (revision {})",
        policy.field,
        policy.keep,
        last(policy.keep_last),
        policy.mode,
        policy.revision
    )];
    if let Some(Before { field, keep, keep_last, mode }) = &answer.before {
        lines.push(format!("Before: {field} keep {keep}{}, {mode}", last(*keep_last)));
    }
    let kept = policy.keep.describe();
    lines.push(format!("Keeps each partition for {kept} after its last instant"));
    if let Some(number) = policy.keep_last {
        let values = counted(number.into(), "time value");
        lines.push(format!("Keeps the newest {values} with a live file, whatever their age"));
    }
    if let Some(pending) = &policy.pending {
        lines.push(format!("Waits: {}; with --yes at once", pending.describe()));
    }
    lines.extend(answer.problem.as_ref().map(|why| format!("Not known what has expired: {why}")));
    if let Some(Expired { partitions, files }) = answer.expired {
        let what = format!("{}, {}", counted(partitions, "partition"), counted(files, "file"));
        lines.push(match in_force {
            Mode::Enforce => format!("The next pass drops {what}; to list them:"),
            mode => format!("Expired, but not dropped in mode {mode}: {what}; to list them:"),
        });
        let (catalog, table) = (shell_word(catalog), shell_word(table));
        lines.push(format!("  tailrace plan --catalog {catalog} --table {table}"));
    }
    lines.iter().map(|text| format!("{}\n", line(text))).collect()
}
