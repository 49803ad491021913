//! Policies that do not do what an operator may expect of them.

use chrono::{DateTime, Utc};

use super::table_facts::TableFacts;
use super::{Finding, Level, at};
use crate::catalog::checks::replaced::LeftPolicy;
use crate::policy::Mode;
use crate::policy::command::{forget, set_again};
use crate::sweep::plan::NOT_PARQUET;
use crate::sweep::stalled::Stalled;

const CHECK: &str = "policies";

/// A policy that is only watched, or paused, for longer than this was perhaps forgotten.
const LONG: i64 = 7 * 24 * 3600;

/// Policies without effect, that nobody follows, or that were left behind by their tables; one line for
/// the catalog where there is none.
pub fn findings(
    catalog: &str,
    tables: &[TableFacts],
    left: &[LeftPolicy],
    now: DateTime<Utc>,
) -> Vec<Finding> {
    let mut findings: Vec<_> = tables.iter().flat_map(|table| of_table(table, now)).collect();
    findings.extend(left.iter().map(|left| of_left(catalog, left)));
    if findings.is_empty() {
        let what = match tables.len() {
            0 => "no table has a policy".to_owned(),
            1 => "1 policy, which is in effect".to_owned(),
            tables => format!("{tables} policies, all in effect"),
        };
        findings.push(Finding::ok(CHECK, what).of_catalog(catalog));
    }
    findings
}

fn of_left(catalog: &str, left: &LeftPolicy) -> Finding {
    let LeftPolicy { old_table_id, field, keep, .. } = left;
    let whose = match left.is_replacement {
        true => "it took the place of",
        false => "it has the name of",
    };
    let mut finding = Finding::new(
        Level::Problem,
        CHECK,
        format!("{whose} table {old_table_id}, which is gone and had the policy {field} keep {keep}"),
        "a policy belongs to a table and not to its name, so the present table has none, and nothing of it is \
         dropped",
        "give the present table that policy, or another one; or forget the policy of the old table, if the \
         present one needs none:",
    )
    .of_catalog(catalog)
    .with(vec![set_again(catalog, left), forget(catalog, left)]);
    finding.table = Some(format!("{}.{}", left.namespace, left.table));
    finding
}

fn of_table(facts: &TableFacts, now: DateTime<Utc>) -> Vec<Finding> {
    let governed = &facts.governed;
    let mut findings = Vec::new();
    let mut say = |level, what: String, why: &str, to_do: &str| {
        let finding = Finding::new(level, CHECK, what, why, to_do);
        findings.push(finding.of_table(&governed.live.identity));
    };
    let policy = match &governed.policy {
        Ok(_) if !governed.live.is_parquet => {
            say(
                Level::Problem,
                NOT_PARQUET.to_owned(),
                "its policy can never drop anything, and every pass fails on it",
                "unset the policy, or remove the table's property",
            );
            return findings;
        }
        Ok(policy) => policy,
        Err(problem) => {
            say(
                Level::Problem,
                format!("the policy is not followed: {problem}"),
                "nothing of the table is dropped",
                "set it right: the table's property partition_retention, or `tailrace policy set`",
            );
            return findings;
        }
    };
    if let Some(pending) = &policy.pending {
        say(
            Level::Note,
            format!("a change of the policy waits: {}", pending.describe()),
            "until then what was in force before is in force",
            "`tailrace policy set` takes it back: with the terms that are in force, or with --mode observe",
        );
    }
    // What is paused is a finding of `guards`.
    if policy.pending.is_none() && policy.mode != Mode::Enforce && policy.guards.pause.is_none() {
        let in_force_since = facts.in_force_since();
        let since = in_force_since.map_or(String::new(), |since| format!(" since {}", at(since)));
        let is_long = in_force_since.is_some_and(|since| (now - since).num_seconds() > LONG);
        say(
            if is_long { Level::Warning } else { Level::Note },
            format!("the policy's mode is {}{since}", policy.mode),
            "nothing of the table is dropped",
            "set it to enforce when you are sure of it, or unset it",
        );
    }
    if !facts.covers_new_files {
        say(
            Level::Problem,
            format!("the live partition spec has no time field on {}", policy.field),
            "files that are written now will never expire",
            "partition the table by that column again, or set a policy on what it is partitioned by",
        );
    } else if facts.dates_nothing {
        say(
            Level::Problem,
            format!("the policy's field {} dates none of the newest live files", policy.field),
            "nothing of the table will ever be dropped",
            "`tailrace plan` shows what is kept and why",
        );
    } else if let Some(Stalled { newest, ended }) = &facts.stalled {
        let stays = match policy.keep_last {
            Some(number) => format!("unless newer ones come, all but the newest {number} expire"),
            None => "unless newer ones come, all that the table has expires".to_owned(),
        };
        say(
            Level::Warning,
            format!("the newest partition {newest} ended {ended}, more than half of keep ago"),
            &stays,
            "see whether its writers are at work; `tailrace policy set --keep-last` keeps the newest partitions \
             whatever their age, `tailrace pause` keeps all",
        );
    }
    findings
}
