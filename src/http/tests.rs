//! Tests of the HTTP interface inside the process: what a client from outside cannot bring about.
//! These are a panic in a handler, each problem as bytes, and more drops than may run at once.

mod document;
mod fuzz;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::{Request, Response};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use tokio_util::sync::CancellationToken;

use super::failure::Failure;
use super::routes::{dressed, router};
use super::{Context, State};
use crate::config::{Config, LoadOptions};
use crate::explicit::problem::Problem;
use crate::installation::Unfit;
use crate::telemetry::capture;

/// A state without a database.
fn state() -> Arc<State> {
    let config = Config::load(&LoadOptions::default()).expect("the built-in configuration");
    let context = Context {
        database: Arc::new(|| anyhow::bail!("postgres://secret@host is away")),
        pass: Arc::new(|_, _| async { anyhow::bail!("no pass") }.boxed()),
        pass_lock: Default::default(),
        metrics: Default::default(),
        tokens: None,
    };
    State::new(&config, context, CancellationToken::new())
}

async fn ask(app: Router, method: &str, path: &str, body: &str) -> Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", "application/json")
        .body(Body::from(body.to_owned()))
        .expect("a request");
    TowerToHyperService::new(app).call(request).await.expect("an answer")
}

async fn bytes(response: Response<Body>) -> String {
    let body = response.into_body().collect().await.expect("a body");
    String::from_utf8(body.to_bytes().to_vec()).expect("text")
}

#[tokio::test]
async fn every_problem_has_its_bytes() {
    let table = || "events.raw".to_owned();
    let text = || "so".to_owned();
    let conflict = Problem::CommitQueueTimeout {
        reason: "the commit lock could not be acquired".to_owned(),
        retry_after: Duration::from_millis(1_001),
    };
    let cases: [(Failure, u16, Option<&str>, &str); 23] = [
        (Problem::BadRequest(text()).into(), 400, None, r#"{"detail":"so","error":"bad_request"}"#),
        (
            Failure::Unauthorized,
            401,
            None,
            r#"{"detail":"a token is needed: Authorization: Bearer TOKEN","error":"unauthorized"}"#,
        ),
        (Failure::Forbidden("no"), 403, None, r#"{"detail":"no","error":"forbidden"}"#),
        (Problem::NotFound(text()).into(), 404, None, r#"{"detail":"so","error":"not_found"}"#),
        (
            Failure::NoSuchPath,
            404,
            None,
            r#"{"detail":"there is no such path","error":"not_found"}"#,
        ),
        (
            Failure::MethodNotAllowed,
            405,
            None,
            r#"{"detail":"the path does not have this method","error":"method_not_allowed"}"#,
        ),
        (
            Failure::BodyTimeout,
            408,
            None,
            r#"{"detail":"the body did not come within http.body_timeout; nothing was done","error":"request_timeout"}"#,
        ),
        (
            Problem::CommitConflict(text()).into(),
            409,
            None,
            r#"{"detail":"so","error":"commit_conflict"}"#,
        ),
        (
            Problem::TableRecreated { table: table() }.into(),
            409,
            None,
            r#"{"detail":"table events.raw has another UUID than the expected one","error":"table_recreated","retry":"re-prepare","tables":["events.raw"]}"#,
        ),
        (
            Problem::DdlSinceReadSnapshot { table: table(), read_snapshot: 7 }.into(),
            409,
            None,
            r#"{"detail":"table events.raw was altered or dropped after snapshot 7","error":"ddl_since_read_snapshot","read_snapshot":7,"retry":"re-prepare","tables":["events.raw"]}"#,
        ),
        (
            Problem::TableDropped { table: table() }.into(),
            409,
            None,
            r#"{"detail":"table events.raw was dropped","error":"table_dropped"}"#,
        ),
        (
            Problem::ReconciliationRequired(text()).into(),
            409,
            None,
            r#"{"detail":"so","error":"reconciliation_required"}"#,
        ),
        (
            Problem::PassRunning.into(),
            409,
            None,
            r#"{"detail":"a pass is running","error":"pass_running"}"#,
        ),
        (
            Problem::PropertyTakesOver(text()).into(),
            409,
            None,
            r#"{"detail":"so","error":"property_takes_over"}"#,
        ),
        (Problem::Expired(text()).into(), 410, None, r#"{"detail":"so","error":"expired"}"#),
        (
            Failure::BodyTooLarge(5),
            413,
            None,
            r#"{"detail":"the body has more than 5 bytes","error":"payload_too_large"}"#,
        ),
        (Problem::Validation(text()).into(), 422, None, r#"{"detail":"so","error":"validation"}"#),
        (
            Problem::Internal.into(),
            500,
            None,
            r#"{"detail":"the request could not be carried out; the server's log says why","error":"internal_error"}"#,
        ),
        (
            conflict.into(),
            503,
            Some("2"),
            r#"{"detail":"the commit lock could not be acquired; nothing was written, try again","error":"commit_queue_timeout"}"#,
        ),
        (
            Failure::Unavailable,
            503,
            Some("1"),
            r#"{"detail":"the database cannot be used at the moment; nothing was done, try again","error":"unavailable"}"#,
        ),
        (
            Failure::Lost,
            503,
            Some("1"),
            r#"{"detail":"the database was lost on the way: a change may have been carried out or not; look, or ask again","error":"unavailable"}"#,
        ),
        (
            Problem::OutcomeUnknown { table: table() }.into(),
            503,
            None,
            r#"{"detail":"the database was lost while it committed: whether the files of table events.raw were ended is not known; if they were, it is the newest drop of the table in `tailrace trace` and GET .../drops. Look there before you ask again, or files that were added since are dropped too","error":"unavailable"}"#,
        ),
        (
            Problem::Unfit(Unfit::Newer(7)).into(),
            503,
            Some("1"),
            r#"{"detail":"the database's schema tailrace is newer than this program (migration 7): upgrade tailrace here too; nothing was done","error":"unavailable"}"#,
        ),
    ];
    for (failure, status, retry_after, expected) in cases {
        let response = failure.clone().into_response();
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        assert_eq!(response.status().as_u16(), status, "{failure:?}");
        assert_eq!(header("content-type").as_deref(), Some("application/json"), "{failure:?}");
        assert_eq!(header("retry-after").as_deref(), retry_after, "{failure:?}");
        assert_eq!(bytes(response).await, expected);
    }
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_a_word() {
    let log = capture::start("info");
    let panics = axum::routing::get(async || -> &'static str { panic!("the secret is out") });
    let response =
        ask(dressed(Router::new().route("/boom", panics), state()), "GET", "/v1/boom", "");
    let response = response.await;
    assert_eq!(response.status(), 500);
    assert!(response.headers().contains_key("x-request-id"));
    let expected = r#"{"detail":"the request could not be carried out; the server's log says why","error":"internal_error"}"#;
    assert_eq!(bytes(response).await, expected);
    assert_eq!(log.events(), ["request_failed", "http_request"]);
    assert_eq!(log.lines()[0]["error"], "panic: the secret is out");
    assert_eq!(log.lines()[1]["status"], 500);
    assert_eq!(log.lines()[1]["route"], "/boom");
}

#[tokio::test]
async fn work_that_panics_in_its_own_task_is_an_internal_error_too() {
    let failed = state().carry::<()>(async { panic!("out of paper") }).await;
    assert_eq!(failed, Err(Failure::Problem(Problem::Internal)));
}

#[tokio::test]
async fn more_drops_than_may_be_are_told_to_come_again() {
    let state = state();
    let path = "/catalogs/a/namespaces/b/tables/c/truncate";
    let in_flight: Vec<_> = std::iter::from_fn(|| state.may_drop().ok()).collect();
    assert_eq!(in_flight.len(), 4);
    let response = ask(router(state.clone()), "POST", path, "{}").await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
    let expected = r#"{"detail":"too many drops are in flight; nothing was done, try again","error":"too_many_drops"}"#;
    assert_eq!(bytes(response).await, expected);
    drop(in_flight);
    let response = ask(router(state), "POST", path, "{}").await;
    let body = bytes(response).await;
    assert!(body.contains(r#""error":"unavailable""#), "the database is next: {body}");
    assert!(!body.contains("secret"), "{body}");
}
