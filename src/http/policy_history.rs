//! The endpoint that lists the changes of a table's policies.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Named, Params, TablePath, limit};
use super::failure::{ErrorBody, Failure};
use super::policies::find;
use super::sessions::Use;
use super::state::State;
use crate::explicit::call::TableRef;
use crate::explicit::problem::Problem;
use crate::policy::history::{MOST, PolicyHistory, changes, last_of_name};

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

/// Who changed the policies of the table, when, from what to what, and why. A table that is gone is found by the name
/// that it had when a policy of it was changed last.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention/history",
    tag = "policies",
    params(TablePath, HistoryParams),
    responses(
        (status = 200, body = PolicyHistory),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_history(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(params): Params<HistoryParams>,
) -> Result<Json<PolicyHistory>, Failure> {
    let limit = limit(params.limit, MOST)?;
    let before = params.before.unwrap_or(i64::MAX);
    let mut session = state.sessions.open(Use::Look).await?;
    let work = async move {
        let changes = async {
            let (connection, asked) = (&mut session.connection, path.table());
            let table = match find(connection, &asked).await {
                Ok(live) => live.identity,
                Err(failure @ Failure::Problem(Problem::NotFound(_))) => {
                    let TableRef { catalog, namespace, table } = &asked;
                    let last = last_of_name(connection, catalog, namespace, table).await?;
                    last.ok_or(failure)?
                }
                // A catalog that could not be asked says of no table that it is gone.
                Err(failure) => return Err(failure),
            };
            Ok(changes(connection, &table, before, limit).await?)
        };
        let changes = changes.await;
        session.close().await;
        changes
    };
    state.carry(work).await.map(Json)
}
