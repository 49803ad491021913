//! The endpoint that runs `verify`: it checks the invariants of retention, and never writes.

use std::sync::Arc;

use axum::Json;
use axum::extract::State as From;
use serde::Deserialize;
use utoipa::IntoParams;

use super::extract::CatalogPath;
use super::extract::{Named, Params};
use super::failure::ErrorBody;
use super::failure::Failure;
use super::sessions::Use;
use super::state::State;
use crate::explicit::problem::Problem;
use crate::sweep::Scope;
use crate::verify::report::Report;
use crate::verify::verify_in;

/// The path. [`super::observe`] allows it to readers, because a verification never writes.
pub(super) const PATH: &str = "/catalogs/{catalog}/maintenance/partition-retention/verify";

/// The parameters of a verification.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct VerifyParams {
    /// Only this table, as NAMESPACE.TABLE.
    pub table: Option<String>,
}

/// Verifies the catalog, as `tailrace verify --output json` does. Never writes.
///
/// Answers 200 whatever it finds; `status` has the result. Takes up to `verify.budget` for each
/// check.
#[utoipa::path(
    post,
    path = "/catalogs/{catalog}/maintenance/partition-retention/verify",
    tag = "passes",
    params(CatalogPath, VerifyParams),
    responses(
        (status = 200, body = Report),
        (status = "4XX", body = ErrorBody),
        (status = "5XX", body = ErrorBody),
    )
)]
pub async fn verify_catalog(
    From(state): From<Arc<State>>,
    Named(CatalogPath { catalog }): Named<CatalogPath>,
    Params(VerifyParams { table }): Params<VerifyParams>,
) -> Result<Json<Report>, Failure> {
    let table = table.map(|name| named(&name)).transpose()?;
    let scope = Scope { catalog: Some(catalog), table };
    let mut session = state.sessions.open(Use::Look).await?;
    let settings = state.verify;
    let work = async move {
        let report = verify_in(&mut session.connection, &settings, &scope).await;
        session.close().await;
        report.map_err(|error| Failure::of(&error, Problem::NotFound))
    };
    state.carry(work).await.map(Json)
}

fn named(name: &str) -> Result<(String, String), Failure> {
    match name.split_once('.') {
        Some((namespace, table)) if !namespace.is_empty() && !table.is_empty() => {
            Ok((namespace.to_owned(), table.to_owned()))
        }
        _ => {
            let detail = "table: a table is named NAMESPACE.TABLE".to_owned();
            Err(Failure::Problem(Problem::BadRequest(detail)))
        }
    }
}
