//! The explicit drop: an enumerated list of partition tuples, or a whole table, in one atomic
//! commit, guarded, and safe to retry. It ends in the same drop-commit as the daemon's pass.
//!
//! [`call`] says what can be asked and what is answered, [`problem`] what can be wrong,
//! [`validate`] what a list of tuples must be and [`fingerprint`] what makes two requests the same
//! (both pure), `execute` does it. [`holds`] makes a hold of a request, and lists them.

pub mod call;
pub mod confirm;
mod execute;
pub mod fingerprint;
pub mod holds;
pub mod problem;
pub mod validate;

use std::time::Duration;

use uuid::Uuid;

use call::{DropAnswer, DropBody, PartitionAnswer, TableRef, TruncateAnswer, TruncateBody};
use execute::{Execution, Selection};
use problem::Problem;

use crate::catalog::errors::Failure;
use crate::catalog::live_file::Counts;
use crate::catalog::receipts::{self, NewReceipt, ReceiptRow, RequestedTuple};
use crate::catalog::session::Session;
use crate::catalog::specs::{spec_book, table_shape};
use crate::catalog::tables::{TableIdentity, catalogs, find_live_table};
use crate::catalog::tuples::TupleOfSpec;
use crate::config::Config;
use crate::drop::guard::OperatorGuard;
use crate::events;

/// When a client shall try again that did not get a lock.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What bounds an explicit drop.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// The waits and the hold.
    pub limits: crate::drop::Limits,
    /// `drop.max_files`: more files than this are not ended in one commit.
    pub max_files: i64,
}

impl Bounds {
    /// The bounds that the configuration has.
    pub fn from_config(config: &Config) -> Self {
        Bounds {
            limits: crate::drop::Limits {
                lock_timeout: config.drop.lock_timeout.get(),
                row_lock_timeout: config.drop.row_lock_timeout.get(),
                max_hold: config.drop.max_hold.get(),
            },
            max_files: i64::try_from(config.drop.max_files.get()).unwrap_or(i64::MAX),
        }
    }
}

/// Drops the partitions of the body in one commit, or says what a dry run would.
///
/// A request whose key has a receipt is answered from it, whatever happened to the table since; where the
/// catalog was restored to a time before, it says so.
/// Takes the commit lock as [`crate::drop`] says, but for a dry run. Only an answer that is no dry
/// run leaves a receipt. `author` is the snapshot's if the body has none. The session must not be
/// in a transaction.
pub async fn drop_partitions(
    connection: &mut Session,
    table: &TableRef,
    body: &DropBody,
    author: &str,
    bounds: &Bounds,
) -> Result<DropAnswer, Problem> {
    let catalog_id = catalog_id(connection, table).await?;
    let key = body.idempotency_key;
    if !body.dry_run
        && let Some(receipt) =
            receipts::find(connection, catalog_id, key).await.map_err(internal)?
    {
        validate::check_list(&body.partitions, receipt.default_spec_id)?;
        return replayed_drop(receipt, table, body);
    }
    let author = body.author.as_deref().unwrap_or(author);
    validate::check_note(author, body.message.as_deref())?;
    let identity = live_table(connection, catalog_id, table).await?;
    // Before the tuples are read: against another table's specs they may make no sense.
    if body.expected_table_uuid.is_some_and(|expected| expected != identity.table_uuid) {
        return Err(Problem::TableRecreated {
            table: format!("{}.{}", identity.namespace, identity.table),
        });
    }
    let shape = table_shape(connection, catalog_id, identity.table_id).await.map_err(internal)?;
    let default_spec_id = shape.live_spec.as_ref().map(|(spec_id, _)| *spec_id);
    validate::check_list(&body.partitions, default_spec_id)?;
    let book = spec_book(connection, catalog_id, identity.table_id).await.map_err(internal)?;
    let resolved = validate::resolve(&body.partitions, default_spec_id, &book)?;
    let lookup_keys: Vec<_> = resolved.iter().map(|resolved| resolved.lookup_key).collect();
    let tuples: Vec<_> = resolved.into_iter().map(|resolved| resolved.tuple).collect();
    let requested: Vec<_> = tuples
        .iter()
        .map(|tuple| RequestedTuple {
            spec_id: tuple.spec_id,
            partition_values: tuple.tuple.values.clone(),
        })
        .collect();
    let fingerprint = fingerprint::of_drop(table, body, default_spec_id);
    let execution = Execution {
        identity: &identity,
        selection: Selection::Tuples { tuples: &tuples, lookup_keys: &lookup_keys, book: &book },
        guard: OperatorGuard {
            expected_table_uuid: body.expected_table_uuid,
            read_snapshot: body.read_snapshot,
            max_files: bounds.max_files,
            receipt: Some(NewReceipt {
                idempotency_key: key,
                fingerprint: &fingerprint,
                default_spec_id,
                request: Some(&requested),
            }),
            guard_revision: None,
        },
        fence: body.fence,
        author,
        message: body.message.as_deref().unwrap_or("explicit partition drop"),
        bounds,
    };
    if body.dry_run {
        let found = execution.dry_run(connection).await?;
        return Ok(answer(
            found.head,
            found.schema_version,
            false,
            found.counts,
            &requested,
            &found.ended,
        ));
    }
    match execution.run(connection).await? {
        execute::Ended::Receipt(receipt) => drop_answer(receipt, false),
        // Another request with the key came first while this one waited for the lock.
        execute::Ended::Earlier(receipt) => replayed_drop(receipt, table, body),
        execute::Ended::NoReceipt { .. } => Err(Problem::Internal),
    }
}

/// Drops all files of a table in one commit, every spec's and unpartitioned ones, with the server's
/// pair of changes and its bump of the schema version. An empty table makes no snapshot.
///
/// As with the server, only the table with the named UUID is emptied. (A request of a version that did not
/// demand one is answered from its receipt all the same.)
pub async fn truncate(
    connection: &mut Session,
    table: &TableRef,
    expected_table_uuid: Option<Uuid>,
    body: &TruncateBody,
    author: &str,
    bounds: &Bounds,
) -> Result<TruncateAnswer, Problem> {
    let catalog_id = catalog_id(connection, table).await?;
    let fingerprint = fingerprint::of_truncate(table, expected_table_uuid, body);
    if let Some(key) = body.idempotency_key
        && let Some(receipt) =
            receipts::find(connection, catalog_id, key).await.map_err(internal)?
    {
        return replayed_truncate(&receipt, &fingerprint);
    }
    if expected_table_uuid.is_none() {
        return Err(Problem::BadRequest(
            "expected_table_uuid is missing: a truncate names the UUID of the table that it \
             empties"
                .to_owned(),
        ));
    }
    let author = body.author.as_deref().unwrap_or(author);
    validate::check_note(author, body.message.as_deref())?;
    let identity = live_table(connection, catalog_id, table).await?;
    let execution = Execution {
        identity: &identity,
        selection: Selection::WholeTable,
        guard: OperatorGuard {
            expected_table_uuid,
            read_snapshot: body.read_snapshot,
            max_files: bounds.max_files,
            receipt: body.idempotency_key.map(|idempotency_key| NewReceipt {
                idempotency_key,
                fingerprint: &fingerprint,
                default_spec_id: None,
                request: None,
            }),
            guard_revision: None,
        },
        fence: true,
        author,
        message: body.message.as_deref().unwrap_or("truncate"),
        bounds,
    };
    match execution.run(connection).await? {
        execute::Ended::Receipt(receipt) => Ok(truncate_answer(&receipt)),
        execute::Ended::Earlier(receipt) => replayed_truncate(&receipt, &fingerprint),
        execute::Ended::NoReceipt { snapshot_id, schema_version } => {
            Ok(TruncateAnswer { snapshot_id, schema_version, undone: false })
        }
    }
}

fn replayed_drop(
    receipt: ReceiptRow,
    table: &TableRef,
    body: &DropBody,
) -> Result<DropAnswer, Problem> {
    if receipt.fingerprint != fingerprint::of_drop(table, body, receipt.default_spec_id) {
        return Err(other_request());
    }
    drop_answer(receipt, true)
}

fn replayed_truncate(receipt: &ReceiptRow, fingerprint: &[u8]) -> Result<TruncateAnswer, Problem> {
    if receipt.fingerprint != fingerprint {
        return Err(other_request());
    }
    Ok(truncate_answer(receipt))
}

fn truncate_answer(receipt: &ReceiptRow) -> TruncateAnswer {
    let ReceiptRow { snapshot_id, schema_version, is_undone, .. } = *receipt;
    TruncateAnswer { snapshot_id, schema_version, undone: is_undone }
}

fn other_request() -> Problem {
    Problem::Validation(
        "idempotency_key was used by another request: a key names one request".to_owned(),
    )
}

fn drop_answer(receipt: ReceiptRow, replayed: bool) -> Result<DropAnswer, Problem> {
    let requested = receipt.request.ok_or_else(other_request)?;
    let ended = &receipt.ended;
    let ReceiptRow { snapshot_id, schema_version, counts, is_undone, .. } = receipt;
    let committed = receipt.committed && !is_undone;
    let answer = answer(snapshot_id, schema_version, committed, counts, &requested, ended);
    Ok(DropAnswer { replayed, undone: is_undone, ..answer })
}

fn answer(
    snapshot_id: i64,
    schema_version: i64,
    committed: bool,
    counts: Counts,
    requested: &[RequestedTuple],
    ended: &[(TupleOfSpec, Counts)],
) -> DropAnswer {
    let by_tuple: std::collections::HashMap<_, _> = ended
        .iter()
        .map(|(tuple, counts)| ((tuple.spec_id, &tuple.tuple.values), *counts))
        .collect();
    DropAnswer {
        snapshot_id,
        schema_version,
        committed,
        replayed: false,
        undone: false,
        files_ended: counts.files,
        delete_files_ended: counts.delete_files,
        records: counts.records,
        bytes: counts.bytes,
        partitions: requested
            .iter()
            .map(|tuple| {
                let key = (tuple.spec_id, &tuple.partition_values);
                let counts = by_tuple.get(&key).copied().unwrap_or_default();
                PartitionAnswer {
                    spec_id: tuple.spec_id,
                    partition_values: tuple.partition_values.clone(),
                    files_ended: counts.files,
                    delete_files_ended: counts.delete_files,
                    records: counts.records,
                    bytes: counts.bytes,
                }
            })
            .collect(),
    }
}

async fn catalog_id(connection: &mut Session, table: &TableRef) -> Result<i64, Problem> {
    let all = catalogs(connection).await.map_err(internal)?;
    all.iter()
        .find(|catalog| catalog.name == table.catalog)
        .map(|catalog| catalog.catalog_id)
        .ok_or_else(|| Problem::NotFound(format!("there is no catalog {:?}", table.catalog)))
}

async fn live_table(
    connection: &mut Session,
    catalog_id: i64,
    table: &TableRef,
) -> Result<TableIdentity, Problem> {
    let TableRef { catalog, namespace, table } = table;
    let none = || {
        Problem::NotFound(format!("there is no table {namespace}.{table} in catalog {catalog:?}"))
    };
    // The database takes no text with a NUL, not even to compare it.
    if namespace.contains('\0') || table.contains('\0') {
        return Err(none());
    }
    find_live_table(connection, catalog_id, catalog, namespace, table)
        .await
        .map_err(internal)?
        .map(|live| live.identity)
        .ok_or_else(none)
}

/// What the database said is for our log and not for the caller.
pub fn internal(error: sqlx::Error) -> Problem {
    let problem = match Failure::of(&error) {
        Failure::ConnectionLost | Failure::TryAgain => Problem::Unavailable,
        Failure::LockNotAvailable => Problem::CommitQueueTimeout {
            reason: "somebody else has locked what is asked for, as DDL does".to_owned(),
            retry_after: RETRY_AFTER,
        },
        _ => Problem::Internal,
    };
    tracing::error!(
        event = events::REQUEST_FAILED,
        code = problem.code(),
        %error,
        "A request could not be carried out"
    );
    problem
}
