//! What machines ask: whether we live, whether the database answers, what is counted.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State as From;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::sync::Mutex;
use utoipa::ToSchema;

use super::failure::Failure;
use super::routes::{ErrorBody, document};
use super::sessions::OpenDatabase;
use super::state::State;
use crate::catalog::connect::{Access, close};
use crate::metrics::CONTENT_TYPE as METRICS;

/// An answer of the database counts for so long: nobody who asks more often makes it work more.
const FRESH: Duration = Duration::from_secs(1);

/// The database answers within this, or is not healthy.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// All is well.
#[derive(Debug, Serialize, ToSchema)]
pub struct Well {
    /// `ok`
    pub status: &'static str,
}

const WELL: Well = Well { status: "ok" };

/// Asks the database whether it answers, one at a time, with a session beside those of requests.
pub struct Probe {
    database: OpenDatabase,
    last: Mutex<Option<(Instant, bool)>>,
}

impl Probe {
    pub(super) fn new(database: OpenDatabase) -> Self {
        Probe { database, last: Mutex::new(None) }
    }

    async fn answers(&self) -> bool {
        let mut last = self.last.lock().await;
        match *last {
            Some((at, answers)) if at.elapsed() < FRESH => answers,
            _ => {
                let asked = tokio::time::timeout(ANSWERS_WITHIN, self.ask()).await;
                let answers = matches!(asked, Ok(Ok(())));
                *last = Some((Instant::now(), answers));
                answers
            }
        }
    }

    async fn ask(&self) -> anyhow::Result<()> {
        // That it answers is all that is asked: who may work on it is another question.
        close((self.database)()?.unchecked(Access::ReadOnly).await?).await;
        Ok(())
    }
}

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

/// This interface, described.
#[utoipa::path(
    get,
    path = "/openapi.json",
    tag = "probes",
    responses((status = 200, body = Object, content_type = "application/json"))
)]
pub async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], document()).into_response()
}
