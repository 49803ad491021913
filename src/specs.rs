//! The partition specs of a table as they are shown, and trust in a spec: an operator's word that
//! the partition values of its files are what the spec says.

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use uuid::Uuid;

use crate::catalog::session::Session;
use crate::catalog::specs::{TableShape, copy_specs, table_shape};
use crate::catalog::tables::{LiveTable, TableIdentity};
pub use crate::catalog::trust::{KnownSpec, NotedMark, SpecState, Trust};
use crate::catalog::trust::{known_specs, record_trust};
use crate::events;
use crate::rules::instant::UtcInstant;
use crate::sweep::plan::NOT_PARQUET;

/// The specs of a table, as JSON has them.
#[derive(Debug, Serialize)]
pub struct SpecsReport {
    /// The catalog's name.
    pub catalog: String,
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// The table's UUID.
    pub table_uuid: Uuid,
    /// Every definition that is known, by id.
    pub specs: Vec<SpecReport>,
}

/// One definition of a spec.
#[derive(Debug, Serialize)]
pub struct SpecReport {
    /// Its id.
    pub spec_id: i64,
    /// Its fields by key index: `day(at)`.
    pub fields: Vec<String>,
    /// Whether the server still has it.
    pub state: SpecState,
    /// Whether its id was seen with other fields too: then its files are kept as `unknown_spec`, and
    /// nobody can trust it.
    pub disputed: bool,
    /// When tailrace first saw it; null where it has no copy yet.
    pub seen_at: Option<UtcInstant>,
    /// Whether it began in the snapshot that created its table; null where that is not known.
    pub began_with_table: Option<bool>,
    /// The row of the table from which on every writer should know the spec, and since when.
    pub mark: Option<NotedMark>,
    /// When that row will be noted, where it is not noted yet.
    pub mark_due_at: Option<UtcInstant>,
    /// Who vouched for the values of its files, when and why.
    pub trusted: Option<Trust>,
}

/// Reads the specs of a table. `window` is `guard.stale_writer_window`.
pub async fn specs_of(
    connection: &mut Session,
    table: &TableIdentity,
    window: Duration,
) -> sqlx::Result<SpecsReport> {
    let shape = table_shape(connection, table.catalog_id, table.table_id).await?;
    let known = known_specs(connection, table, window).await?;
    let specs = known
        .iter()
        .map(|spec| SpecReport {
            spec_id: spec.spec_id,
            fields: describe_fields(spec, &shape),
            state: spec.state,
            disputed: is_disputed(&known, spec.spec_id),
            seen_at: spec.seen_at,
            began_with_table: spec.began_with_table,
            mark: spec.mark,
            mark_due_at: spec.mark_due,
            trusted: spec.trusted.clone(),
        })
        .collect();
    Ok(SpecsReport {
        catalog: table.catalog.clone(),
        namespace: table.namespace.clone(),
        table: table.table.clone(),
        table_uuid: table.table_uuid,
        specs,
    })
}

/// The fields of a spec as a person writes them.
pub fn describe_fields(spec: &KnownSpec, shape: &TableShape) -> Vec<String> {
    spec.fields.iter().map(|field| shape.describe_field(field)).collect()
}

/// Whether an id was seen with several definitions.
fn is_disputed(known: &[KnownSpec], spec_id: i64) -> bool {
    known.iter().filter(|spec| spec.spec_id == spec_id).count() > 1
}

/// A spec that can be trusted, or is trusted already.
#[derive(Debug, Clone)]
pub struct Trustworthy {
    /// The spec.
    pub spec: KnownSpec,
    /// Its fields in words: `day(at), identity(kind)`.
    pub fields: String,
}

/// Looks a spec up that somebody wants to trust. Writes nothing.
///
/// # Errors
/// The table is not made of parquet files, it has no such spec, or one with several definitions; in
/// words for whoever asked.
pub async fn trustworthy(
    connection: &mut Session,
    table: &LiveTable,
    spec_id: i64,
    window: Duration,
) -> anyhow::Result<Trustworthy> {
    let identity = &table.identity;
    let name = format!("{}.{}", identity.namespace, identity.table);
    ensure!(table.is_parquet, NOT_PARQUET);
    let shape = table_shape(connection, identity.catalog_id, identity.table_id).await?;
    let known = known_specs(connection, identity, window).await?;
    let named = |spec: &KnownSpec| {
        format!("{} ({})", spec.spec_id, describe_fields(spec, &shape).join(", "))
    };
    let mut of_id = known.iter().filter(|spec| spec.spec_id == spec_id);
    let Some(spec) = of_id.next() else {
        if known.is_empty() {
            bail!("table {name} has no partition spec");
        }
        let list = known.iter().map(named).collect::<Vec<_>>().join(", ");
        bail!("table {name} has no partition spec {spec_id}; it has: {list}");
    };
    if is_disputed(&known, spec_id) {
        let list =
            std::iter::once(spec).chain(of_id).map(|spec| describe_fields(spec, &shape).join(", "));
        bail!(
            "spec {spec_id} of table {name} cannot be trusted: it was seen with several definitions \
             ({}), and by which of them a file was written is not known. Its files are kept as \
             unknown_spec; `tailrace drop` can drop them",
            list.collect::<Vec<_>>().join("; ")
        );
    }
    Ok(Trustworthy { fields: describe_fields(spec, &shape).join(", "), spec: spec.clone() })
}

/// Records that `by` vouches for the values of all files of a spec, which is copied first where
/// tailrace has no copy. Returns the record, and whether it was made now: a spec that is trusted
/// already keeps its first record.
///
/// # Errors
/// As [`trustworthy`], also for what came in between.
pub async fn trust(
    connection: &mut Session,
    table: &LiveTable,
    spec_id: i64,
    (by, reason): (&str, &str),
    window: Duration,
) -> anyhow::Result<(Trust, bool)> {
    let identity = &table.identity;
    copy_specs(connection, identity.catalog_id, None).await?;
    let is_new = record_trust(connection, identity, spec_id, by, reason).await?;
    let found = trustworthy(connection, table, spec_id, window).await?;
    let TableIdentity { catalog, namespace, table, .. } = identity;
    let trust = found.spec.trusted.with_context(|| {
        format!("the trust in spec {spec_id} was not recorded: table {namespace}.{table} is gone")
    })?;
    if is_new {
        tracing::info!(
            event = events::SPEC_TRUSTED,
            catalog,
            namespace,
            table,
            spec_id,
            by,
            reason,
            "An operator trusted the partition values of a spec's files"
        );
    }
    Ok((trust, is_new))
}
