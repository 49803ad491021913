//! Compaction debt for each table, by the sample that the server publishes: with and without what retention
//! is about to drop, because rewriting that is useless.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::catalog::clock;
use crate::catalog::compaction_sample::{self, Generation, Sampled, SampledTuple};
use crate::catalog::connect::{Access, Database};
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, LiveTable, catalogs, live_tables};
use crate::policy::effective;
use crate::policy::grace::PolicyLimits;
use crate::policy::{Mode, Policy};
use crate::rules::expiry::{Judge, StoredTuple, Verdict};
use crate::rules::instant::UtcInstant;

/// What policies count, and how far their windows reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// What policies are held to.
    pub policy_limits: PolicyLimits,
    /// `compaction.lead`: what expires within it is not worth a rewrite.
    pub lead: Duration,
}

/// The debt of all catalogs in scope.
#[derive(Debug, Serialize)]
pub struct DebtReport {
    /// The database's time, by which the window is judged.
    pub as_of: UtcInstant,
    /// How far the window reaches ahead.
    pub lead_seconds: u64,
    /// By name.
    pub catalogs: Vec<CatalogDebt>,
}

/// The debt of a catalog.
#[derive(Debug, Serialize)]
pub struct CatalogDebt {
    /// Its name.
    pub catalog: String,
    /// The published generation; `None` where nothing is published, and then there are no tables.
    pub generation: Option<i64>,
    /// When the sample was taken.
    pub sampled_at: Option<DateTime<Utc>>,
    /// By namespace and name: every live table that has files in the sample.
    pub tables: Vec<TableDebt>,
}

/// The debt of a table.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct TableDebt {
    /// The namespace's name.
    pub namespace: String,
    /// The table's name.
    pub table: String,
    /// Whether a policy enforces: only then is there a window, and only if it does not keep the newest values.
    pub is_enforced: bool,
    /// Why the policy has no window although one was asked for.
    pub problem: Option<String>,
    /// All that the sample has.
    pub all: Sampled,
    /// What of it has expired or will within `compaction.lead`.
    pub window: Sampled,
    /// What is left without the window: the debt that is worth paying.
    pub without_window: Sampled,
    /// Bytes that a compactor would read and write again for files that are about to go, and
    /// leaves alone while they are claimed: the estimated bytes of the window's selected files.
    pub saved_rewrite_bytes: i64,
}

/// Reads the debt of every catalog, or of one by its name. The session is unable to write.
///
/// # Errors
/// The database is away, a right is missing, or there is no such catalog.
pub async fn debt(
    database: &Database,
    catalog: Option<&str>,
    rules: Rules,
) -> anyhow::Result<DebtReport> {
    database
        .in_session(Access::ReadOnly, async |session| debt_in(session, catalog, rules).await)
        .await
}

async fn debt_in(
    connection: &mut Session,
    only: Option<&str>,
    rules: Rules,
) -> anyhow::Result<DebtReport> {
    let as_of = clock::now(connection).await?;
    let mut found: Vec<Catalog> = catalogs(connection).await?;
    if let Some(name) = only {
        found.retain(|catalog| catalog.name == name);
        anyhow::ensure!(!found.is_empty(), "there is no catalog {name:?}");
    }
    let mut report = DebtReport { as_of, lead_seconds: rules.lead.as_secs(), catalogs: Vec::new() };
    for catalog in found {
        report.catalogs.push(catalog_debt(connection, &catalog, as_of, rules).await?);
    }
    Ok(report)
}

async fn catalog_debt(
    connection: &mut Session,
    catalog: &Catalog,
    as_of: UtcInstant,
    rules: Rules,
) -> anyhow::Result<CatalogDebt> {
    let published = compaction_sample::published(connection, catalog.catalog_id).await?;
    let mut debt = CatalogDebt {
        catalog: catalog.name.clone(),
        generation: published.map(|generation| generation.number),
        sampled_at: published.and_then(|generation| generation.sampled_at),
        tables: Vec::new(),
    };
    let Some(generation) = published else { return Ok(debt) };
    let sampled = compaction_sample::tables(connection, catalog.catalog_id, generation).await?;
    // A table that was dropped since is no debt of anybody.
    for table in live_tables(connection, catalog, false).await? {
        let of_table = sampled.binary_search_by_key(&table.identity.table_id, |(id, _)| *id);
        if let Ok(at) = of_table {
            let all = sampled[at].1;
            let all = (all, generation);
            debt.tables.push(table_debt(connection, &table, all, as_of, rules).await?);
        }
    }
    Ok(debt)
}

async fn table_debt(
    connection: &mut Session,
    table: &LiveTable,
    (all, generation): (Sampled, Generation),
    as_of: UtcInstant,
    rules: Rules,
) -> anyhow::Result<TableDebt> {
    let (policy, problem) = match effective::look(connection, table, rules.policy_limits).await? {
        Ok(policy) => (policy, None),
        Err(problem) => (None, Some(problem)),
    };
    let enforced = policy.filter(|policy| policy.mode == Mode::Enforce && table.is_parquet);
    let window = match &enforced {
        // The sample does not tell which values are the newest: as in SQL, nothing of such a table is in the window.
        Some(policy) if policy.keep_last.is_none() => {
            in_window(connection, table, policy, generation, as_of.plus(rules.lead)).await?
        }
        Some(_) | None => Sampled::nothing(generation.has_measures),
    };
    Ok(TableDebt {
        namespace: table.identity.namespace.clone(),
        table: table.identity.table.clone(),
        is_enforced: enforced.is_some(),
        problem,
        all,
        window,
        without_window: less(all, window),
        saved_rewrite_bytes: window.selected_bytes,
    })
}

/// What of the table's sample will have expired at a time.
async fn in_window(
    connection: &mut Session,
    table: &LiveTable,
    policy: &Policy,
    generation: Generation,
    at: UtcInstant,
) -> anyhow::Result<Sampled> {
    let (catalog_id, table_id) = (table.identity.catalog_id, table.identity.table_id);
    let (_, judge) = policy.judge(connection, &table.identity, at).await?;
    let tuples = compaction_sample::tuples(connection, catalog_id, table_id, generation).await?;
    Ok(expired(&judge, &tuples, generation.has_measures))
}

/// The sum of the tuples that the judge says have expired beyond doubt. The sample has no files, so
/// what evidence would say of them is not asked.
pub fn expired(judge: &Judge, tuples: &[SampledTuple], has_measures: bool) -> Sampled {
    let mut sum = Sampled::nothing(has_measures);
    for tuple in tuples {
        match judge.judge(tuple.spec_id, &stored(judge, tuple)) {
            Verdict::Expired { doubt, .. } if doubt.is_none() => sum += tuple.amount,
            Verdict::Expired { .. } | Verdict::Kept { .. } => {}
        }
    }
    sum
}

/// The sample has the values alone, in the order of the spec's keys: one of another length is
/// damaged, and matches none.
fn stored(judge: &Judge, tuple: &SampledTuple) -> StoredTuple {
    let values = tuple.values.clone().unwrap_or_default();
    let spec = tuple.spec_id.and_then(|spec_id| judge.spec(spec_id));
    let keys = spec.map(|spec| spec.keys()).unwrap_or_default();
    StoredTuple { keys: keys.to_vec(), values }
}

/// Both are of one generation, read at two moments: another may have been published in between, so
/// the difference is never below nothing.
fn less(all: Sampled, part: Sampled) -> Sampled {
    let minus = |a: i64, b: i64| a.saturating_sub(b).max(0);
    Sampled {
        files: minus(all.files, part.files),
        small_files: minus(all.small_files, part.small_files),
        selected: minus(all.selected, part.selected),
        bytes: minus(all.bytes, part.bytes),
        selected_bytes: minus(all.selected_bytes, part.selected_bytes),
        records: all.records.zip(part.records).map(|(a, b)| minus(a, b)),
    }
}
