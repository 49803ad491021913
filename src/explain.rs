//! Why a partition is here, or gone: its spec, what its values may mean, the policy and when it expires, all that
//! blocks the drop, or what ended its files. Read-only; nothing is decided here that a pass does not decide itself.

pub mod blocks;
mod past;
pub mod report;

use anyhow::Context as _;

use crate::catalog::clock;
use crate::catalog::finder::tuples::{Search, count_files, files_of};
use crate::catalog::live_file::Counts;
use crate::catalog::removal_queue::undrained;
use crate::catalog::session::Session;
use crate::catalog::specs::{spec_book, table_shape};
use crate::catalog::tables::{Catalog, LiveTable, TableIdentity};
use crate::catalog::tuples::TupleOfSpec;
use crate::explicit::call::PartitionItem;
use crate::explicit::validate;
use crate::guards::Guards;
use crate::policy::Policy;
use crate::policy::governed::Governed;
use crate::rules::expiry::{Judge, Retention, SpecBook, Verdict};
use crate::rules::hold::Held;
use crate::rules::instant::UtcInstant;
use crate::specs::specs_of;
use crate::sweep::evidence::{Evidence, Keepers};
use crate::sweep::expired::ExpiredTuple;
use crate::sweep::memory::store;
use crate::sweep::planning::clock_refused;
use crate::sweep::radius::{keep_back, rule_of};
use crate::sweep::{Settings, waiting};
use blocks::{Blocks, Facts};
use report::{Explanation, Outlook, Rule, SpecSummary};

/// Explains one partition of a live table, by its stored values.
///
/// Takes no lock, and holds no transaction open: what is written meanwhile may be seen in part.
///
/// # Errors
/// [`Problem::Validation`](crate::explicit::problem::Problem::Validation) where the item names no partition of a spec that the table has or had; else the database's.
pub async fn explain(
    connection: &mut Session,
    live: LiveTable,
    item: &PartitionItem,
    settings: &Settings,
) -> anyhow::Result<Explanation> {
    let identity = live.identity.clone();
    let TableIdentity { catalog_id, table_id, .. } = identity;
    let now = clock::now(connection).await?;
    let shape = table_shape(connection, catalog_id, table_id).await?;
    let book = spec_book(connection, catalog_id, table_id).await?;
    let default_spec_id = shape.live_spec.as_ref().map(|(spec_id, _)| *spec_id);
    // What no writer should have stored is explained as well.
    let item = PartitionItem { literal: true, ..item.clone() };
    let resolved = validate::resolve(std::slice::from_ref(&item), default_spec_id, &book)?;
    let resolved = resolved.into_iter().next().context("one partition was asked for")?;
    let (tuple, lookup_key) = (resolved.tuple, resolved.lookup_key);
    let governed = Governed::read(connection, live, settings.policy_limits, now).await?;
    let guards = match governed.as_ref().and_then(|governed| governed.policy.as_ref().ok()) {
        Some(policy) => policy.guards.clone(),
        None => Guards::read(connection, &identity).await?,
    };
    let policy = governed.as_ref().and_then(Governed::followed);
    let judge = judge(policy, &book, &tuple, now);
    let stored = tuple.tuple.clone();
    let verdict = judge.judge(Some(tuple.spec_id), &stored);
    let (counts, ids) = files(connection, &identity, &tuple, lookup_key).await?;
    let mut facts = Facts {
        now,
        guards: &guards,
        held_by: guards.held().by(&book, Some(tuple.spec_id), &stored),
        policy: governed.as_ref().map(|governed| governed.policy.as_ref()),
        is_parquet: governed.as_ref().is_none_or(|governed| governed.live.is_parquet),
        verdict: &verdict,
        withheld: None,
        waiting: None,
        clock_refused: clock_refused(connection, &identity, settings).await?,
        queue: None,
    };
    if let (Some(policy), Verdict::Expired { range_end, doubt }, true) =
        (policy, &verdict, counts.files > 0)
    {
        let expired = ExpiredTuple {
            display: judge.display(Some(tuple.spec_id), &stored),
            tuple: tuple.clone(),
            lookup_key,
            range_end: *range_end,
            doubt: doubt.clone(),
            newest: None,
            is_approved: false,
            counts,
            ids,
        };
        let keepers = Keepers {
            held: Held::default(),
            ..Keepers::of(policy, &settings.scan_limits, settings.max_values)
        };
        let mut evidence = Evidence::new(&identity, &judge, &book, settings.cross_check, keepers);
        let examined = evidence.examine(connection, vec![expired], true).await?;
        facts.withheld = examined.withheld.into_iter().next();
        let loaded = store::load(connection, &identity, policy.source_field_id).await?;
        let rule = rule_of(&book, judge.retention(), policy);
        let change = loaded.and_then(|loaded| loaded.memory.rule_change);
        if let Some(change) = change.filter(|change| change.rule == rule) {
            let (retention, expired) = (judge.retention(), examined.expired);
            let (_, kept) = keep_back(connection, &identity, &change, retention, expired).await?;
            facts.withheld = facts.withheld.or(kept.into_iter().next());
        }
        let remembered = waiting::store::load(connection, &identity).await?;
        let is_it = |one: &waiting::Waiting| {
            one.key() == tuple && one.has_expired(policy.keep.length(), now)
        };
        facts.waiting = remembered.tuples.into_iter().find(is_it);
    }
    if let Some(ceiling) = settings.removal_queue_ceiling {
        let queue = undrained(connection, catalog_id, ceiling.saturating_add(1)).await?;
        facts.queue = (queue > ceiling).then_some(queue);
    }
    let Blocks { outlook, blocked_by, expires_at } = blocks::blocks(&facts, counts.files);
    let since = governed.as_ref().and_then(|governed| governed.since);
    let rule = policy.map(|policy| Rule::of(policy, since, now));
    let catalog = Catalog { catalog_id, name: identity.catalog.clone() };
    let past = past::read(connection, &catalog, &identity, &tuple, lookup_key).await?;
    let specs = specs_of(connection, &identity, settings.stale_writer_window).await?.specs;
    let spec = specs.into_iter().find(|spec| spec.spec_id == tuple.spec_id).map(SpecSummary::of);
    Ok(Explanation {
        as_of: now,
        display: judge.display(Some(tuple.spec_id), &stored),
        readings: judge.interpretations(Some(tuple.spec_id), &stored),
        range_end: range_end(&judge, &tuple),
        catalog: identity.catalog,
        namespace: identity.namespace,
        table: identity.table,
        table_uuid: identity.table_uuid,
        spec_id: tuple.spec_id,
        partition_values: tuple.tuple.values,
        spec,
        live: counts,
        rule,
        outlook,
        expires_at: expires_at.filter(|_| outlook != Outlook::NoPolicy),
        blocked_by,
        endings: past.endings,
        drops: past.drops,
    })
}

/// The judge of the policy; without one, of the first column by whose time the tuple's spec partitions, which only
/// tells what its values may mean.
fn judge(policy: Option<&Policy>, book: &SpecBook, tuple: &TupleOfSpec, now: UtcInstant) -> Judge {
    if let Some(policy) = policy {
        return Judge::new(book, policy.retention(now));
    }
    let fields = book.specs.get(&tuple.spec_id).into_iter().flatten();
    let mut of_time = fields.filter(|field| !book.transforms_of(field).is_empty());
    let source_field_id = of_time.next().map_or(0, |field| field.source_field_id);
    let keep = std::time::Duration::ZERO;
    Judge::new(book, Retention { source_field_id, keep, now })
}

/// When the range of the tuple's own values ends, whether or not it has.
fn range_end(judge: &Judge, tuple: &TupleOfSpec) -> Option<UtcInstant> {
    let lookup_key = judge.spec(tuple.spec_id)?.lookup_key()?;
    let value = tuple.tuple.values.get(lookup_key)?.as_deref();
    judge.ends(tuple.spec_id, value)?.ok().map(|ends| ends.own)
}

/// The live files of the tuple: what they amount to, and their ids, ascending.
async fn files(
    connection: &mut Session,
    identity: &TableIdentity,
    tuple: &TupleOfSpec,
    lookup_key: usize,
) -> sqlx::Result<(Counts, Vec<i64>)> {
    let TableIdentity { catalog_id, table_id, .. } = *identity;
    let (tuples, lookup_keys) = (std::slice::from_ref(tuple), &[lookup_key][..]);
    let search = Search { catalog_id, table_id, tuples, lookup_keys, from_id: 0 };
    let counts = count_files(connection, &search).await?;
    let mut sum = Counts::default();
    counts.into_iter().for_each(|(_, counts)| sum += counts);
    let found =
        files_of(connection, catalog_id, table_id, tuples, lookup_keys, 0, i64::MAX).await?;
    let mut ids: Vec<i64> = found.into_iter().map(|(id, _)| id).collect();
    ids.sort_unstable();
    Ok((sum, ids))
}
