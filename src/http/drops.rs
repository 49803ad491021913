//! The endpoints of the explicit drop and of truncate.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::extract::TablePath;
use super::extract::{BodyOrNone, JsonBody, Named, NoParams, Params};
use super::failure::ErrorBody;
use super::failure::Failure;
use super::sessions::Use;
use super::state::State;
use super::tokens::Caller;
use crate::explicit::call::{DropAnswer, DropBody, TruncateAnswer, TruncateBody};
use crate::explicit::{drop_partitions, truncate};

/// The parameters of a truncate.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct TruncateParams {
    /// The UUID of the table that is meant.
    #[param(required = true)]
    pub expected_table_uuid: Option<Uuid>,
}

/// Drops the listed partitions in one snapshot.
#[utoipa::path(
    post,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/partitions/drop",
    tag = "drops",
    params(TablePath),
    request_body = DropBody,
    responses(
        (status = 200, body = DropAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn drop_listed(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<TablePath>,
    Params(NoParams {}): Params<NoParams>,
    JsonBody(body): JsonBody<DropBody>,
) -> Result<Json<DropAnswer>, Failure> {
    if !body.dry_run {
        caller.must_be_operator()?;
    }
    // A dry run is one of those who look: it takes no drop's place.
    let (permit, to) = match body.dry_run {
        true => (None, Use::Look),
        false => (Some(state.may_drop()?), Use::Change),
    };
    let mut session = state.sessions.open(to).await?;
    let (table, bounds, metrics) = (path.table(), state.bounds, state.metrics.clone());
    let work = async move {
        let author = body.author.as_deref().unwrap_or(&caller.name);
        let answer = drop_partitions(&mut session.connection, &table, &body, author, &bounds).await;
        session.close().await;
        drop(permit);
        let answer = answer?;
        if answer.committed && !answer.replayed && !body.dry_run {
            metrics.files_ended(answer.files_ended);
        }
        Ok(answer)
    };
    state.carry(work).await.map(Json)
}

/// Drops all files of the table in one snapshot, if the table has the given UUID.
#[utoipa::path(
    post,
    path = "/catalogs/{catalog}/namespaces/{namespace}/tables/{table}/truncate",
    tag = "drops",
    params(TablePath, TruncateParams),
    request_body = Option<TruncateBody>,
    responses(
        (status = 200, body = TruncateAnswer),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn truncate_table(
    From(state): From<Arc<State>>,
    caller: Caller,
    Named(path): Named<TablePath>,
    Params(params): Params<TruncateParams>,
    BodyOrNone(body): BodyOrNone<TruncateBody>,
) -> Result<Json<TruncateAnswer>, Failure> {
    let permit = state.may_drop()?;
    let mut session = state.sessions.open(Use::Change).await?;
    let (table, bounds) = (path.table(), state.bounds);
    let work = async move {
        let author = body.author.as_deref().unwrap_or(&caller.name);
        let connection = &mut session.connection;
        let expected = params.expected_table_uuid;
        let answer = truncate(connection, &table, expected, &body, author, &bounds).await;
        session.close().await;
        drop(permit);
        Ok(answer?)
    };
    state.carry(work).await.map(Json)
}
