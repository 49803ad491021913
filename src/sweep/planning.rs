//! The plan of what a pass would do: the same decisions, no writes.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;
use utoipa::ToSchema;

use super::clocks::{outlook, read_clock};
use super::expired::ExpiredTuple;
use super::plan::{NOT_PARQUET, TablePlan, plan_by_book, plan_table};
use super::settings::{Scope, Settings};
use crate::catalog::clock;
use crate::catalog::connect::{Access, Database};
use crate::catalog::errors::describe;
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, LiveTable, TableIdentity, catalogs, live_tables};
use crate::policy::Policy;
use crate::policy::effective;
use crate::rules::clock_guard::Reading;
use crate::rules::expiry::Verdict;
use crate::rules::instant::UtcInstant;

/// The plans of all tables in scope.
#[derive(Debug)]
pub struct Plans {
    /// The time of every decision.
    pub as_of: UtcInstant,
    /// The catalogs of these tables in which a pass would do nothing now, for its clock is refused.
    pub refused: Vec<ClockRefused>,
    /// By catalog, namespace and name; the error says why a table that asks for retention has
    /// no plan.
    pub tables: Vec<(TableIdentity, Result<TablePlan, String>)>,
}

/// A catalog in which passes do nothing, for its clock is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ClockRefused {
    /// Its name.
    pub catalog: String,
    /// Why, in words.
    pub reason: String,
}

/// What the clocks say: nothing of them is doubted where somebody asks for another time.
async fn clock_at(
    connection: &mut Session,
    settings: &Settings,
    at: Option<UtcInstant>,
) -> sqlx::Result<Reading> {
    match at {
        Some(at) => Ok(Reading::rehearsed(at)),
        None => read_clock(connection, settings).await,
    }
}

/// Why a pass would do nothing now in the catalog of a table, because of its clock.
pub async fn clock_refused(
    connection: &mut Session,
    table: &TableIdentity,
    settings: &Settings,
) -> sqlx::Result<Option<String>> {
    let clock = clock_at(connection, settings, None).await?;
    let refused = refused_in(connection, table, &clock, settings).await?;
    Ok(refused.map(|refused| refused.reason))
}

/// Why a pass would do nothing in a catalog now.
async fn refused_in(
    connection: &mut Session,
    catalog: &TableIdentity,
    clock: &Reading,
    settings: &Settings,
) -> sqlx::Result<Option<ClockRefused>> {
    let max_skew = settings.max_clock_skew;
    let seen = outlook(connection, catalog.catalog_id, clock, max_skew).await?;
    Ok(seen.why().map(|reason| ClockRefused { catalog: catalog.catalog.clone(), reason }))
}

/// Plans every table in scope that has a policy, at `at` or at the database's time. The session
/// is unable to write.
///
/// # Errors
/// The database is away, our schema is not there, or the scope names what is not there.
pub async fn plan_all(
    database: &Database,
    settings: &Settings,
    scope: &Scope,
    at: Option<UtcInstant>,
) -> anyhow::Result<Plans> {
    database
        .in_session(Access::ReadOnly, async |session| {
            plan_all_in(session, settings, scope, at).await
        })
        .await
}

async fn plan_all_in(
    connection: &mut Session,
    settings: &Settings,
    scope: &Scope,
    at: Option<UtcInstant>,
) -> anyhow::Result<Plans> {
    let clock = clock_at(connection, settings, at).await?;
    let as_of = clock.database;
    let mut plans = Plans { as_of, refused: Vec::new(), tables: Vec::new() };
    for catalog in catalogs(connection).await? {
        if !scope.has_catalog(&catalog.name) {
            continue;
        }
        let from = plans.tables.len();
        let named = |namespace: &str, table: &str| scope.has_table(namespace, table);
        plan_tables(connection, &catalog, settings, &named, true, &mut plans).await?;
        if let (None, Some((first, _))) = (at, plans.tables.get(from)) {
            plans.refused.extend(refused_in(connection, first, &clock, settings).await?);
        }
    }
    Ok(plans)
}

/// Plans those of a catalog's tables that are `named` (namespace, table) and have a policy, at the database's time and by
/// what is in force: an approval is of a revision, and what no pass has brought into force gets another one then.
pub async fn plan_catalog(
    connection: &mut Session,
    catalog: &Catalog,
    settings: &Settings,
    named: &(dyn Fn(&str, &str) -> bool + Sync),
) -> anyhow::Result<Plans> {
    let as_of = clock_at(connection, settings, None).await?.database;
    let mut plans = Plans { as_of, refused: Vec::new(), tables: Vec::new() };
    plan_tables(connection, catalog, settings, named, false, &mut plans).await?;
    Ok(plans)
}

async fn plan_tables(
    connection: &mut Session,
    catalog: &Catalog,
    settings: &Settings,
    named: &(dyn Fn(&str, &str) -> bool + Sync),
    is_of_next_pass: bool,
    plans: &mut Plans,
) -> anyhow::Result<()> {
    for table in live_tables(connection, catalog, true).await? {
        if !named(&table.identity.namespace, &table.identity.table) {
            continue;
        }
        let look = effective::look(connection, &table, settings.policy_limits).await?;
        let plan = match look {
            Ok(None) => continue,
            Err(problem) => Err(problem),
            Ok(Some(_)) if !table.is_parquet => Err(NOT_PARQUET.to_owned()),
            Ok(Some(policy)) => {
                let policy = if is_of_next_pass { policy.at(plans.as_of) } else { policy };
                plan_table(connection, &table.identity, &policy, plans.as_of, settings)
                    .await
                    .map_err(|error| describe(&error))
            }
        };
        plans.tables.push((table.identity, plan));
    }
    Ok(())
}

/// Plans one table, at `at` or at the database's time; `None` where no policy is in force.
///
/// # Errors
/// A policy that cannot be followed, in words; or the database's.
pub async fn plan_live_table(
    connection: &mut Session,
    table: &LiveTable,
    settings: &Settings,
    at: Option<UtcInstant>,
) -> anyhow::Result<Option<Plans>> {
    let clock = clock_at(connection, settings, at).await?;
    let as_of = clock.database;
    let plan = match effective::look(connection, table, settings.policy_limits).await? {
        Ok(None) => return Ok(None),
        Err(problem) => Err(problem),
        Ok(Some(_)) if !table.is_parquet => Err(NOT_PARQUET.to_owned()),
        Ok(Some(policy)) => {
            Ok(plan_table(connection, &table.identity, &policy.at(as_of), as_of, settings).await?)
        }
    };
    let refused = match at {
        Some(_) => None,
        None => refused_in(connection, &table.identity, &clock, settings).await?,
    };
    let refused = refused.into_iter().collect();
    Ok(Some(Plans { as_of, refused, tables: vec![(table.identity.clone(), plan)] }))
}

/// What the table's property alone would do if there were no stored policy: its policy and plan,
/// or why it would not be followed. `None` without the property.
pub async fn plan_of_property(
    connection: &mut Session,
    table: &LiveTable,
    settings: &Settings,
) -> anyhow::Result<Option<Result<(Policy, TablePlan), String>>> {
    let policy = match effective::property_alone(connection, table, settings.policy_limits).await? {
        None => return Ok(None),
        Some(Err(problem)) => return Ok(Some(Err(problem))),
        Some(Ok(policy)) => policy,
    };
    let now = clock::now(connection).await?;
    let plan = plan_table(connection, &table.identity, &policy, now, settings).await?;
    Ok(Some(Ok((policy, plan))))
}

/// What would be dropped if a spec were trusted (`tailrace spec trust`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Released {
    /// Under which policy.
    pub policy: Policy,
    /// What would be dropped now, and is kept without the trust; oldest first.
    pub tuples: Vec<ExpiredTuple>,
    /// What its values may be instead, in words.
    pub may_be: BTreeSet<String>,
}

/// What would be dropped now, and is kept otherwise, if the values of a spec's files were trusted,
/// or why the table's policy is not followed; `None` where no policy is in force. Writes nothing.
pub async fn plan_of_trust(
    connection: &mut Session,
    table: &LiveTable,
    spec_id: i64,
    settings: &Settings,
) -> anyhow::Result<Option<Result<Released, String>>> {
    let policy = match effective::look(connection, table, settings.policy_limits).await? {
        Ok(None) => return Ok(None),
        Err(problem) => return Ok(Some(Err(problem))),
        Ok(Some(policy)) => policy,
    };
    let identity = &table.identity;
    let now = clock::now(connection).await?;
    let (book, judge) = policy.judge(connection, identity, now).await?;
    let mut trusting = book.clone();
    trusting.past.entry(spec_id).or_default().trusted_at.get_or_insert(now);
    let kept = plan_by_book(connection, identity, &policy, now, settings, &book).await?;
    let plan = plan_by_book(connection, identity, &policy, now, settings, &trusting).await?;
    let goes_anyway: HashSet<_> = kept.expired.iter().map(|expired| &expired.tuple).collect();
    let mut tuples = plan.expired;
    tuples.retain(|expired| {
        expired.tuple.spec_id == spec_id && !goes_anyway.contains(&expired.tuple)
    });
    let may_be = tuples
        .iter()
        .filter_map(|expired| match judge.judge(Some(spec_id), &expired.tuple.tuple) {
            Verdict::Expired { doubt, .. } => Some(doubt.may_be),
            Verdict::Kept { .. } => None,
        })
        .flatten()
        .collect();
    Ok(Some(Ok(Released { policy, tuples, may_be })))
}
