//! What a renewal logs.

use std::sync::Once;

use super::renewed::{Failed, Renewed};
use crate::catalog::tables::LiveTable;
use crate::events;

/// How a renewal went.
pub fn log_renewal(renewed: &Renewed) {
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
pub fn log_off() {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::info!(
            event = events::SHIELD_OFF,
            "The server is older than V15 and knows no claims: nothing is kept from compaction"
        );
    });
}

/// Said once in the life of the process, of the first such table.
pub fn log_unread(table: &LiveTable) {
    static TOLD: Once = Once::new();
    TOLD.call_once(|| {
        tracing::warn!(
            event = events::SHIELD_UNREAD,
            catalog = table.identity.catalog,
            namespace = table.identity.namespace,
            table = table.identity.table,
            "Which files of a table are about to be dropped is unknown without reading it \
             whole, so they are not kept from compaction: it needs the index by partition value \
             (V23), or a higher discovery.max_values"
        );
    });
}
