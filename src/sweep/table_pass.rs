//! A pass over one table: find, drop, remember. Under a policy that observes the same is done, but for the commits.
//!
//! What is due by the calendar comes first, of all tables; then what came since the watermark. A **full** pass, the
//! first one and every `sweep.full_pass_every`, trusts nothing: it looks up every expired value there is and then
//! reads all of the table's files in pieces, which finds what was overlooked and counts what stays. All go in batches,
//! so that no more than one batch is in memory, and no transaction or statement is open while commits are made or
//! paused for.

mod due;
mod expired_batches;
mod full_scan;
mod late;
mod looked;
mod radius;
mod recall;
mod wait;

use std::collections::{BTreeSet, HashMap, HashSet};

use anyhow::Context as _;

use super::calendar::RowKey;
use super::commits::Work;
use super::context::Context;
use super::evidence::{Evidence, Keepers, Withheld};
use super::expired::ExpiredTuple;
use super::lease::LeasedSession;
use super::memory::{BookDigest, Memory};
use super::plan::dates_nothing;
use super::report::RESTORED;
use super::sorter::in_order;
use super::stalled::{Stalled, stalled};
use super::waiting::{Remembered, WaitReason, Waiting, WaitingList};
use crate::catalog::finder::Finder;
use crate::catalog::marks::revoke_marks;
use crate::catalog::restore::note_head;
use crate::catalog::session::Session;
use crate::catalog::tables::{FileWatermark, TableIdentity};
use crate::catalog::tuples::TupleOfSpec;
use crate::catalog::values::has_lookup_index;
use crate::events;
use crate::policy::Policy;
use crate::rules::expiry::SpecBook;
use crate::rules::fair_queue::{Came, Step};
use crate::rules::instant::UtcInstant;
use crate::rules::kept::{Health, KeptCounts};
use looked::AllLeft;

/// What a pass found out beside what it dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// What stays by its values, and when that was counted; `None` if it never was.
    pub kept_counts: Option<(KeptCounts, UtcInstant)>,
    /// What has expired by its values and stays for its evidence, as this pass found it.
    pub withheld: KeptCounts,
    /// How many files wait of which it is unknown when they expire.
    pub undatable_waiting: i64,
    /// Whether the policy dates nothing of its table.
    pub health: Health,
    /// Whether everything was looked at.
    pub is_full: bool,
    /// Whether the server has the lookup index.
    pub has_index: bool,
    /// The tuples that the server refuses to end, in words.
    pub poisoned: Vec<String>,
    /// Whether the table's feed has stalled; asked at the end of a full pass.
    pub stalled: Option<Stalled>,
}

/// One table in one pass.
pub struct Enforcement<'a> {
    finder: Finder<'a>,
    context: &'a Context<'a>,
    policy: &'a Policy,
    book: &'a SpecBook,
    work: Work<'a>,
    memory: Memory,
    /// As it was read, or written last.
    remembered: Option<Memory>,
    /// Files with lower ids were seen by the passes before.
    seen_below: i64,
    /// The session in which the memory was read.
    number: u64,
    /// Whether what waits is left alone until its pause is over.
    heeds_pauses: bool,
    /// Whether this pass looked up all that had expired.
    has_seen_all: bool,
    /// What the look at hand left.
    left: AllLeft,
    /// Of the look at hand: when the first value ended that was not looked up.
    unlooked_from: Option<UtcInstant>,
    /// The values, with their keys, of which something stayed in this pass.
    stayed: BTreeSet<(i32, String)>,
    /// Without the lookup index: the tuples that stayed in this time slice.
    stayed_here: HashSet<TupleOfSpec>,
    /// The rows that a full scan has put in, with the last ends that they had.
    put_before: HashMap<RowKey, UtcInstant>,
    evidence: Evidence<'a>,
    /// The specs whose marks were taken back in this pass.
    revoked: BTreeSet<i64>,
    /// What the evidence keeps, as this pass met it.
    withheld: HashMap<TupleOfSpec, Withheld>,
    waiting: WaitingList,
    /// What waited when the pass began.
    waited: Remembered,
    /// Tuples that failed alone, with what the server said, while no commit of the table went through.
    suspects: Vec<(ExpiredTuple, String, String)>,
    /// How many tuples that are known to fail this time slice has tried again.
    looked_again: usize,
    /// Under a policy that observes: what would have been dropped.
    observed: HashMap<TupleOfSpec, ExpiredTuple>,
    cutoff: UtcInstant,
    /// Read before the first look-up of the pass.
    current_watermark: FileWatermark,
    found_any: bool,
    has_index: bool,
    /// Whether this time slice has looked anything up.
    has_begun: bool,
    /// How far it has come.
    came: Came,
    /// How many late files were counted before this pass.
    late_before: i64,
    /// Whether tuples were left for when all late files are counted.
    has_uncounted: bool,
    /// Whether late files were so many that a full pass has begun.
    has_begun_full: bool,
}

/// How far a step came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// All of it was tried.
    All,
    /// No further commit is made in this pass.
    Until,
}

impl Reached {
    fn is_all(self) -> bool {
        self == Self::All
    }
}

impl<'a> Enforcement<'a> {
    /// Prepares a pass over the table of `lookup`.
    pub fn new(
        finder: Finder<'a>,
        policy: &'a Policy,
        book: &'a SpecBook,
        context: &'a Context<'a>,
    ) -> Self {
        let cutoff = finder.judge.retention().cutoff();
        let watermark = FileWatermark { files_below: 0, through_snapshot: 0 };
        Enforcement {
            finder,
            context,
            policy,
            book,
            work: Work::new(finder.table, policy, cutoff, context),
            memory: Memory::new(watermark, BookDigest::of(book, policy.source_field_id)),
            remembered: None,
            seen_below: i64::MIN,
            number: 0,
            heeds_pauses: true,
            has_seen_all: false,
            left: AllLeft::new(),
            unlooked_from: None,
            stayed: BTreeSet::new(),
            stayed_here: HashSet::new(),
            put_before: HashMap::new(),
            evidence: Evidence::new(
                finder.table,
                finder.judge,
                book,
                context.settings.cross_check,
                Keepers::of(policy, &context.settings.scan_limits, context.settings.max_values),
            ),
            revoked: BTreeSet::new(),
            withheld: HashMap::new(),
            waiting: WaitingList::of(Remembered::default(), context.now, context.settings.pauses()),
            waited: Remembered::default(),
            suspects: Vec::new(),
            looked_again: 0,
            observed: HashMap::new(),
            cutoff,
            current_watermark: watermark,
            found_any: false,
            has_index: true,
            has_begun: false,
            came: Came::default(),
            late_before: 0,
            has_uncounted: false,
            has_begun_full: false,
        }
    }

    /// How far the sweep came.
    pub fn came(&self) -> Came {
        let owes_rest = self.memory.owes_full_pass || self.memory.full_scan.is_some();
        Came { owes_rest, ..self.came }
    }

    /// What was done, whether or not the sweep finished; and what would have been.
    pub fn into_work(self) -> (Work<'a>, Vec<ExpiredTuple>) {
        let mut observed: Vec<_> = self.observed.into_values().collect();
        in_order(&mut observed);
        (self.work, observed)
    }

    /// Sweeps the table with what is remembered of it, and remembers how far that came.
    ///
    /// # Errors
    /// Looking for files failed: what was remembered up to then stands, and the next pass goes on from there.
    pub async fn sweep(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<Findings> {
        let connection = session.connection();
        // Before anything is looked up: what is committed from here on is late, for this pass and
        // for the next one.
        self.current_watermark = self.noted_watermark(connection).await?;
        self.has_index = has_lookup_index(connection).await?;
        let is_full = self.recall(session).await?;
        let full_pass_before = self.memory.full_pass_at;
        if is_full && let Some(files) = self.finder.small_table(session.connection()).await? {
            if self.full_at_once(session, files).await?.is_all() {
                self.came.through = Some(Step::Rest);
            }
        } else {
            if is_full {
                self.begin_full_scan(session, true).await?;
            }
            self.in_steps(session).await?;
        }
        self.forget_unmet();
        self.forget_radius();
        self.remember(session).await?;
        self.remember_waiting(session).await?;
        let health = self.health(session.connection()).await?;
        let stalled = match self.memory.full_pass_at == full_pass_before {
            true => None,
            false => self.stalled(session.connection()).await,
        };
        let kept_counts = self.memory.kept_counts.take();
        let mut withheld = KeptCounts::default();
        self.evidence.count(self.withheld.values(), &mut withheld);
        let undatable_waiting = self.waiting.undatable_files();
        let poisoned = self.waiting.waiting_for(WaitReason::Poisoned);
        let poisoned = poisoned.into_iter().map(Waiting::describe).collect();
        self.report_waiting();
        let has_index = self.has_index;
        let is_full = is_full || self.has_begun_full;
        Ok(Findings {
            kept_counts,
            withheld,
            undatable_waiting,
            health,
            is_full,
            has_index,
            poisoned,
            stalled,
        })
    }

    /// The watermark of this moment, with the head noted that it is of: should the catalog be restored to a time
    /// before, whatever is remembered by it is told to be of the time after.
    async fn noted_watermark(&self, connection: &mut Session) -> anyhow::Result<FileWatermark> {
        let noted = note_head(connection, self.finder.table.catalog_id, self.context.now);
        let noted = noted.await?.context("the catalog is gone")?;
        anyhow::ensure!(!noted.is_restored, RESTORED);
        Ok(noted.watermark)
    }

    /// What is due, which a few short statements tell, whatever the table and its neighbours hold; then what came
    /// late, whose values are put into the calendar, and looked up where they have expired; then what a full pass
    /// lists, then the full scan: each only where all
    /// before it was tried, but for late files, whose values are put into the calendar all the same. The time slice
    /// begins after the step that the pass is through with, and ends with its last one: what is due of other
    /// tables comes before what is late of this one.
    ///
    /// Where values may be ambiguous late files come first, in any time slice: one of them may show that a stale writer
    /// goes on, which takes the proof from what is due.
    async fn in_steps(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<()> {
        let (done, through) = (self.context.done, self.context.through);
        self.came.through = done;
        if self.finder.judge.may_doubt() && !self.late(session).await?.is_all() {
            return Ok(());
        }
        let mut is_all = done.is_some() || self.due(session).await?.is_all();
        self.came.through = self.came.through.max(is_all.then_some(Step::Due));
        if through == Step::Due {
            // A wake comes to no later step, and what stays due would wake again at once.
            if self.has_uncounted {
                self.late(session).await?;
            }
            return Ok(());
        }
        if done < Some(Step::Late) {
            is_all &= self.late(session).await?.is_all();
        }
        if !is_all {
            return Ok(());
        }
        if !self.has_index {
            // What came late and has expired.
            self.due(session).await?;
        }
        self.came.through = Some(Step::Late);
        if through == Step::Late {
            return Ok(());
        }
        self.context.begin_rest();
        // However short the time slice is, it gets somewhere here as well.
        (self.came.is_at_rest, self.has_begun) = (true, false);
        if self.memory.owes_full_pass && self.memory.full_scan.is_none() {
            // So many files came late.
            self.waiting.heed_no_pause();
            self.heeds_pauses = false;
            self.has_begun_full = true;
            self.begin_full_scan(session, true).await?;
        }
        if !self.list(session).await?.is_all() {
            return Ok(());
        }
        if !self.is_over() {
            return self.read_on(session).await;
        }
        // What a full scan is to find was not looked at.
        if self.memory.full_scan.as_ref().is_some_and(|full_scan| full_scan.is_listing) {
            self.work.cut_short();
        }
        Ok(())
    }

    /// Has the marks that files disproved noted anew, a window from now, and says so. Before anything
    /// else is dropped: whatever becomes of this pass, the next one must not rely on them.
    pub(super) async fn note_writers(&mut self, connection: &mut Session) -> sqlx::Result<()> {
        let disproved: Vec<i64> =
            self.evidence.disproved().difference(&self.revoked).copied().collect();
        if disproved.is_empty() {
            return Ok(());
        }
        self.revoked.extend(&disproved);
        let table = self.finder.table;
        let now = self.context.time_of_moment(connection).await?;
        let window = self.context.settings.stale_writer_window;
        revoke_marks(connection, table, &disproved, now, window).await?;
        let TableIdentity { catalog, namespace, table, .. } = table;
        tracing::warn!(
            event = events::STALE_WRITER_SEEN,
            catalog,
            namespace,
            table,
            specs = serde_json::to_string(&disproved).unwrap_or_default(),
            trusted_again_at = %now.plus(window),
            "A file's column statistics contradict its partition value, long after the earlier \
             partition spec ended: a writer may still use that spec. Ambiguous values are kept, \
             unless column statistics give their time, until no such file is added for \
             guard.stale_writer_window"
        );
        Ok(())
    }

    async fn stalled(&self, connection: &mut Session) -> Option<Stalled> {
        // It is told beside what the pass did, and fails nothing of that.
        stalled(connection, self.finder, self.context.settings.max_values).await.unwrap_or_else(
            |error| {
                tracing::debug!(%error, "it is not known whether the feed of a table has stalled");
                None
            },
        )
    }

    async fn health(&self, connection: &mut Session) -> sqlx::Result<Health> {
        let counted = self.memory.kept_counts.as_ref();
        match counted {
            _ if self.found_any => Ok(Health::Healthy),
            Some((kept_counts, _)) if kept_counts.health() == Health::Healthy => {
                Ok(Health::Healthy)
            }
            Some((_, at)) if *at == self.context.now => Ok(Health::Unhealthy),
            // What was counted some time ago, or never, may have changed: the newest files tell.
            _ => {
                let (table, judge) = (self.finder.table, self.finder.judge);
                Ok(match dates_nothing(connection, table, judge).await? {
                    true => Health::Unhealthy,
                    false if counted.is_some() => Health::Healthy,
                    false => Health::Unknown,
                })
            }
        }
    }
}
