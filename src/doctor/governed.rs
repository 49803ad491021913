//! What is read of each table that asks for retention.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::catalog::errors::Failure;
use crate::catalog::inventory::consumers;
use crate::catalog::session::Session;
use crate::catalog::specs::{spec_book, table_shape};
use crate::catalog::tables::LiveTable;
use crate::catalog::trust::{KnownSpec, known_specs};
use crate::policy::effective;
use crate::policy::since::in_force_since;
use crate::policy::{Mode, Policy};
use crate::rules::expiry::{Judge, Retention};
use crate::rules::instant::UtcInstant;
use crate::specs::in_words;
use crate::sweep::Settings;
use crate::sweep::plan::dates_nothing;
use crate::sweep::waiting::{Remembered, store};

/// More consumers of a table than this are not listed.
const CONSUMERS: i64 = 100;

/// A table with a policy, or with one that is not followed.
#[derive(Debug, Clone)]
pub struct Governed {
    /// Which.
    pub table: LiveTable,
    /// The policy in force, or why there is none.
    pub policy: Result<Policy, String>,
    /// Since when it is in force as it is; `None` where nobody can tell.
    pub since: Option<DateTime<Utc>>,
    /// Whether the live spec has a time field on the policy's column.
    pub covers_new_files: bool,
    /// Whether the newest live files are there and none of them can be dated.
    pub dates_nothing: bool,
    /// By when the last full pass by this policy decided.
    pub full_pass_at: Option<DateTime<Utc>>,
    /// The partition specs, with their fields in words; empty where no policy is followed.
    pub specs: Vec<(KnownSpec, String)>,
    /// What has expired by the policy and waits, as passes have noted it; nothing where no policy is
    /// enforced.
    pub waiting: Remembered,
    /// Who has an offset for this incarnation; `None` where that may not be read.
    pub consumers: Option<Vec<String>>,
}

/// Reads it; `None` where nobody asked for retention.
pub async fn read(
    connection: &mut Session,
    table: LiveTable,
    settings: &Settings,
    now: UtcInstant,
) -> sqlx::Result<Option<Governed>> {
    let policy = match effective::look(connection, &table, settings.min_keep).await? {
        Ok(None) => return Ok(None),
        Ok(Some(policy)) => Ok(policy),
        Err(problem) => Err(problem),
    };
    let mut governed = Governed {
        table,
        policy,
        since: None,
        covers_new_files: true,
        dates_nothing: false,
        full_pass_at: None,
        specs: Vec::new(),
        waiting: Remembered::default(),
        consumers: None,
    };
    let identity = governed.table.identity.clone();
    let (catalog_id, table_id) = (identity.catalog_id, identity.table_id);
    if let (Ok(policy), true) = (&governed.policy, governed.table.is_parquet) {
        let since = in_force_since(connection, &identity, policy).await?;
        governed.since = since.and_then(UtcInstant::to_chrono);
        let book = spec_book(connection, catalog_id, table_id).await?;
        let shape = table_shape(connection, catalog_id, table_id).await?;
        let known = known_specs(connection, &identity, settings.stale_writer_window).await?;
        let named = |spec: KnownSpec| {
            let fields = in_words(&spec, &shape).join(", ");
            (spec, fields)
        };
        governed.specs = known.into_iter().map(named).collect();
        let live_spec = shape.live_spec;
        let (source_field_id, keep) = (policy.source_field_id, policy.keep.length());
        let judge = Judge::new(&book, Retention { source_field_id, keep, now });
        governed.covers_new_files = live_spec
            .and_then(|(spec_id, _)| judge.spec(spec_id))
            .is_some_and(|spec| spec.lead_position().is_some());
        governed.dates_nothing = dates_nothing(connection, &identity, &judge).await?;
        governed.full_pass_at = sqlx::query_scalar!(
            r#"select full_pass_at from tailrace.table_state
               where catalog_id = $1 and table_uuid = $2 and source_field_id = $3"#,
            catalog_id,
            identity.table_uuid,
            policy.source_field_id
        )
        .fetch_optional(&mut *connection)
        .await?
        .flatten();
        if policy.mode == Mode::Enforce {
            governed.waiting = store::load(connection, &identity).await?;
            let remembered = &mut governed.waiting;
            remembered.forget_old_more(keep, now, Duration::ZERO);
            remembered.tuples.retain(|waiting| waiting.has_expired(keep, now));
        }
    }
    // Reading offsets is a right of its own, which the family of rights tells of.
    governed.consumers =
        match consumers::of_table(connection, catalog_id, identity.table_uuid, CONSUMERS).await {
            Err(error) if Failure::of(&error) == Failure::NotPermitted => None,
            read => Some(read?),
        };
    Ok(Some(governed))
}
