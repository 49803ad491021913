//! The list of all routes. The router, which serves each path with and without the version, and the
//! OpenAPI document are both made from this list, so that no path is missing in one of them.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::from_fn_with_state;
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::{Modify, OpenApi};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::failure::{Failure, of_panic};
use super::observe::observe;
use super::state::State;
use super::{
    approvals, changes, drops, drops_trace, explanations, holds, maintenance, pauses, policies,
    policy_history, probes, verify,
};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};

#[derive(OpenApi)]
#[openapi(
    info(
        title = "tailrace",
        description = "Partition retention for hoglake tables. Every path answers with and \
                       without /v1; docs/http.md shows each call."
    ),
    servers((url = "/v1"), (url = "/")),
    security(("token" = [])),
    modifiers(&Bearer)
)]
struct About;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
    }
}

/// Every path. One more is one more line.
fn api() -> OpenApiRouter<Arc<State>> {
    OpenApiRouter::with_openapi(About::openapi())
        .routes(routes!(drops::drop_listed))
        .routes(routes!(drops::truncate_table))
        .routes(routes!(changes::get_changes))
        .routes(routes!(policies::get_policy, policies::put_policy, policies::delete_policy))
        .routes(routes!(policies::get_plan))
        .routes(routes!(pauses::get_pauses))
        .routes(routes!(pauses::pause_all, pauses::resume_all))
        .routes(routes!(pauses::pause_catalog, pauses::resume_catalog))
        .routes(routes!(pauses::pause_table, pauses::resume_table))
        .routes(routes!(policy_history::get_history))
        .routes(routes!(holds::get_holds))
        .routes(routes!(holds::get_table_holds, holds::add_hold))
        .routes(routes!(holds::release_hold))
        .routes(routes!(approvals::get_approvals, approvals::add_approval))
        .routes(routes!(explanations::get_explanation))
        .routes(routes!(drops_trace::get_drops))
        .routes(routes!(maintenance::start_pass))
        .routes(routes!(maintenance::get_pass))
        .routes(routes!(verify::verify_catalog))
        .routes(routes!(probes::livez))
        .routes(routes!(probes::healthz))
        .routes(routes!(probes::metrics))
        .routes(routes!(openapi))
}

/// The document that describes every path, as JSON.
pub fn document() -> &'static str {
    static DOCUMENT: LazyLock<String> =
        LazyLock::new(|| api().into_openapi().to_json().unwrap_or_default());
    &DOCUMENT
}

/// What answers requests.
pub fn router(state: Arc<State>) -> Router {
    let (paths, _) = api().split_for_parts();
    dressed(paths, state)
}

/// The paths with and without the version, and with what every request meets.
pub(super) fn dressed(paths: Router<Arc<State>>, state: Arc<State>) -> Router {
    Router::new()
        .nest("/v1", paths.clone())
        .merge(paths)
        .fallback(async || Failure::NoSuchPath)
        .method_not_allowed_fallback(async || Failure::MethodNotAllowed)
        // Bodies are read by our own extractors, which have a limit of their own.
        .layer(DefaultBodyLimit::disable())
        .layer(CatchPanicLayer::custom(of_panic))
        .layer(from_fn_with_state(state.clone(), observe))
        .with_state(state)
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
