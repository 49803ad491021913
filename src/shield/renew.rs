//! One renewal: what is in the window is claimed, what left it is released.

use std::sync::Once;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::find::files_in_window;
use super::mirror::mirror_properties;
use super::rows::{self, Changes};
use super::{LEASE, Settings};
use crate::catalog::claims::{self, Claims, has_claims, make_claimant};
use crate::catalog::clock;
use crate::catalog::clock_memory::remembered;
use crate::catalog::connect::{Database, close};
use crate::catalog::deadline::within;
use crate::catalog::failure::{in_words, is_away};
use crate::catalog::restore::note_head;
use crate::catalog::server::{CLAIMS, server_tables};
use crate::catalog::session::Session;
use crate::catalog::shape::copy_specs;
use crate::catalog::tables::{Catalog, LiveTable, TableIdentity, catalogs, live_tables};
use crate::catalog::window_rules::{keep_window_rules, note_window_setting};
use crate::clock_guard::{Reading, decide};
use crate::events;
use crate::instant::UtcInstant;
use crate::policy::{Mode, Policy};
use crate::sweep::effective;

/// What a renewal came to.
#[derive(Debug, Default)]
pub struct Renewed {
    /// Tables with claimed files.
    pub tables: usize,
    /// Claimed files.
    pub files: usize,
    /// Rows that name them.
    pub rows: usize,
    /// What could not be dealt with: its claims are as they were, and lapse unless a later renewal
    /// gets through.
    pub failed: Vec<Failed>,
    /// How long it took.
    pub took: Duration,
}

/// A catalog, or a table, that could not be dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    /// The catalog.
    pub catalog: String,
    /// `namespace.table`, if it is about one.
    pub table: Option<String>,
    /// Why.
    pub error: String,
}

impl Failed {
    /// A table.
    pub(super) fn of_table(identity: &TableIdentity, error: &anyhow::Error) -> Self {
        Failed {
            catalog: identity.catalog.clone(),
            table: Some(format!("{}.{}", identity.namespace, identity.table)),
            error: in_words(error),
        }
    }
}

/// Claims the files in the drop window of every catalog, renews the leases of those claimed before,
/// releases those that left it; and brings the window in SQL up to date. Copies partition specs and mirrors
/// properties first.
///
/// `now` decides, in place of the database's time where it is given; leases run by the database's
/// clock in any case, as planners go by that. Takes no commit lock. Where the server knows no claims
/// (before V15), or `settings.claims` is off, specs and the window in SQL are looked after all the same.
///
/// # Errors
/// The database is away, or our schema is not there.
pub async fn renew(
    database: &Database,
    settings: &Settings,
    now: Option<UtcInstant>,
) -> anyhow::Result<Renewed> {
    let began = Instant::now();
    let mut connection = database.session().await?;
    let mut renewed = Renewed::default();
    // A network that falls silent ends this renewal, and not all that would follow: by then the
    // leases have lapsed anyway.
    let done = within(LEASE, renew_all(&mut connection, settings, now, &mut renewed)).await;
    close(connection).await;
    done?;
    renewed.took = began.elapsed();
    tell(&renewed);
    Ok(renewed)
}

async fn renew_all(
    connection: &mut Session,
    settings: &Settings,
    now: Option<UtcInstant>,
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let clock = match (settings.clock, now) {
        (Some(reading), _) => reading,
        (None, Some(now)) => Reading::rehearsed(now),
        (None, None) => clock::read(connection).await?,
    };
    let now = clock.database;
    if clock.apart(settings.max_clock_skew).is_none() {
        note_window_setting(connection, settings.lead, settings.min_keep).await?;
        claims::forget_gone_catalogs(connection).await?;
    }
    let can_claim = has_claims(connection).await?;
    if !can_claim {
        tell_off();
    }
    let must_fill = server_tables(connection).await?.must_fill(CLAIMS);
    let trusted = copy_all_specs(connection, settings, &clock, renewed).await?;
    for catalog in trusted {
        let done = async {
            mirror_properties(connection, &catalog, settings, renewed).await?;
            keep_window_rules(connection, catalog.catalog_id).await?;
            match (can_claim, settings.claims) {
                (false, _) => Ok(()),
                (true, false) => Ok(let_go(connection, catalog.catalog_id, &[]).await?),
                (true, true) if !must_fill.is_empty() => Err(anyhow::anyhow!(
                    "each claim must fill {}, which this tailrace does not know: upgrade it",
                    must_fill.join(", ")
                )),
                (true, true) => renew_catalog(connection, &catalog, settings, now, renewed).await,
            }
        };
        if let Err(error) = done.await {
            if is_away(&error) {
                return Err(error);
            }
            let error = in_words(&error);
            renewed.failed.push(Failed { catalog: catalog.name, table: None, error });
        }
    }
    Ok(())
}

/// Copies the specs of every catalog whose clock is trusted, before anything is claimed in any, so that no
/// large table keeps another one's specs waiting; returns these catalogs. Passes may be so far apart that
/// the server deletes a spec which none has seen. A copy is dated by the next pass (see [`copy_specs`], also
/// for why this needs no lease).
async fn copy_all_specs(
    connection: &mut Session,
    settings: &Settings,
    clock: &Reading,
    renewed: &mut Renewed,
) -> anyhow::Result<Vec<Catalog>> {
    let mut trusted_ones = Vec::new();
    for catalog in catalogs(connection).await? {
        let mut is_trusted = false;
        let copied = async {
            trusted(connection, &catalog, clock, settings).await?;
            is_trusted = true;
            // Should the catalog be restored to a time before, what is copied is told to be of after it.
            note_head(connection, catalog.catalog_id, clock.database).await?;
            let copied = copy_specs(connection, catalog.catalog_id, None).await;
            copied.context("partition specs were not copied")
        };
        if let Err(error) = copied.await {
            if is_away(&error) {
                return Err(error);
            }
            let (catalog, error) = (catalog.name.clone(), in_words(&error));
            renewed.failed.push(Failed { catalog, table: None, error });
        }
        if is_trusted {
            trusted_ones.push(catalog);
        }
    }
    Ok(trusted_ones)
}

/// Nothing, where leases may be written by the clock. What a person accepted was accepted for a pass.
///
/// # Errors
/// Why they may not, in words; or the database's.
async fn trusted(
    connection: &mut Session,
    catalog: &Catalog,
    clock: &Reading,
    settings: &Settings,
) -> anyhow::Result<()> {
    let known = remembered(connection, catalog.catalog_id).await?;
    match decide(clock, &known.memory.by_rule(), settings.max_clock_skew) {
        Ok(_) => Ok(()),
        Err(refusal) => anyhow::bail!("nothing is claimed or released: {refusal}"),
    }
}

async fn renew_catalog(
    connection: &mut Session,
    catalog: &Catalog,
    settings: &Settings,
    now: UtcInstant,
    renewed: &mut Renewed,
) -> anyhow::Result<()> {
    let mut shielded = Vec::new();
    for table in live_tables(connection, catalog, true).await? {
        let policy = match in_force(connection, &table, settings).await? {
            Some(policy) if table.is_parquet => policy,
            _ => continue,
        };
        shielded.push(table.identity.table_id);
        match renew_table(connection, &table, &policy, settings, now).await {
            Ok(Some((files, rows))) => {
                renewed.tables += usize::from(files > 0);
                renewed.files += files;
                renewed.rows += rows;
            }
            Ok(None) => tell_unread(&table),
            Err(error) if is_away(&error) => return Err(error),
            Err(error) => {
                renewed.failed.push(Failed::of_table(&table.identity, &error));
            }
        }
    }
    Ok(let_go(connection, catalog.catalog_id, &shielded).await?)
}

/// The policy of a table, if it drops.
pub(super) async fn in_force(
    connection: &mut Session,
    table: &LiveTable,
    settings: &Settings,
) -> sqlx::Result<Option<Policy>> {
    let policy = effective::look(connection, table, settings.min_keep).await?;
    Ok(policy.ok().flatten().filter(|policy| policy.mode == Mode::Enforce))
}

/// Claims a table's files; how many, in how many rows. `None` where they cannot be told.
async fn renew_table(
    connection: &mut Session,
    table: &LiveTable,
    policy: &Policy,
    settings: &Settings,
    now: UtcInstant,
) -> anyhow::Result<Option<(usize, usize)>> {
    let identity = &table.identity;
    let found = files_in_window(connection, identity, policy, now, settings).await?;
    let Some(wanted) = found else { return Ok(None) };
    let claimant = match (claims::claimant(connection, identity.catalog_id).await?, &wanted) {
        (Some(claimant), _) => claimant,
        (None, wanted) if wanted.is_empty() => return Ok(Some((0, 0))),
        (None, _) => make_claimant(connection, identity.catalog_id).await?,
    };
    let claims = Claims { catalog_id: identity.catalog_id, table_id: identity.table_id, claimant };
    let mut transaction = connection.begin().await?;
    claims::lock(&mut transaction, claims.catalog_id).await?;
    // Whoever changed the policy since has released, or is about to release, by another one.
    if in_force(&mut transaction, table, settings).await?.as_ref() != Some(policy) {
        return Ok(Some((0, 0)));
    }
    let existing = claims.rows(&mut transaction).await?;
    let taken = claims.keys_of_others(&mut transaction).await?;
    let Changes { renewed, written, removed } = rows::changes(&existing, &wanted, &taken);
    // What goes first: a key may be taken anew.
    if !removed.is_empty() {
        claims.remove(&mut transaction, &removed).await?;
    }
    if !renewed.is_empty() {
        claims.renew(&mut transaction, &renewed, LEASE).await?;
    }
    for row in &written {
        let is_ours = claims.put(&mut transaction, row, LEASE).await?;
        ensure!(is_ours, "another claimant has just taken the key {}", row.group_key);
    }
    transaction.commit().await?;
    Ok(Some((wanted.len(), renewed.len() + written.len())))
}

/// Releases what is claimed of every table of a catalog but these.
async fn let_go(connection: &mut Session, catalog_id: i64, but: &[i64]) -> sqlx::Result<()> {
    if let Some(claimant) = claims::claimant(connection, catalog_id).await? {
        claims::remove_all_but(connection, catalog_id, claimant, but).await?;
    }
    Ok(())
}

fn tell(renewed: &Renewed) {
    for Failed { catalog, table, error } in &renewed.failed {
        tracing::warn!(
            event = events::SHIELD_FAILED,
            catalog,
            table,
            error,
            "Files about to be dropped may not be kept from compaction"
        );
    }
    tracing::info!(
        event = events::SHIELD_RENEWED,
        tables = renewed.tables,
        files = renewed.files,
        rows = renewed.rows,
        failed = renewed.failed.len(),
        duration_ms = u64::try_from(renewed.took.as_millis()).unwrap_or(u64::MAX),
        "Files about to be dropped are kept from compaction"
    );
}

/// Said once in the life of the process.
fn tell_off() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::info!(
            event = events::SHIELD_OFF,
            "The server is older than V15 and knows no claims: nothing is kept from compaction"
        );
    });
}

/// Said once in the life of the process, of the first such table.
fn tell_unread(table: &LiveTable) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            event = events::SHIELD_UNREAD,
            catalog = table.identity.catalog,
            namespace = table.identity.namespace,
            table = table.identity.table,
            "Which files of a table are about to be dropped cannot be told without reading it \
             whole, so they are not kept from compaction: it needs the index by partition value \
             (V23), or a higher discovery.max_values"
        );
    });
}
