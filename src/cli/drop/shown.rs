//! Formats the answer of a drop for people: what was written on the command line, what is stored,
//! and which time that means.

use std::collections::HashMap;

use super::Asked;
use super::known::Known;
use super::partitions::Written;
use crate::cli::text::{bytes, columns, count, counted};
use crate::explicit::call::DropAnswer;

/// Formats the answer to a request.
#[derive(Debug)]
pub struct Teller<'a> {
    /// The table; `None` where it no longer exists, and the answer is from a receipt.
    pub known: Option<&'a Known>,
    typed: HashMap<(i64, &'a [Option<String>]), &'a str>,
    has_instants: bool,
}

/// A tuple of the table, with the number of its files and their bytes.
pub struct Line<'a> {
    /// The names and values that were typed for it.
    pub typed: &'a str,
    pub spec_id: i64,
    /// The stored values by key index.
    pub values: &'a [Option<String>],
    /// How many files it has.
    pub files: i64,
    /// Their bytes, where they were counted.
    pub bytes: Option<i64>,
}

impl<'a> Teller<'a> {
    /// Formats answers to this request.
    pub fn of(asked: &'a Asked) -> Self {
        let named = |written: &'a Written| {
            let values = written.item.partition_values.as_slice();
            Some(((written.item.spec_id?, values), written.typed.as_deref()?))
        };
        Teller {
            known: asked.known.as_ref(),
            typed: asked.written.iter().filter_map(named).collect(),
            has_instants: asked.has_instants,
        }
    }

    /// The text of an answer.
    pub fn text(&self, answer: &DropAnswer, headline: &str) -> String {
        let mut text = format!(
            "snapshot {}: {headline}: {}, {}, {}, {}\n",
            answer.snapshot_id,
            counted(answer.files_ended, "file"),
            counted(answer.delete_files_ended, "vector"),
            counted(answer.records, "record"),
            bytes(answer.bytes)
        );
        let lines: Vec<_> = answer
            .partitions
            .iter()
            .map(|partition| Line {
                typed: self
                    .typed
                    .get(&(partition.spec_id, partition.partition_values.as_slice()))
                    .copied()
                    .unwrap_or_default(),
                spec_id: partition.spec_id,
                values: &partition.partition_values,
                files: partition.files_ended,
                bytes: Some(partition.bytes),
            })
            .collect();
        text.push_str(&self.lines(&lines));
        if self.has_instants {
            text.push_str(
                "  An instant stands for the values that are stored of it, which are listed; one that is \
                 first stored from now on is kept\n",
            );
        }
        text
    }

    /// Tuples in columns: what was typed, the stored values, the times that they cover, files and bytes.
    pub fn lines(&self, lines: &[Line<'_>]) -> String {
        let meaning = |line: &Line<'_>| {
            let known = self.known.map(|known| known.meaning(line.spec_id, line.values));
            known.unwrap_or_default()
        };
        let rows: Vec<Vec<String>> = lines
            .iter()
            .map(|line| {
                vec![
                    line.typed.to_owned(),
                    serde_json::to_string(line.values).unwrap_or_default(),
                    meaning(line),
                    format!("spec {}", count(line.spec_id)),
                    counted(line.files, "file"),
                    line.bytes.map(bytes).unwrap_or_default(),
                ]
            })
            .collect();
        // A column that is empty in every row is left out.
        let said: Vec<usize> =
            (0..6).filter(|column| rows.iter().any(|row| !row[*column].is_empty())).collect();
        let right: Vec<usize> =
            said.iter().enumerate().filter(|(_, column)| **column >= 4).map(|(at, _)| at).collect();
        let rows: Vec<Vec<String>> =
            rows.iter().map(|row| said.iter().map(|at| row[*at].clone()).collect()).collect();
        columns(&rows, &right, "  ")
    }
}
