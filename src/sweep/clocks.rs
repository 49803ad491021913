//! Whether a pass may act by the database's clock: what [`clock_guard`](crate::rules::clock_guard) says of
//! it, and whether it is behind what the catalog's own snapshots say.

use std::time::Duration;

use super::context::Context;
use super::report::{Outcome, TableReport};
use super::settings::Settings;
use crate::catalog::clock::{self, Behind, CLOCK_TOLERANCE, too_far_behind};
use crate::catalog::clock_memory::{Epoch, Remembered, note_accepted, note_refused, remembered};
use crate::catalog::session::Session;
use crate::catalog::tables::{Catalog, TableIdentity};
use crate::events;
use crate::rules::clock_guard::{Acceptance, Accepted, Reading, Refusal, decide};

/// How a catalog's clock stands in a pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// The epoch that what the pass notes belongs to.
    pub epoch: Epoch,
    /// Why the pass may do nothing.
    pub refused: Option<Refused>,
}

/// Why a pass may do nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// The clock is not to be trusted, in words.
    Skew(String),
    /// It is behind the newest snapshot.
    Behind(Behind),
}

impl Refused {
    /// What is said of a table.
    pub fn report(&self, table: &TableIdentity) -> TableReport {
        let accept = format!("`tailrace clock accept {} --reason TEXT`", table.catalog);
        match self {
            Self::Skew(why) => {
                let error = format!(
                    "{why}: nothing is dropped until the clocks agree, or {accept} takes the \
                     database's as it is, for one pass"
                );
                TableReport::new(table, Outcome::ClockSkew, Some(error))
            }
            Self::Behind(Behind { now, newest_snapshot, .. }) => {
                let error = format!(
                    "the database's clock ({now}) is behind the newest snapshot \
                     ({newest_snapshot}): nothing is dropped until it has caught up, or {accept} \
                     takes it as it is, and the snapshots made by then whatever their time"
                );
                TableReport::new(table, Outcome::ClockBehind, Some(error))
            }
        }
    }
}

/// What the clocks say at the beginning of a pass: as the settings have it, else as they are.
pub async fn read_clock(connection: &mut Session, settings: &Settings) -> sqlx::Result<Reading> {
    match settings.rehearsed() {
        Some(reading) => Ok(reading),
        None => clock::read(connection).await,
    }
}

/// Tells where host and database disagree, whichever of them is wrong.
pub fn log_apart(reading: &Reading, max_skew: Duration) {
    let Reading { database, host, .. } = reading;
    let skew_seconds = reading.skew().as_secs();
    if let Some(refusal) = reading.apart(max_skew) {
        tracing::error!(
            event = events::CLOCK_SKEW,
            database_time = %database, host_time = %host, skew_seconds,
            error = %refusal,
            "Host and database disagree about the time: nothing is dropped or noted, but where \
             somebody accepted that. Set the wrong clock by NTP, or see `tailrace clock accept`"
        );
    } else if reading.skew() > CLOCK_TOLERANCE {
        tracing::warn!(
            event = events::CLOCK_DIFFERS,
            database_time = %database, host_time = %host, skew_seconds,
            "Host and database disagree about the time by less than guard.max_clock_skew; the \
             database's counts"
        );
    }
}

/// Decides whether the pass may act by the clock in a catalog, and notes that and nothing else. For
/// whoever has the catalog's lease.
pub(super) async fn judge_clock(
    connection: &mut Session,
    catalog: &Catalog,
    context: &Context<'_>,
) -> sqlx::Result<Standing> {
    let (catalog_id, name) = (catalog.catalog_id, catalog.name.as_str());
    let known = remembered(connection, catalog_id).await?;
    let acceptance = match decided(connection, &known, context).await? {
        Ok(acceptance) => acceptance,
        Err(refusal) => {
            let why = refusal.to_string();
            note_refused(connection, catalog_id, context.now, &why, refusal.is_by_boot()).await?;
            // That host and database disagree is logged once, for all catalogs.
            if !matches!(refusal, Refusal::Apart { .. }) {
                log_jump(name, &context.clock, &refusal);
            }
            return Ok(Standing { epoch: known.epoch, refused: Some(Refused::Skew(why)) });
        }
    };
    if let Some(behind) = too_far_behind(connection, catalog_id, known.trusted_head).await? {
        let Behind { now, newest_snapshot, by } = behind;
        let why = format!("the database's clock is behind the newest snapshot ({newest_snapshot})");
        note_refused(connection, catalog_id, context.now, &why, false).await?;
        tracing::error!(
            event = events::CLOCK_BEHIND,
            catalog = name,
            database_time = %now,
            newest_snapshot_time = %newest_snapshot,
            behind_seconds = by.as_secs(),
            "The database's clock is behind the newest snapshot: nothing is dropped. Set it by NTP, or \
             see `tailrace clock accept`"
        );
        return Ok(Standing { epoch: known.epoch, refused: Some(Refused::Behind(behind)) });
    }
    let epoch = note_accepted(connection, catalog_id, &acceptance).await?;
    if known.memory.refused.is_some() || acceptance.is_by_hand {
        let by_hand = known.by_hand.as_ref().filter(|_| acceptance.is_by_hand);
        tracing::info!(
            event = events::CLOCK_AGREED,
            catalog = name,
            database_time = %context.clock.database,
            epoch = epoch.number,
            accepted_by = by_hand.map(|by_hand| by_hand.by.as_str()),
            reason = by_hand.map(|by_hand| by_hand.reason.as_str()),
            "The database's clock is acted by again"
        );
    }
    Ok(Standing { epoch, refused: None })
}

/// What is said of the clock that the pass goes by. Where somebody else's pass came in between, which
/// looks like a clock that was set back, it is read anew, and both must be good.
async fn decided(
    connection: &mut Session,
    known: &Remembered,
    context: &Context<'_>,
) -> sqlx::Result<Result<Acceptance, Refusal>> {
    let max_skew = context.settings.max_clock_skew;
    let decided = decide(&context.clock, &known.memory, max_skew);
    let is_older = |accepted: Accepted| accepted.now > context.clock.database;
    if decided.is_err() || !known.memory.accepted.is_some_and(is_older) {
        return Ok(decided);
    }
    let anew = read_clock(connection, context.settings).await?;
    Ok(decide(&anew, &known.memory, max_skew))
}

fn log_jump(catalog: &str, reading: &Reading, refusal: &Refusal) {
    tracing::error!(
        event = events::CLOCK_SKEW,
        catalog,
        database_time = %reading.database, host_time = %reading.host,
        skew_seconds = reading.skew().as_secs(),
        error = %refusal,
        "The database's clock jumped: nothing is dropped or noted in this catalog. Set the wrong clock \
         by NTP, or see `tailrace clock accept`"
    );
}

/// What is remembered of a catalog's clock, and why a pass that began now would do nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// What is remembered of the catalog's clock.
    pub known: Remembered,
    /// What the rules say of the clocks as they are read here; a daemon on another host may see others,
    /// and `known.refusal` is what it said.
    pub refusal: Option<Refusal>,
    /// How far the database's clock is behind the newest snapshot that counts.
    pub behind: Option<Behind>,
}

impl Outlook {
    /// Why a pass from here would do nothing, in words.
    pub fn why(&self) -> Option<String> {
        let refusal = self.refusal.as_ref().filter(|_| !self.known.memory.is_accepted_once);
        let behind = self.behind.as_ref();
        refusal.map(Refusal::to_string).or_else(|| {
            behind.map(|Behind { now, newest_snapshot, .. }| {
                format!(
                    "the database's clock ({now}) is behind the newest snapshot ({newest_snapshot})"
                )
            })
        })
    }
}

/// Looks at a catalog's clock without noting anything.
pub async fn outlook(
    connection: &mut Session,
    catalog_id: i64,
    reading: &Reading,
    max_skew: Duration,
) -> sqlx::Result<Outlook> {
    let known = remembered(connection, catalog_id).await?;
    let refusal = decide(reading, &known.memory.by_rule(), max_skew).err();
    let behind = too_far_behind(connection, catalog_id, known.trusted_head).await?;
    Ok(Outlook { known, refusal, behind })
}
