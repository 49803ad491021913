//! The names of the log events: what alerts and dashboards hang on, so none changes.
//! `docs/log-events.md` says what each means; a test holds the two and the code together.

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
    /// Lines of the log were lost, because stderr did not take them; it takes them again.
    warn LOG_LINES_LOST = "log_lines_lost";
    /// A task of the daemon ended that should not have; the daemon ends with it.
    error TASK_EXITED = "task_exited";
    /// The HTTP interface could not be had; passes run without it.
    error HTTP_UNAVAILABLE = "http_unavailable";
    /// The HTTP interface listens.
    info HTTP_LISTENING = "http_listening";
    /// The HTTP interface answers no more.
    info HTTP_STOPPED = "http_stopped";
    /// The server lacks the index by partition value.
    warn LOOKUP_INDEX_MISSING = "lookup_index_missing";
    /// A request was answered, or its client went away.
    info HTTP_REQUEST = "http_request";
    /// A request could not be carried out, mostly for a reason that its answer hides.
    error REQUEST_FAILED = "request_failed";
    /// The tokens were read anew.
    info TOKENS_RELOADED = "tokens_reloaded";
    /// The file of tokens is wrong; those of before are still good.
    error TOKENS_REFUSED = "tokens_refused";
    /// SIGHUP came, and there is nothing that it would read anew.
    info NOTHING_TO_RELOAD = "nothing_to_reload";
    /// The schema `tailrace` was brought up to date.
    info MIGRATED = "migrated";
    /// The server has columns that this program does not know.
    warn SERVER_UNKNOWN = "server_unknown";
    /// When the next pass is due.
    debug SCHEDULE_NEXT = "schedule_next";
    /// The heartbeat file cannot be written.
    warn HEALTH_UNWRITABLE = "health_unwritable";
    /// systemd cannot be told something that it waits for.
    warn NOTIFY_FAILED = "notify_failed";
    /// The password file of libpq is there and is not used.
    warn PASSFILE_IGNORED = "passfile_ignored";
    /// The database is away; told once until it is back.
    error DATABASE_LOST = "database_lost";
    /// The database is back.
    info DATABASE_BACK = "database_back";
    /// Host and database disagree about the time, or the database's clock jumped: nothing is dropped.
    error CLOCK_SKEW = "clock_skew";
    /// Host and database disagree about the time, by less than would stop passes.
    warn CLOCK_DIFFERS = "clock_differs";
    /// Passes act by the database's clock again.
    info CLOCK_AGREED = "clock_agreed";
    /// Somebody accepted the database's clock for one pass.
    info CLOCK_ACCEPTED = "clock_accepted";
    /// The database's clock is behind the newest snapshot.
    error CLOCK_BEHIND = "clock_behind";
    /// A pass began.
    info PASS_STARTED = "pass_started";
    /// A pass came to its end.
    info PASS_FINISHED = "pass_finished";
    /// Old rows of ours were not purged.
    warn PURGE_FAILED = "purge_failed";
    /// How far drops have come could not be noted.
    warn TRACE_FAILED = "trace_failed";
    /// The catalog was restored to an earlier time, and our schema was not.
    error CATALOG_RESTORED = "catalog_restored";
    /// Trust in a spec's values was taken back when a restore was settled.
    warn TRUST_WITHDRAWN = "trust_withdrawn";
    /// A stored policy was paused, for its column may be another one since the catalog was restored.
    warn POLICY_PAUSED = "policy_paused";
    /// The catalog does not know drops of ours.
    error DROPS_UNDONE = "drops_undone";
    /// A pass could not go through.
    error PASS_FAILED = "pass_failed";
    /// Another daemon works on a catalog.
    info CATALOG_SKIPPED = "catalog_skipped";
    /// A session had lost its lease on a catalog when it was to give it back.
    warn LEASE_LOST = "lease_lost";
    /// A catalog could not be worked on, or not to the end.
    error CATALOG_FAILED = "catalog_failed";
    /// A pass is to work on a table, and why.
    debug TABLE_HAS_WORK = "table_has_work";
    /// A pass is through with a table.
    info TABLE_FINISHED = "table_finished";
    /// What a pass would drop, were the policy enforced.
    info TABLE_OBSERVED = "table_observed";
    /// A table was dropped, replaced or renamed meanwhile.
    info TABLE_GONE = "table_gone";
    /// A table could not be worked on.
    error TABLE_FAILED = "table_failed";
    /// A policy cannot date one file of its table.
    error TABLE_UNHEALTHY = "table_unhealthy";
    /// Files that are kept because nothing proves that they are expired.
    warn KEPT_UNDATABLE = "kept_undatable";
    /// Partitions that were dropped although column statistics name newer rows.
    warn NEWER_ROWS_DROPPED = "newer_rows_dropped";
    /// A writer still uses a partition spec that ended long ago.
    warn STALE_WRITER_SEEN = "stale_writer_seen";
    /// A snapshot that ended expired files.
    info DROP_COMMITTED = "drop_committed";
    /// Partitions, or a whole table, were dropped as somebody asked for it.
    info EXPLICIT_DROP = "explicit_drop";
    /// Somebody else has locked rows of a partition.
    warn TUPLE_BUSY = "tuple_busy";
    /// A partition too large for one commit goes in several.
    info TUPLE_SPLIT = "tuple_split";
    /// A partition too large for one commit stays.
    error TUPLE_OVERSIZE = "tuple_oversize";
    /// The server refuses to end a partition's files; told again when it says something else.
    warn TUPLE_POISONED = "tuple_poisoned";
    /// A partition is no longer refused: it went, is gone, or stays for another reason.
    info TUPLE_RELEASED = "tuple_released";
    /// A commit was cancelled for its length, and rolled back whole.
    warn HOLD_EXCEEDED = "hold_exceeded";
    /// The server has too many objects to delete already for more to be dropped.
    warn HELD_BACK = "held_back";
    /// The commit lock was not had in time, and is asked for again after a pause.
    info LOCK_BACKOFF = "lock_backoff";
    /// The commit lock was not had in time.
    warn LOCK_NOT_HAD = "lock_not_had";
    /// A policy changed, or was being changed, between planning and commit.
    warn POLICY_CHANGED = "policy_changed";
    /// A policy was set.
    info POLICY_SET = "policy_set";
    /// A policy was taken away.
    info POLICY_UNSET = "policy_unset";
    /// A table is gone; its policy is kept for a while.
    info POLICY_TOMBSTONED = "policy_tombstoned";
    /// A table with a policy is gone, and another one is in its place that has none.
    warn POLICY_ORPHANED = "policy_orphaned";
    /// A table that was gone is back, and so is its policy.
    info POLICY_BACK = "policy_back";
    /// The policy of a table that is gone was kept for long enough.
    info POLICY_PURGED = "policy_purged";
    /// Somebody vouched for the partition values of a spec's files.
    info SPEC_TRUSTED = "spec_trusted";
    /// A table property became a policy, or changed one.
    info PROPERTY_MIRRORED = "property_mirrored";
    /// A table property is gone, and with it the policy that it was.
    info PROPERTY_REMOVED = "property_removed";
    /// A table property is not followed.
    warn PROPERTY_REFUSED = "property_refused";
    /// The files about to be dropped were claimed anew.
    info SHIELD_RENEWED = "shield_renewed";
    /// Files about to be dropped could not be claimed.
    warn SHIELD_FAILED = "shield_failed";
    /// The server knows no claims.
    info SHIELD_OFF = "shield_off";
    /// The files of a table that are about to be dropped cannot be told.
    warn SHIELD_UNREAD = "shield_unread";
    /// Files that a changed policy no longer drops were released.
    info SHIELD_RELEASED = "shield_released";
    /// They could not be released at once.
    warn SHIELD_NOT_RELEASED = "shield_not_released";
    /// The changes of a table could not be read.
    error CHANGES_FAILED = "changes_failed";
    /// An answer with the changes of a table broke off.
    warn CHANGES_CUT_OFF = "changes_cut_off";
}

#[cfg(test)]
mod tests;
