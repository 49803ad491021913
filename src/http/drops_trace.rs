//! The endpoint that lists the drops of a table, with what became of the files of each.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::TablePath;
use super::extract::{Named, Params, limit};
use super::failure::ErrorBody;
use super::failure::Failure;
use super::sessions::Use;
use super::state::State;
use crate::catalog::session::Session;
use crate::catalog::tables::catalogs;
use crate::explicit::call::TableRef;
use crate::explicit::problem::Problem;
use crate::trace::{Asked, MOST, TraceReport, trace};

/// The parameters of the list of drops.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct DropsParams {
    /// The number of drops, the newest first: 1 to 1000, 100 if not given. Drops of one snapshot come
    /// together, so there may be a few more.
    pub limit: Option<i64>,
    /// Only drops whose snapshot is below this one: `next_before` of the page before.
    pub before: Option<i64>,
}

/// The drops of the table: the stage of each (retained, purging, queued, gone), since when, and
/// what delays it now. A dropped table is found by the name that it had last.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partition-retention/drops",
    tag = "drops",
    params(TablePath, DropsParams),
    responses(
        (status = 200, body = TraceReport),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_drops(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(params): Params<DropsParams>,
) -> Result<Json<TraceReport>, Failure> {
    let limit = limit(params.limit, MOST)?;
    let before = params.before.unwrap_or(i64::MAX);
    let mut session = state.sessions.open(Use::Look).await?;
    let work = async move {
        let told = drops(&mut session.connection, &path.table(), before, limit).await;
        session.close().await;
        told
    };
    state.carry(work).await.map(Json)
}

async fn drops(
    connection: &mut Session,
    table: &TableRef,
    before: i64,
    limit: i64,
) -> Result<TraceReport, Failure> {
    let found = catalogs(connection).await?;
    let Some(catalog) = found.into_iter().find(|catalog| catalog.name == table.catalog) else {
        let detail = format!("there is no catalog {:?}", table.catalog);
        return Err(Failure::Problem(Problem::NotFound(detail)));
    };
    let asked = Asked { table: Some((&table.namespace, &table.table)), before, limit };
    trace(connection, &catalog, asked).await.map_err(|error| Failure::of(&error, Problem::NotFound))
}
