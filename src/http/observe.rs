//! Handles each request before and after its handler, whatever its path: determines the caller and
//! the request id, and writes the log line and the metric.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State as From};
use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;
use uuid::Uuid;

use super::failure::Failure;
use super::same_origin::{refuse_pages, refuse_two_hosts};
use super::state::State;
use super::tokens::Caller;
use super::verify;
use crate::events;
use crate::sweep::report::milliseconds;

/// The header that has the id of a request, in the request and in the answer.
pub const REQUEST_ID: &str = "x-request-id";
const LONGEST_ID: usize = 128;

/// The paths that need no token.
const OPEN: [&str; 2] = ["/livez", "/healthz"];

/// The paths to which a reader may POST: the drop, whose handler allows a reader only dry runs, and
/// the verification, which never writes.
const LOOKING: [&str; 2] =
    ["/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partitions/drop", verify::PATH];

/// The status that stands for a client which went away before it was answered.
const WENT_AWAY: u16 = 499;

/// Serves a request, or refuses it; reports it in the log and the metrics.
pub async fn observe(From(state): From<Arc<State>>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let route = request.extensions().get::<MatchedPath>().map(|path| template(path.as_str()));
    let route = route.unwrap_or_else(|| "unmatched".to_owned());
    let caller = identify(&state, &request, &route);
    let known_caller = caller.as_ref().ok().and_then(Option::as_ref);
    let token = known_caller.map(|caller| caller.name.clone());
    let span = tracing::error_span!("request", request_id = id, token = token.as_deref());
    let mut line = Line {
        method: known(request.method()),
        route,
        status: WENT_AWAY,
        token,
        id: id.clone(),
        since: Instant::now(),
        state: state.clone(),
    };
    let mut response = match caller {
        Ok(caller) => {
            request.extensions_mut().insert(caller.unwrap_or_else(Caller::anybody));
            next.run(request).instrument(span).await
        }
        Err(failure) => failure.into_response(),
    };
    line.status = response.status().as_u16();
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The caller, where the path needs one.
fn identify(state: &State, request: &Request, route: &str) -> Result<Option<Caller>, Failure> {
    refuse_two_hosts(request.headers())?;
    if OPEN.contains(&route) {
        return Ok(None);
    }
    let Some(tokens) = &state.tokens else {
        refuse_pages(request.headers())?;
        return Ok(Some(Caller::anybody()));
    };
    let caller = bearer(request.headers())
        .and_then(|token| tokens.caller(token))
        .ok_or(Failure::Unauthorized)?;
    let looks = matches!(*request.method(), Method::GET | Method::HEAD);
    if !looks && !LOOKING.contains(&route) {
        caller.must_be_operator()?;
    }
    Ok(Some(caller))
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else { return None };
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token)
}

/// The id that the client gave, if the id is harmless in a log; else a new one.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).map_or(&[][..], HeaderValue::as_bytes);
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._:+/=@-".contains(byte);
    let id: String = given
        .iter()
        .filter(|byte| plain(byte))
        .take(LONGEST_ID)
        .map(|byte| char::from(*byte))
        .collect();
    if id.is_empty() { Uuid::new_v4().to_string() } else { id }
}

/// A path's template without the version that it may begin with.
fn template(path: &str) -> String {
    path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path).to_owned()
}

/// A method as a label: clients can make up any number of others.
fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        Method::PATCH => "PATCH",
        _ => "other",
    }
}

/// The log line of a request. It is logged when the request ends, however it ends.
struct Line {
    method: &'static str,
    route: String,
    status: u16,
    token: Option<Arc<str>>,
    id: String,
    since: Instant,
    state: Arc<State>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.state.metrics.request(self.method, &self.route, self.status);
        tracing::info!(
            event = events::HTTP_REQUEST,
            method = self.method,
            route = self.route,
            status = self.status,
            duration_ms = milliseconds(self.since.elapsed()),
            token = self.token.as_deref(),
            request_id = self.id,
            "A request was answered"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
        let value = |value: &&[u8]| {
            (name.parse().expect("a name"), HeaderValue::from_bytes(value).expect("a value"))
        };
        values.iter().map(value).collect()
    }

    #[test]
    fn plain_ids_are_kept_and_long_ones_cut() {
        let id = |given: &[u8]| request_id(&headers(REQUEST_ID, &[given]));
        assert_eq!(id(b"run-7/a.b:c_d+e=f@g"), "run-7/a.b:c_d+e=f@g");
        assert_eq!(id(b"a\" onload=x \xff<b>"), "aonload=xb");
        assert_eq!(id(&[b'x'; 500]), "x".repeat(128));
        for made in [id(b"  "), id(b""), request_id(&HeaderMap::new())] {
            assert!(Uuid::parse_str(&made).is_ok(), "{made}");
        }
    }

    #[test]
    fn a_bearer_comes_once() {
        let token =
            |values: &[&[u8]]| bearer(&headers("authorization", values)).map(<[u8]>::to_vec);
        assert_eq!(token(&[b"Bearer abc"]), Some(b"abc".to_vec()));
        assert_eq!(token(&[b"bearer abc"]), Some(b"abc".to_vec()));
        for wrong in [&[][..], &[&b"Bearer"[..]], &[b"Basic abc"], &[b"Bearer a", b"Bearer b"]] {
            assert_eq!(token(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn templates_have_no_version() {
        for (path, expected) in
            [("/v1/livez", "/livez"), ("/livez", "/livez"), ("/v1x", "/v1x"), ("/v1", "/v1")]
        {
            assert_eq!(template(path), expected);
        }
    }
}
