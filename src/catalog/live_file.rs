//! A live file of a table, with all that decides about it.

use crate::rules::expiry::StoredTuple;
use serde::Serialize;

/// How many files, live vectors, rows and bytes a tuple or a drop has. `records` and `bytes`
/// are those of the data files as written: rows that a vector hides are counted too.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, serde::Deserialize, utoipa::ToSchema,
)]
pub struct Counts {
    /// Data files.
    pub files: i64,
    /// Live deletion vectors on them.
    pub delete_files: i64,
    /// Rows written.
    pub records: i64,
    /// Bytes of the data files.
    pub bytes: i64,
}

impl std::ops::AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        // A writer may claim any number of rows and bytes.
        self.files = self.files.saturating_add(other.files);
        self.delete_files = self.delete_files.saturating_add(other.delete_files);
        self.records = self.records.saturating_add(other.records);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}

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
