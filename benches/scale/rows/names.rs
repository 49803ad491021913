//! The names of the rows.

/// The rows by the names that they are selected by, in the order in which they run. Those that share a large
/// fixture stand together, and the last of them removes it.
pub const ALL: [&str; 19] = [
    "hold", "evidence", "cold", "idle", "strings", "hours", "keep", "late", "day", "renew", "many",
    "wal", "plan", "instants", "writer", "memory", "explicit", "shield", "others",
];
