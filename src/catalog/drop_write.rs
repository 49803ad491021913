//! A drop on its way from planning to the UPDATE.

use std::borrow::Cow;

use uuid::Uuid;

use super::restore::Outset;
use super::tuples::TupleOfSpec;
use super::vectors::PlannedVector;
use crate::rules::expiry::evidence::BoundUnits;
use crate::rules::instant::UtcInstant;

/// A drop from its planning to the UPDATE: what is to end, and what the snapshot says of itself.
#[derive(Debug, Clone)]
pub struct DropWrite<'a> {
    pub catalog_id: i64,
    pub table_id: i64,
    /// Its UUID, for the drop history.
    pub table_uuid: Uuid,
    /// The tuples; results refer to them by index.
    pub tuples: Cow<'a, [TupleOfSpec]>,
    /// All live files of the table, of every spec and of none, go; `tuples` is empty then, and so
    /// are `files` and `vectors`.
    pub whole_table: bool,
    /// What was read before anything was looked for. All of `files` and `vectors` has ids below the
    /// counter: what has others is found by its own key under the lock. So all of them were committed up to
    /// the head, and where that is still there then, no id of them was given out a second time.
    pub outset: Outset,
    /// The files that planning found: (file id, index into `tuples`), by ascending id.
    pub files: Vec<(i64, i32)>,
    /// The live vectors that planning found on them.
    pub vectors: Vec<PlannedVector>,
    /// A piece of a larger drop: only `files` are ended, what is newer is left to a later piece.
    pub is_piece: bool,
    /// Indexes into `tuples`: of these no late file is ended.
    pub without_late: Vec<i32>,
    /// What the column statistics of late files may say at the most.
    pub late_bound: Option<LateBound>,
    /// Planned files with ids from here on were met after their tuples were examined: they are asked
    /// for `late_bound` too.
    pub examined_below: i64,
    /// Publishes, as the server's truncate does, `table_altered` beside `table_deleted_from`, and
    /// bumps `schema_version`: consumers of the server's own feed are told to reconcile, and every
    /// append that was prepared before conflicts once.
    pub fence: bool,
    /// `hog_snapshot.author`.
    pub author: &'a str,
    /// `hog_snapshot.commit_message`.
    pub message: &'a str,
    /// Finds the row of the drop history again when the answer to COMMIT is lost.
    pub drop_id: Uuid,
    /// The policy's revision, for the drop history.
    pub policy_revision: Option<i64>,
}

impl<'a> DropWrite<'a> {
    /// A drop of nothing, to be filled; with an id of its own.
    pub fn of_nothing(
        (catalog_id, table_id, table_uuid): (i64, i64, Uuid),
        outset: Outset,
    ) -> Self {
        DropWrite {
            catalog_id,
            table_id,
            table_uuid,
            tuples: Cow::Borrowed(&[]),
            whole_table: false,
            outset,
            files: Vec::new(),
            vectors: Vec::new(),
            is_piece: false,
            without_late: Vec::new(),
            late_bound: None,
            examined_below: 0,
            fence: false,
            author: "",
            message: "",
            drop_id: Uuid::new_v4(),
            policy_revision: None,
        }
    }

    /// The same without these tuples and what is theirs, the others renumbered. A busy tuple is not asked
    /// for at all, so that its late files stay with it.
    pub fn without(self, busy: &[i32]) -> Self {
        let numbers = 0_i32..;
        let free: Vec<i32> =
            numbers.clone().take(self.tuples.len()).filter(|no| !busy.contains(no)).collect();
        let renumbered =
            |no: i32| free.binary_search(&no).ok().and_then(|at| i32::try_from(at).ok());
        let is_free = |no: i32| renumbered(no).is_some();
        let tuples = self.tuples.iter().zip(numbers).filter(|(_, no)| is_free(*no));
        let files = self.files.iter().filter_map(|(id, no)| Some((*id, renumbered(*no)?)));
        let vectors = self.vectors.iter().filter_map(|vector| {
            Some(PlannedVector { tuple_no: renumbered(vector.tuple_no)?, ..*vector })
        });
        DropWrite {
            tuples: tuples.map(|(tuple, _)| tuple.clone()).collect(),
            files: files.collect(),
            vectors: vectors.collect(),
            without_late: self.without_late.iter().filter_map(|no| renumbered(*no)).collect(),
            ..self
        }
    }
}

/// A late file stays if a row at its upper bound of a column may lie after a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LateBound {
    /// The column, which keeps its id when it is renamed.
    pub field_id: i64,
    /// How its bounds are read.
    pub units: BoundUnits,
    /// A row after it keeps the file.
    pub cutoff: UtcInstant,
}

impl LateBound {
    /// The time in microseconds since 1970, as SQL compares it.
    pub(super) fn cutoff_micros(self) -> i64 {
        let micros = self.cutoff.nanos().div_euclid(1_000);
        i64::try_from(micros).unwrap_or(if micros < 0 { i64::MIN } else { i64::MAX })
    }
}
