//! A live file of a table, with all that decides about it.

use crate::window::StoredTuple;

use super::discovery::Counts;

/// A live data file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveFile {
    /// `hog_data_file.data_file_id`.
    pub data_file_id: i64,
    /// The spec that it was written under; `None` for an unpartitioned file.
    pub spec_id: Option<i64>,
    /// The rows of partition values that it has.
    pub tuple: StoredTuple,
    /// False for a file of another format: then the table is one to leave alone.
    pub is_parquet: bool,
    /// Whether it has a live deletion vector.
    pub has_vector: bool,
    /// Rows as written.
    pub record_count: i64,
    /// Bytes.
    pub file_size_bytes: i64,
}

impl LiveFile {
    /// What the file amounts to.
    pub fn counts(&self) -> Counts {
        Counts {
            files: 1,
            delete_files: i64::from(self.has_vector),
            records: self.record_count,
            bytes: self.file_size_bytes,
        }
    }
}

/// A live file as the statements answer it.
pub(super) struct LiveFileRow {
    pub data_file_id: i64,
    pub spec_id: Option<i64>,
    pub keys: Option<Vec<i32>>,
    pub values: Option<Vec<Option<String>>>,
    pub is_parquet: bool,
    pub has_vector: bool,
    pub record_count: i64,
    pub file_size_bytes: i64,
}

impl From<LiveFileRow> for LiveFile {
    fn from(row: LiveFileRow) -> Self {
        LiveFile {
            data_file_id: row.data_file_id,
            spec_id: row.spec_id,
            tuple: StoredTuple {
                keys: row.keys.unwrap_or_default(),
                values: row.values.unwrap_or_default(),
            },
            is_parquet: row.is_parquet,
            has_vector: row.has_vector,
            record_count: row.record_count,
            file_size_bytes: row.file_size_bytes,
        }
    }
}
