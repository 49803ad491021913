//! Reads paths, queries and bodies of requests. A wrong one is refused in the shape of hoglake's
//! errors.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{CONTENT_TYPE, EXPECT};
use axum::http::request::Parts;
use futures_util::FutureExt;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::connections::Connection;
use super::failure::Failure;
use super::state::State;
use super::tokens::Caller;
use crate::explicit::call::TableRef;
use crate::explicit::problem::Problem;
use crate::rules::object::Object;
use serde::Deserialize;
use utoipa::IntoParams;

/// The name in a catalog's path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct CatalogPath {
    /// The catalog's name.
    pub catalog: String,
}

/// The names in a table's path.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Path)]
pub struct TablePath {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
}

impl TablePath {
    /// The table that is named.
    pub fn table(self) -> TableRef {
        TableRef { catalog: self.catalog, namespace: self.namespace, table: self.table }
    }
}

/// The largest body that is accepted.
pub const MAX_BODY: usize = 2 * 1024 * 1024;

/// So much of a body that is too large is read and discarded, for a client that reads the answer
/// only after it has sent everything.
const DRAINED: usize = 4 * MAX_BODY;

/// The names in a path.
#[derive(Debug)]
pub struct Named<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Arc<State>> for Named<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &Arc<State>) -> Result<Self, Failure> {
        let texts = Path::<Vec<(String, String)>>::from_request_parts(parts, state)
            .await
            .map_err(|refusal| bad(refusal.body_text()))?;
        if texts.iter().any(|(_, text)| text.contains('\0')) {
            return Err(bad("a name in the path has a NUL in it".to_owned()));
        }
        let Path(names) = Path::<T>::from_request_parts(parts, state)
            .await
            .map_err(|refusal| bad(refusal.body_text()))?;
        Ok(Self(names))
    }
}

/// The parameters of a query. A parameter that is unknown, or given twice, is refused.
#[derive(Debug)]
pub struct Params<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Arc<State>> for Params<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<State>) -> Result<Self, Failure> {
        let Query(params) =
            Query::<T>::try_from_uri(&parts.uri).map_err(|refusal| bad(refusal.body_text()))?;
        Ok(Self(params))
    }
}

/// How many entries a page has: 1 to `most`, 100 where `asked` is not given.
pub fn limit(asked: Option<i64>, most: i64) -> Result<i64, Failure> {
    let limit = asked.unwrap_or(100);
    if !(1..=most).contains(&limit) {
        let detail = format!("limit is {limit}, not between 1 and {most}");
        return Err(Failure::Problem(Problem::Validation(detail)));
    }
    Ok(limit)
}

/// No parameters. A query with a parameter is refused, because its sender may rely on the
/// parameter.
#[derive(Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoParams {}

/// The caller.
impl FromRequestParts<Arc<State>> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<State>) -> Result<Self, Failure> {
        // The layer around every handler put it there.
        parts.extensions.get::<Caller>().cloned().ok_or(Failure::Unauthorized)
    }
}

/// A body of JSON.
#[derive(Debug)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Arc<State>> for JsonBody<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &Arc<State>) -> Result<Self, Failure> {
        let is_json = is_json(&request);
        let bytes = read(request, state).await?;
        if !is_json {
            return Err(bad("the content-type is not application/json".to_owned()));
        }
        parse(&bytes).map(Self)
    }
}

/// A body of JSON, or none at all.
#[derive(Debug)]
pub struct BodyOrNone<T>(pub T);

impl<T: DeserializeOwned + Default> FromRequest<Arc<State>> for BodyOrNone<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &Arc<State>) -> Result<Self, Failure> {
        let is_json = is_json(&request);
        let bytes = read(request, state).await?;
        match (bytes.is_empty(), is_json) {
            (true, _) => Ok(Self(T::default())),
            (false, false) => Err(bad("the content-type is not application/json".to_owned())),
            (false, true) => parse(&bytes).map(Self),
        }
    }
}

fn bad(detail: String) -> Failure {
    Failure::Problem(Problem::BadRequest(detail))
}

fn is_json(request: &Request) -> bool {
    let value = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("application/json")
}

/// All of a body, unless it is too large or too slow, or its connection gives way meanwhile.
async fn read(request: Request, state: &State) -> Result<Vec<u8>, Failure> {
    let connection = request.extensions().get::<Arc<Connection>>().cloned();
    let asks_first = request.headers().contains_key(EXPECT);
    let reading = collect(request.into_body(), asks_first);
    let mut reading = std::pin::pin!(tokio::time::timeout(state.body_timeout, reading));
    let read = match reading.as_mut().now_or_never() {
        Some(read) => read,
        None => {
            if let Some(connection) = &connection {
                connection.waits();
            }
            reading.await
        }
    };
    // Nobody reads this answer: what matters is that nothing is begun.
    if connection.is_some_and(|connection| !connection.works()) {
        return Err(bad("the body broke off".to_owned()));
    }
    read.map_err(|_| Failure::BodyTimeout)?
}

async fn collect(mut body: Body, asks_first: bool) -> Result<Vec<u8>, Failure> {
    let told = axum::body::HttpBody::size_hint(&body).lower();
    if asks_first && told > MAX_BODY as u64 {
        return Err(Failure::BodyTooLarge(MAX_BODY));
    }
    let (mut bytes, mut length) = (Vec::new(), 0_usize);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| bad("the body broke off".to_owned()))?;
        let Ok(data) = frame.into_data() else { continue };
        length = length.saturating_add(data.len());
        if length > DRAINED {
            break;
        }
        if length > MAX_BODY {
            bytes = Vec::new();
        } else {
            bytes.extend_from_slice(&data);
        }
    }
    if length > MAX_BODY { Err(Failure::BodyTooLarge(MAX_BODY)) } else { Ok(bytes) }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize::<_, Object<T>>(&mut json).map_err(|error| {
        let at = error.path().to_string();
        // Where JSON ends in the middle, nobody knows what would have come: `?`.
        let place = if at == "." || at.contains('?') { String::new() } else { format!("{at}: ") };
        bad(format!("the body is not what it should be: {place}{}", error.inner()))
    })?;
    json.end().map_err(|error| bad(format!("the body goes on after its JSON: {error}")))?;
    refuse_nul(bytes)?;
    Ok(value.0)
}

/// Postgres has no text with a NUL in it.
fn refuse_nul(bytes: &[u8]) -> Result<(), Failure> {
    const ESCAPED: &[u8] = b"\\u0000";
    if !bytes.windows(ESCAPED.len()).any(|window| window == ESCAPED) {
        return Ok(());
    }
    // It may be the text \u0000, its backslash escaped.
    let value: Value = serde_json::from_slice(bytes).map_err(|error| bad(error.to_string()))?;
    if has_nul(&value) {
        let detail = "no text can have a NUL in it".to_owned();
        return Err(Failure::Problem(Problem::Validation(detail)));
    }
    Ok(())
}

fn has_nul(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(values) => values.iter().any(has_nul),
        Value::Object(values) => {
            values.iter().any(|(key, value)| key.contains('\0') || has_nul(value))
        }
        _ => false,
    }
}
