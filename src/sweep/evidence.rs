//! Separates expired tuples: those that may be dropped, and those that are kept for their evidence, by a hold or as
//! the newest of their table.

use std::collections::{BTreeSet, HashMap};
use std::ops::ControlFlow;

use super::expired::ExpiredTuple;
use crate::catalog::evidence::{PIECE, Readable, evidence_of, may_read};
use crate::catalog::finder::tuples::{Search, visit};
use crate::catalog::finder::{Finder, newest_values};
use crate::catalog::live_file::Counts;
use crate::catalog::session::Session;
use crate::catalog::tables::{TableIdentity, current_watermark};
use crate::catalog::tuples::TupleOfSpec;
use crate::config::CrossCheck;
use crate::drop::LateRule;
use crate::policy::Policy;
use crate::rules::expiry::evidence::{BoundUnits, EvidenceRule, EvidenceVerdict, FileEvidence};
use crate::rules::expiry::newest::Newest;
use crate::rules::expiry::{Judge, KeptReason, SpecBook};
use crate::rules::hold::Held;
use crate::rules::instant::UtcInstant;
use crate::rules::kept::{KeptCounts, KeptSample};
use crate::rules::scan_limits::ScanLimits;

/// How many files' evidence is at hand at once, but for a tuple that has more.
const FILES_AT_HAND: usize = 50_000;

/// Checks the expired tuples of one table under one policy.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    table: &'a TableIdentity,
    judge: &'a Judge,
    book: &'a SpecBook,
    keepers: Keepers<'a>,
    /// Read when it is first needed.
    newest: Option<NewestRead>,
    rule: EvidenceRule,
    cross_check: CrossCheck,
    /// Read when it is first needed.
    readable: Option<Readable>,
    /// Specs whose marks were disproved: a writer that knew only an earlier definition still writes.
    disproved: BTreeSet<i64>,
}

/// What keeps tuples beside their evidence.
#[derive(Debug, Clone)]
pub struct Keepers<'a> {
    /// The table's holds.
    pub held: Held,
    /// So many of the newest time values stay, if the policy says so.
    pub keep_last: Option<i32>,
    /// How the newest are looked for.
    pub scan_limits: &'a ScanLimits,
    /// Beyond this many distinct partition values at a key they are not listed for that.
    pub max_values: i64,
}

impl<'a> Keepers<'a> {
    /// What keeps the tuples of the policy's table.
    pub fn of(policy: &Policy, scan_limits: &'a ScanLimits, max_values: i64) -> Self {
        Keepers { held: policy.guards.held(), keep_last: policy.keep_last, scan_limits, max_values }
    }
}

/// Which time values are the newest.
#[derive(Debug, Clone, Copy)]
struct NewestRead {
    newest: Newest,
    /// The catalog's head before they were looked for.
    as_of: i64,
}

/// A tuple that the evidence, or a hold, keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Withheld {
    pub tuple: ExpiredTuple,
    pub reason: KeptReason,
    /// When it will have expired if nothing changes.
    pub leaves_at: Option<UtcInstant>,
    /// The latest instant of its rows by their statistics.
    pub newest: Option<UtcInstant>,
}

/// What became of some tuples.
#[derive(Debug, Default)]
pub struct Examined {
    /// These are dropped, in the order in which they came.
    pub expired: Vec<ExpiredTuple>,
    /// These stay.
    pub withheld: Vec<Withheld>,
}

impl Examined {
    /// Tuples that stay for a reason that is no time.
    fn withhold(&mut self, tuples: Vec<ExpiredTuple>, reason: KeptReason) {
        let kept = |tuple| Withheld { tuple, reason, leaves_at: None, newest: None };
        self.withheld.extend(tuples.into_iter().map(kept));
    }
}

impl<'a> Evidence<'a> {
    /// By the rules of a judge.
    pub fn new(
        table: &'a TableIdentity,
        judge: &'a Judge,
        book: &'a SpecBook,
        cross_check: CrossCheck,
        keepers: Keepers<'a>,
    ) -> Self {
        let retention = judge.retention();
        let types = book.column_types.get(&retention.source_field_id);
        let rule = EvidenceRule {
            keep: retention.keep,
            cutoff: retention.cutoff(),
            units: BoundUnits::of_types(types),
            blocks_newer: cross_check == CrossCheck::Block,
        };
        let disproved = BTreeSet::new();
        Evidence {
            table,
            judge,
            book,
            keepers,
            newest: None,
            rule,
            cross_check,
            readable: None,
            disproved,
        }
    }

    /// The specs whose marks were disproved so far.
    pub fn disproved(&self) -> &BTreeSet<i64> {
        &self.disproved
    }

    /// The catalog's head before the newest values were looked for; `None` where they were not.
    pub fn newest_as_of(&self) -> Option<i64> {
        self.newest.map(|read| read.as_of)
    }

    /// What a commit asks of files that nobody has examined, where it ends tuples with these doubts.
    pub fn late_rule(&self) -> LateRule {
        let bounds = self.cross_check == CrossCheck::Block
            && self.readable.is_some_and(|readable| readable.column_stats);
        LateRule {
            field_id: bounds.then_some(self.judge.retention().source_field_id),
            rule: self.rule,
        }
    }

    /// Checks tuples by all of their live files. Takes no lock: whoever ends their files examines
    /// those that land meanwhile (see [`LateRule`]).
    ///
    /// Where `is_whole` is false, a tuple's `ids` may be some of its files, and all are looked up.
    pub async fn examine(
        &mut self,
        connection: &mut Session,
        tuples: Vec<ExpiredTuple>,
        is_whole: bool,
    ) -> sqlx::Result<Examined> {
        let readable = match self.readable {
            Some(readable) => readable,
            None => *self.readable.insert(may_read(connection).await?),
        };
        let mut examined = Examined::default();
        let tuples = self.not_held(tuples, &mut examined);
        let tuples = self.not_newest(connection, tuples, &mut examined).await?;
        let mut rest = tuples.into_iter().peekable();
        while rest.peek().is_some() {
            let (mut some, mut files) = (Vec::new(), 0);
            while let Some(tuple) =
                rest.next_if(|tuple| some.is_empty() || files + tuple.ids.len() <= FILES_AT_HAND)
            {
                files += tuple.ids.len();
                some.push(tuple);
            }
            if !is_whole {
                self.complete(connection, &mut some, readable).await?;
            }
            self.examine_some(connection, some, readable, &mut examined).await?;
        }
        Ok(examined)
    }

    /// Those of the tuples that no hold keeps.
    fn not_held(&self, tuples: Vec<ExpiredTuple>, examined: &mut Examined) -> Vec<ExpiredTuple> {
        if self.keepers.held.is_empty() {
            return tuples;
        }
        let is_held = |tuple: &ExpiredTuple| {
            let TupleOfSpec { spec_id, tuple } = &tuple.tuple;
            self.keepers.held.by(self.book, Some(*spec_id), tuple).is_some()
        };
        let (held, others): (Vec<_>, Vec<_>) = tuples.into_iter().partition(is_held);
        examined.withhold(held, KeptReason::Held);
        others
    }

    /// Those of the tuples that are not among the newest, where the policy keeps these.
    ///
    /// Which are the newest is read once. That stays true, or keeps more than it should, as long as no file of the table
    /// ends but by compaction, which leaves each value its rows, and by drops of what these values let go, which are
    /// all older. A commit proves that no other hand was at it since ([`Self::newest_as_of`]).
    async fn not_newest(
        &mut self,
        connection: &mut Session,
        tuples: Vec<ExpiredTuple>,
        examined: &mut Examined,
    ) -> sqlx::Result<Vec<ExpiredTuple>> {
        let Some(wanted) = self.keepers.keep_last.filter(|_| !tuples.is_empty()) else {
            return Ok(tuples);
        };
        let NewestRead { newest, .. } = match self.newest {
            Some(read) => read,
            None => *self.newest.insert(self.read_newest(connection, wanted).await?),
        };
        let is_newest = |tuple: &ExpiredTuple| {
            let TupleOfSpec { spec_id, tuple } = &tuple.tuple;
            self.judge.is_among(newest, Some(*spec_id), tuple)
        };
        let (kept, others): (Vec<_>, Vec<_>) = tuples.into_iter().partition(is_newest);
        examined.withhold(kept, KeptReason::AmongNewest);
        Ok(others)
    }

    /// The head is read first: what is committed after that is found by whoever asks what was.
    async fn read_newest(&self, connection: &mut Session, wanted: i32) -> sqlx::Result<NewestRead> {
        let watermark = current_watermark(connection, self.table.catalog_id).await?;
        let Some(watermark) = watermark else {
            return Ok(NewestRead { newest: Newest::All, as_of: i64::MIN });
        };
        let Keepers { scan_limits, max_values, .. } = self.keepers;
        let finder = Finder { table: self.table, judge: self.judge, scan_limits };
        let newest = newest_values(connection, finder, wanted, max_values).await?;
        Ok(NewestRead { newest, as_of: watermark.through_snapshot })
    }

    async fn examine_some(
        &mut self,
        connection: &mut Session,
        tuples: Vec<ExpiredTuple>,
        readable: Readable,
        examined: &mut Examined,
    ) -> sqlx::Result<()> {
        let has_bounds = readable.column_stats;
        let field_id = has_bounds.then_some(self.judge.retention().source_field_id);
        let checked = tuples.iter().filter(|tuple| self.is_checked(tuple, readable));
        let ids: Vec<i64> = checked.flat_map(|tuple| tuple.ids.iter().copied()).collect();
        let mut by_id: HashMap<i64, FileEvidence> = HashMap::with_capacity(ids.len());
        for piece in ids.chunks(PIECE) {
            let found = evidence_of(connection, self.table.catalog_id, piece, field_id);
            let found = found.await?;
            by_id.extend(found.into_iter().map(|file| (file.data_file_id, file)));
        }
        let files_of = |tuple: &ExpiredTuple| -> Vec<FileEvidence> {
            tuple.ids.iter().filter_map(|id| by_id.get(id).copied()).collect()
        };
        // A writer that has not stopped takes the proof from every tuple at hand, so all are searched
        // for its files first.
        for tuple in tuples.iter().filter(|tuple| !tuple.doubt.is_none()) {
            for file in files_of(tuple) {
                let disproved = self.rule.disproved(tuple.range_end, &tuple.doubt, &file);
                self.disproved.extend(disproved);
            }
        }
        for mut tuple in tuples {
            let files = files_of(&tuple);
            // Where no statistics can contradict it, order proves nothing either.
            let revoked = match has_bounds {
                true => self.disproved.clone(),
                false => tuple.doubt.since.keys().copied().collect(),
            };
            match self.rule.check(tuple.range_end, &tuple.doubt, &files, &revoked) {
                EvidenceVerdict::Expired { newest } => {
                    tuple.newest = newest;
                    examined.expired.push(tuple);
                }
                EvidenceVerdict::Kept { reason, leaves_at, newest } => {
                    examined.withheld.push(Withheld { tuple, reason, leaves_at, newest });
                }
            }
        }
        Ok(())
    }

    /// Whether anything is asked of the files of a tuple.
    fn is_checked(&self, tuple: &ExpiredTuple, readable: Readable) -> bool {
        !tuple.doubt.is_none() || readable.column_stats && self.cross_check != CrossCheck::Off
    }

    /// Gives each tuple whose files are asked all of its live ones.
    async fn complete(
        &self,
        connection: &mut Session,
        tuples: &mut [ExpiredTuple],
        readable: Readable,
    ) -> sqlx::Result<()> {
        let mut tuples: Vec<&mut ExpiredTuple> =
            tuples.iter_mut().filter(|tuple| self.is_checked(tuple, readable)).collect();
        if tuples.is_empty() {
            return Ok(());
        }
        let wanted: Vec<TupleOfSpec> = tuples.iter().map(|tuple| tuple.tuple.clone()).collect();
        let lookup_keys: Vec<usize> = tuples.iter().map(|tuple| tuple.lookup_key).collect();
        let search = Search {
            catalog_id: self.table.catalog_id,
            table_id: self.table.table_id,
            tuples: &wanted,
            lookup_keys: &lookup_keys,
            from_id: 0,
        };
        tuples.iter_mut().for_each(|tuple| {
            tuple.ids.clear();
            tuple.counts = Counts::default();
        });
        visit(connection, &search, |tuple_no, file| {
            let at = usize::try_from(tuple_no).ok();
            if let Some(tuple) = at.and_then(|at| tuples.get_mut(at)) {
                tuple.ids.push(file.data_file_id);
                tuple.counts += file.counts();
            }
            ControlFlow::Continue(())
        })
        .await?;
        tuples.iter_mut().for_each(|tuple| tuple.ids.sort_unstable());
        Ok(())
    }

    /// Counts what the evidence keeps among what stays.
    pub fn count<'w>(
        &self,
        withheld: impl IntoIterator<Item = &'w Withheld>,
        kept_counts: &mut KeptCounts,
    ) {
        for kept in withheld {
            let ExpiredTuple { tuple, display, counts, range_end, .. } = &kept.tuple;
            let sample = KeptSample {
                spec_id: Some(tuple.spec_id),
                tuple: tuple.tuple.clone(),
                display: display.clone(),
                files: counts.files,
                interpretations: self.judge.interpretations(Some(tuple.spec_id), &tuple.tuple),
                range_end: Some(*range_end),
                newest_row: kept.newest,
                leaves_at: kept.leaves_at,
            };
            kept_counts.keep_sample(kept.reason, sample);
        }
    }
}
