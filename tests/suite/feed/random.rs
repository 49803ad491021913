//! Random histories: consumers that apply what they are told have what a reader of the table sees,
//! and what is told is what the rows say.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::Value;
use tailrace::demo::lake::{FileRow, NewFile, VectorRow};
use tailrace::demo::standin::{Compaction, truncate};

use super::{Scene, all_ids, window, with_ends};

type Rows = BTreeSet<i64>;

/// What the objects hold, by path: the ids of a file's rows, or of those that a vector deletes.
#[derive(Default)]
struct Objects(BTreeMap<String, Rows>);

impl Objects {
    fn rows(&self, path: &str) -> &Rows {
        self.0.get(path).unwrap_or_else(|| panic!("no object {path}"))
    }

    /// Writes the objects of rows that are new: a file's own rows, for an output of compaction
    /// what is left of its inputs, for a vector the first so many rows of its file.
    fn write(&mut self, files: &[FileRow], vectors: &[VectorRow]) {
        for file in files {
            if self.0.contains_key(&file.path) {
                continue;
            }
            let mut rows: Rows = if file.explicit_row_ids {
                let is_input = |input: &&FileRow| {
                    input.end_snapshot == Some(file.begin_snapshot) && input.values == file.values
                };
                files.iter().filter(is_input).flat_map(|f| self.left(f, vectors)).collect()
            } else {
                (file.row_id_start..file.row_id_start + file.record_count).collect()
            };
            assert_eq!(rows.len() as i64, file.record_count, "{file:?}");
            self.0.insert(file.path.clone(), std::mem::take(&mut rows));
        }
        for vector in vectors {
            if let Some(file) = files.iter().find(|f| f.data_file_id == vector.data_file_id) {
                let rows = self.rows(&file.path).iter().copied();
                let deleted = rows.take(vector.delete_count as usize).collect();
                self.0.entry(vector.path.clone()).or_insert(deleted);
            }
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
    fn seen(&self, files: &[FileRow]) -> Rows {
        let seen = |file: &FileRow| match &file.vector {
            Some(vector) => self.rows(&file.path) - self.rows(&vector.path),
            None => self.rows(&file.path).clone(),
        };
        files.iter().flat_map(seen).collect()
    }
}

/// Has applied everything up to a snapshot.
struct Consumer {
    at: i64,
    rows: Rows,
}

impl Consumer {
    fn apply(&mut self, told: &Value, objects: &Objects) -> Result<()> {
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

/// What the rows of the catalog say of a window, as ids; and whether it has to be told with ends.
async fn reference(scene: &Scene, from: i64, to: i64) -> Result<([Vec<i64>; 3], bool)> {
    let changes: Vec<(i64, String)> = sqlx::query_as(
        "SELECT snapshot_id, kind FROM hog_snapshot_change WHERE catalog_id = $1 AND object_id = $2
            AND kind LIKE 'table%'",
    )
    .bind(scene.catalog.catalog_id)
    .bind(scene.table.table_id)
    .fetch_all(scene.pool())
    .await?;
    let carries = |snapshot: i64, kind: &str| changes.contains(&(snapshot, kind.to_owned()));
    let inside = |snapshot: i64| from < snapshot && snapshot <= to;
    let (files, vectors) = (scene.table.all_files().await?, scene.table.all_vectors().await?);
    let mut lists: [Vec<(i64, i64)>; 3] = Default::default();
    for file in &files {
        let begin = file.begin_snapshot;
        if inside(begin) && !carries(begin, "table_compacted") {
            lists[0].push((begin, file.data_file_id));
        }
        if let Some(end) = file.end_snapshot.filter(|end| inside(*end))
            && carries(end, "table_deleted_from")
            && !carries(end, "table_compacted")
        {
            lists[2].push((end, file.data_file_id));
        }
    }
    lists[1].extend(
        vectors
            .iter()
            .filter(|v| inside(v.begin_snapshot))
            .map(|v| (v.begin_snapshot, v.delete_file_id)),
    );
    let fence =
        (from + 1..=to).any(|s| carries(s, "table_deleted_from") && carries(s, "table_altered"));
    let reconcile = fence || !lists[2].is_empty();
    Ok((
        lists.map(|mut list| {
            list.sort();
            list.into_iter().map(|(_, id)| id).collect()
        }),
        reconcile,
    ))
}

const DAYS: [&str; 3] = ["1", "2", "3"];

/// One commit, or none where there is nothing to work on.
async fn step(scene: &Scene, random: &mut Rng) -> Result<()> {
    let table = &scene.table;
    match random.u8(0..20) {
        0..7 => {
            let file = |random: &mut Rng| {
                NewFile::of([DAYS[random.usize(0..3)]]).records(random.i64(1..8))
            };
            let files = (0..random.usize(1..5)).map(|_| file(random)).collect();
            table.append(files).await?;
        }
        7..12 => {
            let live = table.live_files().await?;
            let deleted = |f: &FileRow| f.vector.as_ref().map_or(0, |v| v.delete_count);
            let open: Vec<_> = live.iter().filter(|f| deleted(f) < f.record_count).collect();
            if let Some(file) = random.choice(&open) {
                let count = random.i64(deleted(file) + 1..=file.record_count);
                table.register_vector(file.data_file_id, count, None).await?;
            }
        }
        12..15 => {
            let mut compaction = Compaction::new(&scene.catalog, 1 << 40);
            compaction.claims = false;
            compaction.run(table).await?;
        }
        15..18 => {
            scene.drop_day(DAYS[random.usize(0..3)]).await?;
        }
        18 => {
            let read = scene.catalog.head().await?;
            let live = table.live_files().await?;
            let ended: Vec<i64> =
                live.iter().map(|f| f.data_file_id).filter(|id| id % 3 == 0).collect();
            let added = vec![NewFile::of([DAYS[random.usize(0..3)]]).records(3)];
            table.overwrite(read, &ended, added).await?;
        }
        _ => {
            truncate(table).await?;
        }
    }
    Ok(())
}

async fn history(seed: u64) -> Result<()> {
    let mut random = Rng::with_seed(seed);
    let scene = Scene::new().await?;
    let mut objects = Objects::default();
    let start = scene.catalog.head().await?;
    let mut consumers: Vec<Consumer> =
        (0..3).map(|_| Consumer { at: start, rows: Rows::new() }).collect();
    for _ in 0..45 {
        step(&scene, &mut random).await?;
        objects.write(&scene.table.all_files().await?, &scene.table.all_vectors().await?);
        let head = scene.catalog.head().await?;
        for (at, consumer) in consumers.iter_mut().enumerate() {
            // The first reads after every commit, the others when they come to it.
            if at > 0 && random.u8(0..4) > 0 {
                continue;
            }
            let from = consumer.at;
            let to = if at == 2 { random.i64(from..=head) } else { head };
            let told = scene.told(&with_ends(from, to)).await?;
            let (expected, reconcile) = reference(&scene, from, to).await?;
            assert_eq!(all_ids(&told), expected, "seed {seed}, ({from}, {to}]");
            let limit = random.i64(1..9);
            assert_eq!(scene.paged(&with_ends(from, to), limit).await?, told, "seed {seed}");
            if reconcile {
                let refused = scene.refused(&window(from, to)).await?;
                assert_eq!(
                    refused,
                    (409, "reconciliation_required"),
                    "seed {seed}, ({from}, {to}]"
                );
            } else {
                let plain = scene.told(&window(from, to)).await?;
                let [files, vectors, _] = expected;
                assert_eq!(all_ids(&plain), [files, vectors, vec![]], "seed {seed}");
            }
            consumer.apply(&told, &objects)?;
            let seen = objects.seen(&scene.table.files_at(to).await?);
            assert_eq!(consumer.rows, seen, "seed {seed}, consumer {at}, ({from}, {to}]");
        }
    }
    Ok(())
}

#[tokio::test]
async fn consumers_have_what_a_reader_sees_at_every_step() -> Result<()> {
    for seed in 0..8 {
        history(seed).await?;
    }
    Ok(())
}
