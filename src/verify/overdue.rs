//! Files that are live for longer than they should be.
//!
//! A file is overdue if all of this holds: its partition had expired one grace period ago and is expired now; its
//! policy is enforced and was the same one grace period ago; the file was there one grace period ago; its evidence
//! does not keep it, nor a hold, nor its number, nor is it among the newest that its policy keeps; no pause or hold of its catalog was over within the grace; and no pass has noted lately that its partition waits, which another check reports. Passes note
//! a limited number of waiting partitions; whether a partition beyond that number waits is unknown.
//! A value with two interpretations expires by the later one. The judge decides that, and nothing here computes it
//! again.

use std::collections::{HashMap, HashSet};

use super::Scene;
use super::probe::{Probe, Stop};
use super::report::Findings;
use super::report::Sample;
use super::waiting::{self, Noted, is_hindered};
use crate::catalog::checks::there::{WasThere, was_there};
use crate::catalog::checks::{Begin, begins};
use crate::catalog::finder::Finder;
use crate::catalog::live_file::LiveFile;
use crate::catalog::tuples::TupleOfSpec;
use crate::guards::revision::loosened_since;
use crate::policy::Policy;
use crate::policy::governed::Governed;
use crate::rules::blast_radius::RuleChange;
use crate::rules::expiry::{Judge, SpecBook, Verdict};
use crate::rules::instant::UtcInstant;
use crate::sweep::evidence::{Evidence, Keepers};
use crate::sweep::memory::store;
use crate::sweep::radius::{keep_back, rule_of};
use crate::sweep::sorter::Sorter;
use crate::sweep::waiting::Waiting;

/// So many files are asked for their beginning at once.
const PIECE: usize = 5_000;

/// Looks at every table with an enforced policy.
pub async fn check(
    probe: &mut Probe<'_>,
    scene: &Scene<'_>,
    findings: &mut Findings,
) -> Result<(), Stop> {
    scene.trusts_clock(probe).await?;
    let then = scene.now.minus(scene.settings.grace);
    let (mut by_retention, mut without_snapshot) = (0, 0);
    for table in scene.governed()? {
        let Some(policy) = table.enforced() else { continue };
        let loosened = loosened_since(probe.turn().await?, &table.live.identity, then).await?;
        match table.since {
            _ if loosened => continue,
            Some(since) if since > then => continue,
            Some(_) => {}
            None => {
                findings.gaps.push(format!(
                    "since when the property of {} is its policy is not known: hog_snapshot lacks the \
                     snapshot in which the table got it, and retention is not why",
                    scene.name(table.live.identity.table_id)
                ));
                continue;
            }
        }
        let scan = OverdueScan::new(probe, scene, table, policy, then).await?;
        let mut seen = Seen::default();
        let stopped = scan.all(probe, findings, &mut seen).await;
        by_retention += seen.by_retention;
        without_snapshot += seen.without_snapshot;
        if seen.may_wait > 0 {
            findings.gaps.push(format!(
                "of {} expired files of {} it is not known whether they wait: {} more partitions wait \
                 than are remembered one by one, and these may be among them",
                seen.may_wait,
                scene.name(table.live.identity.table_id),
                scan.noted.more_hindered
            ));
        }
        stopped?;
    }
    let gaps = [
        (by_retention, "snapshot_retention_seconds is shorter than verify.grace"),
        (
            without_snapshot,
            "hog_snapshot lacks those in which they began, and retention is not why",
        ),
    ];
    for (files, why) in gaps.into_iter().filter(|(files, _)| *files > 0) {
        findings.gaps.push(format!(
            "of {files} expired files it is not known since when they are there: {why}"
        ));
    }
    Ok(())
}

fn tuple_of(file: &LiveFile) -> Option<TupleOfSpec> {
    Some(TupleOfSpec { spec_id: file.spec_id?, tuple: file.tuple.clone() })
}

/// What was found out of one table.
#[derive(Default)]
struct Seen {
    /// Files of which it is not known since when they are there, for their snapshots have expired.
    by_retention: i64,
    /// Files of which it is not known, for their snapshots are missing.
    without_snapshot: i64,
    /// Files whose tuples may be among those that wait and are not remembered one by one.
    may_wait: i64,
    /// By tuple whether its evidence lets it go, and did a grace ago.
    is_late: HashMap<TupleOfSpec, bool>,
}

/// The scan of one table.
struct OverdueScan<'a> {
    scene: &'a Scene<'a>,
    table: &'a Governed,
    judge_now: Judge,
    judge_then: Judge,
    book: SpecBook,
    /// What was known a grace ago.
    book_then: SpecBook,
    then: UtcInstant,
    /// What passes have noted.
    noted: Noted,
    /// The tuples among that which they could not end.
    waiting: HashSet<TupleOfSpec>,
    /// What keeps its tuples beside their evidence.
    keepers: Keepers<'a>,
    /// What passes hold for its number, under the rule in force.
    rule_change: Option<RuleChange>,
}

impl<'a> OverdueScan<'a> {
    async fn new(
        probe: &mut Probe<'_>,
        scene: &'a Scene<'a>,
        table: &'a Governed,
        policy: &Policy,
        then: UtcInstant,
    ) -> Result<Self, Stop> {
        let identity = &table.live.identity;
        let (book, judge_now) = policy.judge(probe.turn().await?, identity, scene.now).await?;
        let book_then = book.clone().as_of(then);
        let judge_then = Judge::new(&book_then, policy.retention(then));
        let field = policy.source_field_id;
        let loaded = store::load(probe.turn().await?, identity, field).await?;
        let rule = rule_of(&book, judge_now.retention(), policy);
        let rule_change = loaded.and_then(|loaded| loaded.memory.rule_change);
        let rule_change = rule_change.filter(|change| change.rule == rule);
        let noted = waiting::noted(probe, scene, table).await?;
        let hindered = noted.tuples.iter().filter(|one| is_hindered(one.reason));
        let waiting = hindered.map(Waiting::key).collect();
        Ok(OverdueScan {
            scene,
            table,
            judge_now,
            judge_then,
            book,
            book_then,
            then,
            noted,
            waiting,
            keepers: Keepers::of(
                policy,
                &scene.settings.sweep.scan_limits,
                scene.settings.sweep.max_values,
            ),
            rule_change,
        })
    }

    /// All that had expired a grace ago, as far as the budget goes.
    async fn all(
        &self,
        probe: &mut Probe<'_>,
        findings: &mut Findings,
        seen: &mut Seen,
    ) -> Result<(), Stop> {
        let (table, scan_limits) =
            (&self.table.live.identity, &self.scene.settings.sweep.scan_limits);
        let finder = Finder { table, judge: &self.judge_then, scan_limits };
        let mut pages = finder.expired(None);
        while let Some(files) = pages.next(probe.turn().await?).await? {
            self.check_files(probe, files, findings, seen).await?;
        }
        Ok(())
    }

    /// Counts those of the files that are overdue.
    async fn check_files(
        &self,
        probe: &mut Probe<'_>,
        files: Vec<LiveFile>,
        findings: &mut Findings,
        seen: &mut Seen,
    ) -> Result<(), Stop> {
        let is_expired = |judge: &Judge, file: &LiveFile| {
            matches!(judge.judge(file.spec_id, &file.tuple), Verdict::Expired { .. })
        };
        let expired: Vec<_> = files
            .into_iter()
            .filter(|file| is_expired(&self.judge_then, file) && is_expired(&self.judge_now, file))
            .filter(|file| tuple_of(file).is_none_or(|tuple| !self.waiting.contains(&tuple)))
            .collect();
        let mut there = Vec::new();
        for piece in expired.chunks(PIECE) {
            let ids: Vec<i64> = piece.iter().map(|file| file.data_file_id).collect();
            let turn = probe.turn().await?;
            for begin in begins(turn, self.table.live.identity.catalog_id, &ids).await? {
                match was_there(&begin, self.then, &self.scene.state) {
                    WasThere::Yes => {
                        let is_it = |file: &&LiveFile| file.data_file_id == begin.data_file_id;
                        there.extend(piece.iter().find(is_it).map(|file| (begin, file.clone())));
                    }
                    WasThere::No => {}
                    WasThere::BelowFloor => seen.by_retention += 1,
                    WasThere::NoSnapshot => seen.without_snapshot += 1,
                }
            }
        }
        let overdue = self.not_withheld(probe, &there, seen).await?;
        for (begin, file) in overdue {
            if self.may_wait(file) {
                seen.may_wait = seen.may_wait.saturating_add(1);
                continue;
            }
            findings.count_more(1);
            if findings.has_room() {
                findings.show(self.sample(begin, file));
            }
        }
        Ok(())
    }

    /// Whether its tuple may be one that waits and is not remembered by itself.
    fn may_wait(&self, file: &LiveFile) -> bool {
        match self.judge_now.judge(file.spec_id, &file.tuple) {
            Verdict::Expired { range_end, .. } => {
                let from = self.noted.more_from;
                self.noted.more_hindered > 0 && from.is_none_or(|from| range_end >= from)
            }
            Verdict::Kept { .. } => false,
        }
    }

    /// Those of the files whose tuples the evidence lets go, and let go a grace ago.
    async fn not_withheld<'f>(
        &self,
        probe: &mut Probe<'_>,
        files: &'f [(Begin, LiveFile)],
        seen: &mut Seen,
    ) -> Result<Vec<(&'f Begin, &'f LiveFile)>, Stop> {
        let identity = &self.table.live.identity;
        let cross_check = self.scene.settings.sweep.cross_check;
        // A tuple is checked with all of its files, and so only once, however many pages have some.
        let mut left: HashSet<TupleOfSpec> = files
            .iter()
            .filter_map(|(_, file)| tuple_of(file))
            .filter(|tuple| !seen.is_late.contains_key(tuple))
            .collect();
        seen.is_late.extend(left.iter().map(|tuple| (tuple.clone(), false)));
        for (judge, book) in [(&self.judge_now, &self.book), (&self.judge_then, &self.book_then)] {
            if left.is_empty() {
                break;
            }
            let mut sorter = Sorter::once(judge);
            files
                .iter()
                .map(|(_, file)| file)
                .filter(|file| tuple_of(file).is_some_and(|tuple| left.contains(&tuple)))
                .for_each(|file| sorter.add(file.clone()));
            let keepers = self.keepers.clone();
            let mut evidence = Evidence::new(identity, judge, book, cross_check, keepers);
            let examined = evidence.examine(probe.turn().await?, sorter.take(), false).await?;
            let mut expired = examined.expired;
            if let Some(change) = &self.rule_change {
                let (turn, retention) = (probe.turn().await?, judge.retention());
                expired = keep_back(turn, identity, change, retention, expired).await?.0;
            }
            left = expired.into_iter().map(|expired| expired.tuple).collect();
        }
        seen.is_late.extend(left.into_iter().map(|tuple| (tuple, true)));
        let is_late = |file: &LiveFile| tuple_of(file).and_then(|tuple| seen.is_late.get(&tuple));
        Ok(files
            .iter()
            .filter(|(_, file)| is_late(file) == Some(&true))
            .map(|(begin, file)| (begin, file))
            .collect())
    }

    fn sample(&self, begin: &Begin, file: &LiveFile) -> Sample {
        let ended = match self.judge_now.judge(file.spec_id, &file.tuple) {
            Verdict::Expired { range_end, .. } => Some(range_end),
            Verdict::Kept { .. } => None,
        };
        let keep = self.judge_now.retention().keep;
        let expiry = ended.map(|end| format!(" since {}", end.plus(keep)));
        Sample {
            table: Some(self.scene.name(self.table.live.identity.table_id)),
            partition: Some(self.judge_now.display(file.spec_id, &file.tuple)),
            data_file_id: Some(begin.data_file_id),
            snapshot_id: Some(begin.begin_snapshot),
            problem: format!("it has expired{}, and is live", expiry.unwrap_or_default()),
            ..Sample::default()
        }
    }
}
