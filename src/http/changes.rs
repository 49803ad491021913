//! The endpoint for the changes of a table between two snapshots: all of them as a stream, or one
//! page.

use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::State as From;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use futures_util::stream::{self, StreamExt};

use super::extract::TablePath;
use super::extract::{Named, Params};
use super::failure::ErrorBody;
use super::failure::Failure;
use super::sessions::Use;
use super::state::State;
use crate::explicit::problem::Problem;
use crate::feed::{self, ChangesPage, ChangesQuery};

/// The changes of the table's files in a window of snapshots.
///
/// Without `limit` the answer is the whole window, sent while it is read. If an error prevents the
/// rest of the answer, the connection is closed before the answer's end. An answer that has its end
/// is complete.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/changes",
    tag = "changes",
    params(TablePath, ChangesQuery),
    responses(
        (status = 200, body = ChangesPage),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_changes(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(query): Params<ChangesQuery>,
) -> Result<Response, Failure> {
    let mut session = state.sessions.open(Use::Look).await?;
    let table = path.table();
    let work = async move {
        let told = match feed::open(&mut session.connection, &table, &query).await {
            Ok(changes) if changes.is_page() => {
                changes.page(&mut session.connection).await.map(Told::Page)
            }
            Ok(changes) => Ok(Told::Window(changes)),
            Err(problem) => Err(problem),
        };
        session.close().await;
        told.map_err(failure)
    };
    match state.carry(work).await? {
        Told::Page(page) => Ok(Json(page).into_response()),
        Told::Window(changes) => streamed(state, changes).await,
    }
}

enum Told {
    Page(ChangesPage),
    Window(feed::Changes),
}

/// The answer to a whole window. Its first chunk is read before the status is sent, so that an
/// error until then is answered as an error. A later error closes the connection. Each chunk is
/// read in a session of its own, so that a client that reads slowly occupies no session.
async fn streamed(state: Arc<State>, changes: feed::Changes) -> Result<Response, Failure> {
    let sessions = move || {
        let state = state.clone();
        async move { state.sessions.open(Use::Look).await.map_err(problem) }
    };
    let mut parts = Box::pin(changes.stream(sessions));
    let first = parts.next().await.transpose().map_err(failure)?.unwrap_or_default();
    let body = Body::from_stream(stream::iter([Ok(first)]).chain(parts));
    Ok(([(CONTENT_TYPE, "application/json")], body).into_response())
}

/// The failure of a request that only reads.
fn failure(problem: Problem) -> Failure {
    match problem {
        Problem::Unavailable => Failure::Unavailable,
        problem => Failure::Problem(problem),
    }
}

fn problem(failure: Failure) -> Problem {
    match failure {
        Failure::Problem(problem) => problem,
        _ => Problem::Unavailable,
    }
}
