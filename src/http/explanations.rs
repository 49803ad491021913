//! The endpoint that explains one partition.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::{Named, Params, TablePath};
use super::failure::{ErrorBody, Failure};
use super::sessions::Use;
use super::state::State;
use crate::catalog::session::Session;
use crate::catalog::tables::find_table;
use crate::explain::explain;
use crate::explain::report::Explanation;
use crate::explicit::call::{PartitionItem, TableRef};
use crate::explicit::problem::Problem;
use crate::sweep::Settings;

/// The parameters of an explanation.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ExplainParams {
    /// The partition values by key index, as a JSON array of strings and nulls: `["20713"]`.
    pub partition_values: String,
    /// The spec of its files; the live one if not given.
    pub spec_id: Option<i64>,
}

/// Why one partition is here, when it is dropped and what blocks that, or what ended its files. Never writes.
#[utoipa::path(
    get,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partitions/explain",
    tag = "policies",
    params(TablePath, ExplainParams),
    responses(
        (status = 200, body = Explanation),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn get_explanation(
    From(state): From<Arc<State>>,
    Named(path): Named<TablePath>,
    Params(params): Params<ExplainParams>,
) -> Result<Json<Explanation>, Failure> {
    let partition_values = serde_json::from_str(&params.partition_values).map_err(|error| {
        let detail = format!("partition_values is no JSON array of strings and nulls: {error}");
        Failure::Problem(Problem::BadRequest(detail))
    })?;
    let item = PartitionItem { partition_values, spec_id: params.spec_id, literal: true };
    let mut session = state.sessions.open(Use::Look).await?;
    let settings = state.settings;
    let work = async move {
        let connection = &mut session.connection;
        let explained = explained(connection, &path.table(), &item, &settings).await;
        session.close().await;
        explained
    };
    state.carry(work).await.map(Json)
}

async fn explained(
    connection: &mut Session,
    table: &TableRef,
    item: &PartitionItem,
    settings: &Settings,
) -> Result<Explanation, Failure> {
    let live = find_table(connection, &table.catalog, &table.namespace, &table.table)
        .await
        .map_err(|error| Failure::of(&error, Problem::NotFound))?;
    explain(connection, live, item, settings)
        .await
        .map_err(|error| Failure::of(&error, Problem::Validation))
}
