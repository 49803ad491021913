//! The errors of requests, and how each is answered: its status, its headers, and the JSON object
//! `{"detail": text, "error": code}` with the further fields that the contract names for the code.

use std::any::Any;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{CONNECTION, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::task::JoinError;

use crate::catalog;
use crate::events;
use crate::explicit::problem::Problem;
use crate::installation::Unfit;
use serde::Serialize;
use utoipa::ToSchema;

/// The error. Some codes come with more fields.
#[derive(Debug, Serialize, ToSchema)]
pub struct ErrorBody {
    /// A code that does not change.
    pub error: String,
    /// What it means here, for people.
    pub detail: String,
    /// The tables that it is about (`table_recreated`, `ddl_since_read_snapshot`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tables: Option<Vec<String>>,
    /// The snapshot that was refused (`ddl_since_read_snapshot`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_snapshot: Option<i64>,
    /// `re-prepare`: the same request will not succeed, one prepared anew may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<String>,
}

/// When a client may try again, as `Retry-After` says.
const COME_AGAIN: Duration = Duration::from_secs(1);

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// A problem of the request.
    #[error(transparent)]
    Problem(#[from] Problem),
    /// 401 `unauthorized`.
    #[error("a token is needed: Authorization: Bearer TOKEN")]
    Unauthorized,
    /// 403 `forbidden`.
    #[error("{0}")]
    Forbidden(&'static str),
    /// 404 `not_found`: no such path.
    #[error("there is no such path")]
    NoSuchPath,
    /// 405 `method_not_allowed`.
    #[error("the path does not have this method")]
    MethodNotAllowed,
    /// 408 `request_timeout`: the body did not come in time.
    #[error("the body did not come within http.body_timeout; nothing was done")]
    BodyTimeout,
    /// 413 `payload_too_large`.
    #[error("the body has more than {0} bytes")]
    BodyTooLarge(usize),
    /// 503 `too_many_drops`: the limit of drops in flight is reached.
    #[error("too many drops are in flight; nothing was done, try again")]
    TooManyDrops,
    /// 503 `unavailable`: the database could not be reached, or no session was free.
    #[error("the database cannot be used at the moment; nothing was done, try again")]
    Unavailable,
    /// 503 `unavailable`: the connection to the database was lost during the request, or the
    /// database did not answer in time.
    #[error(
        "the database was lost on the way: a change may have been carried out or not; look, or ask again"
    )]
    Lost,
}

impl Failure {
    /// The HTTP status.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::Problem(problem) => {
                StatusCode::from_u16(problem.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }
            Self::Unauthorized => StatusCode::UNAUTHORIZED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
            Self::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
            Self::BodyTooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooManyDrops | Self::Unavailable | Self::Lost => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    /// The body.
    pub fn body(&self) -> serde_json::Value {
        let code = match self {
            Self::Problem(problem) => return problem.body(),
            Self::Unauthorized => "unauthorized",
            Self::Forbidden(_) => "forbidden",
            Self::NoSuchPath => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::BodyTimeout => "request_timeout",
            Self::BodyTooLarge(_) => "payload_too_large",
            Self::TooManyDrops => "too_many_drops",
            Self::Unavailable | Self::Lost => "unavailable",
        };
        serde_json::json!({"error": code, "detail": self.to_string()})
    }

    fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Problem(Problem::CommitQueueTimeout { retry_after, .. }) => Some(*retry_after),
            Self::TooManyDrops
            | Self::Unavailable
            | Self::Lost
            | Self::Problem(Problem::Unavailable | Problem::Unfit(_)) => Some(COME_AGAIN),
            // Somebody has to look first ([`Problem::OutcomeUnknown`]), or nothing is gained by it.
            _ => None,
        }
    }

    /// The failure for an error of the database. The error itself is only logged.
    pub fn of_database(error: &sqlx::Error) -> Self {
        use catalog::errors::Failure as Cause;
        match Cause::of(error) {
            Cause::LockNotAvailable => Self::Problem(Problem::CommitQueueTimeout {
                reason: "a lock could not be acquired in time".to_owned(),
                retry_after: COME_AGAIN,
            }),
            Cause::ConnectionLost => {
                log_failure("unavailable", error);
                Self::Lost
            }
            Cause::TryAgain | Cause::StatementCancelled => {
                log_failure("unavailable", error);
                Self::Unavailable
            }
            Cause::MissingObject | Cause::NotPermitted | Cause::Content | Cause::Other => {
                log_failure("internal_error", error);
                Self::Problem(Problem::Internal)
            }
        }
    }

    /// The failure where no session could be opened.
    pub fn of_session(error: &anyhow::Error) -> Self {
        if let Some(unfit) = error.downcast_ref::<Unfit>() {
            log_failure("unavailable", unfit);
            return Self::Problem(Problem::Unfit(unfit.clone()));
        }
        match error.downcast_ref::<sqlx::Error>().map(Self::of_database) {
            // Nothing was asked of it yet.
            Some(Self::Lost) => Self::Unavailable,
            Some(failure) => failure,
            None => Self::of_configuration(error),
        }
    }

    /// The failure where the configuration cannot be used any more, as where the password's file is
    /// missing.
    pub fn of_configuration(error: &anyhow::Error) -> Self {
        log_failure("unavailable", &format!("{error:#}"));
        Self::Unavailable
    }

    /// The failure for an error with a message. A message of tailrace is sent to the caller, in the
    /// problem that `ours` makes of it. An error of the database is only logged.
    pub fn of(error: &anyhow::Error, ours: impl FnOnce(String) -> Problem) -> Self {
        let database = error.chain().find_map(|cause| cause.downcast_ref::<sqlx::Error>());
        match database {
            Some(database) => Self::of_database(database),
            None => Self::Problem(ours(format!("{error:#}"))),
        }
    }
}

/// Logs what an answer hides.
fn log_failure(code: &str, error: &dyn std::fmt::Display) {
    tracing::error!(
        event = events::REQUEST_FAILED,
        code,
        error = %error,
        "A request could not be carried out"
    );
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        Self::of_database(&error)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::from(self.body().to_string()));
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(pause) = self.retry_after() {
            // Whole seconds are all that the header can say; 0 would mean at once.
            let seconds = pause.as_secs_f64().ceil().max(1.0) as u64;
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        match self {
            Self::Unauthorized => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            // What is left of the body is not waited for.
            Self::BodyTimeout | Self::BodyTooLarge(_) => {
                headers.insert(CONNECTION, HeaderValue::from_static("close"));
            }
            _ => {}
        }
        response
    }
}

/// The failure where a task panicked; the panic is in the log.
pub(super) fn of_join(error: JoinError) -> Failure {
    match error.try_into_panic() {
        Ok(panic) => of_payload(panic),
        // The runtime ends.
        Err(_) => Failure::Unavailable,
    }
}

/// The answer where a handler panicked; the panic is in the log.
pub(super) fn of_panic(panic: Box<dyn Any + Send + 'static>) -> Response {
    of_payload(panic).into_response()
}

fn of_payload(panic: Box<dyn Any + Send + 'static>) -> Failure {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
    log_failure("internal_error", &format!("panic: {}", text.unwrap_or_default()));
    Failure::Problem(Problem::Internal)
}
