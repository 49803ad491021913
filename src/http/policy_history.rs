//! The endpoint that lists the changes of a table's policies.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Named, Params, TablePath};
use super::failure::{ErrorBody, Failure};
use super::policies::find;
use super::sessions::Use;
use super::state::State;
use crate::explicit::problem::Problem;
use crate::policy::history::{self, ChangesAnswer, MOST};

/// The number of changes in an answer where `limit` is not given.
const TOLD: i64 = 100;

/// The parameters of the list of changes.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct HistoryParams {
    /// The number of changes, the newest first: 1 to 1000, 100 if not given.
    pub limit: Option<i64>,
    /// Only changes whose id is below this one: `next_before` of the page before.
    pub before: Option<i64>,
}

/// Who changed the policies of the table, when, from what to what, and why.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention/history",
    tag = "policies",
    params(TablePath, HistoryParams),
    responses(
        (status = 200, body = ChangesAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_history(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(params): Params<HistoryParams>,
) -> Result<Json<ChangesAnswer>, Failure> {
    let limit = params.limit.unwrap_or(TOLD);
    if !(1..=MOST).contains(&limit) {
        let detail = format!("limit is {limit}, not between 1 and {MOST}");
        return Err(Failure::Problem(Problem::Validation(detail)));
    }
    let before = params.before.unwrap_or(i64::MAX);
    let mut session = state.sessions.open(Use::Look).await?;
    let work = async move {
        let changes = async {
            let live = find(&mut session.connection, &path.table()).await?;
            Ok(history::changes(&mut session.connection, &live.identity, before, limit).await?)
        };
        let changes = changes.await;
        session.close().await;
        changes
    };
    state.carry(work).await.map(Json)
}
