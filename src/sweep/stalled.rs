//! Feeds that have stalled: tables whose newest partition is older than half of their keep.

use crate::catalog::finder::{Finder, newest_value};
use crate::catalog::session::Session;
use crate::catalog::table_files::newest_live;
use crate::catalog::tables::TableIdentity;
use crate::events;
use crate::policy::Policy;
use crate::rules::expiry::has_expired;
use crate::rules::instant::UtcInstant;

/// So many of the newest live files are looked at before anything else is.
const SAMPLE: i64 = 1_000;

/// A feed that has stalled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stalled {
    /// The newest partition, as a person reads it.
    pub newest: String,
    /// When the range of its time value ended.
    pub ended: UtcInstant,
}

impl Stalled {
    /// Says so in the log.
    pub fn log(&self, table: &TableIdentity, policy: &Policy) {
        let TableIdentity { catalog, namespace, table, .. } = table;
        tracing::warn!(
            event = events::FEED_STALLED,
            catalog,
            namespace,
            table,
            newest = self.newest,
            ended = %self.ended,
            keep = %policy.keep,
            keep_last = policy.keep_last,
            "The newest partition of the table ended more than half of the policy's keep ago: its feed may have stalled"
        );
    }
}

/// Whether the table's feed has stalled, by its live files. Values that begin after now do not count, nor do those of
/// which it is not known what they mean. `None` also where the table is not small and would have to be read for it.
///
/// Of a feed that goes on the newest files tell, by one statement.
pub async fn stalled(
    connection: &mut Session,
    finder: Finder<'_>,
    most: i64,
) -> sqlx::Result<Option<Stalled>> {
    let (judge, retention) = (finder.judge, finder.judge.retention());
    let is_old = |end| has_expired(end, retention.keep / 2, retention.now);
    let TableIdentity { catalog_id, table_id, .. } = *finder.table;
    let sample = newest_live(connection, catalog_id, table_id, SAMPLE).await?;
    let mut ranges = sample.iter().filter_map(|file| judge.time_value(file.spec_id, &file.tuple));
    if sample.is_empty() || ranges.any(|range| !is_old(range.end)) {
        return Ok(None);
    }
    let newest = newest_value(connection, finder, most).await?;
    Ok(newest.filter(|(range, _)| is_old(range.end)).map(|(range, file)| Stalled {
        newest: judge.display(file.spec_id, &file.tuple),
        ended: range.end,
    }))
}
