//! The names of the log events. Alerts and dashboards use them, so they never change.
//! `docs/log-events.md` describes each event, and a test compares that page with the code.

macro_rules! events {
    ($($(#[doc = $about:literal])* $level:ident $constant:ident = $name:literal;)*) => {
        $($(#[doc = $about])* pub const $constant: &str = $name;)*

        /// Every event: its constant, its name, its level.
        pub const ALL: &[(&str, &str, &str)] =
            &[$((stringify!($constant), $name, stringify!($level))),*];
    };
}

events! {
    /// The daemon is up and runs its first pass.
    info DAEMON_STARTED = "daemon_started";
    /// The daemon was told to stop.
    info DAEMON_STOPPING = "daemon_stopping";
    /// The daemon has stopped.
    info DAEMON_STOPPED = "daemon_stopped";
    /// Log lines were lost because they could not be written to stderr; now lines can be written again.
    warn LOG_LINES_LOST = "log_lines_lost";
    /// A task of the daemon ended unexpectedly, so the daemon ends too.
    error TASK_EXITED = "task_exited";
    /// The HTTP interface could not be started; passes run without it.
    error HTTP_UNAVAILABLE = "http_unavailable";
    /// The HTTP interface listens.
    info HTTP_LISTENING = "http_listening";
    /// The HTTP interface has stopped answering requests.
    info HTTP_STOPPED = "http_stopped";
    /// The server lacks the index by partition value.
    warn LOOKUP_INDEX_MISSING = "lookup_index_missing";
    /// A request was answered, or its client went away.
    info HTTP_REQUEST = "http_request";
    /// A request could not be carried out, mostly for a reason that its answer hides.
    error REQUEST_FAILED = "request_failed";
    /// The tokens were read again.
    info TOKENS_RELOADED = "tokens_reloaded";
    /// The file of tokens is invalid; the tokens that were read before remain valid.
    error TOKENS_REFUSED = "tokens_refused";
    /// The daemon received SIGHUP, and has no tokens to read again.
    info NOTHING_TO_RELOAD = "nothing_to_reload";
    /// The schema `tailrace` was brought up to date.
    info MIGRATED = "migrated";
    /// The server has columns that this program does not know.
    warn SERVER_UNKNOWN = "server_unknown";
    /// When the next pass is due.
    debug SCHEDULE_NEXT = "schedule_next";
    /// The heartbeat file cannot be written.
    warn HEALTH_UNWRITABLE = "health_unwritable";
    /// The daemon could not notify systemd of its state.
    warn NOTIFY_FAILED = "notify_failed";
    /// The password file of libpq exists and is not used.
    warn PASSFILE_IGNORED = "passfile_ignored";
    /// The database cannot be reached; logged once until it can be reached again.
    error DATABASE_LOST = "database_lost";
    /// The database can be reached again.
    info DATABASE_BACK = "database_back";
    /// Host and database disagree about the time, or the database's clock jumped: nothing is dropped.
    error CLOCK_SKEW = "clock_skew";
    /// Host and database disagree about the time, by less than would stop passes.
    warn CLOCK_DIFFERS = "clock_differs";
    /// Passes use the database's clock again.
    info CLOCK_AGREED = "clock_agreed";
    /// Somebody accepted the database's clock for one pass.
    info CLOCK_ACCEPTED = "clock_accepted";
    /// The database's clock is behind the newest snapshot.
    error CLOCK_BEHIND = "clock_behind";
    /// Somebody paused drops: everywhere, in a catalog or of a table.
    warn PAUSED = "paused";
    /// Somebody took a pause away.
    warn RESUMED = "resumed";
    /// Somebody resumed what is paused; the pause ends later.
    warn RESUME_WAITS = "resume_waits";
    /// Somebody made a hold.
    info HOLD_ADDED = "hold_added";
    /// Somebody released a hold, or its time was over.
    info HOLD_RELEASED = "hold_released";
    /// Somebody released a hold, which ends later.
    info HOLD_RELEASE_WAITS = "hold_release_waits";
    /// A pause or a hold changed after a drop was planned; it is planned anew.
    info GUARDS_CHANGED = "guards_changed";
    /// What was the newest of a table after planning may not be any more: the pass plans the table anew.
    info NEWEST_CHANGED = "newest_changed";
    /// A pass began.
    info PASS_STARTED = "pass_started";
    /// A pass finished.
    info PASS_FINISHED = "pass_finished";
    /// Old rows of the schema `tailrace` could not be purged.
    warn PURGE_FAILED = "purge_failed";
    /// The stages of drops (retained, purged, queued, gone) could not be recorded.
    warn TRACE_FAILED = "trace_failed";
    /// The catalog was restored to an earlier time, and the schema `tailrace` was not.
    error CATALOG_RESTORED = "catalog_restored";
    /// The record that a spec is trusted was deleted when a restore was settled.
    warn TRUST_WITHDRAWN = "trust_withdrawn";
    /// The mode of a stored policy was set to `paused`, because its column may be another one since the catalog
    /// was restored.
    warn POLICY_PAUSED = "policy_paused";
    /// The catalog does not have the snapshots of drops that tailrace made.
    error DROPS_UNDONE = "drops_undone";
    /// A pass failed.
    error PASS_FAILED = "pass_failed";
    /// Another daemon works on a catalog.
    info CATALOG_SKIPPED = "catalog_skipped";
    /// A session no longer had its lease on a catalog when it tried to release it.
    warn LEASE_LOST = "lease_lost";
    /// A catalog failed, or was not finished.
    error CATALOG_FAILED = "catalog_failed";
    /// A pass will work on a table; the event has the reason.
    debug TABLE_HAS_WORK = "table_has_work";
    /// A pass finished a table.
    info TABLE_FINISHED = "table_finished";
    /// A pass reports what it would drop if the policy were enforced.
    info TABLE_OBSERVED = "table_observed";
    /// A table was dropped, replaced or renamed between planning and commit.
    info TABLE_GONE = "table_gone";
    /// A table failed.
    error TABLE_FAILED = "table_failed";
    /// A policy finds no time for any file of its table.
    error TABLE_UNHEALTHY = "table_unhealthy";
    /// More of a table would go at once, otherwise than by time alone, than may.
    warn BLAST_RADIUS_HELD = "blast_radius_held";
    /// What was held for its number is held no more.
    info BLAST_RADIUS_RELEASED = "blast_radius_released";
    /// Somebody approved partitions that are held for their number.
    info APPROVED = "approved";
    /// The newest partition of a table is older than half of its keep.
    warn FEED_STALLED = "feed_stalled";
    /// Files that are kept because nothing proves that they are expired.
    warn KEPT_UNDATABLE = "kept_undatable";
    /// Partitions that were dropped although column statistics name newer rows.
    warn NEWER_ROWS_DROPPED = "newer_rows_dropped";
    /// A writer still uses a partition spec that ended long ago.
    warn STALE_WRITER_SEEN = "stale_writer_seen";
    /// A snapshot that ended expired files.
    info DROP_COMMITTED = "drop_committed";
    /// Partitions, or a whole table, were dropped at the request of a person or program.
    info EXPLICIT_DROP = "explicit_drop";
    /// Another session has locked rows of a partition.
    warn TUPLE_BUSY = "tuple_busy";
    /// A partition too large for one commit is dropped in several commits.
    info TUPLE_SPLIT = "tuple_split";
    /// A partition too large for one commit is kept.
    error TUPLE_OVERSIZE = "tuple_oversize";
    /// The database refuses to end a partition's files; logged again when the error changes.
    warn TUPLE_POISONED = "tuple_poisoned";
    /// A partition is no longer refused: it was dropped, no longer exists, or is kept for another reason.
    info TUPLE_RELEASED = "tuple_released";
    /// A commit was cancelled because it took too long, and was rolled back as a whole.
    warn HOLD_EXCEEDED = "hold_exceeded";
    /// Nothing is dropped, because the server already has too many objects to delete.
    warn HELD_BACK = "held_back";
    /// The commit lock could not be acquired in time; tailrace waits and tries again.
    info LOCK_BACKOFF = "lock_backoff";
    /// The commit lock could not be acquired in time.
    warn LOCK_NOT_HAD = "lock_not_had";
    /// A policy changed, or was being changed, between planning and commit.
    warn POLICY_CHANGED = "policy_changed";
    /// A policy was set.
    info POLICY_SET = "policy_set";
    /// A change of a policy that waited is in force.
    info POLICY_IN_FORCE = "policy_in_force";
    /// A stored policy was removed.
    info POLICY_UNSET = "policy_unset";
    /// A table no longer exists; its policy is kept for `history.keep`.
    info POLICY_TOMBSTONED = "policy_tombstoned";
    /// A table with a policy no longer exists, and the table that now has its name has no policy.
    warn POLICY_ORPHANED = "policy_orphaned";
    /// A table that no longer existed exists again, and its policy is in force again.
    info POLICY_BACK = "policy_back";
    /// The policy of a table that no longer exists was deleted after `history.keep`.
    info POLICY_PURGED = "policy_purged";
    /// A person recorded that a spec is trusted (`tailrace spec trust`).
    info SPEC_TRUSTED = "spec_trusted";
    /// A table property became a policy, or changed one.
    info PROPERTY_MIRRORED = "property_mirrored";
    /// A table property was removed, and so the policy in it ended.
    info PROPERTY_REMOVED = "property_removed";
    /// A table property is not followed.
    warn PROPERTY_REFUSED = "property_refused";
    /// The compaction claims on the files about to be dropped were renewed.
    info SHIELD_RENEWED = "shield_renewed";
    /// The compaction claims on the files about to be dropped could not be renewed.
    warn SHIELD_FAILED = "shield_failed";
    /// The server has no compaction claims.
    info SHIELD_OFF = "shield_off";
    /// It is unknown which files of a table are about to be dropped.
    warn SHIELD_UNREAD = "shield_unread";
    /// The claims on files that a changed policy no longer drops were released.
    info SHIELD_RELEASED = "shield_released";
    /// The claims on such files could not be released at once.
    warn SHIELD_NOT_RELEASED = "shield_not_released";
    /// The changes of a table could not be read.
    error CHANGES_FAILED = "changes_failed";
    /// An answer with the changes of a table ended before it was complete.
    warn CHANGES_CUT_OFF = "changes_cut_off";
}

#[cfg(test)]
mod tests;
