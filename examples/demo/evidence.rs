//! What the checks compare: the catalog's rows before and after, and the objects on disk.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use tailrace_kit::lake::{Difference, Dump, Result, Table};

/// The paths of all objects below a folder.
pub fn objects(folder: &Path) -> io::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path().to_string_lossy().into_owned());
            }
        }
    }
    Ok(found)
}

/// The paths that the rows of tables name, ended rows included.
pub async fn named<'a>(tables: impl IntoIterator<Item = &'a Table>) -> Result<BTreeSet<String>> {
    let mut paths = BTreeSet::new();
    for table in tables {
        paths.extend(table.all_files().await?.into_iter().map(|file| file.path));
        paths.extend(table.all_vectors().await?.into_iter().map(|vector| vector.path));
    }
    Ok(paths)
}

/// The rows of a dump that are about one table: those with its id, and those of its files.
pub fn rows_of(dump: &Dump, table_id: i64, files: &BTreeSet<i64>) -> Dump {
    let id = |row: &Value, name: &str| row.get(name).and_then(Value::as_i64);
    let concerns = |text: &String| {
        serde_json::from_str(text).is_ok_and(|row: Value| {
            id(&row, "table_id") == Some(table_id)
                || id(&row, "object_id") == Some(table_id)
                || id(&row, "data_file_id").is_some_and(|file| files.contains(&file))
        })
    };
    dump.iter()
        .map(|(table, rows)| {
            (table.clone(), rows.iter().filter(|row| concerns(row)).cloned().collect())
        })
        .collect()
}

/// How many rows a dump has.
pub fn count(dump: &Dump) -> usize {
    dump.values().map(Vec::len).sum()
}

/// Whether the rows of a difference are the same ones but for their `end_snapshot`.
pub fn only_ended(difference: &Difference) -> bool {
    let without_end = |rows: &[String]| -> Option<BTreeSet<String>> {
        let strip = |text: &String| {
            let mut row: Value = serde_json::from_str(text).ok()?;
            row.as_object_mut()?.remove("end_snapshot")?;
            Some(row.to_string())
        };
        rows.iter().map(strip).collect()
    };
    let (before, after) = (without_end(&difference.gone), without_end(&difference.new));
    before.is_some() && before == after
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn the_rows_of_a_table_are_its_own_alone() {
        let dump = Dump::from([
            (
                "hog_data_file".to_owned(),
                rows(&[
                    r#"{"table_id": 1, "data_file_id": 5}"#,
                    r#"{"table_id": 2, "data_file_id": 6}"#,
                ]),
            ),
            (
                "hog_file_partition_value".to_owned(),
                rows(&[r#"{"data_file_id": 5}"#, r#"{"data_file_id": 6}"#]),
            ),
            ("hog_snapshot_change".to_owned(), rows(&[r#"{"object_id": 1}"#])),
        ]);
        let own = rows_of(&dump, 2, &BTreeSet::from([6]));
        assert_eq!(own["hog_data_file"], [r#"{"table_id": 2, "data_file_id": 6}"#]);
        assert_eq!(own["hog_file_partition_value"], [r#"{"data_file_id": 6}"#]);
        assert_eq!((count(&own), count(&dump)), (2, 5));
    }

    #[test]
    fn an_ended_row_differs_in_its_end_alone() {
        let before = r#"{"id": 1, "end_snapshot": null}"#;
        let ended = r#"{"end_snapshot": 9, "id": 1}"#;
        let other = r#"{"end_snapshot": 9, "id": 2}"#;
        let difference = |new: &[&str]| Difference { gone: rows(&[before]), new: rows(new) };
        assert!(only_ended(&difference(&[ended])));
        assert!(!only_ended(&difference(&[other])));
        assert!(!only_ended(&difference(&[])));
        assert!(!only_ended(&difference(&["{}"])));
    }
}
