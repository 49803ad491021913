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

/// Selects live files: `$columns` (none, or some that end with a comma), then the projection of [`LiveFile`]
/// from the rows `f` that `$files` gives, which has the columns of `hog_data_file`. `$1` is the catalog.
///
/// A file's values are an array of texts, `key` for a null and `key:value` for a value: an array per file costs
/// less than an aggregate of its rows. Its vector is asked for by hog_delete_file_data_lookup, file by file, and
/// whether it is live only then: asked for at once, the planner may rather gather all live vectors of the catalog
/// for each statement, or, without statistics, read them for each file by hog_delete_file_live.
macro_rules! live_files {
    ($columns:literal, $files:literal, $($argument:expr),+ $(,)?) => {
        sqlx::query!(
            "select " + $columns + r#" f.data_file_id as "data_file_id?", f.spec_id as "spec_id?",
               f.record_count as "record_count?", f.file_size_bytes as "file_size_bytes?",
               f.file_format = 'parquet' as "is_parquet?",
               array(select v.key_index::text || coalesce(':'::text || v.value, '')
                     from hog_file_partition_value v
                     where v.catalog_id = $1 and v.data_file_id = f.data_file_id
                     order by v.key_index) as "texts?",
               exists (select from (
                         select end_snapshot from hog_delete_file
                         where catalog_id = $1 and data_file_id = f.data_file_id offset 0) as d
                       where d.end_snapshot is null) as "has_vector?"
             from "# + $files,
            $($argument),+
        )
    };
}

/// The file of a row that [`live_files!`] selects; `None` where the row has none.
macro_rules! live_file {
    ($row:expr) => {
        match (
            $row.data_file_id,
            $row.record_count,
            $row.file_size_bytes,
            $row.is_parquet,
            $row.has_vector,
            $row.texts,
        ) {
            (
                Some(data_file_id),
                Some(record_count),
                Some(file_size_bytes),
                Some(is_parquet),
                Some(has_vector),
                Some(texts),
            ) => Some($crate::catalog::live_file::LiveFile {
                data_file_id,
                spec_id: $row.spec_id,
                tuple: $crate::catalog::live_file::tuple_of_texts(texts),
                is_parquet,
                has_vector,
                record_count,
                file_size_bytes,
            }),
            _ => None,
        }
    };
}

pub(super) use {live_file, live_files};

/// The tuple that [`live_files!`] selects as texts. One that cannot be read is without values: it is no spec's, and
/// its file stays.
pub(super) fn tuple_of_texts(texts: Vec<String>) -> StoredTuple {
    let pair = |text: String| -> Option<(i32, Option<String>)> {
        match text.split_once(':') {
            Some((key, value)) => Some((key.parse().ok()?, Some(value.to_owned()))),
            None => Some((text.parse().ok()?, None)),
        }
    };
    let pairs: Option<Vec<_>> = texts.into_iter().map(pair).collect();
    let (keys, values) = pairs.unwrap_or_default().into_iter().unzip();
    StoredTuple { keys, values }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn null_empty_and_colons_are_distinguished() {
        let texts = ["0", "1:", "2:05:00:00", "10::"].map(str::to_owned);
        let StoredTuple { keys, values } = tuple_of_texts(texts.into());
        assert_eq!(keys, [0, 1, 2, 10]);
        let values: Vec<_> = values.iter().map(Option::as_deref).collect();
        assert_eq!(values, [None, Some(""), Some("05:00:00"), Some(":")]);
    }
}
