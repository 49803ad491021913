//! Records what became of the table at each snapshot, from its rows. The record is kept after
//! expiry has deleted the rows.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use anyhow::Result;
use tailrace_kit::lake::{FileRow, Table, VectorRow};
use tailrace_kit::simulated_loops::Consumer;

use crate::support::contents::{Objects, Rows};

use super::rules::{self, Counts, Deed};

/// All that there ever was of a table, up to a snapshot.
pub struct History {
    table: Table,
    /// Holds the floor back: no row is purged that is not known here.
    offset: Consumer,
    /// The snapshot.
    pub seen: i64,
    /// What the objects of files and vectors hold.
    pub objects: Objects,
    files: BTreeMap<i64, FileRow>,
    vectors: BTreeMap<i64, VectorRow>,
    first_seen: BTreeMap<i64, Instant>,
    now: State,
    /// Rows that were visible and are not any more.
    gone: Rows,
    counts: Counts,
}

/// What is visible at a snapshot.
#[derive(Default)]
pub struct State {
    /// The files.
    pub files: BTreeSet<i64>,
    /// The vectors, by file.
    pub vectors: BTreeMap<i64, i64>,
    /// The rows.
    pub rows: Rows,
}

impl History {
    /// The history of a table that is empty still.
    pub async fn begin(table: &Table) -> Result<Self> {
        let offset = Consumer::register(table, "historian").await?;
        Ok(History {
            table: table.clone(),
            seen: offset.committed().await?,
            offset,
            objects: Objects::default(),
            files: BTreeMap::new(),
            vectors: BTreeMap::new(),
            first_seen: BTreeMap::new(),
            now: State::default(),
            gone: Rows::new(),
            counts: Counts::default(),
        })
    }

    /// Reads on to the head, and holds each snapshot on the way against the rules.
    pub async fn read(&mut self) -> Result<()> {
        // Rows of a later head than this may be among those that are read: they are for next time.
        let head = self.table.catalog.head().await?;
        if head == self.seen {
            return Ok(());
        }
        let deeds = rules::deeds(&self.table, self.seen, head).await?;
        let told: Vec<i64> = deeds.iter().map(|deed| deed.snapshot_id).collect();
        assert_eq!(told, (self.seen + 1..=head).collect::<Vec<_>>(), "snapshots are dense");
        let (files, vectors) = (self.table.all_files().await?, self.table.all_vectors().await?);
        self.objects.write(&files, &vectors);
        for file in &files {
            self.first_seen.entry(file.data_file_id).or_insert_with(Instant::now);
            let before = self.files.insert(file.data_file_id, file.clone());
            let before = before.as_ref();
            assert!(before.is_none_or(|b| grown(b.end_snapshot, file.end_snapshot)), "{before:?}");
        }
        for vector in &vectors {
            let before = self.vectors.insert(vector.delete_file_id, vector.clone());
            let before = before.as_ref();
            assert!(
                before.is_none_or(|b| grown(b.end_snapshot, vector.end_snapshot)),
                "{before:?}"
            );
        }
        for deed in &deeds {
            self.pass(deed, &files, &vectors);
        }
        self.seen = head;
        Ok(self.offset.advance(head).await?)
    }

    /// Goes on by one snapshot, of which these rows tell all.
    fn pass(&mut self, deed: &Deed, files: &[FileRow], vectors: &[VectorRow]) {
        let snapshot = deed.snapshot_id;
        let before = self.now.rows.clone();
        let begun: Vec<_> = files.iter().filter(|f| f.begin_snapshot == snapshot).collect();
        let ended: Vec<_> = files.iter().filter(|f| f.end_snapshot == Some(snapshot)).collect();
        let new_vectors: Vec<_> = vectors.iter().filter(|v| v.begin_snapshot == snapshot).collect();
        let old_vectors = vectors.iter().filter(|v| v.end_snapshot == Some(snapshot));
        let old_vectors: Vec<_> = old_vectors.collect();
        for file in &ended {
            assert!(self.now.files.remove(&file.data_file_id), "{snapshot}: {file:?}");
        }
        for vector in &old_vectors {
            let removed = self.now.vectors.remove(&vector.data_file_id);
            assert_eq!(removed, Some(vector.delete_file_id), "{snapshot}");
        }
        self.now.files.extend(begun.iter().map(|file| file.data_file_id));
        for vector in &new_vectors {
            let second = self.now.vectors.insert(vector.data_file_id, vector.delete_file_id);
            assert_eq!(second, None, "{snapshot}: two vectors of {vector:?}");
        }
        self.now.rows = self.visible_now();
        let rows = &self.now.rows;
        self.gone.extend(&before - rows);
        let back: Rows = &self.gone & rows;
        assert_eq!(back, Rows::new(), "{snapshot}: rows that were gone are back, {deed:?}");
        let live = self.now.files.iter().map(|id| &self.files[id]);
        let step = rules::Step { begun, ended, new_vectors, old_vectors, live: live.collect() };
        rules::hold(&self.table, deed, &step, &self.now, &before, &mut self.counts);
    }

    fn visible_now(&self) -> Rows {
        let mut rows = Rows::new();
        for id in &self.now.files {
            let of_file = self.objects.rows(&self.files[id].path);
            match self.now.vectors.get(id) {
                Some(vector) => {
                    rows.extend(of_file - self.objects.rows(&self.vectors[vector].path));
                }
                None => rows.extend(of_file),
            }
        }
        rows
    }

    /// The rows that are visible at the last snapshot seen.
    pub fn rows(&self) -> &Rows {
        &self.now.rows
    }

    /// The rows that are visible at a snapshot, which may have expired.
    pub async fn rows_at(&mut self, snapshot: i64) -> Result<Rows> {
        if self.seen < snapshot {
            self.read().await?;
        }
        let visible = |begin: i64, end: Option<i64>| {
            begin <= snapshot && end.is_none_or(|end| snapshot < end)
        };
        let vectors = self.vectors.values().filter(|v| visible(v.begin_snapshot, v.end_snapshot));
        let vectors: BTreeMap<i64, &VectorRow> = vectors.map(|v| (v.data_file_id, v)).collect();
        let files = self.files.values().filter(|f| visible(f.begin_snapshot, f.end_snapshot));
        let files = files.map(|file| {
            let vector = vectors.get(&file.data_file_id).map(|vector| (*vector).clone());
            FileRow { vector, ..file.clone() }
        });
        Ok(self.objects.seen(&files.collect::<Vec<_>>()))
    }

    /// The files that are visible at the last snapshot seen, and since when each is known.
    pub fn live_files(&self) -> impl Iterator<Item = (&FileRow, Instant)> {
        self.now.files.iter().map(|id| (&self.files[id], self.first_seen[id]))
    }

    /// The paths that a snapshot from the floor on names.
    pub fn named_after(&self, floor: i64) -> BTreeSet<String> {
        let retained = |end: Option<i64>| end.is_none_or(|end| end > floor);
        let files = self.files.values().filter(|file| retained(file.end_snapshot));
        let vectors = self.vectors.values().filter(|vector| retained(vector.end_snapshot));
        files.map(|file| &file.path).chain(vectors.map(|v| &v.path)).cloned().collect()
    }

    /// Adds what was counted.
    pub fn count_into(&self, tally: &mut BTreeMap<&'static str, u64>) {
        self.counts.count_into(tally);
    }
}

/// Whether an end is still what it was, or has come.
fn grown(before: Option<i64>, now: Option<i64>) -> bool {
    before.is_none() || before == now
}
