//! The endpoints of pauses.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::extract::{CatalogPath, JsonBody, Named, NoParams, Params, TablePath};
use super::failure::{ErrorBody, Failure};
use super::holds::ConfirmedParams;
use super::sessions::Use;
use super::state::State;
use super::tokens::Caller;
use crate::explicit::call::TableRef;
use crate::explicit::confirm;
use crate::explicit::problem::Problem;
use crate::explicit::validate::{LONGEST_MESSAGE, fits};
use crate::guards::pause::{self, Pause, PauseError, PauseScope};
use crate::guards::resume::resume;

/// The body that pauses.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PauseBody {
    /// Why, at most 8,192 bytes of UTF-8.
    pub reason: String,
}

/// Pauses, as JSON has them.
#[derive(Debug, Serialize, ToSchema)]
pub struct PausesAnswer {
    /// The widest first.
    pub pauses: Vec<Pause>,
}

/// What a path names.
enum Where {
    All,
    Catalog(String),
    Table(TableRef),
}

impl Where {
    fn scope(&self) -> PauseScope<'_> {
        match self {
            Self::All => PauseScope::All,
            Self::Catalog(catalog) => PauseScope::Catalog(catalog),
            Self::Table(TableRef { catalog, namespace, table }) => {
                PauseScope::Table(catalog, namespace, table)
            }
        }
    }
}

/// All pauses.
#[utoipa::path(
    get,
    path = "/pauses",
    tag = "guards",
    responses(
        (status = 200, body = PausesAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_pauses(
    From(state): From<Arc<State>>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<PausesAnswer>, Failure> {
    let mut session = state.sessions.open(Use::Look).await?;
    let work = async move {
        let pauses = pause::all(&mut session.connection).await;
        session.close().await;
        Ok(PausesAnswer { pauses: pauses? })
    };
    state.carry(work).await.map(Json)
}

/// Pauses drops in every catalog. A pause that is there already stays, and is the answer.
#[utoipa::path(
    put,
    path = "/pause",
    tag = "guards",
    request_body = PauseBody,
    responses(
        (status = 200, body = Pause),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn pause_all(
    From(state): From<Arc<State>>,
    caller: Caller,
    Params(NoParams {}): Params<NoParams>,
    JsonBody(body): JsonBody<PauseBody>,
) -> Result<Json<Pause>, Failure> {
    put(&state, caller, Where::All, body).await
}

/// Pauses drops in a catalog.
#[utoipa::path(
    put,
    path = "/catalogs/{catalog}/pause",
    tag = "guards",
    params(CatalogPath),
    request_body = PauseBody,
    responses(
        (status = 200, body = Pause),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn pause_catalog(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<CatalogPath>,
    Params(NoParams {}): Params<NoParams>,
    JsonBody(body): JsonBody<PauseBody>,
) -> Result<Json<Pause>, Failure> {
    put(&state, caller, Where::Catalog(path.catalog), body).await
}

/// Pauses drops of a table.
#[utoipa::path(
    put,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/pause",
    tag = "guards",
    params(TablePath),
    request_body = PauseBody,
    responses(
        (status = 200, body = Pause),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn pause_table(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<TablePath>,
    Params(NoParams {}): Params<NoParams>,
    JsonBody(body): JsonBody<PauseBody>,
) -> Result<Json<Pause>, Failure> {
    put(&state, caller, Where::Table(path.table()), body).await
}

/// Takes the pause of every catalog away, after `guard.policy_grace` unless it is confirmed: it has an `until` until then.
/// Pauses of single catalogs and tables stay.
#[utoipa::path(
    delete,
    path = "/pause",
    tag = "guards",
    params(ConfirmedParams),
    responses(
        (status = 200, body = PausesAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn resume_all(
    From(state): From<Arc<State>>,
    caller: Caller,
    Params(params): Params<ConfirmedParams>,
) -> Result<Json<PausesAnswer>, Failure> {
    delete(&state, caller, Where::All, params).await
}

/// Takes a catalog's pause away, after `guard.policy_grace` unless it is confirmed. Those of its tables stay.
#[utoipa::path(
    delete,
    path = "/catalogs/{catalog}/pause",
    tag = "guards",
    params(CatalogPath, ConfirmedParams),
    responses(
        (status = 200, body = PausesAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn resume_catalog(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<CatalogPath>,
    Params(params): Params<ConfirmedParams>,
) -> Result<Json<PausesAnswer>, Failure> {
    delete(&state, caller, Where::Catalog(path.catalog), params).await
}

/// Takes a table's pause away, after `guard.policy_grace` unless it is confirmed: the one that was made under this name, or of the table that has it now.
#[utoipa::path(
    delete,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/pause",
    tag = "guards",
    params(TablePath, ConfirmedParams),
    responses(
        (status = 200, body = PausesAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn resume_table(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<TablePath>,
    Params(params): Params<ConfirmedParams>,
) -> Result<Json<PausesAnswer>, Failure> {
    delete(&state, caller, Where::Table(path.table()), params).await
}

async fn put(
    state: &Arc<State>,
    caller: Caller,
    of: Where,
    body: PauseBody,
) -> Result<Json<Pause>, Failure> {
    let invalid = |text: String| Failure::Problem(Problem::Validation(text));
    if body.reason.trim().is_empty() || body.reason.contains('\0') {
        return Err(invalid("reason is empty, or has a NUL".to_owned()));
    }
    fits(&body.reason, LONGEST_MESSAGE).map_err(|why| invalid(format!("reason {why}")))?;
    let mut session = state.sessions.open(Use::Change).await?;
    let work = async move {
        let connection = &mut session.connection;
        let paused = pause::pause(connection, of.scope(), &caller.name, &body.reason).await;
        session.close().await;
        match paused {
            Ok((pause, _)) => Ok(pause),
            Err(PauseError::NotFound(text)) => Err(Failure::Problem(Problem::NotFound(text))),
            Err(PauseError::Database(error)) => Err(error.into()),
        }
    };
    state.carry(work).await.map(Json)
}

async fn delete(
    state: &Arc<State>,
    caller: Caller,
    of: Where,
    ConfirmedParams { confirmed }: ConfirmedParams,
) -> Result<Json<PausesAnswer>, Failure> {
    let settings = &state.settings;
    let grace = confirm::grace(confirmed, settings.policy_limits.grace, settings.four_eyes)
        .map_err(Failure::Problem)?;
    let mut session = state.sessions.open(Use::Change).await?;
    let work = async move {
        let resumed = resume(&mut session.connection, of.scope(), &caller.name, grace).await;
        session.close().await;
        match resumed? {
            none if none.is_empty() => {
                Err(Failure::Problem(Problem::NotFound("it is not paused".to_owned())))
            }
            pauses => Ok(PausesAnswer { pauses }),
        }
    };
    state.carry(work).await.map(Json)
}
