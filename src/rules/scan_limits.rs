//! How much one step of looking for expired files takes on.

/// Sizes of steps; none changes what is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimits {
    /// A table of at most this many live files is read at once.
    pub small_table: i64,
    /// Files in one piece of a full scan.
    pub piece: i64,
    /// Expired files at hand before commits begin.
    pub files_at_hand: usize,
    /// Expired tuples at hand before commits begin.
    pub tuples_at_hand: usize,
    /// Calendar rows that are due, read at once.
    pub due_at_once: i64,
    /// Partition values that one statement looks up.
    pub values_at_once: usize,
    /// Distinct partition values that one statement lists.
    pub values_listed: i64,
    /// A spec with more values than this has calendar rows for days.
    pub most_rows: usize,
    /// A full scan that goes on is remembered each time after so many pieces.
    pub pieces_remembered: usize,
}

impl Default for ScanLimits {
    fn default() -> Self {
        ScanLimits {
            small_table: 20_000,
            piece: 10_000,
            files_at_hand: 50_000,
            tuples_at_hand: 5_000,
            due_at_once: 10_000,
            values_at_once: 64,
            values_listed: 5_000,
            most_rows: 10_000,
            pieces_remembered: 20,
        }
    }
}
