//! The endpoints that start a pass over a catalog and that report on a pass.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use axum::http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::extract::CatalogPath;
use super::extract::{Named, NoParams, Params};
use super::failure::ErrorBody;
use super::failure::Failure;
use super::passes::PassAnswer;
use super::sessions::Use;
use super::state::State;
use crate::catalog::tables::catalogs;
use crate::explicit::problem::Problem;

/// The path of a pass.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct PassPath {
    /// The catalog's name.
    pub catalog: String,
    /// The pass's id.
    pub id: Uuid,
}

/// Starts a pass over the catalog, and returns the pass's id.
///
/// Refused with 409 `pass_running` while a pass runs in this daemon.
#[utoipa::path(
    post,
    path = "/catalogs/{catalog}/maintenance/partition-retention",
    tag = "passes",
    params(CatalogPath),
    responses(
        (status = 202, body = PassAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn start_pass(
    From(state): From<Arc<State>>,
    Named(CatalogPath { catalog }): Named<CatalogPath>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<(StatusCode, Json<PassAnswer>), Failure> {
    let mut session = state.sessions.open(Use::Change).await?;
    let work = async move {
        let found = catalogs(&mut session.connection).await;
        session.close().await;
        Ok(found?)
    };
    if !state.carry(work).await?.iter().any(|known| known.name == catalog) {
        let detail = format!("there is no catalog {catalog:?}");
        return Err(Failure::Problem(Problem::NotFound(detail)));
    }
    Ok((StatusCode::ACCEPTED, Json(state.passes.start(catalog)?)))
}

/// The state of a pass, and its report. The daemon knows the last 100 passes that were requested
/// since its start.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/maintenance/partition-retention/{id}",
    tag = "passes",
    params(PassPath),
    responses(
        (status = 200, body = PassAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_pass(
    From(state): From<Arc<State>>,
    Named(PassPath { catalog, id }): Named<PassPath>,
    Params(NoParams {}): Params<NoParams>,
) -> Result<Json<PassAnswer>, Failure> {
    state.passes.get(&catalog, id).map(Json).ok_or_else(|| {
        let detail = format!("no pass {id} over catalog {catalog:?} is known");
        Failure::Problem(Problem::NotFound(detail))
    })
}
