//! The endpoints for the policies of a table: read, set and delete them, and show the table's plan.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::extract::TablePath;
use super::extract::{JsonBody, Named, NoParams, Params};
use super::failure::ErrorBody;
use super::failure::Failure;
use super::sessions::Use;
use super::state::State;
use super::tokens::Caller;
use crate::catalog::session::Session;
use crate::catalog::tables::{LiveTable, find_table};
use crate::claims::{self, policy_changed};
use crate::explicit::call::TableRef;
use crate::explicit::problem::Problem;
use crate::explicit::validate::{LONGEST_MESSAGE, fits};
use crate::policy::history::Changer;
use crate::policy::listing::{PoliciesAnswer, listed};
use crate::policy::set::{Wanted, set_policy};
use crate::policy::unset::unset_gone;
use crate::policy::{self, Mode, store};
use crate::rules::instant::UtcInstant;
use crate::sweep::Settings;
use crate::sweep::plan_report::PlanReport;
use crate::sweep::planning::{plan_live_table, plan_of_property};

/// A policy to set.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyBody {
    /// A column (`timestamp`, `meta.ts`) or a partition field (`day(timestamp)`).
    pub field: String,
    /// How long a partition stays after its last instant: s, m, h, d or w, such as 7d.
    pub keep: String,
    /// So many of the newest distinct time values that have a live file stay whatever their age, up to 10,000; 0
    /// takes that back. Left as it is if not given.
    #[serde(default)]
    pub keep_last: Option<i64>,
    /// What the policy does. Left as it is if not given; a new policy is enforced.
    #[serde(default)]
    pub mode: Option<Mode>,
    /// Whether its drops are fenced: consumers of the server's own feed are told to reconcile, and
    /// every append that was prepared before conflicts once. Left as it is if not given.
    #[serde(default)]
    pub fence: Option<bool>,
    /// Why, for whoever reads the history of the table's policies. At most 8 KiB.
    #[serde(default)]
    pub reason: Option<String>,
    /// Whether whoever sets it has seen what the policy drops, and wants that: it is in force at once and not after
    /// `guard.policy_grace`, and what expires by it is not held for its number.
    #[serde(default)]
    pub confirmed: bool,
}

/// The parameters of a DELETE.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UnsetParams {
    /// Let the table's property take over.
    #[serde(default)]
    pub accept_property: bool,
    /// Why, for whoever reads the history of the table's policies. At most 8 KiB.
    pub reason: Option<String>,
}

/// The parameters of a plan.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct PlanParams {
    /// Plan for this time (RFC 3339) instead of the database's now.
    pub at: Option<String>,
}

/// The table's policies.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention",
    tag = "policies",
    params(TablePath),
    responses(
        (status = 200, body = PoliciesAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_policy(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<PoliciesAnswer>, Failure> {
    let mut session = state.sessions.open(Use::Look).await?;
    let work = async move {
        let found = policies(&mut session.connection, &path.table()).await;
        session.close().await;
        found
    };
    state.carry(work).await.map(Json)
}

async fn policies(connection: &mut Session, table: &TableRef) -> Result<PoliciesAnswer, Failure> {
    let live = find(connection, table).await?;
    let policies = listed(connection, &live).await?;
    if policies.is_empty() {
        return Err(no_policy(table, ""));
    }
    Ok(PoliciesAnswer { policies })
}

/// Sets the table's stored policy. An existing one is replaced.
#[utoipa::path(
    put,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention",
    tag = "policies",
    params(TablePath),
    request_body = PolicyBody,
    responses(
        (status = 200, body = PoliciesAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn put_policy(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<TablePath>,
    Params(NoParams {}): Params<NoParams>,
    JsonBody(body): JsonBody<PolicyBody>,
) -> Result<Json<PoliciesAnswer>, Failure> {
    if body.confirmed && state.settings.four_eyes {
        return Err(Failure::Problem(Problem::FourEyes(
            "guard.four_eyes is on: set the policy without confirmed, and let somebody else approve what it drops"
                .to_owned(),
        )));
    }
    let mut session = state.sessions.open(Use::Change).await?;
    let (settings, claims) = (state.settings, state.claims);
    let work = async move {
        let (connection, table) = (&mut session.connection, path.table());
        let set = set(connection, &table, &body, &caller.name, &settings, &claims).await;
        session.close().await;
        set
    };
    state.carry(work).await.map(Json)
}

async fn set(
    connection: &mut Session,
    table: &TableRef,
    body: &PolicyBody,
    by: &str,
    settings: &Settings,
    claims: &claims::Settings,
) -> Result<PoliciesAnswer, Failure> {
    fits_reason(body.reason.as_deref())?;
    find(connection, table).await?;
    let wanted = Wanted {
        catalog: &table.catalog,
        namespace: &table.namespace,
        table: &table.table,
        field: &body.field,
        keep: &body.keep,
        keep_last: body.keep_last,
        mode: body.mode,
        fence: body.fence,
        is_confirmed: body.confirmed,
        by,
        reason: body.reason.as_deref(),
    };
    let set = set_policy(connection, wanted, settings.policy_limits)
        .await
        .map_err(|error| Failure::of(&error, Problem::Validation))?;
    policy_changed(connection, &set.table, claims).await;
    policies(connection, table).await
}

fn fits_reason(reason: Option<&str>) -> Result<(), Failure> {
    let fits = fits(reason.unwrap_or_default(), LONGEST_MESSAGE);
    fits.map_err(|why| Failure::Problem(Problem::Validation(format!("reason {why}"))))
}

/// Deletes the table's stored policy. Where it has none, the policies of dropped tables are deleted that
/// had its name, or whose place it took.
///
/// Refused with 409 `property_takes_over` where the table's property would be in force then.
#[utoipa::path(
    delete,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention",
    tag = "policies",
    params(TablePath, UnsetParams),
    responses(
        (status = 204),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn delete_policy(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<TablePath>,
    Params(params): Params<UnsetParams>,
) -> Result<StatusCode, Failure> {
    fits_reason(params.reason.as_deref())?;
    let mut session = state.sessions.open(Use::Change).await?;
    let (settings, claims) = (state.settings, state.claims);
    let work = async move {
        let changer = Changer { name: &caller.name, reason: params.reason.as_deref() };
        let (connection, table) = (&mut session.connection, path.table());
        let accept = params.accept_property;
        let unset = unset(connection, &table, accept, changer, &settings, &claims).await;
        session.close().await;
        unset
    };
    state.carry(work).await.map(|()| StatusCode::NO_CONTENT)
}

async fn unset(
    connection: &mut Session,
    table: &TableRef,
    accept_property: bool,
    changer: Changer<'_>,
    settings: &Settings,
    claims: &claims::Settings,
) -> Result<(), Failure> {
    let names = (table.namespace.as_str(), table.table.as_str());
    let live = match find(connection, table).await {
        Ok(live) => live,
        Err(failure @ Failure::Problem(Problem::NotFound(_))) => {
            let gone = unset_gone(connection, &table.catalog, names, None, changer).await?;
            return if gone.is_empty() { Err(failure) } else { Ok(()) };
        }
        // A catalog that could not be asked says of no table that it is gone.
        Err(failure) => return Err(failure),
    };
    if store::rows(connection, &live.identity).await?.stored.is_none() {
        let gone = unset_gone(connection, &table.catalog, names, Some(&live), changer).await?;
        if !gone.is_empty() {
            return Ok(());
        }
        let hint = match live.property {
            Some(_) => "; its property partition_retention is the table's own",
            None => "",
        };
        return Err(no_policy(table, hint));
    }
    if !accept_property {
        let takes_over = plan_of_property(connection, &live, settings).await;
        if let Some(Ok((policy, plan))) =
            takes_over.map_err(|error| Failure::of(&error, Problem::Validation))?
        {
            let counts = plan.expired_counts();
            return Err(Failure::Problem(Problem::PropertyTakesOver(format!(
                "the table's property partition_retention takes over: {} keep {}, {}; at the \
                 moment it would drop {} partitions with {} files, {} records and {} bytes; \
                 accept_property=true lets it",
                policy.field,
                policy.keep,
                policy.mode,
                plan.expired.len(),
                counts.files,
                counts.records,
                counts.bytes,
            ))));
        }
    }
    let is_confirmed = accept_property && !settings.four_eyes;
    policy::unset::unset(connection, &live, changer, is_confirmed).await?;
    policy_changed(connection, &live.identity, claims).await;
    Ok(())
}

/// What a pass would drop from the table, what it would keep, and why. Never writes.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention/plan",
    tag = "policies",
    params(TablePath, PlanParams),
    responses(
        (status = 200, body = PlanReport),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_plan(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(params): Params<PlanParams>,
) -> Result<Json<PlanReport>, Failure> {
    let at = match params.at.map(|text| text.parse::<UtcInstant>()).transpose() {
        Ok(at) => at,
        Err(error) => return Err(Failure::Problem(Problem::BadRequest(format!("at: {error}")))),
    };
    let mut session = state.sessions.open(Use::Look).await?;
    let settings = state.settings;
    let work = async move {
        let table = path.table();
        let plan = plan(&mut session.connection, &table, at, &settings).await;
        session.close().await;
        plan
    };
    state.carry(work).await.map(Json)
}

async fn plan(
    connection: &mut Session,
    table: &TableRef,
    at: Option<UtcInstant>,
    settings: &Settings,
) -> Result<PlanReport, Failure> {
    let live = find(connection, table).await?;
    let plan = plan_live_table(connection, &live, settings, at)
        .await
        .map_err(|error| Failure::of(&error, Problem::Validation))?;
    plan.map(|plans| PlanReport::of(&plans)).ok_or_else(|| no_policy(table, ""))
}

pub(super) async fn find(connection: &mut Session, table: &TableRef) -> Result<LiveTable, Failure> {
    find_table(connection, &table.catalog, &table.namespace, &table.table)
        .await
        .map_err(|error| Failure::of(&error, Problem::NotFound))
}

fn no_policy(table: &TableRef, hint: &str) -> Failure {
    let TableRef { namespace, table, .. } = table;
    Failure::Problem(Problem::NotFound(format!("table {namespace}.{table} has no policy{hint}")))
}
