//! The contents that the objects of a lake would have, row by row, and a consumer's copy of a table
//! that is made from them. The real objects hold placeholder bytes, so rows are compared by their
//! ids.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde_json::Value;
use tailrace_kit::lake::{FileRow, VectorRow};

/// The ids of rows.
pub type Rows = BTreeSet<i64>;

/// What the objects hold, by path: the ids of a file's rows, or of those that a vector deletes.
#[derive(Default)]
pub struct Objects(BTreeMap<String, Rows>);

/// A row without an object.
enum New<'a> {
    File(&'a FileRow),
    Vector(&'a VectorRow),
}

impl Objects {
    /// What an object holds that was [written](Self::write).
    pub fn rows(&self, path: &str) -> &Rows {
        self.0.get(path).unwrap_or_else(|| panic!("no object {path}"))
    }

    /// Whether there ever was such an object.
    pub fn knows(&self, path: &str) -> bool {
        self.0.contains_key(path)
    }

    /// Writes the objects of rows that are new: a file's own rows, for an output of compaction
    /// what is left of its inputs, for a vector the first so many rows of its file. The rows that
    /// each is made from are there already, or among these.
    pub fn write(&mut self, files: &[FileRow], vectors: &[VectorRow]) {
        // Files and vectors share a counter, and what one is made from has a lower id.
        let mut new = BTreeMap::new();
        let new_files = files.iter().filter(|file| !self.knows(&file.path));
        new.extend(new_files.map(|file| (file.data_file_id, New::File(file))));
        let new_vectors = vectors.iter().filter(|vector| !self.knows(&vector.path));
        new.extend(new_vectors.map(|vector| (vector.delete_file_id, New::Vector(vector))));
        for row in new.into_values() {
            match row {
                New::File(file) => self.write_file(file, files, vectors),
                New::Vector(vector) => self.write_vector(vector, files),
            }
        }
    }

    fn write_file(&mut self, file: &FileRow, files: &[FileRow], vectors: &[VectorRow]) {
        let rows: Rows = if file.explicit_row_ids {
            let is_input = |input: &&FileRow| {
                input.end_snapshot == Some(file.begin_snapshot) && input.values == file.values
            };
            files.iter().filter(is_input).flat_map(|f| self.left(f, vectors)).collect()
        } else {
            (file.row_id_start..file.row_id_start + file.record_count).collect()
        };
        let said = file.record_count;
        assert_eq!(rows.len() as i64, said, "not the rows that its inputs have left: {file:?}");
        self.0.insert(file.path.clone(), rows);
    }

    fn write_vector(&mut self, vector: &VectorRow, files: &[FileRow]) {
        if let Some(file) = files.iter().find(|f| f.data_file_id == vector.data_file_id) {
            let rows = self.rows(&file.path).iter().copied();
            let deleted = rows.take(vector.delete_count as usize).collect();
            self.0.insert(vector.path.clone(), deleted);
        }
    }

    /// The rows of a file that the vector which ended with it did not delete.
    fn left(&self, file: &FileRow, vectors: &[VectorRow]) -> Rows {
        let vector = vectors
            .iter()
            .find(|v| v.data_file_id == file.data_file_id && v.end_snapshot == file.end_snapshot);
        let rows = self.rows(&file.path);
        vector.map_or_else(|| rows.clone(), |v| rows - self.rows(&v.path))
    }

    /// What a reader of the files sees.
    pub fn seen(&self, files: &[FileRow]) -> Rows {
        let seen = |file: &FileRow| match &file.vector {
            Some(vector) => self.rows(&file.path) - self.rows(&vector.path),
            None => self.rows(&file.path).clone(),
        };
        files.iter().flat_map(seen).collect()
    }
}

/// A consumer's own copy of a table, with everything applied up to a snapshot.
#[derive(Default)]
pub struct Follower {
    /// The snapshot.
    pub at: i64,
    /// The copy.
    pub rows: Rows,
}

impl Follower {
    /// Applies what our feed told, with ended files, of a window that begins where the copy is.
    pub fn apply(&mut self, told: &Value, objects: &Objects) -> Result<()> {
        let rows = |list: &str| -> Result<Vec<Rows>> {
            let entries = told[list].as_array().context("a list")?;
            let rows = |entry: &Value| Ok(objects.rows(entry["path"].as_str().context("a path")?));
            entries.iter().map(|entry| rows(entry).cloned()).collect()
        };
        self.rows.extend(rows("files")?.into_iter().flatten());
        for list in ["delete_files", "ended_files"] {
            for gone in rows(list)? {
                self.rows = &self.rows - &gone;
            }
        }
        self.at = told["to_snapshot"].as_i64().context("a snapshot")?;
        Ok(())
    }
}
