//! What doctor reads of each table that has a policy or a property.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::catalog::errors::Failure;
use crate::catalog::finder::Finder;
use crate::catalog::inventory::consumers;
use crate::catalog::session::Session;
use crate::catalog::tables::LiveTable;
use crate::catalog::trust::{KnownSpec, known_specs};
use crate::policy::Mode;
use crate::policy::governed::Governed;
use crate::rules::instant::UtcInstant;
use crate::specs::describe_fields;
use crate::sweep::Settings;
use crate::sweep::plan::dates_nothing;
use crate::sweep::stalled::{Stalled, stalled};
use crate::sweep::waiting::{Remembered, store};

/// More consumers of a table than this are not listed.
const CONSUMERS: i64 = 100;

/// A table that asks for retention, and what is reported of it.
#[derive(Debug, Clone)]
pub struct TableFacts {
    /// The table and its policy.
    pub governed: Governed,
    /// Whether the live spec has a time field on the policy's column.
    pub covers_new_files: bool,
    /// Whether the newest live files are there and none of them can be dated.
    pub dates_nothing: bool,
    /// Whether the feed has stalled.
    pub stalled: Option<Stalled>,
    /// By when the last full pass by this policy decided.
    pub full_pass_at: Option<DateTime<Utc>>,
    /// The partition specs, with their fields in words; empty where no policy is followed.
    pub specs: Vec<(KnownSpec, String)>,
    /// What has expired by the policy and waits, as passes have noted it; nothing where no policy is
    /// enforced.
    pub waiting: Remembered,
    /// Who has an offset for the table with this UUID; `None` where that may not be read.
    pub consumers: Option<Vec<String>>,
}

impl TableFacts {
    /// Since when the policy is in force as it is.
    pub fn in_force_since(&self) -> Option<DateTime<Utc>> {
        self.governed.since.and_then(UtcInstant::to_chrono)
    }
}

/// Reads them; `None` where nobody asked for retention.
pub async fn read(
    connection: &mut Session,
    table: LiveTable,
    settings: &Settings,
    now: UtcInstant,
) -> sqlx::Result<Option<TableFacts>> {
    let governed = Governed::read(connection, table, settings.policy_limits, now).await?;
    let Some(governed) = governed else { return Ok(None) };
    let identity = governed.live.identity.clone();
    let mut facts = TableFacts {
        governed,
        covers_new_files: true,
        dates_nothing: false,
        stalled: None,
        full_pass_at: None,
        specs: Vec::new(),
        waiting: Remembered::default(),
        consumers: None,
    };
    if let Some(policy) = facts.governed.followed() {
        let shape = &facts.governed.shape;
        let (_, judge) = policy.judge(connection, &identity, now).await?;
        let known = known_specs(connection, &identity, settings.stale_writer_window).await?;
        let named = |spec: KnownSpec| {
            let fields = describe_fields(&spec, shape).join(", ");
            (spec, fields)
        };
        facts.specs = known.into_iter().map(named).collect();
        let live_spec = shape.live_spec.as_ref();
        facts.covers_new_files = live_spec
            .and_then(|(spec_id, _)| judge.spec(*spec_id))
            .is_some_and(|spec| spec.lookup_key().is_some());
        facts.dates_nothing = dates_nothing(connection, &identity, &judge).await?;
        let finder = Finder { table: &identity, judge: &judge, scan_limits: &settings.scan_limits };
        facts.stalled = stalled(connection, finder, settings.max_values).await?;
        facts.full_pass_at = sqlx::query_scalar!(
            r#"select full_pass_at from tailrace.table_state
               where catalog_id = $1 and table_uuid = $2 and source_field_id = $3"#,
            identity.catalog_id,
            identity.table_uuid,
            policy.source_field_id
        )
        .fetch_optional(&mut *connection)
        .await?
        .flatten();
        if policy.mode == Mode::Enforce {
            let keep = policy.keep.length();
            let mut remembered = store::load(connection, &identity).await?;
            remembered.forget_old_more(keep, now, Duration::ZERO);
            remembered.tuples.retain(|waiting| waiting.has_expired(keep, now));
            facts.waiting = remembered;
        }
    }
    // Reading offsets is a right of its own, which the family of rights reports.
    let (catalog_id, table_uuid) = (identity.catalog_id, identity.table_uuid);
    facts.consumers = match consumers::of_table(connection, catalog_id, table_uuid, CONSUMERS).await
    {
        Err(error) if Failure::of(&error) == Failure::NotPermitted => None,
        read => Some(read?),
    };
    Ok(Some(facts))
}
