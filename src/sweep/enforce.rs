//! A pass over one table whose policy is enforced: find, drop, remember how far it got.
//!
//! Two ways lead to the same end. An **incremental** pass trusts the cursor: it counts out what came
//! to expire since, looks only that up, and reads only the files that came since; with nothing to do
//! it costs a few short statements, whatever the table and its neighbours hold. A **full** pass, the
//! first one and every `sweep.full_pass_every`, trusts nothing: it looks up every expired text there
//! is and then reads all of the table's files in pieces, which finds what was overlooked and counts
//! what stays. Both go in rounds: find some, drop them, find more; so that no more than one round is
//! in memory, and no transaction or statement is open while commits are made or paused for.

mod late;
mod reading;
mod rounds;
mod wait;

use std::collections::{BTreeSet, HashMap, HashSet};

use super::census::{Census, Health};
use super::context::Context;
use super::cursor::{Basis, Claim, Cursor, Memory, Stayed, Way, store};
use super::evidence::{Evidence, Withheld};
use super::lease::LeasedSession;
use super::lookup::{Candidate, Lookup};
use super::plan::{ExpiredTuple, dates_nothing, list_expired};
use super::sorter::Sorter;
use super::waiting::{Waiting, WaitingList};
use super::work::Work;
use crate::catalog::discovery::{TupleOfSpec, has_lookup_index};
use crate::catalog::live_file::LiveFile;
use crate::catalog::marks::revoke_marks;
use crate::catalog::session::Session;
use crate::catalog::tables::{Marks, TableIdentity};
use crate::events;
use crate::instant::UtcInstant;
use crate::policy::Policy;
use crate::window::SpecBook;

/// What a pass found out beside what it dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Findings {
    /// What stays by its values, and when that was counted; `None` if it never was.
    pub census: Option<(Census, UtcInstant)>,
    /// What has expired by its values and stays for its evidence, as this pass found it.
    pub withheld: Census,
    /// Whether the policy dates nothing of its table.
    pub health: Health,
    /// Whether everything was looked at.
    pub is_full: bool,
    /// Whether the server has the lookup index.
    pub has_index: bool,
    /// The tuples that the server refuses to end, in words.
    pub poisoned: Vec<String>,
}

/// One table in one pass.
pub struct Enforcement<'a> {
    lookup: Lookup<'a>,
    context: &'a Context<'a>,
    work: Work<'a>,
    memory: Memory,
    basis: Basis,
    /// The specs with a time field on the policy's column.
    specs: BTreeSet<i64>,
    /// What may be remembered as looked at.
    claim: Option<Claim>,
    /// Whether this pass looked up all that had expired.
    has_seen_all: bool,
    stayed: Stayed,
    /// Without the lookup index: the tuples that stayed in this turn.
    stayed_here: HashSet<TupleOfSpec>,
    evidence: Evidence<'a>,
    /// The specs whose marks were taken back in this pass.
    revoked: BTreeSet<i64>,
    /// What the evidence keeps, as this pass met it.
    withheld: HashMap<TupleOfSpec, Withheld>,
    waiting: WaitingList,
    /// Tuples that failed alone, with what the server said, while no commit of the table went through.
    suspects: Vec<(ExpiredTuple, String, String)>,
    /// How many tuples that are known to fail this turn has tried again.
    looked_again: usize,
    cutoff: UtcInstant,
    /// Read before the first look-up of the pass.
    marks: Marks,
    found_any: bool,
    has_index: bool,
    /// Whether this turn has looked anything up.
    has_begun: bool,
}

/// How far a step came.
enum Reached {
    /// All of it was tried.
    All,
    /// No further commit is made in this pass. What expired by an end of a range from this one on
    /// was not looked at; where it is `None`, all was.
    Until(Option<UtcInstant>),
}

impl Reached {
    fn is_all(&self) -> bool {
        matches!(self, Self::All)
    }

    fn unseen(&self) -> Option<UtcInstant> {
        match self {
            Self::All => None,
            Self::Until(unseen) => *unseen,
        }
    }
}

impl<'a> Enforcement<'a> {
    /// Prepares a pass over the table of `lookup`.
    pub fn new(
        lookup: Lookup<'a>,
        policy: &'a Policy,
        book: &SpecBook,
        context: &'a Context<'a>,
    ) -> Self {
        let cutoff = lookup.judge.retention().cutoff();
        let dated = lookup.judge.specs().filter(|(_, spec)| spec.lead_position().is_some());
        Enforcement {
            lookup,
            context,
            work: Work::new(lookup.table, policy, cutoff, context),
            memory: Memory::default(),
            basis: Basis::new(lookup.table.table_uuid, policy.revision, book),
            specs: dated.map(|(spec_id, _)| spec_id).collect(),
            claim: None,
            has_seen_all: false,
            stayed: Stayed::default(),
            stayed_here: HashSet::new(),
            evidence: Evidence::new(lookup.table, lookup.judge, book, context.settings.cross_check),
            revoked: BTreeSet::new(),
            withheld: HashMap::new(),
            waiting: WaitingList::default(),
            suspects: Vec::new(),
            looked_again: 0,
            cutoff,
            marks: Marks { files_below: 0, through_snapshot: 0 },
            found_any: false,
            has_index: true,
            has_begun: false,
        }
    }

    /// What was done, whether or not the sweep came to its end.
    pub fn into_work(self) -> Work<'a> {
        self.work
    }

    /// Sweeps the table with what is remembered of it, and remembers how far that came.
    ///
    /// # Errors
    /// Looking for files failed: then nothing new is remembered, and the next pass looks again.
    pub async fn sweep(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<Findings> {
        let (now, table) = (self.context.now, self.lookup.table);
        let connection = session.connection();
        // Before anything is looked up: what is committed from here on is late, for this pass and
        // for the next one.
        self.marks = self.lookup.noted_marks(connection, now).await?;
        self.has_index = has_lookup_index(connection).await?;
        let loaded = store::load(connection, table, &self.basis, &self.specs).await?;
        self.memory = loaded.checked(self.marks, self.cutoff, now);
        self.waiting = WaitingList::of(std::mem::take(&mut self.memory.waiting), now);
        let way = self.memory.way(now, self.context.settings.full_pass_every);
        let is_full = match way {
            Way::Incremental(cursor) => !self.incremental(session, &cursor).await?,
            Way::Full => true,
        };
        if is_full {
            self.full(session).await?;
        } else if !self.is_over() {
            self.read_on(session).await?;
        }
        self.forget_unmet();
        self.save(session).await?;
        let health = self.health(session.connection()).await?;
        let census = self.memory.census.take();
        let mut withheld = Census::default();
        self.evidence.count(self.withheld.values(), &mut withheld);
        let poisoned = self.waiting.poisoned().into_iter().map(Waiting::in_words).collect();
        let has_index = self.has_index;
        Ok(Findings { census, withheld, health, is_full, has_index, poisoned })
    }

    /// Remembers what was looked at so far.
    async fn save(&mut self, session: &mut LeasedSession<'_>) -> sqlx::Result<()> {
        if let Some(claim) = &self.claim {
            self.memory.cursor = Some(claim.cursor(&self.stayed));
        }
        self.memory.waiting = self.waiting.to_remember();
        let (table, connection) = (self.lookup.table, session.connection());
        store::save(connection, table, &self.basis, &self.specs, &self.memory).await
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
        let table = self.lookup.table;
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
             partition spec ended: a writer may still use that spec. Doubtful values are kept, \
             unless statistics date them, until no such file came for guard.stale_writer_window"
        );
        Ok(())
    }

    /// Drops what came to expire, or came late, since the cursor. False if the cursor is too old
    /// for that; nothing was done then.
    async fn incremental(
        &mut self,
        session: &mut LeasedSession<'_>,
        cursor: &Cursor,
    ) -> anyhow::Result<bool> {
        let Some(candidates) = self.candidates(session, cursor).await? else { return Ok(false) };
        let (lookup, connection) = (self.lookup, session.connection());
        let is_table_shorter = !candidates.is_empty()
            && (!self.has_index || lookup.is_crowded(connection, &candidates).await?);
        if is_table_shorter {
            if let Some(files) = lookup.small_table(connection).await? {
                let reached = self.drop_files(session, files).await?;
                self.claim_at(self.marks, reached.unseen());
                return Ok(true);
            }
            // Without the lookup index only the table itself can be asked.
            if !self.has_index {
                return Ok(false);
            }
        }
        let mut sorter = Sorter::for_commits(lookup.judge);
        let texts = candidates.iter().map(|text| (text.key_index, text.text.clone())).collect();
        let (reached, marks) = self.late(session, cursor.marks, &texts, &mut sorter).await?;
        if !reached.is_all() {
            let unseen = candidates.iter().map(|candidate| candidate.end).min();
            self.claim_at(marks, unseen);
            return Ok(true);
        }
        let all = |_, _: &LiveFile| true;
        let reached = self.look_up(session, &candidates, i64::MIN, all, &mut sorter).await?;
        self.claim_at(marks, reached.unseen());
        Ok(true)
    }

    /// The texts that came to expire since the cursor and those that it skipped, oldest first;
    /// `None` if they cannot be told, or are too many.
    async fn candidates(
        &self,
        session: &mut LeasedSession<'_>,
        cursor: &Cursor,
    ) -> anyhow::Result<Option<Vec<Candidate>>> {
        match self.has_index {
            true => Ok(self.lookup.expiring_since(session.connection(), cursor).await?),
            false => Ok(self.lookup.expiring_by_name(cursor)),
        }
    }

    /// Drops all that has expired, then reads all that stays.
    async fn full(&mut self, session: &mut LeasedSession<'_>) -> anyhow::Result<()> {
        let lookup = self.lookup;
        if let Some(files) = lookup.small_table(session.connection()).await? {
            let mut sorter = Sorter::for_commits(lookup.judge);
            files.into_iter().for_each(|file| sorter.add(file));
            let census = std::mem::take(&mut sorter.census);
            let reached = self.drop_found(session, &mut sorter).await?;
            self.claim_at(self.marks, reached.unseen());
            self.memory.reading = None;
            self.memory.census = Some((census, self.context.now));
            self.memory.full_pass_at = Some(self.context.now);
            return Ok(());
        }
        // A reading that had to do without the list goes on without it.
        let may_list = self.has_index
            && self.memory.reading.as_ref().is_none_or(|reading| !reading.is_listing);
        let list = match may_list {
            true => {
                let most = self.context.settings.max_values;
                list_expired(session.connection(), &lookup, most).await?
            }
            false => None,
        };
        let is_listing = list.is_none();
        if let Some(candidates) = list {
            let mut sorter = Sorter::for_commits(lookup.judge);
            let lead = |key_index, file: &LiveFile| lookup.is_lead(file, key_index);
            let reached = self.look_up(session, &candidates, i64::MIN, lead, &mut sorter).await?;
            self.claim_at(self.marks, reached.unseen());
            // Every text was listed: from here on the next pass goes on where this one stops.
            self.begin_reading(is_listing);
            if !reached.is_all() {
                return Ok(());
            }
            // The cursor is worth keeping before the long way through the table.
            self.save(session).await?;
        }
        self.begin_reading(is_listing);
        self.read_on(session).await
    }

    fn claim_at(&mut self, marks: Marks, unseen_from: Option<UtcInstant>) {
        self.has_seen_all = unseen_from.is_none() && marks == self.marks;
        self.claim = Some(Claim { marks, cutoff: self.cutoff, unseen_from });
    }

    async fn health(&self, connection: &mut Session) -> sqlx::Result<Health> {
        let counted = self.memory.census.as_ref();
        match counted {
            _ if self.found_any => Ok(Health::Healthy),
            Some((census, _)) if census.health() == Health::Healthy => Ok(Health::Healthy),
            Some((_, at)) if *at == self.context.now => Ok(Health::Unhealthy),
            // What was counted some time ago, or never, may have changed: the newest files tell.
            _ => {
                let (table, judge) = (self.lookup.table, self.lookup.judge);
                Ok(match dates_nothing(connection, table, judge).await? {
                    true => Health::Unhealthy,
                    false if counted.is_some() => Health::Healthy,
                    false => Health::Unknown,
                })
            }
        }
    }
}
