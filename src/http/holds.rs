//! The endpoints of holds.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::extract::{JsonBody, Named, NoParams, Params, TablePath};
use super::failure::{ErrorBody, Failure};
use super::sessions::Use;
use super::state::State;
use super::tokens::Caller;
use crate::explicit::call::TableRef;
use crate::explicit::confirm;
use crate::explicit::holds::{self, HoldAnswer, HoldBody, HoldsAnswer};
use crate::explicit::problem::Problem;
use crate::guards::hold::Hold;
use crate::guards::release::release;

/// The id in a hold's path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct HoldPath {
    /// The hold's id.
    pub hold_id: i64,
}

/// Whether what is let go was seen.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ConfirmedParams {
    /// Let it go at once, and not after `guard.policy_grace`.
    #[serde(default)]
    pub confirmed: bool,
}

/// A hold that was released and ends later.
#[derive(Debug, Serialize, ToSchema)]
pub struct ReleasedAnswer {
    /// It keeps what it keeps until its `until`.
    pub released: Hold,
}

/// All holds, with what each keeps.
#[utoipa::path(
    get,
    path = "/holds",
    tag = "guards",
    responses(
        (status = 200, body = HoldsAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_holds(
    From(state): From<Arc<State>>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<HoldsAnswer>, Failure> {
    listed(&state, None).await
}

/// The holds of a table, with what each keeps.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/holds",
    tag = "guards",
    params(TablePath),
    responses(
        (status = 200, body = HoldsAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_table_holds(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<HoldsAnswer>, Failure> {
    listed(&state, Some(path.table())).await
}

async fn listed(state: &Arc<State>, table: Option<TableRef>) -> Result<Json<HoldsAnswer>, Failure> {
    let mut session = state.sessions.open(Use::Look).await?;
    let limit = state.settings.count_timeout;
    let work = async move {
        let holds = holds::list(&mut session.connection, table.as_ref(), limit).await;
        session.close().await;
        Ok(holds?)
    };
    state.carry(work).await.map(Json)
}

/// Holds partitions of the table, or all of it: no drop of tailrace ends them until the hold is released. A hold
/// binds tailrace alone: the server's truncate, deletes of rows and DROP TABLE do not heed it.
#[utoipa::path(
    post,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/holds",
    tag = "guards",
    params(TablePath),
    request_body = HoldBody,
    responses(
        (status = 200, body = HoldAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn add_hold(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<TablePath>,
    Params(NoParams {}): Params<NoParams>,
    JsonBody(body): JsonBody<HoldBody>,
) -> Result<Json<HoldAnswer>, Failure> {
    let mut session = state.sessions.open(Use::Change).await?;
    let limit = state.settings.count_timeout;
    let work = async move {
        let (connection, table) = (&mut session.connection, path.table());
        let added = holds::add(connection, &table, &body, &caller.name, limit).await;
        session.close().await;
        Ok(added?)
    };
    state.carry(work).await.map(Json)
}

/// Releases a hold: 204 where it is gone, 202 where it ends after `guard.policy_grace`, because it was not confirmed.
#[utoipa::path(
    delete,
    path = "/holds/{hold_id}",
    tag = "guards",
    params(HoldPath, ConfirmedParams),
    responses(
        (status = 202, body = ReleasedAnswer),
        (status = 204),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn release_hold(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<HoldPath>,
    Params(ConfirmedParams { confirmed }): Params<ConfirmedParams>,
) -> Result<Response, Failure> {
    let settings = &state.settings;
    let grace = confirm::grace(confirmed, settings.policy_limits.grace, settings.four_eyes)
        .map_err(Failure::Problem)?;
    let mut session = state.sessions.open(Use::Change).await?;
    let work = async move {
        let hold_id = path.hold_id;
        let released = release(&mut session.connection, hold_id, &caller.name, grace).await;
        session.close().await;
        let none = || Failure::Problem(Problem::NotFound(format!("there is no hold {hold_id}")));
        let released = released?.ok_or_else(none)?;
        Ok(match grace.is_zero() {
            true => StatusCode::NO_CONTENT.into_response(),
            false => (StatusCode::ACCEPTED, Json(ReleasedAnswer { released })).into_response(),
        })
    };
    state.carry(work).await
}
