//! The endpoints of approvals.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use super::extract::{JsonBody, Named, NoParams, Params};
use super::failure::{ErrorBody, Failure};
use super::sessions::Use;
use super::state::State;
use super::tokens::Caller;
use crate::approvals::{ApprovalScope, Approved, Approver, SavedPlan, Seen, approve};
use crate::catalog::session::Session;
use crate::explicit::problem::Problem;
use crate::explicit::validate::{LONGEST_MESSAGE, fits};
use crate::guards::approval;
use crate::sweep::Settings;

/// The catalog in a path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct CatalogPath {
    /// The catalog's name.
    pub catalog: String,
}

/// What to approve: what a plan has, or what a digest is of.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalBody {
    /// One namespace; all of the catalog's if not given.
    #[serde(default)]
    pub namespace: Option<String>,
    /// One table of the namespace; all if not given.
    #[serde(default)]
    pub table: Option<String>,
    /// What `tailrace plan --save` wrote.
    #[serde(default)]
    pub plan: Option<SavedPlan>,
    /// The digest that a plan shows.
    #[serde(default)]
    pub digest: Option<String>,
    /// Why. At most 8 KiB.
    #[serde(default)]
    pub reason: Option<String>,
}

/// The approvals of a catalog that are valid, with what is left of each.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/approvals",
    tag = "guards",
    params(CatalogPath),
    responses(
        (status = 200, body = Approved),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_approvals(
    From(state): From<Arc<State>>,
    Named(path): Named<CatalogPath>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<Approved>, Failure> {
    let mut session = state.sessions.open(Use::Look).await?;
    let work = async move {
        let approvals = approval::of_catalog(&mut session.connection, &path.catalog).await;
        session.close().await;
        Ok(Approved { approvals: approvals? })
    };
    state.carry(work).await.map(Json)
}

/// Approves partitions that are held for their number: those of a plan, or of a digest. Refused with 409 `plan_drift`
/// where what is held now is not what the caller saw, and with 403 `four_eyes` where `guard.four_eyes` wants another
/// caller than the one who set the policy or saved the plan.
#[utoipa::path(
    post,
    path = "/catalogs/{catalog}/approvals",
    tag = "guards",
    params(CatalogPath),
    request_body = ApprovalBody,
    responses(
        (status = 200, body = Approved),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn add_approval(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<CatalogPath>,
    Params(NoParams {}): Params<NoParams>,
    JsonBody(body): JsonBody<ApprovalBody>,
) -> Result<Json<Approved>, Failure> {
    let mut session = state.sessions.open(Use::Change).await?;
    let (settings, ttl) = (state.settings, state.approval_ttl);
    let needs_another = settings.four_eyes;
    let work = async move {
        let reason = body.reason.as_deref();
        let approver = Approver { name: &caller.name, reason, ttl, needs_another };
        let connection = &mut session.connection;
        let approved = approved(connection, &path.catalog, &body, &settings, approver).await;
        session.close().await;
        approved
    };
    state.carry(work).await.map(Json)
}

async fn approved(
    connection: &mut Session,
    catalog: &str,
    body: &ApprovalBody,
    settings: &Settings,
    approver: Approver<'_>,
) -> Result<Approved, Failure> {
    let validation = |why: String| Failure::Problem(Problem::Validation(why));
    fits(body.reason.as_deref().unwrap_or_default(), LONGEST_MESSAGE)
        .map_err(|why| validation(format!("reason {why}")))?;
    let seen = match (&body.plan, &body.digest) {
        (Some(plan), None) => Seen::Plan(plan),
        (None, Some(digest)) => Seen::Digest(digest),
        _ => return Err(validation("give either plan or digest".to_owned())),
    };
    let (namespace, table) = (body.namespace.as_deref(), body.table.as_deref());
    if table.is_some() && namespace.is_none() {
        return Err(validation("a table needs its namespace".to_owned()));
    }
    let scope = ApprovalScope { catalog, namespace, table };
    match approve(connection, settings, scope, seen, approver).await {
        Ok(approved) => Ok(approved),
        Err(error) => Err(match error.downcast_ref::<Problem>() {
            Some(problem) => Failure::Problem(problem.clone()),
            None => Failure::of(&error, Problem::Validation),
        }),
    }
}
