//! The endpoints for probes and Prometheus: `/livez` (the process runs), `/healthz` (the database
//! answers) and `/metrics`.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::failure::ErrorBody;
use super::failure::Failure;
use super::state::State;
use crate::metrics::CONTENT_TYPE as METRICS;

/// All is well.
#[derive(Debug, Serialize, ToSchema)]
pub struct Well {
    /// `ok`
    pub status: &'static str,
}

const WELL: Well = Well { status: "ok" };

/// The process lives. Never asks the database.
#[utoipa::path(get, path = "/livez", tag = "probes", responses((status = 200, body = Well)), security(()))]
pub async fn livez() -> Json<Well> {
    Json(WELL)
}

/// The database answers.
#[utoipa::path(
    get,
    path = "/healthz",
    tag = "probes",
    responses((status = 200, body = Well), (status = 503, body = ErrorBody)),
    security(())
)]
pub async fn healthz(From(state): From<Arc<State>>) -> Result<Json<Well>, Failure> {
    if state.probe.answers().await { Ok(Json(WELL)) } else { Err(Failure::Unavailable) }
}

/// What is counted, for Prometheus.
#[utoipa::path(
    get,
    path = "/metrics",
    tag = "probes",
    responses((status = 200, body = String, content_type = "application/openmetrics-text"))
)]
pub async fn metrics(From(state): From<Arc<State>>) -> Response {
    ([(CONTENT_TYPE, METRICS)], state.metrics.text()).into_response()
}
